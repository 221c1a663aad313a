//! Proofs by NSEC and NSEC3 records that a name or a type does not exist.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_dns::fuzz::denials(data));
