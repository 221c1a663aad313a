//! How a receive ends: [`ReceiveOutcome`], mostly with a message that has [`Arrived`].

use crate::completion::EndedRank;
use crate::envelope::{Envelope, Status};

/// A message with its number in the order of arrival.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub(super) envelope: Envelope,
    pub(super) order: u64,
}

/// How a receive or probe ends.
#[derive(Debug)]
pub(crate) enum ReceiveOutcome {
    Took(Arrived),
    Saw(Status),
    Ended(EndedRank),
    Revoked,
}

impl Arrived {
    /// The empty message of the null rank.
    pub(crate) fn of_null_rank() -> Arrived {
        Arrived { envelope: Envelope::of_null_rank(), order: 0 }
    }

    pub(crate) fn into_envelope(self) -> Envelope {
        self.envelope
    }

    pub(crate) fn status(&self) -> Status {
        self.envelope.status()
    }

    /// A receive has taken the message: a synchronous sender is told.
    pub(super) fn told(&mut self) {
        if let Some(matched) = self.envelope.matched.take() {
            matched.tell(Ok(()));
        }
    }
}
