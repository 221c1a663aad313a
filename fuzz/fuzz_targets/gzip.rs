//! The parsers of `pipeline`: compressed streams.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_pipeline::fuzz::gzip(data));
