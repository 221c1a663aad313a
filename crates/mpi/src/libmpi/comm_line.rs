//! [`CommLine`]: a communicator as the driver has it, with what its messages go to.
//!
//! `driver.rs` has one for each communicator of the process.

use super::calls::CommHandle;
use super::error::MpiError;
use super::frames::FrameStore;
use super::in_order::SourceOrder;
use super::received::{CommListener, Received};
use crate::processes::Doorbells;
use selvedge_core::internal::quietly;
use std::sync::Arc;

/// A communicator.
#[derive(Debug)]
pub(super) struct CommLine<H> {
    pub(super) comm: CommHandle<H>,
    pub(super) listener: Option<Arc<dyn CommListener>>,
    pub(super) incoming: SourceOrder<Received>,
    pub(super) doorbells: Option<Arc<Doorbells>>,
    /// What its messages go in, if only this crate sends on it.
    pub(super) frames: Option<FrameStore<H>>,
}

impl<H> CommLine<H> {
    pub(super) fn new(comm: CommHandle<H>) -> CommLine<H> {
        CommLine { comm, listener: None, incoming: SourceOrder::new(), doorbells: None, frames: None }
    }

    /// Whether the driver looks for messages.
    pub(super) fn wants_messages(&self) -> bool {
        self.listener.as_ref().is_some_and(|listener| {
            let mut wants = false;
            quietly(|| wants = listener.wants_messages());
            wants
        })
    }

    /// MPI has something for another rank, which may sleep.
    pub(super) fn ring(&self, rank: i32) {
        if let (Some(doorbells), Ok(rank)) = (&self.doorbells, usize::try_from(rank)) {
            doorbells.ring(rank);
        }
    }

    /// A message is there, or lost.
    pub(super) fn end(&mut self, source: i32, ticket: u64, result: Result<Received, MpiError>) {
        let Some(listener) = &self.listener else { return };
        let message = match result {
            Ok(message) => Some(message),
            Err(error) => {
                quietly(|| listener.failed(error));
                None
            }
        };
        self.incoming.end(source, ticket, message, |message| quietly(|| listener.message(message)));
    }

    /// A message is there at once, and no earlier one of its source is being received.
    pub(super) fn hand_over(&self, message: Received) {
        if let Some(listener) = &self.listener {
            quietly(|| listener.message(message));
        }
    }
}
