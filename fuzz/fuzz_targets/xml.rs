//! The parsers of `pipeline`: xml.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_coroutine::fuzz::xml(data));
