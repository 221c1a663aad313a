//! The parser of the heads of answers.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_client::fuzz::answers(data));
