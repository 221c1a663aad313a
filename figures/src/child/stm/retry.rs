//! The programs about transactions that wait: two threads that hand a token to and fro, a thousand
//! that wait for one variable, and a hundred thousand that are parked. `stm.rs` calls them for
//! the figures in `figures/src/stm.rs`.
//!
//! `herd_retry` and `herd_predicate` differ only in the wait, so that their rows compare the
//! wake-ups. The count of polls is an answer that the figure checks.

use crate::child::clock::{Times, rss_bytes};
use crate::child::fault;
use crate::child::runtime::{Ours, Runtime, Waits};
use selvedge_stm::{TMVar, TWord, atomically, wait_for};
use std::cell::Cell;
use std::future::{Future, poll_fn};
use std::pin::pin;

async fn pass(from: &TMVar<u64>, to: &TMVar<u64>) {
    let token = atomically(|tx| from.take(tx)).await;
    atomically(|tx| to.put(tx, token + 1)).await;
}

/// Two threads that hand a token to and fro `total` times, through two variables.
pub(super) fn ping_pong(workers: u64, total: u64) {
    Ours::run(workers as usize, Waits::Nothing, async move {
        let (ping, pong) = (TMVar::full(fault()), TMVar::empty());
        let ends = (ping.clone(), pong.clone());
        let first = Times::now();
        let other = Ours::spawn(async move {
            for _ in 0..total {
                pass(&ends.1, &ends.0).await;
            }
        });
        for _ in 0..total {
            pass(&ping, &pong).await;
        }
        other.await;
        first.print_until(Times::now(), total);
        println!("token {}", atomically(|tx| ping.take(tx)).await);
    });
}

thread_local! {
    static POLLS: Cell<u64> = const { Cell::new(0) };
    static STARTED: Cell<u64> = const { Cell::new(0) };
    static FINISHED: Cell<u64> = const { Cell::new(0) };
}

/// Runs a future, and counts how often it is polled.
async fn counting_polls(future: impl Future<Output = ()>) {
    let mut future = pin!(future);
    poll_fn(|context| {
        POLLS.set(POLLS.get() + 1);
        future.as_mut().poll(context)
    })
    .await;
}

/// The herd with plain retry: each write wakes all.
pub(super) fn herd_retry(waiters: u64, writes: u64) {
    herd(waiters, writes, move |level| {
        atomically(move |tx| {
            let reached = level.read(tx)? >= writes;
            tx.check(reached)
        })
    });
}

/// The herd with a predicate, which each write evaluates: only the last one wakes.
pub(super) fn herd_predicate(waiters: u64, writes: u64) {
    herd(waiters, writes, move |level| wait_for(move |tx| Ok(level.read(tx)? >= writes)));
}

/// `waiters` threads wait until one variable has the last of `writes` values. After each write, all
/// threads that it has woken run.
fn herd<F>(waiters: u64, writes: u64, wait: impl Fn(TWord<u64>) -> F + Send + 'static)
where
    F: Future<Output = ()> + Send + 'static,
{
    Ours::run(0, Waits::Nothing, async move {
        let level = TWord::new(0_u64);
        for _ in fault()..waiters {
            let waits = wait(level.clone());
            Ours::detach(async move {
                counting_polls(waits).await;
                FINISHED.set(FINISHED.get() + 1);
            })
            .await;
        }
        Ours::yield_now().await;
        POLLS.set(0);
        let first = Times::now();
        for write in 1..=writes {
            atomically(|tx| {
                level.write(tx, write);
                Ok(())
            })
            .await;
            Ours::yield_now().await;
        }
        first.print_until(Times::now(), writes);
        println!("polls {}", POLLS.get());
        println!("finished {}", FINISHED.get());
    });
}

/// `threads` threads parked in one transaction each, all for one variable: the bytes of each, and
/// the CPU time to wake each and let it end.
pub(super) fn parked(threads: u64) {
    Ours::run(0, Waits::Nothing, async move {
        let open = TWord::new(false);
        let before = rss_bytes();
        for _ in fault()..threads {
            let open = open.clone();
            Ours::detach(async move {
                STARTED.set(STARTED.get() + 1);
                atomically(|tx| {
                    let is_open = open.read(tx)?;
                    tx.check(is_open)
                })
                .await;
                FINISHED.set(FINISHED.get() + 1);
            })
            .await;
        }
        Ours::yield_now().await;
        println!("bytes {:.3}", (rss_bytes() - before) as f64 / threads as f64);
        println!("live {}", STARTED.get() - FINISHED.get());
        let first = Times::now();
        atomically(|tx| {
            open.write(tx, true);
            Ok(())
        })
        .await;
        while FINISHED.get() < STARTED.get() {
            Ours::yield_now().await;
        }
        first.print_as("wake_ns", Times::now(), threads);
        println!("finished {}", FINISHED.get());
    });
}
