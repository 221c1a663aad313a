//! Numbers that look random: where a fair choice begins. `select!` of `scope` calls [`below`] each
//! time that it is polled.
//!
//! The state belongs to the OS thread, so a draw is a few instructions. [`begin`] sets it: a new
//! CPU does, and each run of the simulated scheduler does with its seed. So a program that runs on
//! one OS thread draws the same numbers each time.

use std::cell::Cell;

thread_local! {
    static STATE: Cell<u64> = const { Cell::new(0) };
}

/// The next number below `bound`, each with nearly the same chance; 0 for the bound 0. Use it for a
/// fair choice in your own futures, and for nothing that must be a secret.
///
/// # Examples
/// ```
/// use selvedge_core::draw;
///
/// let mut seen = [0; 3];
/// for _ in 0..3_000 {
///     seen[draw::below(3) as usize] += 1;
/// }
/// assert!(seen.iter().all(|&times| (800..1_200).contains(&times)));
/// ```
///
/// # Complexity
/// Two multiplications.
#[inline(always)]
pub fn below(bound: u32) -> u32 {
    // A model repeats its program, and each repetition must make the same choices.
    if cfg!(loom) {
        return 0;
    }
    // Knuth's linear congruential generator (MMIX). Its upper bits are the good ones.
    let state = STATE.get().wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    STATE.set(state);
    (((state >> 32) * u64::from(bound)) >> 32) as u32
}

/// Sets the numbers that [`below`] draws next on this OS thread. A scheduler calls it before a run
/// if a seed determines its runs.
///
/// # Examples
/// ```
/// use selvedge_core::draw;
///
/// let drawn = |seed| {
///     draw::begin(seed);
///     [0; 8].map(|_: u32| draw::below(1_000))
/// };
/// assert_eq!(drawn(7), drawn(7));
/// assert_ne!(drawn(7), drawn(8));
/// ```
pub fn begin(seed: u64) {
    // The first numbers of neighbouring seeds would differ little.
    STATE.set((seed ^ 0x9e37_79b9_7f4a_7c15).wrapping_mul(0xbf58_476d_1ce4_e5b9).rotate_left(32));
}
