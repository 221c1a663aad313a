//! All interleavings, with at most four preemptions, of small transactions of the default engine:
//! commits, turns, waiting and waking, and reclamation. In a model a transaction takes a turn after
//! its first conflict.
#![cfg(loom)]

use loom::cell::UnsafeCell;
use loom::thread;
use selvedge_stm::{TArray, TVar, TWord, Tried, atomically, atomically_blocking, reclaim, wait_for};
use selvedge_sync::wait_blocking;
use std::future::Future;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};

fn model(f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(f);
}

/// Polls the future once, and gives up.
fn glance<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn until(var: &TWord<u32>, enough: u32) {
    atomically_blocking(|tx| {
        let n = var.read(tx)?;
        tx.check(n >= enough)
    });
}

fn add_one(var: &TWord<u32>) {
    atomically_blocking(|tx| var.modify(tx, |n| n + 1));
}

#[test]
fn no_addition_is_lost() {
    model(|| {
        let var = TWord::new(0_u32);
        let shared = var.clone();
        let other = thread::spawn(move || add_one(&shared));
        add_one(&var);
        other.join().unwrap();
        assert_eq!(var.read_now(), 2);
    });
}

/// The other OS thread commits twice, so the attempt of a turn meets a commit too.
#[test]
fn no_addition_of_a_turn_is_lost() {
    model(|| {
        let var = TWord::new(0_u32);
        let shared = var.clone();
        let other = thread::spawn(move || (0..2).for_each(|_| add_one(&shared)));
        add_one(&var);
        other.join().unwrap();
        assert_eq!(var.read_now(), 3);
    });
}

#[test]
fn each_attempt_sees_one_moment() {
    model(|| {
        let (x, y) = (TWord::new(0_u32), TWord::new(0_u32));
        let shared = (x.clone(), y.clone());
        let writer = thread::spawn(move || {
            atomically_blocking(|tx| {
                shared.0.write(tx, 1);
                Ok(shared.1.write(tx, 1))
            });
        });
        atomically_blocking(|tx| {
            let (x, y) = (x.read(tx)?, y.read(tx)?);
            assert_eq!(x, y, "also in an attempt that does not commit");
            Ok(())
        });
        writer.join().unwrap();
    });
}

/// The stamp of the reader comes between the two writers, or the clock is raised by neither.
#[test]
fn a_moment_between_two_writers() {
    model(|| {
        let (x, y) = (TWord::new(0_u32), TWord::new(0_u32));
        let shared = (x.clone(), y.clone());
        let writer = thread::spawn(move || {
            for n in 1..=2 {
                atomically_blocking(|tx| {
                    shared.0.write(tx, n);
                    Ok(shared.1.write(tx, n))
                });
            }
        });
        atomically_blocking(|tx| {
            let (y, x) = (y.read(tx)?, x.read(tx)?);
            assert_eq!(x, y, "also in an attempt that does not commit");
            Ok(())
        });
        writer.join().unwrap();
    });
}

#[test]
fn a_read_is_compared_after_the_locks() {
    model(|| {
        let (x, y) = (TWord::new(0_u32), TWord::new(0_u32));
        let take = |mine: TWord<u32>, of_the_other: TWord<u32>| {
            move || {
                atomically_blocking(|tx| {
                    if of_the_other.read(tx)? == 0 {
                        mine.write(tx, 1);
                    }
                    Ok(())
                });
            }
        };
        let other = thread::spawn(take(x.clone(), y.clone()));
        take(y.clone(), x.clone())();
        other.join().unwrap();
        assert_eq!(x.read_now() + y.read_now(), 1, "each of them has seen the other one's 0");
    });
}

/// Twelve reads, each newer than the stamp, so that the reader raises the clock.
#[test]
fn a_raised_clock_keeps_the_moment() {
    model(|| {
        let vars: Vec<_> = (0..10).map(|_| TWord::new(0_u32)).collect();
        atomically_blocking(|tx| vars.iter().try_for_each(|var| Ok(var.write(tx, 1))));
        let shared = vars.clone();
        let writer = thread::spawn(move || {
            atomically_blocking(|tx| {
                shared[0].write(tx, 2);
                Ok(shared[9].write(tx, 2))
            });
        });
        atomically_blocking(|tx| {
            let values = vars.iter().map(|var| var.read(tx)).collect::<Tried<Vec<_>>>()?;
            assert_eq!(values[0], values[9]);
            Ok(())
        });
        writer.join().unwrap();
    });
}

#[test]
fn no_wake_up_is_lost() {
    model(|| {
        let var = TWord::new(0_u32);
        let shared = var.clone();
        let writer = thread::spawn(move || add_one(&shared));
        // A lost wake-up would be a deadlock of the model.
        until(&var, 1);
        writer.join().unwrap();
    });
}

#[test]
fn either_of_two_variables_wakes() {
    model(|| {
        let (x, y) = (TWord::new(0_u32), TWord::new(0_u32));
        let shared = (x.clone(), y.clone());
        let writer = thread::spawn(move || {
            add_one(&shared.1);
        });
        atomically_blocking(|tx| {
            let sum = x.read(tx)? + y.read(tx)?;
            tx.check(sum == 1)
        });
        writer.join().unwrap();
    });
}

#[test]
fn a_waiter_that_gives_up_takes_no_wake_up_along() {
    model(|| {
        let var = TWord::new(0_u32);
        let shared = var.clone();
        let writer = thread::spawn(move || add_one(&shared));
        let _ = glance(atomically(|tx| {
            let n = var.read(tx)?;
            tx.check(n == 1)
        }));
        until(&var, 1);
        writer.join().unwrap();
    });
}

