//! Termination detection for a run with a living environment: [`RunBell`].
//!
//! The handles of the environment put from other OS threads, at any time of the run: a handle
//! enters, puts, leaves, and rings. The workers of a run look at the bell before each step and
//! before they sleep. The last worker that has no step rests here ([`RunBell::rest`]).
//!
//! ```text
//! a handle     open ─▶ (enter ─▶ put, keep the ready steps ─▶ leave and ring, wake)* ─▶ close
//! a worker     before each step: rung? ─▶ answer ─▶ take the ready steps
//!              without a step: rung? ─▶ answer ─▶ ..   otherwise sleep, or as the last one:
//! the last     settle ─▶ rest ─┬─ rung ──▶ settle once more, or take the ready steps and work
//!                              └─ closed, or stopped ──▶ end: all workers end
//! ```
//!
//! A scheduler without workers that stay (`OneByOne`, or one of the program) returns when no step
//! is ready. Then the graph's thread is the last worker, and begins another round of the scheduler
//! when the bell is rung.
//!
//! **Which put wakes which worker.** [`Workers`] says what the workers of the run do:
//!
//! ```text
//!   ACTIVE      a worker runs a step, or looks for one
//!   SETTLING    no worker does, and the last one settles the graph (`step/settle.rs`)
//!   RESTING     no worker does, and the last one sleeps at the bell
//!
//!   ACTIVE   → SETTLING   the last worker leaves (`leave`)
//!   SETTLING → RESTING    nothing is left to settle (`rest`)
//!   RESTING  → SETTLING   the bell was rung
//!   SETTLING → ACTIVE     there are steps, and the worker has joined again (`join`)
//! ```
//!
//! A put that leaves has one of them woken: if they are RESTING, the worker at the bell, and if
//! they are ACTIVE, one that sleeps in its scheduler. In between the last worker looks at the bell
//! before it sleeps, so there is none to wake. A put after which the bell was rung already wakes
//! none, because the put before it did, or found that none slept.
//!
//! **No put is lost.** A worker leaves under the lock of the bell, after the scheduler has listed
//! it as a sleeper, and only if the bell is not rung. A put rings under the same lock, and has the
//! scheduler wake a sleeper under it (`wake`). So either the put comes first, and the worker sees
//! the bell rung; or the worker comes first, and the put finds it among the sleepers.
//!
//! **The count of the scheduler is exact.** The scheduler counts its active workers. It counts one
//! out in `leave`, and one in for a put in `wake` and in `join`, each under the lock of the bell.
//! An active worker may call a sleeper without this lock, because the count is not 0 then. So the
//! count becomes 0 in one `leave` alone, and stays so until `join`: there is one last worker.
//!
//! **The end.** A run ends when no step is ready and none runs, no handle is open, and no put is
//! under way.
//! - No worker is active in `rest`, so no step runs.
//! - A put keeps its ready steps in the graph before it rings, and a worker that answers takes the
//!   steps after its `answer`. So ready steps that are in the graph and not rung for belong to a
//!   put that has not left. `Core::take_start` takes one of the steps, and rings for the others.
//! - `rest` decides under the lock. It ends if the bell is not rung, no put is inside and no handle
//!   is open. A new handle comes from an open one, or from the graph's thread, which is in the run.
//!   So there will be none.
//! - The close of the last handle and the stop of the run wake the worker at the bell, and this
//!   worker ends the others.
//!
//! **No put is between two runs.** `enter` waits until a run has begun, and [`RunBell::end`] waits
//! for the puts that are inside. So the graph's thread may look at the items between its runs.
//!
//! **A graph at rest stays so** while a thread looks at it ([`Rest`]). `at_rest` lets the thread
//! look when the workers are RESTING, the bell is not rung and no put is inside, and `enter` lets
//! no put in meanwhile. So the bell is not rung, and `rest` does not return for more work. `end`
//! waits for the thread. The last worker looks in the same way while it settles
//! (`between_rounds`).
//!
//! **A stopped run ends** though handles are open: `enter` and `at_rest` refuse, and `end` waits
//! for the puts that are inside and the threads that look.
//!
//! `tests/loom/end.rs` checks this with models.

use crate::primitives::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering, lock};
use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::task::Waker;

/// What the workers of a run do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Workers {
    #[default]
    Active,
    Settling,
    Resting,
}

