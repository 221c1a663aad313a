//! The steps that waited for an item: [`WokenSteps`]. The put of the item takes them out of the
//! state word, and makes them ready.

use crate::waiters::{WaiterPool, place_at};
use std::marker::PhantomData;

/// The steps that waited for an item, the newest first.
#[derive(Debug)]
#[must_use = "the steps must be made ready"]
pub(crate) struct WokenSteps<R> {
    next: u64,
    waiters: PhantomData<fn(R) -> R>,
}

impl<R> WokenSteps<R> {
    /// The list that begins at an address of a state word; 0 is an empty one. The caller has taken
    /// the list out of the word.
    #[inline]
    pub(super) fn of(next: u64) -> WokenSteps<R> {
        WokenSteps { next, waiters: PhantomData }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.next == 0
    }

    /// Takes the next one out. Its place goes to a pool of the same memory.
    #[inline]
    pub(crate) fn pop(&mut self, pool: &WaiterPool<'_, R>) -> Option<R> {
        if self.next == 0 {
            return None;
        }
        // SAFETY: the address is that of a place, by `SlotState::wait`. The exchange that made this
        // `WokenSteps` took the whole list out of the word, so no other reference to the waiters is
        // left.
        let (ready, next) = unsafe { pool.take_out(place_at(self.next)) };
        self.next = next;
        Some(ready)
    }
}

impl<R> WokenSteps<R> {
    /// Drops the next one, if there is one. If its destructor panics, it is out nevertheless.
    pub(crate) fn drop_next(&mut self) {
        if self.next == 0 {
            return;
        }
        let place = place_at::<R>(self.next);
        // SAFETY: as in `pop`. The place is not used again; its block is freed with the graph.
        unsafe {
            self.next = (*place).next;
            (*place).ready.assume_init_drop();
        }
    }
}

impl<R> Drop for WokenSteps<R> {
    fn drop(&mut self) {
        while self.next != 0 {
            self.drop_next();
        }
    }
}
