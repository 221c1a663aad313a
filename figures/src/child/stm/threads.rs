//! The threads of the programs about transactions, their random numbers, and what is printed.

use crate::child::clock::Times;
use crate::child::cores::burst;
use crate::child::runtime::{Ours, Runtime, Waits};
use std::future::Future;

/// The generator of one thread.
pub(super) fn seed(thread: u64) -> u64 {
    burst(thread + 1, 16)
}

/// Threads of ours that each do their part; the moments before and after.
pub(super) fn threads<F>(
    workers: u64,
    threads: u64,
    part: impl Fn(u64) -> F + Send + 'static,
) -> (Times, Times)
where
    F: Future<Output = ()> + Send + 'static,
{
    Ours::run(workers as usize, Waits::Nothing, async move {
        let first = Times::now();
        let handles: Vec<_> = (0..threads).map(|thread| Ours::spawn(part(thread))).collect();
        for handle in handles {
            handle.await;
        }
        (first, Times::now())
    })
}

/// Prints the time of one of this number of operations, and their rate.
pub(super) fn print((first, last): (Times, Times), operations: u64) {
    first.print_until(last, operations);
    println!("rate {:.4}", operations as f64 / first.seconds_until(last) / 1e6);
}
