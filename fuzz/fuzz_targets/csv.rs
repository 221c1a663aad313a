//! The parsers of `pipeline`: csv.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_pipeline::fuzz::csv(data));
