//! How the programs of STAMP run in threads, and print their times.

use crate::child::runtime::{Ours, Runtime, Waits};
use std::future::Future;
use std::time::Instant;

/// Runs `part` in this number of threads of ours, on as many workers; their results, in their
/// order.
pub(super) async fn together<F>(threads: u64, mut part: impl FnMut(u64) -> F) -> Vec<F::Output>
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let handles: Vec<_> = (0..threads).map(|number| Ours::spawn(part(number))).collect();
    let mut ends = Vec::new();
    for handle in handles {
        ends.push(handle.await);
    }
    ends
}

/// Runs `main` on this number of workers, and prints the milliseconds that it took.
pub(super) fn timed<F>(workers: u64, main: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let (ms, output) = Ours::run(workers as usize, Waits::Nothing, async move {
        let first = Instant::now();
        let output = main.await;
        (first.elapsed().as_secs_f64() * 1e3, output)
    });
    println!("ms {ms:.4}");
    output
}
