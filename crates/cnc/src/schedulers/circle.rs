//! The protocol by which workers find work, sleep and end together: [`WorkerCircle`].
//!
//! `Stealing` is the only scheduler that uses it; `models.rs` checks it with loom. Rings, injector
//! and the choice of a sleeper are those of `IdleWorkers` in `selvedge-sched`. This file adds the
//! places where workers sleep, and the end of the run.
//!
//! The rule: a worker that holds an item, or runs one, is in the count `active`. The worker that
//! brings the count to 0 ends the run.

use std::sync::PoisonError;

use selvedge_sched::{IdleWorkers, RunRing};

use crate::primitives::{AtomicUsize, Condvar, Mutex, Ordering, lock, thread};

/// How often a worker looks for items to steal before it sleeps.
const LOOKS: u32 = if cfg!(any(loom, miri)) { 1 } else { 200 };

/// The most items that a worker takes out of the injector at once.
const BATCH: usize = 32;

/// The idle workers of a run, and its end.
///
/// `active` counts the workers that are not asleep, and those that were called and have not woken
/// up yet, because the caller counts them: one each, however often they were called. **When
/// `active` becomes 0, there is no item, and there will be none:**
/// - A worker leaves the count after `IdleWorkers::fall_asleep` has returned true: its own ring and
///   its private steps were empty before, and it has seen no item in another ring or in the
///   injector.
/// - Only its owner pushes to a ring, and only a worker that runs a step pushes to the injector.
///   Such a worker is in the count. So the last worker that leaves the count left all rings and the
///   injector empty.
///
/// A call may come so late that its worker is awake already. Then the worker finds the call when it
/// next falls asleep, and goes round once more. The count stays right, because the call has
/// added 1. A second call may come before the worker has found the first one. The worker finds both
/// at once, so the second call adds nothing.
///
/// `tests/loom/end.rs` checks this with models.
pub(crate) struct WorkerCircle<T, const N: usize> {
    idle: IdleWorkers<T, T, N>,
    active: AtomicUsize,
    sleepers: Box<[SleepPlace]>,
}

/// Where a worker sleeps.
struct SleepPlace {
    told: Mutex<Told>,
    changed: Condvar,
}

/// What a sleeper was told.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    /// It was called.
    Called,
    /// The run has ended.
    End,
}

impl SleepPlace {
    /// Tells the worker that the run has ended.
    fn end(&self) {
        *lock(&self.told) = Told::End;
        self.changed.notify_one();
    }
}

impl<T, const N: usize> WorkerCircle<T, N> {
    /// A circle of workers, all of them active, with their rings.
    pub(crate) fn new(workers: usize) -> (WorkerCircle<T, N>, Vec<RunRing<T, N>>) {
        let (idle, rings) = IdleWorkers::new(workers);
        let sleeper = || SleepPlace { told: Mutex::new(Told::Nothing), changed: Condvar::new() };
        let circle = WorkerCircle {
            idle,
            active: AtomicUsize::new(workers),
            sleepers: std::iter::repeat_with(sleeper).take(workers).collect(),
        };
        (circle, rings)
    }

    pub(crate) fn workers(&self) -> usize {
        self.sleepers.len()
    }

    /// Gives an item to any worker.
    pub(crate) fn give(&self, item: T) {
        match self.idle.inject(item) {
            Ok(worker) => self.call(worker),
            Err(_) => unreachable!("the injector is never closed"),
        }
    }

    /// Takes an item that was given; others go to `batch`.
    pub(crate) fn given(&self, batch: &mut impl Extend<T>) -> Option<T> {
        let injector = self.idle.injector();
        if injector.is_empty() {
            return None;
        }
        let mut items = injector.take(self.workers(), BATCH).into_iter();
        let first = items.next();
        batch.extend(items);
        first
    }

    /// Takes an item of the worker's own ring.
    pub(crate) fn own(&self, me: usize, ring: &mut RunRing<T, N>) -> Option<T> {
        if let Some(item) = ring.take() {
            return Some(item);
        }
        if ring.is_empty() {
            return None;
        }
        let claim = ring.claim(self.workers() as u32);
        if claim.left > 0 && claim.wanted {
            self.call(self.idle.surplus(me));
        }
        ring.take()
    }

    /// Notes that a worker has pushed items to its ring, which is wanted.
    pub(crate) fn surplus(&self, me: usize) {
        self.call(self.idle.surplus(me));
    }

    /// Wakes a worker that `idle` has called.
    fn call(&self, worker: Option<usize>) {
        let Some(worker) = worker else { return };
        let sleeper = &self.sleepers[worker];
        let mut told = lock(&sleeper.told);
        if *told == Told::Nothing {
            // The caller is in the count, so the count is not 0 before the addition either.
            self.active.fetch_add(1, Ordering::SeqCst);
            *told = Told::Called;
            sleeper.changed.notify_one();
        }
    }

    /// Finds an item for a worker that has none, and sleeps until there is one. `None` when there
    /// will be none any more.
    pub(crate) fn find(&self, me: usize, ring: &mut RunRing<T, N>, batch: &mut impl Extend<T>) -> Option<T> {
        let mut searching = self.idle.search();
        loop {
            if searching {
                for look in 0..LOOKS {
                    let stolen = self.idle.steal(me, ring, me + look as usize);
                    if let Some(item) = stolen.or_else(|| self.given(batch)) {
                        self.call(self.idle.found());
                        return Some(item);
                    }
                    thread::yield_now();
                }
            }
            if !self.idle.fall_asleep(me, searching) {
                searching = true;
                continue;
            }
            if !self.sleep(me) {
                return None;
            }
            searching = self.idle.wake_up(me);
        }
    }

    /// Sleeps until a call, or until the end: then false.
    fn sleep(&self, me: usize) -> bool {
        if self.active.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.end();
            return false;
        }
        let sleeper = &self.sleepers[me];
        let mut told = lock(&sleeper.told);
        while *told == Told::Nothing {
            told = sleeper.changed.wait(told).unwrap_or_else(PoisonError::into_inner);
        }
        let called = *told == Told::Called;
        if called {
            *told = Told::Nothing;
        }
        called
    }

    /// Tells all workers that the run has ended: each one returns when it next falls asleep.
    pub(crate) fn end(&self) {
        self.sleepers.iter().for_each(SleepPlace::end);
    }
}
