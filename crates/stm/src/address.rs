//! [`VarAddress`]: by what the log of an attempt knows a variable.
//!
//! The log keeps variables and compares them, and looks into none. So the log lies below the
//! variables (`variable.rs`), which need the sessions, which have the logs.

use std::hash::Hasher;
use std::ptr::NonNull;

/// The address of a variable, with the right to use it as a pointer. `variable.rs` makes it, and
/// alone makes a reference of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct VarAddress(pub(crate) NonNull<()>);

impl VarAddress {
    /// The bit of the variable in a filter of 64 bits.
    #[inline(always)]
    pub(crate) fn bit(self) -> u64 {
        1 << (spread(self.0.addr().get() as u64) >> 58)
    }
}

/// Fibonacci hashing of an address: the upper bits of the result are the ones to use.
#[inline(always)]
fn spread(address: u64) -> u64 {
    address.wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

/// Hashes the address of a variable. The addresses come from the allocator, so no input of the
/// program can make them collide.
#[derive(Default)]
pub(crate) struct AddressHasher(u64);

impl Hasher for AddressHasher {
    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = spread(self.0 ^ u64::from(*byte));
        }
    }

    #[inline]
    fn write_usize(&mut self, address: usize) {
        let hash = spread(address as u64);
        // The table takes its place from the lower bits.
        self.0 = hash ^ hash >> 32;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}
