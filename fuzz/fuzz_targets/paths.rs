//! The path resolver.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_http::fuzz::paths(data));
