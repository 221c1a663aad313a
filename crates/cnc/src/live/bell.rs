//! How a run and the living environment of its graph meet: [`RunBell`].
//!
//! The thread of the graph runs a scheduler again and again. Between two rounds it rests here
//! ([`RunBell::rest`]). The handles of the environment put from other OS threads, at any time of
//! the run: a handle enters, puts, leaves, and rings.
//!
//! ```text
//! the graph's thread     begin ─▶ scheduler ─▶ rest ─┬─ rung ──▶ scheduler ─▶ ..
//!                                                    └─ closed, or stopped ──▶ end
//! a handle               open ─▶ (enter ─▶ put, keep the ready steps ─▶ leave and ring)* ─▶ close
//! a worker               before each step: rung? ─▶ answer ─▶ take the ready steps
//! ```
//!
//! **The end.** A run ends when no step is ready and none runs, no handle is open, and no put is
//! under way.
//! - A scheduler returns only when all steps that it got have ended, so no step runs in `rest`.
//! - A put keeps its ready steps in the graph before it rings, and each `answer` comes before the
//!   one that answers takes the steps. So ready steps that are in the graph and not rung for belong
//!   to a put that has not left. `Core::take_start` takes one of the steps, and rings for the
//!   others.
//! - `rest` decides under the lock. It ends if the bell is not rung, no put is inside and no handle
//!   is open. A new handle comes from an open one, or from the graph's thread, which is in `rest`.
//!   So there will be none.
//!
//! **No put is between two runs.** `enter` waits until a run has begun, and [`RunBell::end`] waits
//! for the puts that are inside. So the graph's thread may look at the items between its runs.
//!
//! **A graph at rest stays so** while a thread looks at it ([`Rest`]). `at_rest` lets the thread
//! look when the bell is not rung and no put is inside, and `enter` lets no put in meanwhile. So
//! the bell is not rung, and `rest` does not return for another round. `end` waits for the thread.
//! The graph's own thread looks in the same way between two rounds (`between_rounds`), when no
//! scheduler runs and it is not in `rest`.
//!
//! **A stopped run ends** though handles are open: `enter` and `at_rest` refuse, and `end` waits
//! for the puts that are inside and the threads that look.
//!
//! `tests/loom/end.rs` checks this with models.

use std::collections::BTreeMap;
use std::sync::PoisonError;
use std::task::Waker;

use crate::primitives::{AtomicBool, Condvar, Mutex, MutexGuard, Ordering, lock};

#[derive(Debug, Default)]
struct BellState {
    /// A run has begun and has not ended.
    running: bool,
    /// The thread of the graph is in `rest`.
    resting: bool,
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
    /// The threads that wait for items, each by a number of its own.
    wakers: BTreeMap<u64, Waker>,
}

impl BellState {
    fn is_at_rest(&self) -> bool {
        self.resting && !self.rung && self.inside == 0
    }
}

/// The place at which a run and the living environment of its graph meet.
#[derive(Debug)]
pub(crate) struct RunBell {
    state: Mutex<BellState>,
    changed: Condvar,
    /// Whether the bell may be rung, for workers. `BellState::rung` decides.
    rung: AtomicBool,
}

impl Default for RunBell {
    fn default() -> RunBell {
        RunBell {
            state: Mutex::new(BellState::default()),
            changed: Condvar::new(),
            rung: AtomicBool::new(false),
        }
    }
}

/// A put of the living environment that is under way.
pub(crate) struct LivePut<'a>(&'a RunBell);

impl Drop for LivePut<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.0.state);
        state.inside -= 1;
        self.0.set_rung(&mut state, true);
        self.0.changed.notify_all();
    }
}

/// A graph that stays at rest while this exists.
pub(crate) struct Rest<'a>(&'a RunBell);

impl Drop for Rest<'_> {
    fn drop(&mut self) {
        lock(&self.0.state).looking -= 1;
        self.0.changed.notify_all();
    }
}

impl RunBell {
    fn wait<'a>(&'a self, state: MutexGuard<'a, BellState>) -> MutexGuard<'a, BellState> {
        self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a new handle.
    pub(crate) fn open(&self) {
        lock(&self.state).open += 1;
    }

    /// Notes the end of a handle.
    pub(crate) fn close(&self) {
        lock(&self.state).open -= 1;
        self.changed.notify_all();
    }

    /// Lets a put in, when a run has begun. `None` if the run was stopped.
    ///
    /// `is_own` says whether the caller is the thread of the graph.
    ///
    /// # Panics
    /// If the graph's own thread would wait for the run.
    pub(crate) fn enter(&self, is_own: impl FnOnce() -> bool) -> Option<LivePut<'_>> {
        let mut state = self.let_run(is_own);
        while !state.stopped && (!state.running || state.looking > 0) {
            state = self.wait(state);
        }
        if state.stopped {
            return None;
        }
        state.inside += 1;
        Some(LivePut(self))
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

    /// Has the graph's own thread look at the graph between two rounds. `None` if a put is under
    /// way or has left ready steps, so that there will be another round. No put is let in until the
    /// caller drops the result.
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

    /// Notes that the caller takes the ready steps, which it does next.
    pub(crate) fn answer(&self) {
        let mut state = lock(&self.state);
        self.set_rung(&mut state, false);
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
        lock(&self.state).running = true;
        self.changed.notify_all();
    }

    /// Waits until a put has left ready steps: true. False if the run ends.
    pub(crate) fn rest(&self) -> bool {
        let mut state = lock(&self.state);
        state.resting = true;
        self.changed.notify_all();
        let goes_on = loop {
            if state.stopped || (state.open == 0 && state.is_at_rest()) {
                break false;
            }
            if state.rung {
                self.set_rung(&mut state, false);
                break true;
            }
            state = self.wait(state);
        };
        state.resting = false;
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
        drop(state);
        self.changed.notify_all();
        // Code of the program's executors, so not under the lock.
        wakers.into_values().for_each(Waker::wake);
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
