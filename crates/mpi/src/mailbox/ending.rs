//! What follows the end of a mailbox's rank: engines in which the rank has a second number are
//! told, and the run waits for what the rank has begun beside itself.

use super::Mailbox;
use crate::completion::{BeforeEnd, EndedRank, HearsEnd};
use std::sync::{Arc, PoisonError, Weak};

impl Mailbox {
    /// When the rank has ended, the engine is told so of the number that the rank has there.
    pub(crate) fn when_closed(&self, engine: Weak<dyn HearsEnd>, rank: u32) {
        let mut state = self.lock();
        let closed = state.closed;
        if closed.is_none() {
            // Engines that no communicator has any more hear nothing.
            state.seats.retain(|(engine, _)| engine.strong_count() > 0);
            state.seats.push((engine.clone(), rank));
        }
        drop(state);
        if let (Some(ended), Some(engine)) = (closed, engine.upgrade()) {
            engine.rank_ended(EndedRank { rank, ..ended });
        }
    }

    /// The rank has left this engine, which hears of its end no more.
    pub(crate) fn leave_seat(&self, engine: &Arc<dyn HearsEnd>) {
        let is_other = |seat: &Weak<dyn HearsEnd>| !std::ptr::addr_eq(seat.as_ptr(), Arc::as_ptr(engine));
        self.lock().seats.retain(|(seat, _)| is_other(seat));
    }

    /// The run of this rank is to wait for this too.
    pub(crate) fn wait_before_end(&self, end: BeforeEnd) {
        self.before_end.lock().unwrap_or_else(PoisonError::into_inner).push(end);
    }

    /// What the run of this rank has to wait for next.
    pub(crate) fn next_before_end(&self) -> Option<BeforeEnd> {
        self.before_end.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }
}
