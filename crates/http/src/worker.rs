//! The things that all connections of one worker share: settings, clock, log and handler.
//!
//! `Site` owns a [`WorkerContext`]; each connection borrows its [`WorkerState`] for the time of one
//! call that does not wait.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Duration;

use selvedge_core::Time;

use crate::access_log::WorkerLog;
use crate::config::Config;
use crate::date::{self, Clock};

/// The settings of a worker, its state, and whether it ends.
pub(crate) struct WorkerContext<H> {
    pub(crate) config: Config,
    pub(crate) state: RefCell<WorkerState<H>>,
    draining: Cell<bool>,
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
        WorkerContext { config, state: RefCell::new(state), draining: Cell::new(false) }
    }

    /// Whether each connection is to be closed after the reply at hand.
    #[inline]
    pub(crate) fn is_draining(&self) -> bool {
        self.draining.get()
    }

    /// From now on each connection is closed after the reply at hand.
    pub(crate) fn begin_draining(&self) {
        self.draining.set(true);
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
