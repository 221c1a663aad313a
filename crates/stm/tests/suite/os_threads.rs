//! Transactions of several OS threads, under each engine.

use crate::workloads::{either_branch_is_woken, no_sum_is_wrong_in_any_audit, no_wake_up_is_lost};
use selvedge_stm::{Abort, Engine, TWord, Tx, atomically_blocking, atomically_under, try_atomically};
use selvedge_sync::wait_blocking;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

/// A writer commits in the midst of each attempt of the reader, until the reader has the turn. In
/// the turn the writer must wait for the reader.
#[test]
fn a_transaction_in_the_way_of_all_commits_at_its_33rd_attempt() {
    let (x, y) = (TWord::new(0_u32), TWord::new(0_u32));
    let (ask, asked) = mpsc::channel::<()>();
    let (tell, told) = mpsc::channel::<()>();
    thread::scope(|scope| {
        let (x, y) = (&x, &y);
        scope.spawn(move || {
            for () in asked {
                atomically_blocking(|tx| {
                    x.modify(tx, |n| n + 1)?;
                    y.modify(tx, |n| n + 1)
                });
                let _ = tell.send(());
            }
        });
        let mut attempts = 0;
        let seen = atomically_blocking(|tx| {
            attempts += 1;
            let seen = x.read(tx)?;
            ask.send(()).expect("the writer runs");
            match attempts {
                ..=32 => told.recv().expect("the writer has committed"),
                _ => {
                    let early = told.recv_timeout(Duration::from_millis(20));
                    assert_eq!(early, Err(mpsc::RecvTimeoutError::Timeout), "a commit in a turn");
                }
            }
            assert_eq!(y.read(tx)?, seen);
            y.write(tx, seen);
            Ok(seen)
        });
        assert_eq!((attempts, seen), (33, 32));
        told.recv().expect("the writer goes on after the turn");
        drop(ask);
    });
    assert_eq!((x.read_now(), y.read_now()), (33, 33));
}

/// A turn that ends by a retry, an error or a panic leaves no variable locked, and the next
/// transaction in need gets it.
#[test]
fn a_turn_ends_with_its_attempt() {
    let (x, y) = (TWord::new(0_u32), TWord::new(0_u32));
    // On another OS thread, because a body begins no transaction.
    let disturb = || thread::scope(|scope| scope.spawn(|| add_one(&x)).join()).expect("no panic");
    let disturbed = |end: fn(&Tx) -> Result<u32, Abort<&'static str>>| {
        let mut attempts = 0;
        wait_blocking(try_atomically(|tx| {
            attempts += 1;
            let seen = x.read(tx)?;
            if attempts <= 32 {
                disturb();
            }
            let _ = y.read(tx)?;
            tx.check(x.read(tx)? == seen)?;
            if attempts == 33 { end(tx) } else { Ok(attempts) }
        }))
    };
    assert_eq!(disturbed(|_| Err(Abort::Error("error"))), Err("error"));
    add_one(&x);
    add_one(&y);
    let panic = catch_unwind(AssertUnwindSafe(|| disturbed(|_| panic!("in a turn"))));
    assert!(panic.is_err());
    add_one(&x);
    add_one(&y);
    // It writes until the transaction is over, because a write before the retry wakes nothing.
    let is_woken = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !is_woken.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(5));
                add_one(&y);
            }
        });
        let result = disturbed(|tx| Ok(tx.retry()?));
        is_woken.store(true, Ordering::Relaxed);
        // More than 34, if the writer has come between two attempts after the retry.
        assert!(result.is_ok_and(|attempts| attempts >= 34), "{result:?}");
    });
    assert_eq!(disturbed(|_| Ok(0)), Ok(0));
}

fn add_one(var: &TWord<u32>) {
    atomically_blocking(|tx| var.modify(tx, |n| n + 1));
}

/// A foreign executor polls the same futures.
fn a_foreign_executor_runs_transactions<E: Engine>() {
    let var = TWord::<u32, E>::with_engine(0);
    let waits = atomically_under::<E, _>(|tx| {
        let n = var.read(tx)?;
        tx.check(n == 3)
    });
    let writes = async {
        for _ in 0..3 {
            atomically_under::<E, _>(|tx| var.modify(tx, |n| n + 1)).await;
        }
    };
    futures::executor::block_on(futures::future::join(waits, writes));
}

under_each_engine! {
    no_sum_is_wrong_in_any_audit
    no_wake_up_is_lost
    either_branch_is_woken
    a_foreign_executor_runs_transactions
}
