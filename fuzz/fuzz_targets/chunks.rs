//! The decoder of chunked bodies, whole and in pieces.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_http::fuzz::chunks(data));
