//! The declarations of a step: [`StepContext::declare`]. `Needs` (`kinds/declared.rs`) calls it for
//! the program.
//!
//! An item that is there is noted, so that the gets of the body accept it. For an item that is not
//! there the step waits, and declares all items again when it is there.

use super::{DeclaredItem, MissedGet, StepContext};
use crate::error::{Halted, StepResult};
use crate::in_use::InUse;
use crate::item_store::ItemStore;
use crate::key::ItemKey;
use crate::ready_step::ReadyStep;
use crate::record::EdgeEnd;
use crate::slot::ItemSlot;
use crate::storage::NoPlace;

impl<'g> StepContext<'g> {
    /// Declares that the running instance will get an item, or take it.
    pub(crate) fn declare<K: ItemKey, V: Send + Sync>(
        &self,
        store: &'g ItemStore<'g, K, V>,
        key: &K,
        takes: bool,
    ) -> StepResult {
        if self.is_halted() {
            return Err(Halted(None));
        }
        self.note(EdgeEnd::Gets(store.number));
        // One look, because another worker may give the place up at any time.
        let found = match store.storage.find(key) {
            Ok(found) => found,
            // The item was put, and has gone. A step that only wants to come after
            // the item is not in its count; a get in the body is told.
            Err(NoPlace::Retired) => return Ok(()),
            Err(NoPlace::Outside) => return Err(self.outside(store, key)),
        };
        let slot: &'g ItemSlot<V, ReadyStep<'g>> = found.slot;
        let at = std::ptr::from_ref(slot).cast();
        if !slot.state.was_put() {
            self.note_missed(store, key, false);
            return Err(self.miss(MissedGet::Item(&slot.state, found.into_page_use())));
        }
        if takes && slot.state.is_kept() {
            return Err(self.not_counted(store, key));
        }
        if takes && slot.state.is_in_use() {
            self.note_missed(store, key, true);
            return Err(self.miss(MissedGet::InUse(store, at, InUse::ToBeLast, found.into_page_use())));
        }
        self.declared.borrow_mut().push(DeclaredItem { slot: at, takes });
        Ok(())
    }
}
