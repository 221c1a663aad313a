//! DNS messages: queries, answers of other servers, and what follows from them.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| selvedge_dns::fuzz::messages(data));