#[derive(Debug, Default)]
struct BellState {
    /// A run has begun and has not ended.
    running: bool,
    workers: Workers,
    /// A put has left ready steps since the last answer.
    rung: bool,
    /// No step begins any more, so no put is let in.
    stopped: bool,
    /// The handles of the environment.
    open: usize,
    /// The puts that are under way.
    inside: usize,
    /// The threads that look at a graph at rest.
    looking: usize,
    /// The threads that sleep at `changed`.
    waiting: usize,
    /// The threads that wait for items, each by a number of its own.
    wakers: BTreeMap<u64, Waker>,
}

impl BellState {
    fn is_at_rest(&self) -> bool {
        self.workers == Workers::Resting && !self.rung && self.inside == 0
    }
}

/// The place at which a run and the living environment of its graph meet.
#[derive(Debug)]
pub(crate) struct RunBell {
    state: Mutex<BellState>,
    /// Where the last worker rests.
    called: Condvar,
    /// Where the handles of the environment wait, and the end of a run.
    changed: Condvar,
    /// Whether the bell may be rung, for workers. `BellState::rung` decides.
    rung: AtomicBool,
}

impl Default for RunBell {
    fn default() -> RunBell {
        RunBell {
            state: Mutex::new(BellState::default()),
            called: Condvar::new(),
            changed: Condvar::new(),
            rung: AtomicBool::new(false),
        }
    }
}

/// What becomes of a worker without a step, by its scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leave {
    /// It stays active, because there is a step.
    Back,
    /// It sleeps, and others are active.
    Asleep,
    /// All others sleep.
    Last,
}

/// A put of the living environment that is under way. At its end, `W` wakes a worker that sleeps in
/// its scheduler.
pub(crate) struct LivePut<'a, W: Fn()> {
    bell: &'a RunBell,
    wake: W,
}

impl<W: Fn()> Drop for LivePut<'_, W> {
    fn drop(&mut self) {
        let mut state = lock(&self.bell.state);
        state.inside -= 1;
        let was_rung = state.rung;
        self.bell.set_rung(&mut state, true);
        if !was_rung && state.workers == Workers::Active {
            // Under the lock, so that no worker leaves between the look and the call.
            (self.wake)();
        }
        let is_rester_called = !was_rung && state.workers == Workers::Resting;
        self.bell.tell(state, is_rester_called);
    }
}

/// A graph that stays at rest while this exists.
pub(crate) struct Rest<'a>(&'a RunBell);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.looking -= 1;
        self.0.tell(state, false);
    }
}

impl RunBell {
    fn wait<'a>(&'a self, mut state: MutexGuard<'a, BellState>) -> MutexGuard<'a, BellState> {
        state.waiting += 1;
        let mut state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        state.waiting -= 1;
        state
    }

    /// Unlocks the state, which has changed, and wakes the OS threads that wait for a change.
    fn tell(&self, state: MutexGuard<'_, BellState>, is_rester_called: bool) {
        let is_waited = state.waiting > 0;
        drop(state);
        if is_rester_called {
            self.called.notify_one();
        }
        if is_waited {
            self.changed.notify_all();
        }
    }

    /// Notes a new handle.
    pub(crate) fn open(&self) {
        lock(&self.state).open += 1;
    }

    /// Notes the end of a handle.
    pub(crate) fn close(&self) {
        let mut state = lock(&self.state);
        state.open -= 1;
        let is_last = state.open == 0;
        self.tell(state, is_last);
    }

    /// Whether a handle is open.
    pub(crate) fn is_open(&self) -> bool {
        lock(&self.state).open > 0
    }

