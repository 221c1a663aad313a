//! What transactions mean, under each engine.

use selvedge_core::{JoinError, round_robin, spawn, yield_now};
use selvedge_direct::{direct, wait};
use selvedge_stm::{
    Abort, Engine, TMVar, TQueue, TVar, TWord, Tried, Tx, Versioned, atomically_under, reclaim,
    try_atomically_under,
};
use selvedge_sync::wait_blocking;
use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

fn word<E: Engine>(n: u32) -> TWord<u32, E> {
    TWord::with_engine(n)
}

fn run<E: Engine, R>(body: impl FnMut(&Tx<E>) -> Tried<R>) -> R {
    wait_blocking(atomically_under::<E, R>(body))
}

fn a_transaction_sees_its_own_writes<E: Engine>() {
    let (number, text) = (word::<E>(1), TVar::<_, E>::with_engine("one".to_string()));
    run::<E, _>(|tx| {
        let before = text.read(tx)?;
        number.modify(tx, |n| n + 1)?;
        text.write(tx, "two".to_string());
        let between = text.read(tx)?;
        assert_eq!(text.swap(tx, "three".to_string())?, "two");
        assert_eq!((before.as_str(), between.as_str()), ("one", "two"));
        assert_eq!((number.swap(tx, 5)?, number.read(tx)?), (2, 5));
        assert_eq!((number.read_now(), text.read_now(String::clone)), (1, "one".to_string()));
        Ok(())
    });
    assert_eq!((number.read_now(), text.read_now(String::clone)), (5, "three".to_string()));
}

fn an_error_leaves_no_trace<E: Engine>() {
    let var = TVar::<_, E>::with_engine(vec![1]);
    let result = wait_blocking(try_atomically_under::<E, (), _>(|tx| {
        var.write(tx, vec![2]);
        Err(Abort::Error("no"))
    }));
    assert_eq!(result, Err("no"));
    assert_eq!(var.read_now(Vec::clone), [1]);
}

fn a_panic_leaves_no_trace<E: Engine>() {
    let var = word::<E>(1);
    let panic = catch_unwind(AssertUnwindSafe(|| {
        run::<E, ()>(|tx| {
            var.write(tx, 2);
            panic!("in the body");
        });
    }));
    assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"in the body"));
    assert_eq!(var.read_now(), 1);
    run::<E, _>(|tx| var.modify(tx, |n| n + 2));
    assert_eq!(var.read_now(), 3);
}

/// Writes of branches without effect, in variables from before the branch and from within it.
fn a_branch_that_retries_is_undone<E: Engine>() {
    let vars: Vec<TVar<u32, E>> = (0..40).map(TVar::with_engine).collect();
    let last = run::<E, _>(|tx| {
        vars[0].write(tx, 100);
        tx.or_else(
            |tx| {
                for var in &vars {
                    var.modify(tx, |n| n + 1)?;
                }
                tx.or_else(
                    |tx| {
                        vars[1].write(tx, 1000);
                        vars[1].write(tx, 1001);
                        tx.retry()
                    },
                    |tx| {
                        assert_eq!(*vars[1].read(tx)?, 2);
                        vars[0].write(tx, 2000);
                        tx.retry()
                    },
                )
            },
            |tx| {
                assert_eq!(*vars[0].read(tx)?, 100);
                vars[39].write(tx, 7);
                vars[39].read(tx).copied()
            },
        )
    });
    assert_eq!(last, 7);
    let values: Vec<u32> = vars.iter().map(|var| var.read_now(|n| *n)).collect();
    let expected: Vec<u32> = [100].into_iter().chain(1..39).chain([7]).collect();
    assert_eq!(values, expected);
}

fn a_branch_that_succeeds_stays<E: Engine>() {
    let (a, b) = (TVar::<u32, E>::with_engine(1), TVar::<u32, E>::with_engine(2));
    run::<E, _>(|tx| {
        a.write(tx, 3);
        let write = |tx: &Tx<E>| {
            a.write(tx, 4);
            Ok(())
        };
        tx.or_else(|tx| tx.or_else(write, |tx| tx.retry()), |tx| tx.retry())?;
        let given_up = tx.try_atomically(|tx| {
            a.write(tx, 5);
            b.write(tx, 5);
            Err::<(), _>(Abort::Error(()))
        })?;
        assert_eq!(given_up, Err(()));
        tx.atomically(|tx| b.modify(tx, |n| n * 10))
    });
    assert_eq!((a.read_now(|n| *n), b.read_now(|n| *n)), (4, 20));
}

/// Runs a function in a part of a transaction.
type Part<E> = fn(&Tx<E>, &dyn Fn() -> Tried<u8>);

