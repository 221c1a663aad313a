//! The parsers of `pipeline`: records.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_pipeline::fuzz::records(data));
