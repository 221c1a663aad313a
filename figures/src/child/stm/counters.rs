//! Counters that threads share or do not share, and transactions of several sizes.

use super::threads::{print, threads};
use super::variable::Variable;
use crate::child::clock::Times;
use crate::child::cores::os_threads;
use crate::child::fault;
use crate::child::runtime::{Ours, Runtime, Waits};
use selvedge_stm::atomically_under;
use selvedge_sync::wait_blocking;

async fn count_one<V: Variable>(counter: &V) {
    atomically_under::<V::Engine, _>(|tx| {
        let count = counter.read(tx)?;
        counter.write(tx, count + 1);
        Ok(())
    })
    .await;
}

/// Threads of ours that count together.
pub(super) fn counter<V: Variable>(workers: u64, n: u64, total: u64) {
    let counter = V::new(0);
    let shared = counter.clone();
    let times = threads(workers, n, move |_| {
        let counter = shared.clone();
        async move {
            for _ in 0..total / n - fault() {
                count_one(&counter).await;
            }
        }
    });
    print(times, total);
    println!("count {}", counter.now());
}

/// OS threads that count together.
pub(super) fn counter_os<V: Variable>(n: u64, total: u64) {
    let counter = V::new(0);
    let times = os_threads(n, |_| {
        for _ in 0..total / n - fault() {
            wait_blocking(count_one(&counter));
        }
    });
    print(times, total);
    println!("count {}", counter.now());
}

/// Counters of which each thread has one. They are so far apart that they share no cache line.
pub(super) fn disjoint<V: Variable>(workers: u64, n: u64, total: u64) {
    const APART: usize = 8;
    let counters: Vec<V> = (0..n as usize * APART).map(|_| V::new(0)).collect();
    let shared = counters.clone();
    let times = threads(workers, n, move |thread| {
        let counter = shared[thread as usize * APART].clone();
        async move {
            for _ in 0..total / n - fault() {
                count_one(&counter).await;
            }
        }
    });
    print(times, total);
    println!("count {}", counters.iter().map(V::now).sum::<u64>());
}

/// Transactions of one thread that read `reads` variables and write the first `writes` of them.
pub(super) fn size<V: Variable>(reads: u64, writes: u64, total: u64) {
    let variables: Vec<V> = (0..reads).map(|at| V::new(if at == 0 { 1 + fault() } else { 1 })).collect();
    Ours::run(0, Waits::Nothing, async move {
        let mut sum = 0;
        let first = Times::now();
        for _ in 0..total {
            sum += atomically_under::<V::Engine, _>(|tx| {
                let mut sum = 0;
                for (at, variable) in variables.iter().enumerate() {
                    let value = variable.read(tx)?;
                    sum += value;
                    if at < writes as usize {
                        variable.write(tx, value + 1);
                    }
                }
                Ok(sum)
            })
            .await;
        }
        print((first, Times::now()), total);
        println!("sum {}", sum + variables.iter().map(V::now).sum::<u64>());
    });
}

/// The sum that `size` prints: of all values that were read, and of those at the end.
pub(crate) fn size_sum(reads: u64, writes: u64, total: u64) -> u64 {
    reads * (total + 1) + writes * total * (total - 1) / 2 + writes * total
}
