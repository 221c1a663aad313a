//! A random sequence that its seed determines: [`random`]. `TaskPool` takes steps by it, and tests
//! draw graphs by it.

/// The next number of a random sequence (splitmix64).
pub(crate) fn random(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let mut word = *seed;
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}
