//! The steps that find a counted item in use by other steps, and wait: [`InUseWaiters`].
//!
//! `ItemStore` (`item_store.rs`) owns one for its collection. A step waits here for one of two
//! reasons, [`InUse`]: it is to take the item as the last step with a get, or all gets of the item
//! are claimed by steps that have not ended. `StepContext::wait_or_fail` adds a step. At the end of
//! another step, `AnyItems::give_back` wakes the waiting steps that can go on.
//!
//! **A step that is late is not refused at once.** A step with a claim may miss another item, or be
//! cancelled while it waits, and its claim is free again then. Which comes first would depend on
//! the schedule. So a late step waits here until all claims were returned, and the item is gone; or
//! until no step of the run is ready. `StepContext::settle` makes it look once more then.
//!
//! **No wake-up is lost.** A step is in the list before it sets a bit in the item's word, and both
//! are done under the lock of the list. The end of a user changes the same word, so it comes before
//! or after. If it comes after, it sees the bit and looks through the list. If it comes before, the
//! step sees that it need not wait. `tests/loom/slot.rs` checks this with models.

use crate::primitives::{Mutex, lock};
use crate::slot::SlotState;

/// What a step waits for that finds an item in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InUse {
    /// To be the last step with a get, which takes the item.
    ToBeLast,
    /// For a get, because other steps have claimed all of them.
    ForAGet,
}

struct Waiting<R> {
    /// The address of the item's slot.
    slot: usize,
    ready: R,
    why: InUse,
}

/// The steps that wait for the users of a collection's items.
pub(crate) struct InUseWaiters<R>(Mutex<Vec<Waiting<R>>>);

impl<R> InUseWaiters<R> {
    pub(crate) fn new() -> InUseWaiters<R> {
        InUseWaiters(Mutex::new(Vec::new()))
    }

    /// Suspends a step until the users of an item have gone.
    ///
    /// # Errors
    /// Gives the step back if it need not wait: it is the last user, or the item is gone.
    pub(crate) fn wait<W>(&self, slot: usize, state: &SlotState<W>, ready: R, why: InUse) -> Result<(), R> {
        let mut waiting = lock(&self.0);
        waiting.push(Waiting { slot, ready, why });
        if state.note_waited(why) {
            return Ok(());
        }
        let Waiting { ready, .. } = waiting.pop().expect("it was just pushed");
        Err(ready)
    }

    /// Takes out the steps that wait for the users of an item, after one of its users has ended.
    pub(crate) fn of_slot(&self, slot: usize) -> Vec<R> {
        self.take(|of| of.slot == slot)
    }

    /// Takes out the steps that are late.
    pub(crate) fn late(&self) -> Vec<R> {
        self.take(|of| of.why == InUse::ForAGet)
    }

    /// Takes out the steps that `is_out` names.
    pub(crate) fn some(&self, is_out: impl Fn(&R) -> bool) -> Vec<R> {
        self.take(|of| is_out(&of.ready))
    }

    fn take(&self, is_out: impl Fn(&Waiting<R>) -> bool) -> Vec<R> {
        lock(&self.0).extract_if(.., |of| is_out(of)).map(|of| of.ready).collect()
    }

    /// Calls `see` with each step, and the address of its item's slot.
    pub(crate) fn each(&self, mut see: impl FnMut(usize, &R)) {
        lock(&self.0).iter().for_each(|of| see(of.slot, &of.ready));
    }
}
