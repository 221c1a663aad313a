//! [`Posted`]: the caller's side of a receive, or a probe, that a mailbox may have in its table.

use super::{Arrived, Mailbox, ReceiveOutcome};
use crate::completion::Completion;
use crate::error::CallSite;
use crate::matching::EntryKey;
use std::sync::Arc;

/// A receive or a probe that may be in the table. Dropping it gives it up: the message that it has
/// got and that no call has collected is delivered again.
#[derive(Debug)]
pub(crate) struct Posted {
    pub(super) mailbox: Arc<Mailbox>,
    pub(super) cell: Arc<Completion<ReceiveOutcome>>,
    /// Its place in the table, if it was put there and its outcome has not been collected.
    pub(super) key: Option<EntryKey>,
}

impl Posted {
    /// A receive, or a probe, from the null rank: its outcome has come.
    pub(crate) fn of_null_rank(mailbox: Arc<Mailbox>, takes: bool) -> Posted {
        let arrived = Arrived::of_null_rank();
        let cell = Arc::new(Completion::new());
        cell.set(match takes {
            true => ReceiveOutcome::Took(arrived),
            false => ReceiveOutcome::Saw(arrived.status()),
        });
        Posted { mailbox, cell, key: None }
    }

    /// The outcome, if it has come.
    pub(crate) fn try_collect(&mut self) -> Option<ReceiveOutcome> {
        let outcome = self.cell.take()?;
        self.key = None;
        Some(outcome)
    }

    /// Whether the outcome has come.
    pub(crate) fn has_come(&self) -> bool {
        self.cell.has_come()
    }

    /// Waits for the outcome.
    pub(crate) async fn collect(&mut self, call: CallSite, reason: impl Fn() -> String) -> ReceiveOutcome {
        self.cell.wait(call.place, "receive", reason).await;
        self.try_collect().expect("the outcome has come, and this borrow of it is the only one")
    }
}

impl Drop for Posted {
    fn drop(&mut self) {
        let mut state = self.mailbox.lock();
        let outcome = self.cell.take();
        if outcome.is_none()
            && let Some(key) = self.key
        {
            drop(state.posted.remove(key));
        }
        state.spare(&self.cell);
        drop(state);
        if let Some(ReceiveOutcome::Took(arrived)) = outcome {
            self.mailbox.put_back(arrived);
        }
    }
}
