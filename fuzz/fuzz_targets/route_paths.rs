//! The canonical form of paths, in which routes are selected.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_site::fuzz::paths(data));
