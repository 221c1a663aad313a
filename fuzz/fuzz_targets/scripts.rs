//! The language of the shell: its parser, its printer, its check.
#![no_main]

libfuzzer_sys::fuzz_target!(|text: &str| selvedge_pipe::fuzz::script(text));
