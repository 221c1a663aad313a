//! Faults that other systems with transactions had, as tests: GHC's tickets by their numbers.

use selvedge_core::{round_robin, spawn, yield_now};
use selvedge_stm::{Engine, TMVar, TVar, TWord, Tried, Tx, atomically_under, reclaim, try_atomically_under};
use selvedge_sync::wait_blocking;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread;
use std::time::{Duration, Instant};

fn times(many: u64) -> u64 {
    if cfg!(miri) { 10 } else { many }
}

fn run<E: Engine, R>(body: impl FnMut(&Tx<E>) -> Tried<R>) -> R {
    wait_blocking(atomically_under::<E, R>(body))
}

fn glance<F: Future>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// GHC 15136: a thread that was waiting in a transaction was killed while others woke or killed it,
/// and the locks of the two were taken in different orders. Here OS threads wait for two variables,
/// in different orders, and give up, while others commit to both.
fn waits_are_given_up_while_others_commit<E: Engine>() {
    let (x, y) = (TWord::<u64, E>::with_engine(0), TWord::<u64, E>::with_engine(0));
    let (done, given_up) = (AtomicBool::new(false), AtomicU64::new(0));
    thread::scope(|scope| {
        for order in [[&x, &y], [&y, &x]] {
            let (done, given_up) = (&done, &given_up);
            scope.spawn(move || {
                while !done.load(Ordering::Relaxed) {
                    let never = |tx: &Tx<E>| {
                        let (a, b) = (order[0].read(tx)?, order[1].read(tx)?);
                        tx.check(a != b)
                    };
                    let plain = pin!(atomically_under::<E, _>(never));
                    assert!(glance(plain).is_pending());
                    let own = order.map(TWord::clone);
                    let differ = move |tx: &Tx<E>| Ok(own[0].read(tx)? != own[1].read(tx)?);
                    let conditional = pin!(atomically_under::<E, _>(|tx| tx.wait_for(differ.clone())));
                    assert!(glance(conditional).is_pending());
                    given_up.fetch_add(2, Ordering::Relaxed);
                }
            });
        }
        scope.spawn(|| {
            for _ in 0..times(2_000) {
                run::<E, _>(|tx| y.modify(tx, |n| n + 1).and(x.modify(tx, |n| n + 1)));
            }
        });
        for _ in 0..times(2_000) {
            run::<E, _>(|tx| x.modify(tx, |n| n + 1).and(y.modify(tx, |n| n + 1)));
        }
        while given_up.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert_eq!(x.read_now(), y.read_now());
}

/// As above, with threads that cancel one another while they wait, run or have ended.
fn threads_that_wait_cancel_one_another<E: Engine>() {
    round_robin(async {
        let (x, y) = (TWord::<u64, E>::with_engine(0), TWord::<u64, E>::with_engine(0));
        for round in 0..times(300) {
            let waiters: Vec<_> = (0..6)
                .map(|n| {
                    let (x, y) = (x.clone(), y.clone());
                    spawn(async move {
                        atomically_under::<E, _>(|tx| {
                            let (a, b) = (x.read(tx)?, y.read(tx)?);
                            tx.check(a > round && b > round)?;
                            if n % 2 == 0 {
                                x.write(tx, a)
                            } else {
                                y.write(tx, b)
                            }
                            Ok(())
                        })
                        .await;
                    })
                })
                .collect();
            if round % 3 > 0 {
                yield_now().await;
            }
            waiters[round as usize % 6].cancel();
            atomically_under::<E, _>(|tx| x.swap(tx, round + 1)).await;
            waiters[(round as usize + 1) % 6].cancel();
            atomically_under::<E, _>(|tx| y.swap(tx, round + 1)).await;
            for (n, waiter) in waiters.into_iter().enumerate() {
                let is_cancelled = n == round as usize % 6 || n == (round as usize + 1) % 6;
                assert!(waiter.await.is_ok() || is_cancelled);
            }
        }
    })
    .unwrap();
}

/// GHC's test Stm064: a nested `orElse` merged the wrong log when the outer one retried, so that
/// writes of the inner one were lost or committed twice.
fn nested_branches_commit_as_they_ended<E: Engine>() {
    let vars: [TVar<u32, E>; 4] = [0; 4].map(TVar::with_engine);
    let add = |at: usize, more: u32| {
        let var = vars[at].clone();
        move |tx: &Tx<E>| var.modify(tx, |n| n + more)
    };
    let retry = |tx: &Tx<E>| tx.retry::<()>();
    for _ in 0..10 {
        run::<E, _>(|tx| {
            add(0, 1)(tx)?;
            tx.or_else(
                |tx| {
                    add(0, 10)(tx)?;
                    tx.or_else(|tx| add(1, 10)(tx).and_then(|()| retry(tx)), add(1, 1))?;
                    tx.or_else(add(2, 1), retry)?;
                    retry(tx)
                },
                |tx| {
                    tx.or_else(
                        |tx| {
                            add(0, 100)(tx)?;
                            tx.or_else(|tx| tx.or_else(add(3, 1), add(3, 10)), add(3, 100))
                        },
                        add(0, 1_000),
                    )?;
                    tx.or_else(|tx| add(2, 5)(tx).and_then(|()| retry(tx)), add(2, 2))
                },
            )
        });
    }
    assert_eq!(vars.map(|var| var.read_now(|n| *n)), [1_010, 0, 20, 10]);
}

/// GHC 13751 was a wrong `<<loop>>` under the stress of many transactions on values that others had
/// made a moment before. Here each value is checked, and dropped once.
fn values_are_whole_under_stress<E: Engine>() {
    let alive = Arc::new(());
    let make = |n: u64| (n, n.wrapping_mul(0x9E37_79B9), alive.clone());
    let slots: Vec<_> = (0..8).map(|n| TMVar::<_, E>::with_engine(Some(make(n)))).collect();
    thread::scope(|scope| {
        for worker in 0..4_usize {
            let (slots, make) = (&slots, &make);
            scope.spawn(move || {
                for n in 0..times(3_000) as usize {
                    let (from, to) = (&slots[(n + worker) % 8], &slots[(n * 5 + worker * 3 + 1) % 8]);
                    let result = wait_blocking(try_atomically_under::<E, _, ()>(|tx| {
                        let (a, check, _) = from.take(tx)?;
                        assert_eq!(check, a.wrapping_mul(0x9E37_79B9));
                        if let Some((b, check, _)) = to.try_take(tx)? {
                            assert_eq!(check, b.wrapping_mul(0x9E37_79B9));
                            to.put(tx, make(a))?;
                            from.put(tx, make(b))?;
                        } else {
                            from.put(tx, make(a))?;
                        }
                        Ok(())
                    }));
                    assert_eq!(result, Ok(()));
                }
            });
        }
    });
    let mut left: Vec<u64> = slots.iter().map(|slot| run::<E, _>(|tx| Ok(slot.read(tx)?.0))).collect();
    left.sort_unstable();
    assert_eq!(left, (0..8).collect::<Vec<_>>());
    drop(slots);
    let begin = Instant::now();
    while Arc::strong_count(&alive) > 1 {
        reclaim();
        thread::yield_now();
        assert!(begin.elapsed() < Duration::from_secs(60), "{} values are left", Arc::strong_count(&alive));
    }
}

/// Pairs of a retry and its wake-up, on one OS thread and between two. A release build makes a
/// million and more of them.
fn no_wake_up_of_many_is_lost<E: Engine>() {
    let turn = TWord::<u64, E>::with_engine(0);
    let waits = |mine: u64, turn: &TWord<u64, E>| {
        let turn = turn.clone();
        atomically_under::<E, _>(move |tx| {
            let n = turn.read(tx)?;
            tx.check(n % 2 == mine)?;
            turn.write(tx, n + 1);
            Ok(())
        })
    };
    let many = times(if cfg!(debug_assertions) { 20_000 } else { 1_000_000 });
    let shared = turn.clone();
    round_robin(async move {
        let other = shared.clone();
        let odd = spawn(async move {
            for _ in 0..many {
                waits(1, &other).await;
            }
        });
        for _ in 0..many {
            waits(0, &shared).await;
        }
        odd.await.unwrap();
    })
    .unwrap();
    let few = many / 10;
    thread::scope(|scope| {
        scope.spawn(|| (0..few).for_each(|_| wait_blocking(waits(1, &turn))));
        (0..few).for_each(|_| wait_blocking(waits(0, &turn)));
    });
    assert_eq!(turn.read_now(), 2 * (many + few));
}

under_each_engine! {
    waits_are_given_up_while_others_commit
    threads_that_wait_cancel_one_another
    nested_branches_commit_as_they_ended
    values_are_whole_under_stress
    no_wake_up_of_many_is_lost
}
