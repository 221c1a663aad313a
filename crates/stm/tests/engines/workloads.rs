//! What several OS threads do at once, and what must hold all the time.

use selvedge_stm::{Engine, Figure3, TMVar, TWord, Tried, atomically_under};
use selvedge_sync::wait_blocking;
use std::any::TypeId;
use std::thread;

/// Whether each attempt sees one moment, also one that does not commit.
fn sees_one_moment<E: Engine>() -> bool {
    TypeId::of::<E>() != TypeId::of::<Figure3>()
}

fn times(many: u64) -> u64 {
    if cfg!(miri) { 20 } else { many }
}

/// An audit that commits is right. Under an opaque engine, so is each attempt of an audit.
pub(crate) fn no_sum_is_wrong_in_any_audit<E: Engine>() {
    const ACCOUNTS: usize = 64;
    const SUM: i64 = 100 * ACCOUNTS as i64;
    let accounts: Vec<TWord<i64, E>> = (0..ACCOUNTS).map(|_| TWord::with_engine(100)).collect();
    thread::scope(|scope| {
        for seed in 1..=3_usize {
            let accounts = &accounts;
            scope.spawn(move || {
                for n in 0..times(5_000) as usize {
                    let (from, to) = (n * seed % ACCOUNTS, (n * 7 + seed) % ACCOUNTS);
                    wait_blocking(atomically_under::<E, _>(|tx| {
                        accounts[from].modify(tx, |sum| sum - 1)?;
                        accounts[to].modify(tx, |sum| sum + 1)
                    }));
                    if n % 20 == 0 {
                        let audit = wait_blocking(atomically_under::<E, _>(|tx| {
                            let sum = accounts.iter().map(|account| account.read(tx)).sum::<Tried<i64>>()?;
                            assert!(
                                !sees_one_moment::<E>() || sum == SUM,
                                "an attempt has seen the sum {sum}"
                            );
                            Ok(sum)
                        }));
                        assert_eq!(audit, SUM);
                    }
                }
            });
        }
    });
}

/// A lost wake-up would leave both OS threads asleep.
pub(crate) fn no_wake_up_is_lost<E: Engine>() {
    let (ping, pong) = (TMVar::<u64, E>::with_engine(None), TMVar::<u64, E>::with_engine(None));
    thread::scope(|scope| {
        scope.spawn(|| {
            for _ in 0..times(5_000) {
                let n = wait_blocking(atomically_under::<E, _>(|tx| ping.take(tx)));
                wait_blocking(atomically_under::<E, _>(|tx| pong.put(tx, n + 1)));
            }
        });
        for n in 0..times(5_000) {
            wait_blocking(atomically_under::<E, _>(|tx| ping.put(tx, n)));
            assert_eq!(wait_blocking(atomically_under::<E, _>(|tx| pong.take(tx))), n + 1);
        }
    });
}

/// Each takes what is left in either of two variables, and waits if both are empty.
pub(crate) fn either_branch_is_woken<E: Engine>() {
    let (left, right) = (TMVar::<u64, E>::with_engine(None), TMVar::<u64, E>::with_engine(None));
    let each = times(2_000);
    let take = || {
        (0..each).map(|_| {
            wait_blocking(atomically_under::<E, _>(|tx| tx.or_else(|tx| left.take(tx), |tx| right.take(tx))))
        })
    };
    let taken: u64 = thread::scope(|scope| {
        let takers = [scope.spawn(|| take().sum::<u64>()), scope.spawn(|| take().sum::<u64>())];
        scope
            .spawn(|| (1..=each).for_each(|n| wait_blocking(atomically_under::<E, _>(|tx| left.put(tx, n)))));
        (1..=each).for_each(|n| wait_blocking(atomically_under::<E, _>(|tx| right.put(tx, n))));
        takers.map(|taker| taker.join().expect("no panic")).iter().sum()
    });
    assert_eq!(taken, each * (each + 1));
}
