//! Mighttpd's route file.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_site::fuzz::mighty_routes(data));
