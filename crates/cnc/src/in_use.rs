//! The steps that find a counted item in use by other steps, and wait: [`InUseWaiters`].
//!
//! `ItemStore` (`collections.rs`) owns one for its collection. A step waits here for one of two
//! reasons, [`InUse`]: it is to take the item as the last step with a get, or all gets of the item
//! are claimed by steps that have not ended. `StepContext::wait_or_fail` adds a step. The end of
//! another step, `AnyItems::give_back`, wakes those that can go on.
//!
//! **A step that is late is not refused at once.** A step with a claim may miss another item, or be
//! cancelled while it waits, and its claim is free again then. Which comes first would depend on
//! the schedule. So a late step waits here until all claims were returned, and the item is gone; or
//! until no step of the run is ready. `StepContext::settle` has it look once more then.
//!
//! **No wake-up is lost.** The step that waits writes `count`, and then looks at the item's word.
//! The step that ends writes the word, and then looks at `count`. All four accesses are `SeqCst`,
//! so one of the two sees the other. `tests/loom_slot.rs` checks this with models.

use crate::primitives::{AtomicUsize, Mutex, Ordering, lock};
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
pub(crate) struct InUseWaiters<R> {
    /// The length of `waiting`.
    count: AtomicUsize,
    waiting: Mutex<Vec<Waiting<R>>>,
}

impl<R> InUseWaiters<R> {
    pub(crate) fn new() -> InUseWaiters<R> {
        InUseWaiters { count: AtomicUsize::new(0), waiting: Mutex::new(Vec::new()) }
    }

    /// Has a step wait for the users of an item.
    ///
    /// # Errors
    /// Gives the step back if it need not wait: it is the last user, or the item is gone.
    pub(crate) fn wait<W>(&self, slot: usize, state: &SlotState<W>, ready: R, why: InUse) -> Result<(), R> {
        let mut waiting = lock(&self.waiting);
        waiting.push(Waiting { slot, ready, why });
        self.count.store(waiting.len(), Ordering::SeqCst);
        let waits = match why {
            InUse::ToBeLast => state.is_in_use(),
            InUse::ForAGet => state.has_users(),
        };
        if waits {
            return Ok(());
        }
        let Waiting { ready, .. } = waiting.pop().expect("it was just pushed");
        self.count.store(waiting.len(), Ordering::SeqCst);
        Err(ready)
    }

    /// Takes out the steps that wait for the users of an item, after one of its users has ended.
    pub(crate) fn of_slot(&self, slot: usize) -> Vec<R> {
        if self.count.load(Ordering::SeqCst) == 0 { Vec::new() } else { self.take(|of| of.slot == slot) }
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
        let mut waiting = lock(&self.waiting);
        let taken = waiting.extract_if(.., |of| is_out(of)).map(|of| of.ready).collect();
        self.count.store(waiting.len(), Ordering::SeqCst);
        taken
    }

    /// Calls `see` with each step, and the address of its item's slot.
    pub(crate) fn each(&self, mut see: impl FnMut(usize, &R)) {
        lock(&self.waiting).iter().for_each(|of| see(of.slot, &of.ready));
    }
}
