//! The place of one item with its value: [`ItemSlot`]. The state word says which user may write,
//! read, move or drop the value; the head of `slot.rs` has the argument.

use super::{GONE, GetCount, SlotState, WokenSteps};
use crate::primitives::{ItemCell, Ordering};
#[cfg(not(loom))]
use selvedge_core::internal::advise_huge_pages;
use std::mem::MaybeUninit;

/// The bytes of the least array that asks the system for huge pages: two of them. In an array with
/// a few million items the interrupts of small pages take as much time as all puts and gets
/// together, and two workers wait for each other in them.
#[cfg(not(loom))]
const LARGE_ARRAY: usize = 4 << 20;

/// The place of one item with a value of type `V`.
#[derive(Debug)]
pub(crate) struct ItemSlot<V, R> {
    pub(crate) state: SlotState<R>,
    value: ItemCell<MaybeUninit<V>>,
}

// SAFETY: the value is written by the one put that passed `begin`, read by users that have seen the
// item full, and moved out or dropped by the one user that the state word lets do so.
unsafe impl<V: Send + Sync, R: Send> Sync for ItemSlot<V, R> {}
// SAFETY: a slot owns its value and its waiters.
unsafe impl<V: Send, R: Send> Send for ItemSlot<V, R> {}

impl<V, R> ItemSlot<V, R> {
    pub(crate) fn new() -> ItemSlot<V, R> {
        ItemSlot { state: SlotState::new(), value: ItemCell::new(MaybeUninit::uninit()) }
    }

    /// An array of slots without items.
    #[cfg(loom)]
    pub(crate) fn several(slots: usize) -> Box<[ItemSlot<V, R>]> {
        std::iter::repeat_with(ItemSlot::new).take(slots).collect()
    }

    /// Slots without items. The memory comes from the system as zeros, so that no page of
    /// it is touched before an item is.
    #[cfg(not(loom))]
    pub(crate) fn several(slots: usize) -> Box<[ItemSlot<V, R>]> {
        // SAFETY: a slot as `new` makes it has two words that are 0; the value may have any bytes.
        let slots: Box<[ItemSlot<V, R>]> = unsafe { Box::new_zeroed_slice(slots).assume_init() };
        let bytes = size_of_val(&*slots);
        if bytes >= LARGE_ARRAY {
            advise_huge_pages(slots.as_ptr().cast(), bytes);
        }
        slots
    }

    /// Puts a value, made by a step with a number and a tag. With a count of 0 the item is gone,
    /// and the caller drops the value.
    ///
    /// # Errors
    /// Gives the value back if there was a put before.
    #[inline(always)]
    pub(crate) fn put(&self, value: V, count: GetCount, step: usize, tag: u64) -> Result<WokenSteps<R>, V> {
        let Some(woken) = self.state.begin() else { return Err(value) };
        // SAFETY: `begin` has let this put alone pass, and no user reads the value before `end`.
        self.value.with_mut(|place| unsafe { (*place).write(value) });
        self.state.end(step, tag, count);
        Ok(woken)
    }

    /// The value.
    ///
    /// # Safety
    /// The caller has seen `Look::Kept`, or has a claim and holds it as long as the reference.
    #[inline]
    pub(crate) unsafe fn value(&self) -> &V {
        // SAFETY: the item was full, by the caller's promise, and its value stays while it is kept
        // or claimed.
        self.value.with(|place| unsafe { (*place).assume_init_ref() })
    }

    /// Moves the value out.
    ///
    /// # Safety
    /// The caller has seen `Look::Claimed` from `SlotState::take`.
    pub(crate) unsafe fn move_out(&self) -> V {
        // SAFETY: the exchange in `take` has made the caller the only user of the value.
        self.value.with(|place| unsafe { (*place).assume_init_read() })
    }

    /// Drops the value.
    ///
    /// # Safety
    /// The item is gone, and the caller is the user that made it so.
    pub(crate) unsafe fn drop_value(&self) {
        // SAFETY: as promised by the caller.
        self.value.with_mut(|place| unsafe { (*place).assume_init_drop() });
    }

    /// Drops the value, if there is one with a destructor, when the graph ends or is reset.
    ///
    /// # Safety
    /// No step runs, and no reference to the value is used any more.
    pub(crate) unsafe fn empty(&self) {
        if std::mem::needs_drop::<V>() && self.state.has_value() {
            self.state.word.fetch_or(GONE, Ordering::Relaxed);
            // SAFETY: as promised by the caller, and the value is marked as gone.
            unsafe { self.drop_value() };
        }
    }
}
