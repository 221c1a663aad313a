//! The web server's configuration in TOML.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_site::fuzz::configuration(data));