/// The body catches the panic, and commits.
fn a_part_that_panics_is_undone<E: Engine>() {
    let told = Rc::new(RefCell::new(Vec::new()));
    let tell = |what: &'static str| {
        let told = told.clone();
        move || told.borrow_mut().push(what)
    };
    let (a, b) = (TVar::<u32, E>::with_engine(1), word::<E>(2));
    let parts: [Part<E>; 4] = [
        |tx, part| {
            let _ = tx.or_else(|_| part(), |_| Ok(0));
        },
        |tx, part| {
            let _ = tx.or_else(|tx| tx.retry(), |tx| tx.atomically(|_| part()));
        },
        |tx, part| {
            let _ = tx.atomically(|_| part());
        },
        |tx, part| {
            let _ = tx.try_atomically(|_| part().map_err(Abort::<()>::Stop));
        },
    ];
    for part in parts {
        run::<E, _>(|tx| {
            a.write(tx, 10);
            tx.after_commit(tell("the whole"));
            let panic = catch_unwind(AssertUnwindSafe(|| {
                part(tx, &|| {
                    a.write(tx, 11);
                    b.write(tx, 11);
                    tx.after_commit(tell("never"));
                    tx.on_abort(tell("the part"));
                    panic!("in a part");
                });
            }));
            assert_eq!(panic.unwrap_err().downcast_ref(), Some(&"in a part"));
            assert_eq!((*a.read(tx)?, b.read(tx)?), (10, 2));
            // A branch after it is undone for itself.
            tx.or_else(
                |tx| {
                    a.write(tx, 12);
                    tx.retry()
                },
                |tx| {
                    assert_eq!(*a.read(tx)?, 10);
                    Ok(())
                },
            )
        });
        assert_eq!((a.read_now(|n| *n), b.read_now()), (10, 2));
        assert_eq!(told.take(), ["the part", "the whole"]);
    }
}

fn hooks_run_once_and_in_order<E: Engine>() {
    let told = Rc::new(RefCell::new(Vec::new()));
    let tell = |what: &'static str| {
        let told = told.clone();
        move || told.borrow_mut().push(what)
    };
    let var = word::<E>(0);
    run::<E, _>(|tx| {
        tx.after_commit(tell("first"));
        tx.on_abort(tell("never"));
        tx.or_else(
            |tx| {
                tx.after_commit(tell("of the undone branch"));
                tx.on_abort(tell("the branch was undone"));
                tx.retry()
            },
            |tx| {
                tx.after_commit(tell("second"));
                Ok(())
            },
        )?;
        var.write(tx, 1);
        Ok(())
    });
    assert_eq!(told.take(), ["the branch was undone", "first", "second"]);
    let result = wait_blocking(try_atomically_under::<E, (), _>(|tx| {
        tx.after_commit(tell("never"));
        tx.on_abort(tell("aborted"));
        Err(Abort::Error(()))
    }));
    assert_eq!((result, told.take()), (Err(()), vec!["aborted"]));
}

/// One OS thread, so the order of the steps is known.
fn a_thread_waits_until_a_variable_it_has_read_is_written<E: Engine>() {
    let (a, b, c) = (word::<E>(0), word::<E>(0), word::<E>(0));
    let runs = Arc::new(AtomicU32::new(0));
    let shared = (a.clone(), b.clone(), runs.clone());
    round_robin(async move {
        let waits = spawn(atomically_under::<E, _>(move |tx| {
            shared.2.fetch_add(1, Ordering::Relaxed);
            let sum = shared.0.read(tx)? + shared.0.read(tx)? + shared.1.read(tx)?;
            tx.check(sum > 2).map(|()| sum)
        }));
        let write = async |var: &TWord<u32, E>, n| {
            atomically_under::<E, _>(|tx| {
                var.write(tx, n);
                Ok(())
            })
            .await;
            for _ in 0..3 {
                yield_now().await;
            }
        };
        yield_now().await;
        assert_eq!(runs.load(Ordering::Relaxed), 1);
        write(&c, 9).await;
        assert_eq!(runs.load(Ordering::Relaxed), 1, "it has not read that variable");
        write(&a, 1).await;
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        write(&b, 2).await;
        assert_eq!((waits.await.unwrap(), runs.load(Ordering::Relaxed)), (4, 3));
    })
    .unwrap();
}

fn a_waiter_that_is_cancelled_leaves_its_variables<E: Engine>() {
    let (x, y) = (word::<E>(0), TVar::<_, E>::with_engine(Arc::new(0_u32)));
    let seen = y.read_now(Arc::downgrade);
    {
        let (x, y) = (x.clone(), y.clone());
        let mut waits = pin!(atomically_under::<E, ()>(move |tx| {
            let _ = (x.read(tx)?, y.read(tx)?);
            tx.retry()
        }));
        assert_eq!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
    }
    drop(y);
    let begin = Instant::now();
    while seen.strong_count() > 0 {
        reclaim();
        std::thread::yield_now();
        assert!(begin.elapsed() < Duration::from_secs(60), "a registration holds the variable");
    }
    run::<E, _>(|tx| x.modify(tx, |n| n + 1));
    assert_eq!(x.read_now(), 1);
}

