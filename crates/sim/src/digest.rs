//! `Digest`: one number for all that happened in a run. The scheduler (`running.rs`) adds each step
//! and choice, the simulated kernel (`Kernel::note`) each event, and `Run` and `Ended` return the
//! sum.
//!
//! Tests compare the digests of two runs of a seed. So a call adds nothing that differs between two
//! runs: no address, no real descriptor, no real time.

/// A digest of the numbers that were added, in their order.
#[derive(Debug, Default)]
pub(crate) struct Digest(u64);

impl Digest {
    #[inline]
    pub(crate) fn add(&mut self, number: u64) {
        self.0 = (self.0.rotate_left(23) ^ number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    pub(crate) fn value(&self) -> u64 {
        self.0
    }
}
