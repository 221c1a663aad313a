//! All interleavings of small transactions of each engine: commits, turns, waiting and waking, and
//! reclamation; with at most four preemptions for the default engine, and three for the others. The
//! models in which a thread waits while another one commits twice, or in which a predicate waits,
//! have at most three preemptions for each engine. In a model a transaction takes a turn after its
//! first conflict, and `Figure3` compares its reads at every second one.

use loom::cell::UnsafeCell;
use loom::sync::Mutex;
use loom::thread;
use selvedge_stm::{Engine, Figure3, TArray, TVar, TWord, Tried, Tx, Versioned, atomically_under, reclaim};
use selvedge_sync::wait_blocking;
use std::any::TypeId;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

fn model<E: Engine>(f: impl Fn() + Sync + Send + 'static) {
    let is_default = TypeId::of::<E>() == TypeId::of::<Versioned>();
    model_with(if is_default { 4 } else { 3 }, f);
}

fn model_with(preemptions: usize, f: impl Fn() + Sync + Send + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(f);
}

/// Polls the future once, and gives up.
fn glance<T>(future: impl Future<Output = T>) -> Option<T> {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => Some(output),
        Poll::Pending => None,
    }
}

fn word<E: Engine>() -> TWord<u32, E> {
    TWord::with_engine(0)
}

fn run<E: Engine, R>(body: impl FnMut(&Tx<E>) -> Tried<R>) -> R {
    wait_blocking(atomically_under::<E, R>(body))
}

/// What a transaction sees that commits. Each attempt of an opaque engine sees the same of both.
fn run_seeing_equals<E: Engine>(mut body: impl FnMut(&Tx<E>) -> Tried<(u32, u32)>) {
    let (x, y) = run::<E, _>(|tx| {
        let (x, y) = body(tx)?;
        let may_be_zombie = TypeId::of::<E>() == TypeId::of::<Figure3>();
        assert!(x == y || may_be_zombie, "also in an attempt that does not commit");
        Ok((x, y))
    });
    assert_eq!(x, y);
}

fn until<E: Engine>(var: &TWord<u32, E>, enough: u32) {
    run::<E, _>(|tx| {
        let n = var.read(tx)?;
        tx.check(n >= enough)
    });
}

fn add_one<E: Engine>(var: &TWord<u32, E>) {
    run::<E, _>(|tx| var.modify(tx, |n| n + 1));
}

fn no_addition_is_lost<E: Engine>() {
    model::<E>(|| {
        let var = word::<E>();
        let shared = var.clone();
        let other = thread::spawn(move || add_one(&shared));
        add_one(&var);
        other.join().unwrap();
        assert_eq!(var.read_now(), 2);
    });
}

/// The other OS thread commits twice, so the attempt of a turn meets a commit too.
fn no_addition_of_a_turn_is_lost<E: Engine>() {
    model::<E>(|| {
        let var = word::<E>();
        let shared = var.clone();
        let other = thread::spawn(move || (0..2).for_each(|_| add_one(&shared)));
        add_one(&var);
        other.join().unwrap();
        assert_eq!(var.read_now(), 3);
    });
}

/// A writer commits `times` times, and keeps the variables equal.
fn writes_both<E: Engine>(x: &TWord<u32, E>, y: &TWord<u32, E>, times: u32) -> thread::JoinHandle<()> {
    let (x, y) = (x.clone(), y.clone());
    thread::spawn(move || {
        for n in 1..=times {
            run::<E, _>(|tx| {
                x.write(tx, n);
                y.write(tx, n);
                Ok(())
            });
        }
    })
}

fn each_attempt_sees_one_moment<E: Engine>() {
    model::<E>(|| {
        let (x, y) = (word::<E>(), word::<E>());
        let writer = writes_both(&x, &y, 1);
        run_seeing_equals::<E>(|tx| Ok((x.read(tx)?, y.read(tx)?)));
        writer.join().unwrap();
    });
}

/// A transaction that has seen one value of a commit is followed by a look at another one, outside
/// of a transaction.
fn a_value_that_was_seen_comes_with_the_others<E: Engine>() {
    model::<E>(|| {
        let (x, y) = (word::<E>(), word::<E>());
        let writer = writes_both(&x, &y, 1);
        if run::<E, _>(|tx| x.read(tx)) == 1 {
            assert_eq!(y.read_now(), 1);
        } else if run::<E, _>(|tx| y.read(tx)) == 1 {
            assert_eq!(x.read_now(), 1);
        }
        writer.join().unwrap();
    });
}

/// The snapshot of the reader comes between two commits, or is moved on from one to the next.
fn a_moment_between_two_commits<E: Engine>() {
    model::<E>(|| {
        let (x, y) = (word::<E>(), word::<E>());
        let writer = writes_both(&x, &y, 2);
        run_seeing_equals::<E>(|tx| Ok((y.read(tx)?, x.read(tx)?)));
        writer.join().unwrap();
    });
}

