//! Frames, times and uses of sockets on a network stack.
#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| {
    selvedge_stack::fuzz::frames(data);
});
