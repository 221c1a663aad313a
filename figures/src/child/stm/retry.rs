//! Transactions that wait: two threads that hand a token to and fro, a thousand that wait for one
//! variable, and a hundred thousand that are parked.

use std::cell::Cell;

use selvedge_stm::{TMVar, TWord, atomically};

use crate::child::clock::{Times, rss_bytes};
use crate::child::fault;
use crate::child::runtime::{Ours, Runtime, Waits};

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
    static RUNS: Cell<u64> = const { Cell::new(0) };
    static STARTED: Cell<u64> = const { Cell::new(0) };
    static FINISHED: Cell<u64> = const { Cell::new(0) };
}

/// `waiters` threads wait until one variable has the last of `writes` values. After each write, all
/// threads that it has woken run.
pub(super) fn herd(waiters: u64, writes: u64) {
    Ours::run(0, Waits::Nothing, async move {
        let level = TWord::new(0_u64);
        for _ in fault()..waiters {
            let level = level.clone();
            Ours::detach(async move {
                atomically(|tx| {
                    RUNS.set(RUNS.get() + 1);
                    let reached = level.read(tx)? >= writes;
                    tx.check(reached)
                })
                .await;
                FINISHED.set(FINISHED.get() + 1);
            })
            .await;
        }
        Ours::yield_now().await;
        RUNS.set(0);
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
        println!("runs {}", RUNS.get());
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
