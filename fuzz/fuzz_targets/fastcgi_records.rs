//! The decoder of FastCGI's records, whole and in pieces, and of its parameters.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_gateway::fuzz::records(data));
