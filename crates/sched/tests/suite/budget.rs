//! A thread that never has to wait lets the other threads run, under every scheduler and whatever
//! operations it makes.

use crate::schedulers::{Scheduler, run};
use futures::stream::{FuturesUnordered, StreamExt};
use selvedge_core::{budget, fork, nbio, sleep, spawn, spawn_local, yield_now};
use selvedge_direct::{direct, wait};
use selvedge_scope::{join, scope, select};
use selvedge_sync::{Fifo, MVar, Mutex, OnceCell, Promise, RwLock, watch};
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::task::{Context, Waker};
use std::time::Duration;

under_every_scheduler! {
    locking_a_free_mutex_lets_others_run
    putting_and_taking_lets_others_run
    draining_a_full_fifo_lets_others_run
    asking_for_values_that_are_there_lets_others_run
    sleeping_for_no_time_lets_others_run
    joining_threads_that_are_over_lets_others_run
    opening_empty_scopes_lets_others_run
    looping_within_combinators_lets_others_run
    forking_and_acting_within_a_combinator_lets_others_run
    looping_behind_a_foreign_combinator_lets_others_run
    looping_in_direct_style_lets_others_run
    a_wait_within_a_step_that_polls_on_and_on_ends
}

/// More operations than any budget allows in a row.
const MANY: usize = if cfg!(miri) { 2_000 } else { 20_000 };

/// The most operations of price 1 before another thread of this OS thread has run: the operations
/// of a step, for each time that a scheduler may prefer one thread to another.
const AT_MOST: usize = 8 * budget::BUDGET as usize;

/// Tells whether another thread has run on this OS thread.
#[derive(Clone)]
struct Other(Arc<AtomicBool>);

impl Other {
    fn new() -> Other {
        let other = Other(Arc::default());
        let ran = other.clone();
        drop(spawn_local(async move { ran.0.store(true, SeqCst) }));
        other
    }

    fn has_run(&self) -> bool {
        self.0.load(SeqCst)
    }
}

/// Counts a thread's operations until another thread has run on its OS thread.
struct Turns {
    other: Other,
    operations: usize,
}

impl Turns {
    fn new() -> Turns {
        Turns { other: Other::new(), operations: 0 }
    }

    /// Whether the thread must make one more operation.
    fn go_on(&mut self) -> bool {
        if self.other.has_run() {
            assert!(self.operations <= AT_MOST, "after {} operations", self.operations);
            return false;
        }
        self.operations += 1;
        assert!(self.operations < MANY, "nothing else runs");
        true
    }
}

/// Runs `body` as a local thread, so that no other worker takes it over: on another worker, the
/// thread would not wait for the others.
fn on_one_os_thread<F: Future<Output = ()> + 'static>(
    scheduler: Scheduler,
    body: impl FnOnce() -> F + Send + 'static,
) {
    run(scheduler, async move { spawn_local(body()).await.unwrap() }).unwrap();
}

fn locking_a_free_mutex_lets_others_run(scheduler: Scheduler) {
    on_one_os_thread(scheduler, || async {
        let mutex = Mutex::new(0);
        let mut turns = Turns::new();
        while turns.go_on() {
            *mutex.lock().await += 1;
        }
    });
}

fn putting_and_taking_lets_others_run(scheduler: Scheduler) {
    on_one_os_thread(scheduler, || async {
        let variable = MVar::empty();
        let mut turns = Turns::new();
        while turns.go_on() {
            variable.put(()).await;
            variable.take().await;
        }
    });
}

fn draining_a_full_fifo_lets_others_run(scheduler: Scheduler) {
    on_one_os_thread(scheduler, || async {
        let fifo = Fifo::new();
        (0..MANY).for_each(|n| fifo.put(n));
        let mut turns = Turns::new();
        while turns.go_on() {
            fifo.take().await;
        }
    });
}

