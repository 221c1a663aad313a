//! The head of the PROXY protocol.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_site::fuzz::proxy_protocol(data));
