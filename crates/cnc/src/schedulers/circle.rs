//! Termination detection, and the protocol by which workers find work and sleep: [`WorkerCircle`].
//!
//! `Stealing` is the only scheduler that uses it; `models.rs` checks it with loom. Rings, injector
//! and the choice of a sleeper are those of `IdleWorkers` in `selvedge-sched`. This file adds the
//! places where workers sleep, and the end of the run.
//!
//! The rule: a worker that holds an item, or runs one, is in the count `active`. The worker that
//! brings the count to 0 ends the run.
//!
//! # A run that lives on
//! Items come from outside too, and the worker that brings the count to 0 waits for them. What a
//! worker does about them is behind [`Outside`]: `Stealing` asks the bell of the run, and an
//! ordinary run has [`Closed`]. A worker without an item falls asleep in these steps:
//!
//! 1. It enters the list of sleepers (`IdleWorkers::fall_asleep`), and looks once more at all rings
//!    and at the injector.
//! 2. It looks once more at the outside, and leaves the count (`Outside::leave`). Both are one step
//!    under the lock of the bell.
//! 3. It sleeps until it is called. The last one sleeps in step 2, at the bell, until an item comes
//!    from outside.
//! 4. It is out of the list, takes what has come from outside, and otherwise searches.
//!
//! An item that comes from outside calls a sleeper ([`WorkerCircle::wake`]) under the lock of step
//! 2, after it rang the bell. So it comes before step 2, which sees the bell rung, or after it, and
//! then the worker is in the list. `bell.rs` has the rest of the argument.
//!
//! No worker waits by giving its CPU away again and again: it looks at the rings some times, with
//! a few spins in between, and sleeps then.

use crate::bell::Leave;
use crate::primitives::{AtomicUsize, Condvar, Mutex, Ordering, lock, thread};
use selvedge_sched::{IdleWorkers, RunRing};
use std::hint;
use std::sync::PoisonError;

/// How often a worker looks for work before it sleeps: in an ordinary run, which is to end soon,
/// and in one that lives on, because its environment needs the CPU. A `TaskPool` that spins takes
/// the first number.
pub(super) const LOOKS: u32 = if cfg!(any(loom, miri)) { 1 } else { 200 };
pub(crate) const LOOKS_LIVING: u32 = if cfg!(any(loom, miri)) { 1 } else { 8 };

/// How many times a worker spins between two looks. That takes as long as a system call.
const SPINS: u32 = 8;

/// What the workers of a circle do about items that come from outside.
pub(crate) trait Outside<T> {
    /// How often a worker looks for items to steal before it sleeps.
    const LOOKS: u32;

    /// Takes an item that has come from outside, if there is one. The worker is awake, and in the
    /// count.
    fn take(&mut self) -> Option<T>;

    /// Counts the worker out with `leave`, unless an item has come from outside. The last worker
    /// waits for an item, and `join` counts it in again.
    fn leave(&mut self, leave: impl FnOnce() -> Leave, join: impl FnOnce()) -> LeftAs<T>;
}

/// What becomes of a worker that was to leave the count.
pub(crate) enum LeftAs<T> {
    Asleep,
    /// It is in the count, with an item from outside.
    Found(T),
    /// It is in the count, and looks again.
    Back,
    /// The run has ended.
    End,
}

/// No items come from outside, so the last worker that leaves ends the run.
pub(crate) struct Closed;

impl<T> Outside<T> for Closed {
    const LOOKS: u32 = LOOKS;

    fn take(&mut self) -> Option<T> {
        None
    }

    fn leave(&mut self, leave: impl FnOnce() -> Leave, _: impl FnOnce()) -> LeftAs<T> {
        match leave() {
            Leave::Last => LeftAs::End,
            Leave::Asleep => LeftAs::Asleep,
            Leave::Back => LeftAs::Back,
        }
    }
}

/// The most items that a worker takes out of the injector at once.
const BATCH: usize = 32;

/// The idle workers of a run, and its end.
///
/// `active` counts the workers that are not asleep. It also counts the workers that were called and
/// have not woken up yet, because the caller counts them: once each, however often they were
/// called. **When `active` becomes 0, there is no item, and there will be none:**
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

    /// Calls a sleeper for an item that has come from outside, if there is one and no worker
    /// searches. A searcher looks at the outside before it sleeps.
    pub(crate) fn wake(&self) {
        self.call(self.idle.call_sleeper());
    }

    /// Finds an item for a worker that has none, and sleeps until there is one. `None` when there
    /// will be none any more.
    pub(crate) fn find<O: Outside<T>>(
        &self,
        me: usize,
        ring: &mut RunRing<T, N>,
        batch: &mut impl Extend<T>,
        outside: &mut O,
    ) -> Option<T> {
        let mut searching = self.idle.search();
        loop {
            if searching {
                for look in 0..O::LOOKS {
                    let stolen = self.idle.steal(me, ring, me + look as usize);
                    if let Some(item) = stolen.or_else(|| self.given(batch)) {
                        self.call(self.idle.found());
                        return Some(item);
                    }
                    pause();
                }
            }
            if !self.idle.fall_asleep(me, searching) {
                searching = true;
                continue;
            }
            let leave = || match self.active.fetch_sub(1, Ordering::SeqCst) {
                1 => Leave::Last,
                _ => Leave::Asleep,
            };
            let join = || {
                self.active.fetch_add(1, Ordering::SeqCst);
            };
            let left = outside.leave(leave, join);
            if matches!(left, LeftAs::End) {
                self.end();
                return None;
            }
            if matches!(left, LeftAs::Asleep) && !self.sleep(me) {
                return None;
            }
            searching = self.idle.wake_up(me);
            let found = if let LeftAs::Found(item) = left { Some(item) } else { outside.take() };
            if found.is_some() {
                if searching {
                    self.call(self.idle.found());
                }
                return found;
            }
        }
    }

    /// Sleeps until a call, or until the end: then false.
    fn sleep(&self, me: usize) -> bool {
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

/// Spins for a moment. Under loom, which has no other way to let others go on, it yields.
pub(super) fn pause() {
    if cfg!(loom) {
        thread::yield_now();
    }
    (0..SPINS).for_each(|_| hint::spin_loop());
}
