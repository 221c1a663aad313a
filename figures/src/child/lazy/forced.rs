//! The clocks of the figure `lazy-force`: [`forced`]. `lazy.rs` calls it for our values and those
//! of std, and the peer `lazy-rust`, which includes this file, for those of once_cell.

use super::Times;
use std::hint::black_box;

/// The values that lie in a cache when they are forced many times, and the name of their time:
/// those in the first level, and more.
const CACHED: [(&str, usize); 2] = [("near_ns", 256), ("cached_ns", 1024)];

/// Forces all values, forces them again, and then some of them many times. Prints the times, and
/// the sum.
pub(super) fn forced<L>(values: &[L], force: impl Fn(&L) -> u64) {
    let sum = |values: &[L]| values.iter().map(&force).sum::<u64>();
    let first = Times::now();
    let of_first = sum(values);
    let second = Times::now();
    let of_second = sum(black_box(values));
    let last = Times::now();
    let n = values.len() as u64;
    first.print_as("first_ns", second, n);
    second.print_as("again_ns", last, n);
    for (name, count) in CACHED {
        let cached = &values[..values.len().min(count)];
        let rounds = 4 * n / cached.len() as u64;
        let first = Times::now();
        for _ in 0..rounds {
            black_box(sum(black_box(cached)));
        }
        first.print_as(name, Times::now(), rounds * cached.len() as u64);
    }
    println!("sum {}", of_first.max(of_second));
}
