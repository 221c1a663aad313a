//! An item collection, whatever its types: [`AnyItems`]. `ItemStore` (`item_store.rs`) implements
//! it; the catalogue, the steps and the reports use it. `R` is a step that is ready.
//!
//! A get of a counted item makes a [`GetClaim`]. The step returns it with [`AnyItems::give_back`]
//! when the step ends, or takes it back with [`AnyItems::unclaim`] when the step will run again.
//! The last `give_back` drops the value.

use crate::error::StepFault;
use crate::faults::PutBy;
use crate::first_panic::FirstPanic;
use crate::in_use::InUse;
use crate::statistics::ItemStatistics;
use crate::stuck::AwaitedItem;
use crate::waiters::WaiterPool;

/// A get of a counted item by a step that has not ended.
pub(crate) struct GetClaim<'g, R> {
    pub(crate) items: &'g dyn AnyItems<'g, R>,
    /// A `ItemSlot` of the collection.
    pub(crate) slot: *const (),
    pub(crate) place: usize,
}

// SAFETY: the slot is a place in the collection, which is `Sync`.
unsafe impl<R> Send for GetClaim<'_, R> {}

/// The step that has put an item, as the slot of the item names it: the number of its entry, and
/// the word of its tag if the slot has room for it.
pub(crate) type Maker = Option<(usize, Option<u64>)>;

/// An item collection, whatever its types.
pub(crate) trait AnyItems<'g, R>: Sync {
    fn name(&self) -> &str;

    /// Whether a step has made the collection, and not the environment.
    fn is_made_by_step(&self) -> bool;

    /// The number of the collection of the tags that the items put.
    fn put_tags(&self) -> Option<usize>;

    /// Takes a claim back, because its step will run again, or was cancelled.
    fn unclaim(&self, claim: &GetClaim<'g, R>);

    /// Returns a claim, because its step has ended. Steps that wait for the users of the item, and
    /// may now go on, go to `wake`.
    fn give_back(&self, claim: &GetClaim<'g, R>, wake: &mut dyn FnMut(R));

    /// Suspends a step until the users of an item have gone.
    ///
    /// # Errors
    /// Gives the step back if it need not wait.
    fn wait_for_users(&self, slot: *const (), ready: R, why: InUse) -> Result<(), R>;

    /// Takes out the steps that wait because all gets of an item are claimed.
    fn late(&self) -> Vec<R>;

    /// Takes out the steps that wait and that `is_out` names. No worker may run.
    fn take_waiting(&self, pool: &WaiterPool<'_, R>, is_out: fn(&R) -> bool) -> Vec<R>;

    /// Calls `see` with each step that waits. No worker may run.
    fn each_waiting(&self, see: &mut dyn FnMut(&R));

    /// The missing items for which steps wait. No worker may run.
    fn missing(&self) -> Vec<AwaitedItem>;

    /// The counted items that are left. `put_by` names the step of a maker. No worker may run.
    fn left_over(&self, put_by: &dyn Fn(Maker) -> PutBy) -> Vec<StepFault>;

    /// How many items were put, and how many of them are still there. No worker may run.
    fn statistics(&self) -> ItemStatistics;

    /// Drops all suspended steps. No worker may run any more.
    fn drop_waiting(&self, panics: &mut FirstPanic);
}
