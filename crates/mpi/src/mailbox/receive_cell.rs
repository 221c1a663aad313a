//! [`ReceiveCell`]: the completion of one receive, which a later receive uses again.
//!
//! A receive that waits shares its [`Completion`] with the table of the mailbox, so the completion
//! lies in memory of its own. An OS thread keeps those of the receives that have ended on it. So a
//! receive allocates none, and takes no lock for it.

use super::outcome::ReceiveOutcome;
use crate::completion::Completion;
use std::cell::RefCell;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// The completion of one receive. Dropping it keeps the memory for a later receive, so its outcome
/// has been taken before, if it has come: `Posted` does so.
#[derive(Debug)]
pub(super) struct ReceiveCell(Option<Arc<Completion<ReceiveOutcome>>>);

/// The number of completions that an OS thread keeps.
const KEPT: usize = 128;

thread_local! {
    static ENDED: RefCell<Vec<Arc<Completion<ReceiveOutcome>>>> = const { RefCell::new(Vec::new()) };
}

impl ReceiveCell {
    /// An event that has not come.
    pub(super) fn new() -> ReceiveCell {
        // While this OS thread ends, it keeps none.
        let ended = ENDED.try_with(|ended| ended.borrow_mut().pop()).ok().flatten();
        ReceiveCell(Some(ended.unwrap_or_default()))
    }

    /// The completion, for the table of the mailbox.
    pub(super) fn share(&self) -> Arc<Completion<ReceiveOutcome>> {
        self.0.clone().expect("it is there until the drop")
    }
}

impl Deref for ReceiveCell {
    type Target = Completion<ReceiveOutcome>;

    fn deref(&self) -> &Completion<ReceiveOutcome> {
        self.0.as_deref().expect("it is there until the drop")
    }
}

impl Drop for ReceiveCell {
    fn drop(&mut self) {
        let cell = self.0.take().expect("it is dropped once");
        // The delivery of its message may still have it.
        if Arc::strong_count(&cell) > 1 || cell.is_given_up() {
            return;
        }
        // The delivery has released its handle after its last access, and the count has shown it.
        fence(Ordering::Acquire);
        let keep = |ended: &RefCell<Vec<_>>| {
            let mut ended = ended.borrow_mut();
            if ended.len() < KEPT {
                ended.push(cell);
            }
        };
        // While this OS thread ends, the memory goes.
        ENDED.try_with(keep).unwrap_or_default();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn address(cell: &ReceiveCell) -> *const Completion<ReceiveOutcome> {
        &raw const **cell
    }

    #[test]
    fn the_memory_of_a_receive_that_has_ended_is_used_again() {
        let cell = ReceiveCell::new();
        let place = address(&cell);
        drop(cell);
        assert_eq!(address(&ReceiveCell::new()), place);
    }

    #[test]
    fn memory_that_a_delivery_still_has_is_not_used_again() {
        let cell = ReceiveCell::new();
        let delivery = cell.share();
        drop(cell);
        let next = ReceiveCell::new();
        assert_ne!(address(&next), Arc::as_ptr(&delivery));
    }

    #[test]
    fn what_was_given_up_is_not_used_again() {
        let cell = ReceiveCell::new();
        assert!(cell.take_or_give_up().is_none());
        drop(cell);
        assert!(!ReceiveCell::new().is_given_up());
    }
}
