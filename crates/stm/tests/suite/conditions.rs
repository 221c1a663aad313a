//! Waits for predicates, under each engine: which transactions run, and that no wake-up is lost.

use selvedge_core::{JoinError, round_robin, spawn, yield_now};
use selvedge_stm::{
    Abort, Engine, Figure3, TWord, Tried, Tx, Versioned, atomically_under, reclaim, try_atomically_under,
    wait_for,
};
use selvedge_sync::wait_blocking;
use std::cell::RefCell;
use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Waker};
use std::thread;

const MANY: u32 = if cfg!(miri) { 10 } else { 1_000 };

fn word<E: Engine>(n: u32) -> TWord<u32, E> {
    TWord::with_engine(n)
}

fn set<E: Engine>(var: &TWord<u32, E>, n: u32) {
    wait_blocking(atomically_under::<E, _>(|tx| var.swap(tx, n)));
}

/// As `set`, in a thread.
async fn write<E: Engine>(var: &TWord<u32, E>, n: u32) {
    atomically_under::<E, _>(|tx| var.swap(tx, n)).await;
}

/// A transaction that waits for a predicate, and counts its runs.
fn counted<E: Engine, T: Fn(&Tx<E>) -> Tried<bool> + Clone + Send + Sync + 'static>(
    runs: &Arc<AtomicU32>,
    predicate: T,
) -> impl Future<Output = ()> + Send + use<E, T> {
    let runs = runs.clone();
    atomically_under::<E, _>(move |tx| {
        runs.fetch_add(1, Ordering::Relaxed);
        tx.wait_for(predicate.clone())
    })
}

fn at_least<E: Engine>(
    var: &TWord<u32, E>,
    n: u32,
) -> impl Fn(&Tx<E>) -> Tried<bool> + Clone + Send + Sync + use<E> {
    let var = var.clone();
    move |tx| Ok(var.read(tx)? >= n)
}

/// Polls a future once, without a step of a thread.
fn poll<F: Future + ?Sized>(future: Pin<&mut F>) -> Poll<F::Output> {
    future.poll(&mut Context::from_waker(Waker::noop()))
}

/// Each write wakes one of the waiting threads, and each of them runs twice.
fn a_herd_runs_when_there_is_something_to_do<E: Engine>() {
    let (var, runs) = (word::<E>(0), Arc::new(AtomicU32::new(0)));
    let counts = runs.clone();
    round_robin(async move {
        let herd: Vec<_> = (1..=MANY).map(|n| spawn(counted(&counts, at_least(&var, n)))).collect();
        yield_now().await;
        assert_eq!(counts.load(Ordering::Relaxed), MANY);
        for n in 1..=MANY {
            write(&var, n).await;
            yield_now().await;
            assert_eq!(counts.load(Ordering::Relaxed), MANY + n);
        }
        for one in herd {
            one.await.unwrap();
        }
    })
    .unwrap();
    assert_eq!(runs.load(Ordering::Relaxed), 2 * MANY);
}

fn a_predicate_that_holds_does_not_wait<E: Engine>() {
    let var = word::<E>(1);
    let mut ready = pin!(counted(&Arc::default(), at_least(&var, 1)));
    assert_eq!(poll(ready.as_mut()), Poll::Ready(()));
}

fn a_predicate_over_two_variables<E: Engine>() {
    let (x, y, runs) = (word::<E>(0), word::<E>(0), Arc::default());
    let (a, b) = (x.clone(), y.clone());
    let mut waits = pin!(counted(&runs, move |tx| Ok(a.read(tx)? + b.read(tx)? == 2)));
    assert!(poll(waits.as_mut()).is_pending());
    for (var, n) in [(&x, 1), (&y, 5), (&x, 0), (&y, 1)] {
        set(var, n);
        assert!(poll(waits.as_mut()).is_pending());
        assert_eq!(runs.load(Ordering::Relaxed), 1, "in vain");
    }
    set(&x, 1);
    assert_eq!((poll(waits.as_mut()), runs.load(Ordering::Relaxed)), (Poll::Ready(()), 2));
}

/// It reads `y` only if `x` is 1, so it is not registered there at first.
fn a_predicate_that_reads_other_variables<E: Engine>() {
    let (x, y, runs) = (word::<E>(0), word::<E>(0), Arc::default());
    let (a, b) = (x.clone(), y.clone());
    let mut waits = pin!(counted(&runs, move |tx| Ok(a.read(tx)? == 1 && b.read(tx)? == 1)));
    assert!(poll(waits.as_mut()).is_pending());
    set(&x, 1);
    assert!(poll(waits.as_mut()).is_pending());
    assert_eq!(runs.load(Ordering::Relaxed), 2, "it registers in the other variable");
    set(&y, 1);
    assert_eq!(poll(waits.as_mut()), Poll::Ready(()));
}