    /// Lets a put in, when a run has begun. `None` if the run was stopped.
    ///
    /// `is_own` says whether the caller is the thread of the graph. `wake` makes the scheduler wake
    /// a sleeper; it is called under the lock of the bell.
    ///
    /// # Panics
    /// If the graph's own thread would wait for the run.
    pub(crate) fn enter<W: Fn()>(&self, is_own: impl FnOnce() -> bool, wake: W) -> Option<LivePut<'_, W>> {
        let mut state = self.let_run(is_own);
        while !state.stopped && (!state.running || state.looking > 0) {
            state = self.wait(state);
        }
        if state.stopped {
            return None;
        }
        state.inside += 1;
        Some(LivePut { bell: self, wake })
    }

    /// Waits until no step is ready, none runs, and no put is under way. `None` if the run was
    /// stopped. The graph stays at rest until the caller drops the result.
    ///
    /// # Panics
    /// As [`enter`](RunBell::enter).
    pub(crate) fn at_rest(&self, is_own: impl FnOnce() -> bool) -> Option<Rest<'_>> {
        let mut state = self.let_run(is_own);
        while !state.stopped && !state.is_at_rest() {
            state = self.wait(state);
        }
        if state.stopped {
            return None;
        }
        state.looking += 1;
        Some(Rest(self))
    }

    /// Lets the last worker look at the graph before it rests. `None` if a put is under way or has
    /// left ready steps, so that there will be another round. No put is let in until the caller
    /// drops the result.
    pub(crate) fn between_rounds(&self) -> Option<Rest<'_>> {
        let mut state = lock(&self.state);
        if state.rung || state.inside > 0 {
            return None;
        }
        state.looking += 1;
        Some(Rest(self))
    }

    /// Locks the state, unless the graph's own thread would wait for its run.
    fn let_run(&self, is_own: impl FnOnce() -> bool) -> MutexGuard<'_, BellState> {
        let state = lock(&self.state);
        if !state.running && !state.stopped && is_own() {
            drop(state);
            panic!("the thread of a graph puts with `initialize` between its runs");
        }
        state
    }

    /// Whether a put may have left ready steps.
    #[inline]
    pub(crate) fn is_rung(&self) -> bool {
        self.rung.load(Ordering::Relaxed)
    }

    /// Notes that the caller takes the ready steps, which it does next. False if the bell is not
    /// rung.
    pub(crate) fn answer(&self) -> bool {
        let mut state = lock(&self.state);
        let was_rung = state.rung;
        self.set_rung(&mut state, false);
        was_rung
    }

    /// Rings for ready steps that are in the graph.
    pub(crate) fn ring(&self) {
        let mut state = lock(&self.state);
        self.set_rung(&mut state, true);
    }

    fn set_rung(&self, state: &mut BellState, rung: bool) {
        state.rung = rung;
        self.rung.store(rung, Ordering::Relaxed);
    }

    /// Begins a run.
    pub(crate) fn begin(&self) {
        let mut state = lock(&self.state);
        state.running = true;
        self.tell(state, false);
    }

    /// Counts out a worker without a step, unless the bell is rung. If it is rung, this call
    /// answers it and returns `None`, and the caller takes the ready steps next. `leave` counts the
    /// worker out in its scheduler, and is called under the lock of the bell.
    pub(crate) fn leave(&self, leave: impl FnOnce() -> Leave) -> Option<Leave> {
        let mut state = lock(&self.state);
        if state.rung {
            self.set_rung(&mut state, false);
            return None;
        }
        let left = leave();
        if left == Leave::Last {
            state.workers = Workers::Settling;
        }
        Some(left)
    }

    /// Counts the last worker in again, by `join`. The workers are active then.
    pub(crate) fn join(&self, join: impl FnOnce()) {
        let mut state = lock(&self.state);
        state.workers = Workers::Active;
        join();
    }

    /// As the last worker, waits until a put has left ready steps: true. False if the run ends.
    pub(crate) fn rest(&self) -> bool {
        let mut state = lock(&self.state);
        state.workers = Workers::Resting;
        if state.waiting > 0 {
            self.changed.notify_all();
        }
        let goes_on = loop {
            if state.stopped || (state.open == 0 && state.is_at_rest()) {
                break false;
            }
            if state.rung {
                self.set_rung(&mut state, false);
                break true;
            }
            state = self.called.wait(state).unwrap_or_else(PoisonError::into_inner);
        };
        state.workers = Workers::Settling;
        goes_on
    }

    /// Ends a run: waits for the puts that are under way, and for the threads that look at the
    /// graph. No other one begins before the next run.
    pub(crate) fn end(&self) {
        let mut state = lock(&self.state);
        state.running = false;
        while state.inside > 0 || state.looking > 0 {
            state = self.wait(state);
        }
    }

    /// Lets no put in any more, and ends the run.
    pub(crate) fn stop(&self) {
        let mut state = lock(&self.state);
        state.stopped = true;
        let wakers = std::mem::take(&mut state.wakers);
        self.tell(state, true);
        // Code of the program's executors, so not under the lock.
        wakers.into_values().for_each(Waker::wake);
    }

    /// Lets puts in again after a stop, between two runs. No handle is open.
    pub(crate) fn reset(&self) {
        let mut state = lock(&self.state);
        state.stopped = false;
        self.set_rung(&mut state, false);
    }

    /// Wakes a thread when the run is stopped. False if it was.
    pub(crate) fn wake_at_stop(&self, number: u64, waker: Waker) -> bool {
        let mut state = lock(&self.state);
        if state.stopped {
            return false;
        }
        let before = state.wakers.insert(number, waker);
        drop(state);
        // Code of the program's executors, so not under the lock.
        drop(before);
        true
    }

    /// Wakes the thread with this number no more.
    pub(crate) fn wake_no_more(&self, number: u64) {
        let waker = lock(&self.state).wakers.remove(&number);
        drop(waker);
    }
}
