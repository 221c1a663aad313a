//! The futures of an async step: [`Get`] and [`Take`]. `AsyncStep::get` and `AsyncStep::take` make
//! them, and the step's own `async` block polls them.
//!
//! A future that misses its item leaves the place of the item in the worker's `StepContext`. The
//! step's poll ends then, and the step waits there. When the step goes on, it polls the same future
//! again. So the future registers no waker, and the step may wait for nothing else meanwhile.
//! [`Awaited`] notices a future that is dropped before.

use super::AsyncStep;
use crate::any_items::GetClaim;
use crate::error::{FaultCause, Halted, StepResult};
use crate::in_use::InUse;
use crate::items::ItemCol;
use crate::key::ItemKey;
use crate::primitives::lock;
use crate::ready_step::ReadyStep;
use crate::record::EdgeEnd;
use crate::slot::Look;
use crate::step::StepContext;
use crate::storage::ItemPlace;
use std::fmt;
use std::pin::Pin;
use std::ptr;
use std::task::{Context, Poll};

/// The step of a future, and whether the step waits for the future's item.
struct Awaited<'s, 'g> {
    step: &'s AsyncStep<'g>,
    waits: bool,
}

impl Drop for Awaited<'_, '_> {
    fn drop(&mut self) {
        if self.waits {
            // When the graph ends, no worker is here, and the step is dropped as a whole.
            let _ = self.step.try_here(|step| step.fault(FaultCause::Foreign));
        }
    }
}

/// An item that an async step wants.
struct WantedItem<'s, 'g, K, V> {
    awaited: Awaited<'s, 'g>,
    items: ItemCol<'g, K, V>,
    key: K,
}

impl<'s, 'g, K, V> WantedItem<'s, 'g, K, V> {
    fn new(step: &'s AsyncStep<'g>, items: ItemCol<'g, K, V>, key: K) -> Self {
        WantedItem { awaited: Awaited { step, waits: false }, items, key }
    }
}

impl<'g, K: ItemKey, V: Send + Sync> WantedItem<'_, 'g, K, V> {
    /// Makes the step wait for an item that it cannot have now, as `look` says; or notes the fault
    /// of an item that it can never have.
    fn wait<R>(
        &mut self,
        step: &StepContext<'g>,
        found: ItemPlace<'g, V, ReadyStep<'g>>,
        look: Look,
    ) -> Poll<StepResult<R>> {
        let store = self.items.0;
        match look {
            Look::Missing => {
                step.note_missed(store, &self.key, false);
                step.wait_once(found);
            }
            Look::InUse => {
                step.note_missed(store, &self.key, true);
                step.wait_in_use(store, found, InUse::ToBeLast);
            }
            Look::AllClaimed if step.may_be_late() => {
                step.note_missed(store, &self.key, true);
                step.wait_in_use(store, found, InUse::ForAGet);
            }
            Look::Kept => return Poll::Ready(Err(step.not_counted(store, &self.key))),
            Look::Claimed | Look::AllClaimed | Look::Exhausted => {
                return Poll::Ready(Err(step.over_get(store, &self.key)));
            }
        }
        self.awaited.waits = true;
        Poll::Pending
    }
}

impl<K: ItemKey, V> fmt::Debug for WantedItem<'_, '_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}[{:?}]", self.items.name(), self.key)
    }
}

/// The future of [`AsyncStep::get`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct Get<'s, 'g, K, V>(WantedItem<'s, 'g, K, V>);

impl<'s, 'g, K, V> Get<'s, 'g, K, V> {
    pub(super) fn new(step: &'s AsyncStep<'g>, items: ItemCol<'g, K, V>, key: K) -> Self {
        Get(WantedItem::new(step, items, key))
    }
}

impl<'s, 'g, K: ItemKey, V: Send + Sync> Future for Get<'s, 'g, K, V> {
    type Output = StepResult<&'s V>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<StepResult<&'s V>> {
        let wanted = &mut self.0;
        wanted.awaited.waits = false;
        let (handle, store) = (wanted.awaited.step, wanted.items.0);
        handle.here(|step| {
            step.note(EdgeEnd::Gets(store.number));
            if let Some(slot) = store.storage.kept(&wanted.key) {
                // SAFETY: `kept` has seen that the item is kept. Only the drop of the arena and a
                // reset of the graph drop a kept item. `Core::close` leaks the arena if this handle
                // is never dropped, and a reset refuses while there is a handle.
                return Poll::Ready(Ok(unsafe { slot.value() }));
            }
            let found = match step.find(store, &wanted.key) {
                Ok(found) => found,
                Err(stop) => return Poll::Ready(Err(stop)),
            };
            let slot = found.slot;
            match slot.state.look() {
                Look::Kept => {}
                Look::Claimed => {
                    let claim =
                        GetClaim { items: store, slot: ptr::from_ref(slot).cast(), place: found.place };
                    lock(&handle.claims).push(claim);
                }
                // A get has no `InUse`.
                look => return wanted.wait(step, found, look),
            }
            // SAFETY: `look` has said `Kept`, or `Claimed`. A claim is in the step's handle, which
            // is borrowed for `'s`, and the drop of the handle returns the claim. If the handle is
            // never dropped, `Core::close` leaks the arena, so the graph drops no item.
            Poll::Ready(Ok(unsafe { slot.value() }))
        })
    }
}

impl<K, V> Unpin for Get<'_, '_, K, V> {}

impl<K: ItemKey, V> fmt::Debug for Get<'_, '_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Get({:?})", self.0)
    }
}

/// The future of [`AsyncStep::take`].
#[must_use = "a future does nothing unless it is awaited"]
pub struct Take<'s, 'g, K, V>(WantedItem<'s, 'g, K, V>);

impl<'s, 'g, K, V> Take<'s, 'g, K, V> {
    pub(super) fn new(step: &'s AsyncStep<'g>, items: ItemCol<'g, K, V>, key: K) -> Self {
        Take(WantedItem::new(step, items, key))
    }
}

impl<K: ItemKey, V: Send + Sync> Future for Take<'_, '_, K, V> {
    type Output = StepResult<V>;

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<StepResult<V>> {
        let wanted = &mut self.0;
        wanted.awaited.waits = false;
        let (handle, store) = (wanted.awaited.step, wanted.items.0);
        handle.here(|step| {
            if step.is_halted() {
                // It waits for another item, or has failed: it must not take the value then.
                return Poll::Ready(Err(Halted(None)));
            }
            step.note(EdgeEnd::Gets(store.number));
            let found = match step.find(store, &wanted.key) {
                Ok(found) => found,
                Err(stop) => return Poll::Ready(Err(stop)),
            };
            match found.slot.state.take() {
                // SAFETY: `take` has said `Claimed`.
                Look::Claimed => Poll::Ready(Ok(unsafe { store.take_out(found) })),
                look => wanted.wait(step, found, look),
            }
        })
    }
}

impl<K, V> Unpin for Take<'_, '_, K, V> {}

impl<K: ItemKey, V> fmt::Debug for Take<'_, '_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Take({:?})", self.0)
    }
}
