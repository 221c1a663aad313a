//! Transactions of several OS threads, under each engine.
#![cfg(not(loom))]

use selvedge_stm::{
    Abort, Engine, GlobalLock, TMVar, TVar, TWord, Tried, Tx, Versioned, atomically_blocking,
    atomically_with, try_atomically,
};
use selvedge_sync::wait_blocking;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

fn times(many: u64) -> u64 {
    if cfg!(miri) { 20 } else { many }
}

/// The writer keeps all variables equal. Each attempt of the readers looks, also those that do not
/// commit; one reader gives up each of its transactions.
fn no_attempt_sees_a_state_that_never_was<E: Engine>() {
    let words: Vec<TWord<u64, E>> = (0..12).map(|_| TWord::with_engine(0)).collect();
    let text = TVar::<_, E>::with_engine("0".to_string());
    let (done, attempts) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for gives_up in [false, true] {
            let (words, text, done, attempts) = (&words, &text, &done, &attempts);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let look = selvedge_stm::try_atomically_with::<E, _, _>(|tx| {
                        attempts.fetch_add(1, Ordering::Relaxed);
                        let first = words[0].read(tx)?;
                        for word in words {
                            assert_eq!(word.read(tx)?, first);
                        }
                        assert_eq!(text.read(tx)?, &first.to_string());
                        match gives_up {
                            true => Err::<(), _>(selvedge_stm::Abort::Error("no")),
                            false => Ok(()),
                        }
                    });
                    let _ = wait_blocking(look);
                }
            });
        }
        for n in 1..=times(5_000) {
            wait_blocking(atomically_with::<E, _>(|tx| {
                words.iter().for_each(|word| word.write(tx, n));
                text.write(tx, n.to_string());
                Ok(())
            }));
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(attempts.load(Ordering::Relaxed) > 0);
}

fn no_sum_is_wrong_in_any_audit<E: Engine>() {
    const ACCOUNTS: usize = 64;
    let accounts: Vec<TWord<i64, E>> = (0..ACCOUNTS).map(|_| TWord::with_engine(100)).collect();
    thread::scope(|scope| {
        for seed in 1..=3_usize {
            let accounts = &accounts;
            scope.spawn(move || {
                for n in 0..times(5_000) as usize {
                    let (from, to) = (n * seed % ACCOUNTS, (n * 7 + seed) % ACCOUNTS);
                    wait_blocking(atomically_with::<E, _>(|tx| {
                        accounts[from].modify(tx, |sum| sum - 1)?;
                        accounts[to].modify(tx, |sum| sum + 1)
                    }));
                    if n % 20 == 0 {
                        wait_blocking(atomically_with::<E, _>(|tx| {
                            let sums = accounts.iter().map(|account| account.read(tx));
                            assert_eq!(sums.sum::<Tried<i64>>()?, 100 * ACCOUNTS as i64);
                            Ok(())
                        }));
                    }
                }
            });
        }
    });
}

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
        assert_eq!(result, Ok(34));
    });
    assert_eq!(disturbed(|_| Ok(0)), Ok(0));
}

fn add_one(var: &TWord<u32>) {
    atomically_blocking(|tx| var.modify(tx, |n| n + 1));
}

/// A lost wake-up would leave both OS threads asleep.
fn no_wake_up_is_lost<E: Engine>() {
    let (ping, pong) = (TMVar::<u64, E>::with_engine(None), TMVar::<u64, E>::with_engine(None));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..times(5_000) {
                let n = wait_blocking(atomically_with::<E, _>(|tx| ping.take(tx)));
                wait_blocking(atomically_with::<E, _>(|tx| pong.put(tx, n + 1)));
            }
        });
        for n in 0..times(5_000) {
            wait_blocking(atomically_with::<E, _>(|tx| ping.put(tx, n)));
            assert_eq!(wait_blocking(atomically_with::<E, _>(|tx| pong.take(tx))), n + 1);
        }
    });
}

/// A foreign executor polls the same futures.
fn a_foreign_executor_runs_transactions<E: Engine>() {
    let var = TWord::<u32, E>::with_engine(0);
    let waits = atomically_with::<E, _>(|tx| {
        let n = var.read(tx)?;
        tx.check(n == 3)
    });
    let writes = async {
        for _ in 0..3 {
            atomically_with::<E, _>(|tx| var.modify(tx, |n| n + 1)).await;
        }
    };
    futures::executor::block_on(futures::future::join(waits, writes));
}

macro_rules! under_each_engine {
    ($($name:ident)*) => {
        mod versioned {
            $(#[test] fn $name() { super::$name::<super::Versioned>() })*
        }
        mod global_lock {
            $(#[test] fn $name() { super::$name::<super::GlobalLock>() })*
        }
    };
}

under_each_engine! {
    no_attempt_sees_a_state_that_never_was
    no_sum_is_wrong_in_any_audit
    no_wake_up_is_lost
    a_foreign_executor_runs_transactions
}
