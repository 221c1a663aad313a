//! Zone files, which include one another.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_dns::fuzz::zone_files(data));
