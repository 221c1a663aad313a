//! `each_seed`: the same test with many seeds, and the environment variable that makes it one seed.
//! Tests call it, and `world.rs` calls it in `simulate`.

use super::spare::Spare;
use std::ops::Range;

/// The environment variable that makes [`each_seed`] use one seed only.
pub(super) const SEED_VARIABLE: &str = "SELVEDGE_SEED";

/// Calls `test` with each seed; if the environment variable `SELVEDGE_SEED` is set, with that seed
/// only. If `test` panics, the seed is printed.
///
/// # Panics
/// If `test` panics, or if the variable is not a number.
///
/// # Examples
/// ```
/// use selvedge::yield_now;
/// use selvedge::sched::{VirtualTime, each_seed, simulated};
///
/// each_seed(0..50, |seed| {
///     simulated(seed, &mut VirtualTime::new(), async { yield_now().await }).unwrap();
/// });
/// ```
pub fn each_seed(seeds: Range<u64>, mut test: impl FnMut(u64)) {
    /// Prints the seed when the test unwinds.
    struct Saying(u64);
    impl Drop for Saying {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("this was seed {}; to see it again: {SEED_VARIABLE}={}", self.0, self.0);
            }
        }
    }
    let _spare = Spare::keep();
    let only: Option<u64> = std::env::var(SEED_VARIABLE)
        .ok()
        .map(|text| text.parse().unwrap_or_else(|_| panic!("{SEED_VARIABLE}={text} is no number")));
    for seed in only.map_or(seeds, |only| only..only + 1) {
        let _saying = Saying(seed);
        test(seed);
    }
}