/// What the transaction has read outside of its predicate wakes it, before the predicate or after.
fn a_read_outside_of_the_predicate_wakes<E: Engine>() {
    for is_before in [false, true] {
        let (x, y, runs) = (word::<E>(0), word::<E>(0), AtomicU32::new(0));
        let mut waits = pin!(atomically_under::<E, _>(|tx| {
            runs.fetch_add(1, Ordering::Relaxed);
            if is_before {
                let _ = (x.read(tx)?, y.read(tx)?);
            }
            let waits = tx.wait_for(at_least(&y, 10));
            if !is_before {
                let _ = (y.read(tx)?, x.read(tx)?);
            }
            waits
        }));
        assert!(poll(waits.as_mut()).is_pending());
        for (run, var) in [(2, &x), (3, &y)] {
            set(var, 1);
            assert!(poll(waits.as_mut()).is_pending());
            assert_eq!(runs.load(Ordering::Relaxed), run);
        }
        set(&y, 10);
        assert_eq!(poll(waits.as_mut()), Poll::Ready(()));
    }
}

/// Two branches with a predicate each, of one common variable, and a third with a retry.
fn either_of_two_predicates_wakes<E: Engine>() {
    let [x, y, z] = [0; 3].map(word::<E>);
    let runs = AtomicU32::new(0);
    let waits = || {
        runs.store(0, Ordering::Relaxed);
        Box::pin(atomically_under::<E, _>(|tx| {
            runs.fetch_add(1, Ordering::Relaxed);
            let (a, b) = (x.clone(), y.clone());
            let second = |tx: &Tx<E>| tx.wait_for(move |tx| Ok(a.read(tx)? + b.read(tx)? == 7));
            let third = |tx: &Tx<E>| {
                let n = z.read(tx)?;
                tx.check(n == 1)
            };
            tx.or_else(|tx| tx.wait_for(at_least(&x, 10)), |tx| tx.or_else(second, third))
        }))
    };
    for (first, last) in [((&x, 9), (&x, 10)), ((&x, 3), (&y, 4)), ((&y, 3), (&z, 1))] {
        let mut one = waits();
        assert!(poll(one.as_mut()).is_pending());
        set(first.0, first.1);
        assert!(poll(one.as_mut()).is_pending());
        assert_eq!(runs.load(Ordering::Relaxed), 1, "in vain");
        set(last.0, last.1);
        assert_eq!((poll(one.as_mut()), runs.load(Ordering::Relaxed)), (Poll::Ready(()), 2));
        [&x, &y, &z].into_iter().for_each(|var| set(var, 0));
    }
}

/// The predicate sees the writes of its own transaction, which no commit knows.
fn a_predicate_that_sees_own_writes<E: Engine>() {
    let (x, y) = (word::<E>(0), word::<E>(0));
    let mut waits = pin!(atomically_under::<E, _>(|tx| {
        x.modify(tx, |n| n + 1)?;
        let (a, b) = (x.clone(), y.clone());
        tx.wait_for(move |tx| Ok(a.read(tx)? == b.read(tx)?))
    }));
    assert!(poll(waits.as_mut()).is_pending());
    set(&y, 1);
    assert_eq!(poll(waits.as_mut()), Poll::Ready(()));
    assert_eq!(x.read_now(), 1);
}

/// The panic in the transaction that commits is reported only.
fn a_predicate_that_panics_harms_its_own_thread<E: Engine>() {
    round_robin(async {
        let (x, runs) = (word::<E>(0), Arc::default());
        let a = x.clone();
        let first = spawn(counted(&runs, at_least(&x, 2)));
        let panics = spawn(counted(&runs, move |tx| match a.read(tx)? {
            1 => panic!("as it should"),
            _ => Ok(false),
        }));
        let last = spawn(counted(&runs, at_least(&x, 1)));
        yield_now().await;
        write(&x, 1).await;
        let Err(JoinError::Panicked(_)) = panics.await else { panic!("no panic") };
        last.await.unwrap();
        assert_eq!(runs.load(Ordering::Relaxed), 5, "the first one did not run");
        write(&x, 2).await;
        first.await.unwrap();
    })
    .unwrap();
}

