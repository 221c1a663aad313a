//! The random numbers and checksums of the programs of STAMP. The Haskell programs have the same.

/// A xorshift generator.
#[derive(Clone, Debug)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        Random((seed + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15))
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `bound`, which is below 2^32.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        ((self.next() >> 32) * bound) >> 32
    }
}

/// The part of a report's number that a float keeps exactly.
pub(super) const EXACT: u64 = (1 << 48) - 1;

/// Adds a number to a checksum.
pub(super) fn mixed(sum: u64, number: u64) -> u64 {
    (sum ^ number).wrapping_mul(0x0000_0100_0000_01B3)
}
