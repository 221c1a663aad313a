//! How a step declares the items that it will get: [`Needs`].

use crate::code::ReadyStep;
use crate::collections::ItemCol;
use crate::error::{Halted, StepResult};
use crate::key::ItemKey;
use crate::slot::ItemSlot;

use super::{FAILED, MISSED, MissedGet, StepContext};

/// The items that a step will get, as it declares them; see
/// [`prescribe_depends`](crate::Graph::prescribe_depends).
#[derive(Debug)]
pub struct Needs<'s, 'g>(&'s StepContext<'g>);

impl<'s, 'g> Needs<'s, 'g> {
    pub(crate) fn of(step: &'s StepContext<'g>) -> Needs<'s, 'g> {
        Needs(step)
    }

    /// Declares that the step will get an item.
    ///
    /// # Errors
    /// If the item is not there yet. The step is to return the error, and declares again when the
    /// item is there.
    pub fn on<K: ItemKey, V: Send + Sync>(&self, items: ItemCol<'g, K, V>, key: K) -> StepResult {
        let step = self.0;
        if step.flags.get() & (MISSED | FAILED) != 0 {
            return Err(Halted(None));
        }
        let found = step.find(items.0, &key)?;
        let slot: &'g ItemSlot<V, ReadyStep<'g>> = found.slot;
        if !slot.state.was_put() {
            return Err(step.miss(MissedGet::Item(&slot.state)));
        }
        step.declared.borrow_mut().push(std::ptr::from_ref(slot).cast());
        Ok(())
    }
}