/// A predicate that writes, and one that waits within, are evaluated beside others.
fn predicates_that_do_more_than_read<E: Engine>() {
    let (x, y, runs) = (word::<E>(0), word::<E>(0), Arc::default());
    let (a, b, c) = (x.clone(), y.clone(), x.clone());
    let mut writes = Box::pin(counted(&runs, move |tx| {
        let n = a.read(tx)?;
        b.write(tx, 9);
        Ok(n == 2)
    }));
    let nested = at_least(&x, 2);
    let mut waits = Box::pin(counted(&runs, move |tx| tx.wait_for(nested.clone()).map(|()| true)));
    let mut reads = Box::pin(counted(&runs, move |tx| Ok(c.read(tx)? == 2)));
    for n in 0..2 {
        set(&x, n);
        assert!(poll(writes.as_mut()).is_pending());
        assert!(poll(waits.as_mut()).is_pending());
        assert!(poll(reads.as_mut()).is_pending());
        assert_eq!(y.read_now(), 0, "a predicate has written");
    }
    assert_eq!(runs.load(Ordering::Relaxed), 4, "the one that writes is woken by each write");
    set(&x, 2);
    for one in [&mut waits as &mut (dyn Future<Output = ()> + Unpin), &mut reads, &mut writes] {
        assert_eq!(poll(Pin::new(one)), Poll::Ready(()));
    }
    assert_eq!(y.read_now(), 9, "its transaction has committed");
}

/// A variable of the first evaluation is gone, and another one perhaps lies at its address: the
/// predicate has not waited for that one.
fn a_predicate_that_reads_a_variable_of_its_own<E: Engine>() {
    for n in 1..=MANY.min(100) {
        let (x, later) = (word::<E>(0), Arc::new(Mutex::new(None::<TWord<u32, E>>)));
        let (read, there) = (x.clone(), later.clone());
        let mut waits = Box::pin(counted(&Arc::default(), move |tx: &Tx<E>| {
            read.read(tx)?;
            let var = there.lock().unwrap().clone().unwrap_or_else(|| word(0));
            Ok(var.read(tx)? == 1)
        }));
        assert!(poll(waits.as_mut()).is_pending());
        reclaim();
        let var = word(0);
        *later.lock().unwrap() = Some(var.clone());
        set(&x, n);
        assert!(poll(waits.as_mut()).is_pending());
        set(&var, 1);
        assert!(poll(waits.as_mut()).is_ready(), "a wake-up is lost");
    }
}

type Cancelled = Arc<Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>>;

/// It drops another transaction that waits for the same variable: no list is locked meanwhile.
fn a_predicate_that_cancels_a_waiter_of_its_variable<E: Engine>() {
    let x = word::<E>(0);
    let mut victim: Pin<Box<dyn Future<Output = ()> + Send>> =
        Box::pin(counted(&Arc::default(), at_least(&x, 5)));
    assert!(poll(victim.as_mut()).is_pending());
    let (victim, a): (Cancelled, _) = (Arc::new(Mutex::new(Some(victim))), x.clone());
    let cancels = victim.clone();
    let mut waits = pin!(counted(&Arc::default(), move |tx| {
        let n = a.read(tx)?;
        if n == 1 {
            drop(cancels.lock().unwrap().take());
        }
        Ok(n == 2)
    }));
    assert!(poll(waits.as_mut()).is_pending());
    set(&x, 1);
    assert!(victim.lock().unwrap().is_none() && poll(waits.as_mut()).is_pending());
    set(&x, 2);
    assert_eq!(poll(waits.as_mut()), Poll::Ready(()));
}

/// The predicates own a value, so it shows whether they are dropped.
fn a_wait_that_is_given_up_drops_its_predicate<E: Engine>() {
    let (x, y, value) = (word::<E>(0), word::<E>(0), Arc::new(()));
    let waits = |n| {
        let (owned, x, y) = (value.clone(), x.clone(), y.clone());
        Box::pin(counted(&Arc::default(), move |tx| {
            assert!(Arc::strong_count(&owned) > 1);
            Ok(x.read(tx)? + y.read(tx)? >= n)
        }))
    };
    let mut given_up: Vec<_> = (10..10 + MANY).map(waits).collect();
    let mut stays = waits(2);
    for one in given_up.iter_mut().chain([&mut stays]) {
        assert!(poll(one.as_mut()).is_pending());
    }
    set(&x, 1);
    drop(given_up);
    // The future has one, and the condition has the other.
    assert_eq!(Arc::strong_count(&value), 3, "a condition is left");
    set(&y, 1);
    assert_eq!(poll(stays.as_mut()), Poll::Ready(()));
    drop(stays);
    assert_eq!(Arc::strong_count(&value), 1);
}

