//! Transactions of several OS threads, under each engine.
#![cfg(not(loom))]

use selvedge_stm::{Engine, GlobalLock, TMVar, TVar, TWord, Tried, Versioned, atomically_with};
use selvedge_sync::wait_blocking;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

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
        for n in 1..=times(30_000) {
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
                for n in 0..times(20_000) as usize {
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

/// A lost wake-up would leave both OS threads asleep.
fn no_wake_up_is_lost<E: Engine>() {
    let (ping, pong) = (TMVar::<u64, E>::with_engine(None), TMVar::<u64, E>::with_engine(None));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..times(20_000) {
                let n = wait_blocking(atomically_with::<E, _>(|tx| ping.take(tx)));
                wait_blocking(atomically_with::<E, _>(|tx| pong.put(tx, n + 1)));
            }
        });
        for n in 0..times(20_000) {
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
