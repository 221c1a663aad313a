//! The request parser on pipelined requests.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_http::fuzz::requests(data));
