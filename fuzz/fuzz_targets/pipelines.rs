//! Pipelines of the streaming shell that the bytes make, at each cut of their input.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| drop(selvedge_pipe::fuzz::pipeline(data)));
