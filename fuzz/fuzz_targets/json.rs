//! The parsers of `pipeline`: json.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_pipeline::fuzz::json(data));
