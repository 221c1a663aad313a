//! The things that all connections of one worker share: settings, clock, log and handler.
//!
//! `Site` owns a [`WorkerContext`]; each connection borrows its [`WorkerState`] for the time of one
//! call that does not wait.

use crate::access_log::WorkerLog;
use crate::config::{Config, ConnectionTerms};
use crate::date::{self, Clock};
use crate::metrics::{WaitCount, WaitCounters, WaitKind, WorkerMetrics};
use selvedge_core::Time;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

/// The settings of a worker, its state, and whether it ends.
pub(crate) struct WorkerContext<H> {
    pub(crate) config: Config,
    /// What of the settings holds for each connection, as it is now.
    terms: Cell<ConnectionTerms>,
    pub(crate) state: RefCell<WorkerState<H>>,
    ending: Cell<WorkerEnding>,
    /// Where its connections say what they wait for, if that is counted.
    counters: Option<Rc<WaitCounters>>,
}

/// How a worker ends.
#[derive(Clone, Copy, Debug, PartialEq)]
enum WorkerEnding {
    /// Not yet.
    No,
    /// Each connection is closed after its next reply.
    AfterReplies,
    /// As before, and idle connections are closed.
    AtOnce,
}

/// The part of a worker that requests change.
pub(crate) struct WorkerState<H> {
    pub(crate) clock: Clock,
    /// The time from which on the clock is wrong.
    clock_due: Time,
    pub(crate) log: Option<Rc<WorkerLog>>,
    pub(crate) handler: H,
}

impl<H> WorkerContext<H> {
    pub(crate) fn new(config: Config, log: Option<Rc<WorkerLog>>, handler: H) -> WorkerContext<H> {
        let state = WorkerState { clock: Clock::now(), clock_due: Time::default(), log, handler };
        let ending = Cell::new(WorkerEnding::No);
        let terms = Cell::new(ConnectionTerms::of(&config));
        WorkerContext { config, terms, state: RefCell::new(state), ending, counters: None }
    }

    /// What holds for each connection now.
    #[inline]
    pub(crate) fn terms(&self) -> ConnectionTerms {
        self.terms.get()
    }

    /// Sets what holds from now on. What a connection waits for already ends by the former terms.
    pub(crate) fn set_terms(&self, terms: ConnectionTerms) {
        self.terms.set(terms);
    }

    /// The same with counters.
    pub(crate) fn counted(self, counters: Arc<WorkerMetrics>) -> WorkerContext<H> {
        WorkerContext { counters: Some(Rc::new(WaitCounters(counters))), ..self }
    }

    /// Counts a connection as waiting until the value is dropped.
    pub(crate) fn count_wait(&self, kind: WaitKind) -> Option<WaitCount> {
        self.counters.as_ref().map(|counters| WaitCount::new(counters, kind))
    }

    /// Whether each connection is to be closed after the reply at hand.
    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.ending.get() != WorkerEnding::No
    }

    /// Whether each connection that is idle is to be closed.
    pub(crate) fn ends_idle(&self) -> bool {
        self.ending.get() == WorkerEnding::AtOnce
    }

    /// From now on each connection is closed after the reply at hand, and at once if it is idle.
    pub(crate) fn begin_draining(&self) {
        self.ending.set(WorkerEnding::AtOnce);
    }

    /// From now on each connection is closed after the reply at hand. An idle connection stays open
    /// until it has had a reply or its time is up.
    pub(crate) fn begin_retiring(&self) {
        if self.ending.get() == WorkerEnding::No {
            self.ending.set(WorkerEnding::AfterReplies);
        }
    }
}

impl<H> WorkerState<H> {
    /// Sets the clock, if the second may have changed since it was set.
    #[inline]
    pub(crate) fn tell_time(&mut self, now: Time) {
        if now >= self.clock_due {
            self.set_clock(now);
        }
    }

    #[cold]
    fn set_clock(&mut self, now: Time) {
        let time = Time::of_day();
        self.clock.set(date::seconds(time));
        let into = time.duration_since(std::time::UNIX_EPOCH).map_or(0, |since| since.subsec_nanos());
        self.clock_due = now + Duration::from_nanos(u64::from(1_000_000_000 - into));
    }
}
