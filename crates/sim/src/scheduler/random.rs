//! [`Random`]: a generator of numbers that look random and never change. The choosers
//! (`choice.rs`), the simulated kernel and tests draw from it.
//!
//! The numbers are a promise: if they changed, all seeds that were written down would give other
//! runs.

/// A generator of numbers that depend on its seed only, and neither on the machine nor on this
/// crate's version. The generator is SplitMix64, with 64 bits of state.
///
/// # Examples
/// ```
/// use selvedge::sched::Random;
///
/// let mut random = Random::new(7);
/// assert_eq!(random.bits(), 0x63cb_e1e4_5932_0dd7);
/// assert!(random.below(10) < 10);
/// ```
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator with a seed.
    pub const fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    ///
    /// # Panics
    /// If `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "no number is below 0");
        ((u128::from(self.bits()) * u128::from(bound)) >> 64) as u64
    }

    /// True with a chance of `parts` in a million.
    #[inline]
    pub fn happens(&mut self, parts: u32) -> bool {
        parts > 0 && self.below(1_000_000) < u64::from(parts)
    }

    /// Another generator. Its numbers are independent of the numbers of this one.
    pub fn branch(&mut self) -> Random {
        Random(self.bits())
    }
}