/// The registration then frees the variable.
/// Waiters that are given up leave their places to later ones, and a commit takes all places.
fn waiters_come_and_go_in_any_order<E: Engine>() {
    let (var, other) = (word::<E>(0), word::<E>(0));
    let woken = Rc::new(RefCell::new(Vec::new()));
    let waiter = |name: u32| {
        let (var, other, woken) = (var.clone(), other.clone(), woken.clone());
        let mut waits = Box::pin(async move {
            atomically_under::<E, _>(|tx| {
                let sum = var.read(tx)? + other.read(tx)?;
                tx.check(sum > 0)
            })
            .await;
            woken.borrow_mut().push(name);
        });
        assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
        waits
    };
    for first in [0, 100] {
        let mut waiters: Vec<_> = (first..first + 9).map(|name| Some(waiter(name))).collect();
        for gone in [4, 0, 8, 3] {
            waiters[gone] = None;
        }
        waiters.extend((first + 9..first + 15).map(|name| Some(waiter(name))));
        waiters[10] = None;
        run::<E, _>(|tx| {
            var.write(tx, 1);
            Ok(())
        });
        // These are taken out of the lists already.
        waiters[11] = None;
        for waits in waiters.iter_mut().flatten() {
            assert!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready());
        }
        let expected: Vec<u32> = [1, 2, 5, 6, 7, 9, 12, 13, 14].map(|name| first + name).into();
        assert_eq!(woken.take(), expected);
        run::<E, _>(|tx| {
            var.write(tx, 0);
            Ok(())
        });
    }
}

fn a_waiter_has_the_last_handle<E: Engine>() {
    let value = Arc::new(());
    let place = RefCell::new(Some(TVar::<_, E>::with_engine(value.clone())));
    {
        let mut waits = pin!(atomically_under::<E, ()>(|tx| {
            let var = place.borrow().clone().expect("it is there");
            let _ = var.read(tx)?;
            tx.retry()
        }));
        assert_eq!(waits.as_mut().poll(&mut Context::from_waker(Waker::noop())), Poll::Pending);
        drop(place.take());
    }
    let begin = Instant::now();
    while Arc::strong_count(&value) > 1 {
        reclaim();
        std::thread::yield_now();
        assert!(begin.elapsed() < Duration::from_secs(60), "the variable is left");
    }
}

fn a_transaction_that_can_never_be_woken_panics<E: Engine>() {
    round_robin(async {
        let waits = spawn(atomically_under::<E, ()>(|tx| tx.retry()));
        match waits.await {
            Err(JoinError::Panicked(_)) => {}
            other => panic!("{other:?}"),
        }
    })
    .unwrap();
}

/// The message of a panic.
fn message(panic: Result<(), Box<dyn Any + Send>>) -> String {
    let payload = panic.expect_err("a panic");
    let text = payload.downcast_ref::<String>().cloned();
    text.or_else(|| payload.downcast_ref::<&str>().map(|text| text.to_string())).expect("a text")
}

fn a_transaction_of_its_own_within_a_body_panics<E: Engine>() {
    let (outer, inner) = (word::<E>(1), word::<E>(1));
    let result = catch_unwind(AssertUnwindSafe(|| {
        run::<E, _>(|tx| {
            outer.write(tx, 2);
            run::<E, _>(|tx| inner.modify(tx, |n| n + 1));
            Ok(())
        });
    }));
    let message = message(result);
    assert!(message.contains("semantics.rs") && message.contains("Tx::atomically"), "{message}");
    assert_eq!((outer.read_now(), inner.read_now()), (1, 1));
    // The OS thread is not within a body any more.
    run::<E, _>(|tx| inner.modify(tx, |n| n + 1));
    assert_eq!(inner.read_now(), 2);
}

/// A hook is no part of the body.
fn a_hook_runs_a_transaction<E: Engine>() {
    let (var, log) = (word::<E>(1), word::<E>(0));
    let (of_commit, of_abort) = (log.clone(), log.clone());
    run::<E, _>(|tx| {
        let log = of_commit.clone();
        tx.after_commit(move || run::<E, _>(|tx| log.modify(tx, |n| n + 1)));
        var.modify(tx, |n| n + 1)
    });
    let result = wait_blocking(try_atomically_under::<E, (), _>(|tx| {
        let log = of_abort.clone();
        tx.on_abort(move || run::<E, _>(|tx| log.modify(tx, |n| n + 10)));
        Err(Abort::Error(()))
    }));
    assert_eq!((result, var.read_now(), log.read_now()), (Err(()), 2, 11));
}