/// Two OS threads write one variable each; neither alone makes the predicate hold. A third one
/// gives up waits for the same variables all the time.
fn no_wake_up_of_a_predicate_is_lost<E: Engine>() {
    let rounds = if cfg!(miri) { 10 } else { 2_000 };
    let (x, y) = (word::<E>(0), word::<E>(0));
    let (a, b, round) = (x.clone(), y.clone(), word::<E>(0));
    let ends = at_least(&round, rounds);
    thread::scope(|scope| {
        for var in [&x, &y] {
            let round = &round;
            scope.spawn(move || {
                for n in 1..=rounds {
                    set(var, n);
                    let waits = at_least(round, n);
                    wait_blocking(atomically_under::<E, _>(|tx| tx.wait_for(waits.clone())));
                }
            });
        }
        let (a, b) = (&x, &y);
        scope.spawn(move || {
            let mut ended = pin!(atomically_under::<E, _>(|tx| tx.wait_for(ends.clone())));
            while poll(ended.as_mut()).is_pending() {
                let (a, b) = (a.clone(), b.clone());
                let never = move |tx: &Tx<E>| Ok(a.read(tx)? + b.read(tx)? == u32::MAX);
                assert!(poll(pin!(counted(&Arc::default(), never))).is_pending());
            }
        });
        for n in 1..=rounds {
            let (a, b) = (x.clone(), y.clone());
            let both = move |tx: &Tx<E>| Ok(a.read(tx)? == n && b.read(tx)? == n);
            wait_blocking(atomically_under::<E, _>(|tx| tx.wait_for(both.clone())));
            set(&round, n);
        }
    });
    assert_eq!((a.read_now(), b.read_now()), (rounds, rounds));
}

#[test]
fn a_thread_waits_for_a_predicate_outside_of_a_transaction() {
    let (var, order) = (TWord::new(0_u32), Arc::new(Mutex::new(Vec::new())));
    let (shared, told) = (var.clone(), order.clone());
    round_robin(async move {
        let waits = spawn(async move {
            wait_for(at_least(&shared, 2)).await;
            told.lock().unwrap().push("woken");
        });
        for n in 1..=2 {
            write(&var, n).await;
            yield_now().await;
            order.lock().unwrap().push("written");
        }
        waits.await.unwrap();
        assert_eq!(*order.lock().unwrap(), ["written", "woken", "written"]);
    })
    .unwrap();
}

/// The last waiter of a variable leaves while a turn has locked the variable, and the turn ends
/// without effect.
fn a_turn_without_effect_leaves_no_mark<E: Engine>() {
    let (x, y) = (word::<E>(0), word::<E>(0));
    let mut waits = Some(Box::pin(counted(&Arc::default(), at_least(&x, 1))));
    assert!(poll(waits.as_mut().expect("made above").as_mut()).is_pending());
    assert!(x.is_waited_for());
    let mut runs = 0;
    let given_up = wait_blocking(try_atomically_under::<E, (), _>(|tx| {
        x.read(tx)?;
        runs += 1;
        if runs > 32 {
            // The turn.
            waits = None;
            return Err(Abort::Error(x.is_waited_for()));
        }
        let n = y.read(tx)?;
        thread::scope(|scope| scope.spawn(|| set(&y, n + 1)).join().unwrap());
        y.write(tx, 0);
        Ok(())
    }));
    assert_eq!(given_up, Err(true), "the turn has locked the word with its mark");
    assert!(!x.is_waited_for());
}

#[test]
fn a_turn_without_effect_leaves_no_mark_in_versions() {
    a_turn_without_effect_leaves_no_mark::<Versioned>();
    a_turn_without_effect_leaves_no_mark::<Figure3>();
}

#[test]
#[should_panic(expected = "has read no variable")]
fn a_predicate_without_variables_cannot_wait() {
    let told = RefCell::new(0);
    wait_blocking(atomically_under::<Versioned, _>(|tx| {
        *told.borrow_mut() += 1;
        tx.wait_for(|_| Ok(false))
    }));
}

under_each_engine! {
    a_herd_runs_when_there_is_something_to_do
    a_predicate_that_holds_does_not_wait
    a_predicate_over_two_variables
    a_predicate_that_reads_other_variables
    a_read_outside_of_the_predicate_wakes
    either_of_two_predicates_wakes
    a_predicate_that_reads_a_variable_of_its_own
    a_predicate_that_sees_own_writes
    a_predicate_that_panics_harms_its_own_thread
    predicates_that_do_more_than_read
    a_predicate_that_cancels_a_waiter_of_its_variable
    a_wait_that_is_given_up_drops_its_predicate
    no_wake_up_of_a_predicate_is_lost
}
