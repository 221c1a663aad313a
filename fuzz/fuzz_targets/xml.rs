//! The parsers of `pipeline`: xml.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_pipeline::fuzz::xml(data));