fn asking_for_values_that_are_there_lets_others_run(scheduler: Scheduler) {
    on_one_os_thread(scheduler, || async {
        let (lock, cell, (fulfiller, promise)) = (RwLock::new(()), OnceCell::new(), Promise::new());
        fulfiller.fulfil(());
        let (_setter, mut watcher) = watch(());
        for ask in 0..5 {
            let mut turns = Turns::new();
            while turns.go_on() {
                match ask {
                    0 => drop(lock.read().await),
                    1 => drop(lock.write().await),
                    2 => *cell.get_or_init(|| async {}).await,
                    3 => *promise.claim().await.unwrap(),
                    _ => drop(watcher.wait_for(|_| true).await),
                }
            }
        }
    });
}

fn sleeping_for_no_time_lets_others_run(scheduler: Scheduler) {
    on_one_os_thread(scheduler, || async {
        let mut turns = Turns::new();
        while turns.go_on() {
            sleep(Duration::ZERO).await;
        }
    });
}

fn joining_threads_that_are_over_lets_others_run(scheduler: Scheduler) {
    on_one_os_thread(scheduler, || async {
        let mut over: Vec<_> = (0..=AT_MOST).map(|_| spawn(async {})).collect();
        while !over.iter().all(|handle| handle.is_finished()) {
            yield_now().await;
        }
        let mut turns = Turns::new();
        while turns.go_on() {
            over.pop().expect("there are more than may be joined in a row").await.unwrap();
        }
    });
}

fn opening_empty_scopes_lets_others_run(scheduler: Scheduler) {
    on_one_os_thread(scheduler, || async {
        let mut turns = Turns::new();
        while turns.go_on() {
            scope(|_| async {}).await;
        }
    });
}

fn looping_within_combinators_lets_others_run(scheduler: Scheduler) {
    on_one_os_thread(scheduler, || async {
        let mutex = Mutex::new(());
        let mut turns = Turns::new();
        while turns.go_on() {
            drop(select((mutex.lock(), sleep(Duration::from_secs(1000)))).await);
        }
        let looping = async {
            let mut turns = Turns::new();
            while turns.go_on() {
                drop(mutex.lock().await);
            }
        };
        join((looping, sleep(Duration::from_millis(1)))).await;
    });
}

/// While a sleep occupies the step's request, a fork and an action need no answer of the scheduler.
fn forking_and_acting_within_a_combinator_lets_others_run(scheduler: Scheduler) {
    on_one_os_thread(scheduler, || async {
        let looping = async {
            let mut turns = Turns::new();
            while turns.go_on() {
                fork(async {}).await;
                nbio(|| ()).await;
            }
        };
        select((sleep(Duration::from_secs(1000)), looping)).await;
    });
}

fn looping_behind_a_foreign_combinator_lets_others_run(scheduler: Scheduler) {
    on_one_os_thread(scheduler, || async {
        let mutex = Arc::new(Mutex::new(()));
        let other = Other::new();
        let looped = Arc::new(AtomicUsize::new(0));
        let looping = |_| {
            let (mutex, other, looped) = (mutex.clone(), other.clone(), looped.clone());
            async move {
                while !other.has_run() && looped.fetch_add(1, SeqCst) < MANY {
                    drop(mutex.lock().await);
                }
            }
        };
        let mut all: FuturesUnordered<_> = (0..3).map(looping).collect();
        while all.next().await.is_some() {}
        // The budget refuses each of the three futures separately.
        assert!(looped.load(SeqCst) <= 3 * AT_MOST, "{looped:?}");
    });
}

/// A foreign `block_on` in a step cannot let other threads run: it polls again, and ends as it
/// would without a budget.
fn a_wait_within_a_step_that_polls_on_and_on_ends(scheduler: Scheduler) {
    on_one_os_thread(scheduler, || async {
        let mutex = Mutex::new(());
        for _ in 0..2 * AT_MOST {
            let mut lock = pin!(mutex.lock());
            let mut context = Context::from_waker(Waker::noop());
            while lock.as_mut().poll(&mut context).is_pending() {}
        }
    });
}

fn looping_in_direct_style_lets_others_run(scheduler: Scheduler) {
    if cfg!(miri) {
        return; // Miri cannot switch stacks.
    }
    on_one_os_thread(scheduler, || async {
        direct(|| {
            let mutex = Mutex::new(());
            let mut turns = Turns::new();
            while turns.go_on() {
                drop(wait(mutex.lock()));
            }
        })
        .await;
    });
}
