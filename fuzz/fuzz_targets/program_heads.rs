//! The parser of the heads that CGI programs write.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_gateway::fuzz::program_heads(data));