/// Each commit writes one variable of the predicate, and evaluates it.
#[test]
fn no_wake_up_of_a_predicate_is_lost() {
    model(|| {
        let (x, y) = (TWord::new(0_u32), TWord::new(0_u32));
        let shared = x.clone();
        let writer = thread::spawn(move || add_one(&shared));
        let (a, b) = (x.clone(), y.clone());
        let mut waits = pin!(wait_for(move |tx| Ok(a.read(tx)? + b.read(tx)? == 2)));
        let _ = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        add_one(&y);
        wait_blocking(waits);
        writer.join().unwrap();
    });
}

/// The waiter registers in two variables while the commits come.
#[test]
fn no_wake_up_is_lost_while_a_predicate_is_registered() {
    model(|| {
        let (x, y) = (TWord::new(0_u32), TWord::new(0_u32));
        let shared = (x.clone(), y.clone());
        let writer = thread::spawn(move || {
            add_one(&shared.0);
            add_one(&shared.1);
        });
        wait_blocking(wait_for(move |tx| Ok(x.read(tx)? + y.read(tx)? == 2)));
        writer.join().unwrap();
    });
}

/// Two commits to the same variable: one may come while the other one has cleared `WAITERS`.
#[test]
fn no_wake_up_is_lost_between_two_commits_to_a_variable() {
    model(|| {
        let x = TWord::new(0_u32);
        let (shared, read) = (x.clone(), x.clone());
        let mut waits = pin!(wait_for(move |tx| Ok(read.read(tx)? == 2)));
        let polled = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert!(polled.is_pending());
        let writer = thread::spawn(move || add_one(&shared));
        add_one(&x);
        wait_blocking(waits);
        writer.join().unwrap();
    });
}

#[test]
fn a_predicate_that_is_given_up_takes_no_wake_up_along() {
    model(|| {
        let var = TWord::new(0_u32);
        let (shared, a, b) = (var.clone(), var.clone(), var.clone());
        let writer = thread::spawn(move || add_one(&shared));
        let _ = glance(wait_for(move |tx| Ok(a.read(tx)? == 1)));
        wait_blocking(wait_for(move |tx| Ok(b.read(tx)? == 1)));
        writer.join().unwrap();
    });
}

/// Loom reports a read beside the drop, and one after it.
struct Watched(UnsafeCell<u32>);

// SAFETY: loom watches the cell.
unsafe impl Sync for Watched {}

impl Drop for Watched {
    fn drop(&mut self) {
        // SAFETY: loom watches the cell.
        self.0.with_mut(|n| unsafe { *n = u32::MAX });
    }
}

#[test]
fn no_value_is_freed_while_it_is_read() {
    model(|| {
        let var = TVar::new(Watched(UnsafeCell::new(1)));
        let shared = var.clone();
        let reader = thread::spawn(move || {
            shared.read_now(|value| {
                // SAFETY: loom watches the cell.
                let n = value.0.with(|n| unsafe { *n });
                assert!(n == 1 || n == 2, "{n}");
            });
        });
        atomically_blocking(|tx| Ok(var.write(tx, Watched(UnsafeCell::new(2)))));
        reclaim();
        reader.join().unwrap();
    });
}

/// The variable within goes with the value around it. The attempt reads both without a handle of
/// its own.
#[test]
fn no_variable_is_freed_while_an_attempt_reads_it() {
    model(|| {
        let around = TVar::new(Some(TVar::new(Watched(UnsafeCell::new(1)))));
        let shared = around.clone();
        let reader = thread::spawn(move || {
            atomically_blocking(|tx| {
                if let Some(within) = shared.read(tx)? {
                    // SAFETY: loom watches the cell.
                    let n = within.read(tx)?.0.with(|n| unsafe { *n });
                    assert_eq!(n, 1);
                }
                Ok(())
            });
        });
        atomically_blocking(|tx| {
            around.write(tx, None);
            Ok(())
        });
        reclaim();
        reader.join().unwrap();
    });
}

/// The array goes with the value around it.
#[test]
fn no_block_is_freed_while_an_attempt_reads_it() {
    model(|| {
        let around = TVar::new(Some(TArray::new([Watched(UnsafeCell::new(1))])));
        let shared = around.clone();
        let reader = thread::spawn(move || {
            atomically_blocking(|tx| {
                if let Some(array) = shared.read(tx)? {
                    // SAFETY: loom watches the cell.
                    let n = array.read(tx, 0)?.0.with(|n| unsafe { *n });
                    assert_eq!(n, 1);
                }
                Ok(())
            });
        });
        atomically_blocking(|tx| {
            around.write(tx, None);
            Ok(())
        });
        reclaim();
        reader.join().unwrap();
    });
}

/// The last handle goes while a transaction registers in an element, waits, or leaves.
#[test]
fn a_block_and_a_registration_end_at_once() {
    model(|| {
        let place = Arc::new(Mutex::new(Some(TArray::new([Watched(UnsafeCell::new(1))]))));
        let shared = place.clone();
        let owner = thread::spawn(move || {
            let array = shared.lock().unwrap().take();
            drop(array);
            reclaim();
        });
        glance(atomically(|tx| {
            let Some(array) = place.lock().unwrap().clone() else { return Ok(()) };
            // SAFETY: loom watches the cell.
            let n = array.read(tx, 0)?.0.with(|n| unsafe { *n });
            assert_eq!(n, 1);
            tx.retry()
        }));
        reclaim();
        owner.join().unwrap();
    });
}