fn a_read_is_compared_after_the_locks<E: Engine>() {
    model::<E>(|| {
        let (x, y) = (word::<E>(), word::<E>());
        let take = |mine: TWord<u32, E>, of_the_other: TWord<u32, E>| {
            move || {
                run::<E, _>(|tx| {
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

fn no_wake_up_is_lost<E: Engine>() {
    model::<E>(|| {
        let var = word::<E>();
        let shared = var.clone();
        let writer = thread::spawn(move || add_one(&shared));
        // A lost wake-up would be a deadlock of the model.
        until(&var, 1);
        writer.join().unwrap();
    });
}

fn either_of_two_variables_wakes<E: Engine>() {
    model::<E>(|| {
        let (x, y) = (word::<E>(), word::<E>());
        let shared = y.clone();
        let writer = thread::spawn(move || add_one(&shared));
        run::<E, _>(|tx| {
            let sum = x.read(tx)? + y.read(tx)?;
            tx.check(sum == 1)
        });
        writer.join().unwrap();
    });
}

fn a_waiter_that_gives_up_takes_no_wake_up_along<E: Engine>() {
    model_with(3, || {
        let var = word::<E>();
        let shared = var.clone();
        let writer = thread::spawn(move || add_one(&shared));
        let _ = glance(atomically_under::<E, _>(|tx| {
            let n = var.read(tx)?;
            tx.check(n == 1)
        }));
        until(&var, 1);
        writer.join().unwrap();
    });
}

/// Waits until the predicate holds. The commits evaluate it.
fn predicate<E: Engine>(
    holds: impl Fn(&Tx<E>) -> Tried<bool> + Clone + Send + Sync + 'static,
) -> impl Future<Output = ()> {
    atomically_under::<E, _>(move |tx| tx.wait_for(holds.clone()))
}

/// Each commit writes one variable of the predicate, and evaluates it. The first one comes before,
/// while or after the waiter registers in its two variables.
fn no_wake_up_of_a_predicate_is_lost<E: Engine>(is_in_order: bool) {
    model_with(3, move || {
        let (x, y) = (word::<E>(), word::<E>());
        let (a, b) = (x.clone(), y.clone());
        let (first, last) = if is_in_order { (x, y) } else { (y, x) };
        let writer = thread::spawn(move || add_one(&first));
        let mut waits = pin!(predicate::<E>(move |tx| Ok(a.read(tx)? + b.read(tx)? == 2)));
        let _ = waits.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        add_one(&last);
        wait_blocking(waits);
        writer.join().unwrap();
    });
}

fn no_wake_up_of_a_predicate_is_lost_by_its_first_variable<E: Engine>() {
    no_wake_up_of_a_predicate_is_lost::<E>(true);
}

fn no_wake_up_of_a_predicate_is_lost_by_its_second_variable<E: Engine>() {
    no_wake_up_of_a_predicate_is_lost::<E>(false);
}

/// While the waiter registers in its two variables, one is written and written back. The predicate
/// has been evaluated between.
fn a_value_that_is_written_back_loses_no_wake_up<E: Engine>() {
    model_with(1, || {
        let (x, y) = (word::<E>(), word::<E>());
        let (a, b) = (x.clone(), y.clone());
        let set = |var: &TWord<u32, E>, value| {
            run::<E, _>(|tx| {
                var.write(tx, value);
                Ok(())
            });
        };
        let writer = thread::spawn(move || {
            set(&y, 1);
            set(&x, 1);
            set(&y, 0);
        });
        // It reads both at each evaluation, so that it waits for both.
        wait_blocking(predicate::<E>(move |tx| Ok((a.read(tx)?, b.read(tx)?) == (1, 0))));
        writer.join().unwrap();
    });
}

/// Two commits to the same variable: one may come while the other one has cleared `WAITERS`.
fn no_wake_up_is_lost_between_two_commits_to_a_variable<E: Engine>() {
    model_with(3, || {
        let x = word::<E>();
        let (shared, read) = (x.clone(), x.clone());
        let mut waits = pin!(predicate::<E>(move |tx| Ok(read.read(tx)? == 2)));
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
    type E = Versioned;
    model_with(3, || {
        let var = word::<E>();
        let (shared, a, b) = (var.clone(), var.clone(), var.clone());
        let writer = thread::spawn(move || add_one(&shared));
        let _ = glance(predicate::<E>(move |tx| Ok(a.read(tx)? == 1)));
        wait_blocking(predicate::<E>(move |tx| Ok(b.read(tx)? == 1)));
        writer.join().unwrap();
    });
}

/// The variable within goes with the value around it. The attempt reads both without a handle of
/// its own.
fn no_variable_is_freed_while_an_attempt_reads_it<E: Engine>() {
    model::<E>(|| {
        let within = TVar::<_, E>::with_engine(Watched(UnsafeCell::new(1)));
        let around = TVar::<_, E>::with_engine(Some(within));
        let shared = around.clone();
        let reader = thread::spawn(move || {
            run::<E, _>(|tx| {
                if let Some(within) = shared.read(tx)? {
                    // SAFETY: loom watches the cell.
                    let n = within.read(tx)?.0.with(|n| unsafe { *n });
                    assert_eq!(n, 1);
                }
                Ok(())
            });
        });
        run::<E, _>(|tx| {
            around.write(tx, None);
            Ok(())
        });
        reclaim();
        reader.join().unwrap();
    });
}

under_each_engine! {
    no_addition_is_lost
    no_addition_of_a_turn_is_lost
    each_attempt_sees_one_moment
    a_value_that_was_seen_comes_with_the_others
    a_moment_between_two_commits
    a_read_is_compared_after_the_locks
    no_wake_up_is_lost
    either_of_two_variables_wakes
    a_waiter_that_gives_up_takes_no_wake_up_along
    no_wake_up_of_a_predicate_is_lost_by_its_first_variable
    no_wake_up_of_a_predicate_is_lost_by_its_second_variable
    no_wake_up_is_lost_between_two_commits_to_a_variable
    a_value_that_is_written_back_loses_no_wake_up
    no_variable_is_freed_while_an_attempt_reads_it
}

/// Ten reads, each newer than the stamp, so that the reader raises the clock.
#[test]
fn a_raised_clock_keeps_the_moment() {
    model::<Versioned>(|| {
        let vars: Vec<_> = (0..10).map(|_| word::<Versioned>()).collect();
        run::<Versioned, _>(|tx| vars.iter().try_for_each(|var| Ok(var.write(tx, 1))));
        let shared = vars.clone();
        let writer = thread::spawn(move || {
            run::<Versioned, _>(|tx| {
                shared[0].write(tx, 2);
                Ok(shared[9].write(tx, 2))
            });
        });
        run::<Versioned, _>(|tx| {
            let values = vars.iter().map(|var| var.read(tx)).collect::<Tried<Vec<_>>>()?;
            assert_eq!(values[0], values[9]);
            Ok(())
        });
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
    model::<Versioned>(|| {
        let var = TVar::<_, Versioned>::with_engine(Watched(UnsafeCell::new(1)));
        let shared = var.clone();
        let reader = thread::spawn(move || {
            shared.read_now(|value| {
                // SAFETY: loom watches the cell.
                let n = value.0.with(|n| unsafe { *n });
                assert!(n == 1 || n == 2, "{n}");
            });
        });
        run::<Versioned, _>(|tx| Ok(var.write(tx, Watched(UnsafeCell::new(2)))));
        reclaim();
        reader.join().unwrap();
    });
}

/// The array goes with the value around it.
#[test]
fn no_block_is_freed_while_an_attempt_reads_it() {
    model::<Versioned>(|| {
        let around = TVar::new(Some(TArray::new([Watched(UnsafeCell::new(1))])));
        let shared = around.clone();
        let reader = thread::spawn(move || {
            run::<Versioned, _>(|tx| {
                if let Some(array) = shared.read(tx)? {
                    // SAFETY: loom watches the cell.
                    let n = array.read(tx, 0)?.0.with(|n| unsafe { *n });
                    assert_eq!(n, 1);
                }
                Ok(())
            });
        });
        run::<Versioned, _>(|tx| {
            around.write(tx, None);
            Ok(())
        });
        reclaim();
        reader.join().unwrap();
    });
}

/// A weak handle is upgraded while the last handle goes and the variable is freed.
#[test]
fn an_upgrade_meets_the_end_of_the_variable() {
    model::<Versioned>(|| {
        let var = TVar::<_, Versioned>::with_engine(Watched(UnsafeCell::new(1)));
        let weak = var.downgrade();
        let upgrades = thread::spawn(move || {
            let Some(var) = weak.upgrade() else { return };
            var.read_now(|value| {
                // SAFETY: loom watches the cell.
                let n = value.0.with(|n| unsafe { *n });
                assert_eq!(n, 1);
            });
            drop(var);
            reclaim();
        });
        drop(var);
        reclaim();
        upgrades.join().unwrap();
    });
}

/// The last handle goes while a transaction registers in an element, waits, or leaves.
///
/// The mutex is one of loom, because the clone of a handle may switch to the other thread while the
/// mutex is locked.
#[test]
fn a_block_and_a_registration_end_at_once() {
    model::<Versioned>(|| {
        let place = Arc::new(Mutex::new(Some(TArray::new([Watched(UnsafeCell::new(1))]))));
        let shared = place.clone();
        let owner = thread::spawn(move || {
            let array = shared.lock().unwrap().take();
            drop(array);
            reclaim();
        });
        glance(atomically_under::<Versioned, _>(|tx| {
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