#[test]
#[cfg_attr(miri, ignore = "Miri knows no other stacks")]
fn a_wait_in_direct_style_within_a_body_panics() {
    let var = word::<Versioned>(1);
    let shared = var.clone();
    let result = round_robin(direct(move || {
        let result = catch_unwind(AssertUnwindSafe(|| {
            wait(atomically_under::<Versioned, ()>(|tx| {
                shared.write(tx, 2);
                wait(yield_now());
                Ok(())
            }));
        }));
        wait(atomically_under::<Versioned, _>(|tx| shared.modify(tx, |n| n + 2)));
        message(result)
    }));
    let message = result.unwrap();
    assert!(message.contains("within the body of a transaction"), "{message}");
    assert_eq!(var.read_now(), 3);
}

fn a_queue_keeps_the_order<E: Engine>() {
    let (queue, var) = (TQueue::<_, E>::with_engine(), TMVar::<u32, E>::with_engine(None));
    run::<E, _>(|tx| {
        for n in 0..5 {
            queue.push(tx, n)?;
        }
        assert_eq!((queue.pop(tx)?, *queue.peek(tx)?), (0, 1));
        assert!(var.try_put(tx, 8)? && !var.try_put(tx, 9)?);
        Ok(())
    });
    let rest = run::<E, _>(|tx| {
        let mut rest = Vec::new();
        while let Some(n) = queue.try_pop(tx)? {
            rest.push(n);
        }
        assert!(queue.is_empty(tx)?);
        assert_eq!((var.take(tx)?, var.try_take(tx)?), (8, None));
        Ok(rest)
    });
    assert_eq!(rest, [1, 2, 3, 4]);
}

/// The values of a long queue are dropped without a deep stack, and all of them.
fn each_value_is_dropped_once<E: Engine>() {
    const LEN: usize = if cfg!(miri) { 100 } else { 20_000 };
    let value = Arc::new(());
    let queue = TQueue::<_, E>::with_engine();
    for _ in 0..LEN {
        run::<E, _>(|tx| queue.push(tx, value.clone()));
    }
    run::<E, _>(|tx| queue.pop(tx));
    drop(queue);
    // Another test may be in a transaction, and so keep the values for a while.
    let begin = Instant::now();
    while Arc::strong_count(&value) > 1 {
        reclaim();
        std::thread::yield_now();
        assert!(begin.elapsed() < Duration::from_secs(60), "{} are left", Arc::strong_count(&value));
    }
}

fn a_transaction_that_has_ended_panics_when_it_is_polled_again<E: Engine>() {
    let var = word::<E>(0);
    let mut ended = Box::pin(atomically_under::<E, _>(|tx| var.modify(tx, |n| n + 1)));
    let mut context = Context::from_waker(Waker::noop());
    assert!(ended.as_mut().poll(&mut context).is_ready());
    let again = catch_unwind(AssertUnwindSafe(|| ended.as_mut().poll(&mut context).is_ready()));
    assert!(again.is_err());
    assert_eq!(var.read_now(), 1);
}

fn a_hook_that_is_not_needed_keeps_no_other_one_from_running<E: Engine>() {
    struct Panics;
    impl Drop for Panics {
        fn drop(&mut self) {
            panic!("a destructor of the program");
        }
    }
    let ran = Arc::new(AtomicU32::new(0));
    run::<E, _>(|tx| {
        let (panics, ran) = (Panics, ran.clone());
        tx.on_abort(move || drop(panics));
        tx.after_commit(move || _ = ran.fetch_add(1, Ordering::Relaxed));
        Ok(())
    });
    assert_eq!(ran.load(Ordering::Relaxed), 1);
}

under_each_engine! {
    a_transaction_that_has_ended_panics_when_it_is_polled_again
    a_hook_that_is_not_needed_keeps_no_other_one_from_running
    a_transaction_sees_its_own_writes
    an_error_leaves_no_trace
    a_panic_leaves_no_trace
    a_branch_that_retries_is_undone
    a_branch_that_succeeds_stays
    a_part_that_panics_is_undone
    hooks_run_once_and_in_order
    a_thread_waits_until_a_variable_it_has_read_is_written
    a_waiter_that_is_cancelled_leaves_its_variables
    waiters_come_and_go_in_any_order
    a_waiter_has_the_last_handle
    a_transaction_that_can_never_be_woken_panics
    a_transaction_of_its_own_within_a_body_panics
    a_hook_runs_a_transaction
    a_queue_keeps_the_order
    each_value_is_dropped_once
}
