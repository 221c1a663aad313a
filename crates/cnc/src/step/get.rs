//! The gets of a step: [`StepContext::get`] and [`StepContext::take`]. The program calls them in a
//! step or in the environment.
//!
//! The short way of `get` is for an item that is kept, in a step that has only got items so far:
//! one load of the item's state. All other cases are in `get_slowly`.
//!
//! A get returns a reference that must stay valid until the step ends. A kept item stays until the
//! graph ends. A counted item stays because the step has a [`GetClaim`], which `step/run.rs`
//! returns after the step's code has ended.
//!
//! Paper: [NCM11 §2.1] `get`.

use super::{DeclaredItem, MissedGet, StepContext};
use crate::any_items::GetClaim;
use crate::error::{FaultCause, Halted, StepResult};
use crate::in_use::InUse;
use crate::item_store::ItemStore;
use crate::items::ItemCol;
use crate::key::ItemKey;
use crate::ready_step::ReadyStep;
use crate::record::EdgeEnd;
use crate::slot::{ItemSlot, Look};
use crate::storage::{ItemPlace, NoPlace};

impl<'g> StepContext<'g> {
    /// The item of a key.
    ///
    /// # Errors
    /// If the item is not there yet: the step is to return the error, and runs again when the item
    /// is there. It waits for the item also if it returns another error, or none, or if it panics,
    /// because that must not depend on the time at which the item comes. Other errors end the run;
    /// see [`FaultCause`].
    ///
    /// # Complexity
    /// One load of the item's state after its place is found. A get of a counted item is an atomic
    /// read-modify-write, and another one when the step ends.
    ///
    /// # Examples
    /// The paper's example:
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let corner = cnc::graph(|graph| {
    ///     let tags = graph.tags::<(u32, u32)>("cells");
    ///     let matrix = graph.items_in("matrix", Items::dense((9, 9)));
    ///     graph.prescribe(tags, "wavestep", move |(i, j), step| {
    ///         let nw = *step.get(matrix, (i - 1, j - 1))?;
    ///         let w = *step.get(matrix, (i - 1, j))?;
    ///         let n = *step.get(matrix, (i, j - 1))?;
    ///         step.put(matrix, (i, j), nw + w + n)
    ///     });
    ///     graph.initialize(|env| {
    ///         env.put(matrix, (0, 0), 1_u64)?;
    ///         (1..9).try_for_each(|i| env.put(matrix, (i, 0), 1))?;
    ///         (1..9).try_for_each(|i| env.put(matrix, (0, i), 1))?;
    ///         (1..9).try_for_each(|i| (1..9).try_for_each(|j| env.put_tag(tags, (i, j))))
    ///     })?;
    ///     Ok(graph.run(&Stealing::new(2))?.finalize(|view| view.get(matrix, (8, 8)).copied()))
    /// })?;
    /// assert_eq!(corner, Some(265_729)); // a Delannoy number
    /// # Ok(())
    /// # }
    /// ```
    #[inline(always)]
    pub fn get<K: ItemKey, V: Send + Sync>(&self, items: ItemCol<'g, K, V>, key: K) -> StepResult<&V> {
        if self.flags.get().has_only_got()
            && let Some(slot) = items.0.storage.kept(&key)
        {
            // SAFETY: `kept` has seen that the item is kept. Only the drop of the arena and a reset
            // of the graph drop a kept item, and no step runs then. The reference ends with the
            // step.
            return Ok(unsafe { slot.value() });
        }
        self.get_slowly(items.0, &key)
    }

    /// A get of an item that is counted or missing, or by a step that may get certain items only.
    #[inline(never)]
    fn get_slowly<K: ItemKey, V: Send + Sync>(
        &self,
        store: &'g ItemStore<'g, K, V>,
        key: &K,
    ) -> StepResult<&V> {
        let flags = self.flags.get();
        if flags.is_halted() {
            return Err(Halted(None));
        }
        if !flags.may_get() {
            let (collection, key) = store.name_and_key(key);
            return Err(self.fault(FaultCause::GetAfterPut { collection, key }));
        }
        self.note(EdgeEnd::Gets(store.number));
        let found = self.find(store, key)?;
        let slot: &'g ItemSlot<V, ReadyStep<'g>> = found.slot;
        let at = std::ptr::from_ref(slot).cast();
        if flags.has_declared() && !self.declared.borrow().iter().any(|item| item.slot == at) {
            let (collection, key) = store.name_and_key(key);
            return Err(self.fault(FaultCause::Undeclared { collection, key }));
        }
        match slot.state.look() {
            Look::Kept => {}
            Look::Claimed => {
                self.flags.set(flags.claimed());
                self.claims.borrow_mut().push(GetClaim { items: store, slot: at, place: found.place });
            }
            Look::Missing if flags.is_environment() => {
                let (collection, key) = store.name_and_key(key);
                return Err(self.fault(FaultCause::NotThere { collection, key }));
            }
            Look::Missing => {
                self.note_missed(store, key, false);
                return Err(self.miss(MissedGet::Item(&slot.state, found.into_page_use())));
            }
            Look::AllClaimed if self.may_be_late() => {
                self.note_missed(store, key, true);
                let page = found.into_page_use();
                return Err(self.miss(MissedGet::InUse(store, at, InUse::ForAGet, page)));
            }
            Look::AllClaimed | Look::Exhausted | Look::InUse => return Err(self.over_get(store, key)),
        }
        // SAFETY: `look` has said `Kept`, or `Claimed`. A kept item stays until the arena is
        // dropped. A claim of this step is in `claims`, and `clean_up` or `end_badly` returns it
        // after the step's code, with which the reference ends.
        Ok(unsafe { slot.value() })
    }

    /// The item of a counted key, by value, when this is the last step that gets it. So a large
    /// item is changed in place, and put under another key.
    ///
    /// # Errors
    /// As for [`get`](StepContext::get), if the item is not there, or if steps with other gets of
    /// it have not ended. A step that takes must get everything else before. A step with declared
    /// items takes those alone that it has declared with [`Needs::to_take`](crate::Needs::to_take).
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::OneByOne};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let last = cnc::graph(|graph| {
    ///     let rounds = graph.tags::<u32>("rounds");
    ///     let kinds = Items::hashed().counted(|&n: &u32| (n < 5).then_some(1));
    ///     let tiles = graph.items_in("tiles", kinds);
    ///     graph.prescribe(rounds, "round", move |n, step| {
    ///         let mut tile: Vec<u32> = step.take(tiles, n)?;
    ///         tile.iter_mut().for_each(|x| *x += n);
    ///         step.put(tiles, n + 1, tile)
    ///     });
    ///     graph.initialize(|env| {
    ///         env.put(tiles, 0, vec![0; 3])?;
    ///         (0..5).rev().try_for_each(|n| env.put_tag(rounds, n))
    ///     })?;
    ///     Ok(graph.run(&OneByOne)?.finalize(|view| view.get(tiles, 5).cloned()))
    /// })?;
    /// assert_eq!(last, Some(vec![10; 3]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn take<K: ItemKey, V: Send + Sync>(&self, items: ItemCol<'g, K, V>, key: K) -> StepResult<V> {
        let (store, flags) = (items.0, self.flags.get());
        if !flags.may_act() {
            return Err(Halted(None));
        }
        if !flags.may_get() {
            let (collection, key) = store.name_and_key(&key);
            return Err(self.fault(FaultCause::GetAfterPut { collection, key }));
        }
        self.note(EdgeEnd::Gets(store.number));
        let found = self.find(store, &key)?;
        let slot: &'g ItemSlot<V, ReadyStep<'g>> = found.slot;
        let at: *const () = std::ptr::from_ref(slot).cast();
        if flags.has_declared() && !self.declared.borrow().contains(&DeclaredItem { slot: at, takes: true }) {
            let (collection, key) = store.name_and_key(&key);
            return Err(self.fault(FaultCause::Undeclared { collection, key }));
        }
        match slot.state.take() {
            Look::Claimed => {
                self.flags.set(flags.put());
                // SAFETY: `take` has said `Claimed`.
                Ok(unsafe { store.take_out(found) })
            }
            Look::Missing | Look::InUse if flags.is_environment() => {
                let (collection, key) = store.name_and_key(&key);
                Err(self.fault(FaultCause::NotThere { collection, key }))
            }
            // The step has declared that it takes the item, and has found it there and not in use.
            // Only a get of its own can have changed that.
            Look::Missing | Look::InUse if flags.has_declared() => Err(self.over_get(store, &key)),
            Look::Missing => {
                self.note_missed(store, &key, false);
                Err(self.miss(MissedGet::Item(&slot.state, found.into_page_use())))
            }
            Look::InUse => {
                self.note_missed(store, &key, true);
                Err(self.miss(MissedGet::InUse(store, at, InUse::ToBeLast, found.into_page_use())))
            }
            Look::AllClaimed if self.may_be_late() => {
                self.note_missed(store, &key, true);
                Err(self.miss(MissedGet::InUse(store, at, InUse::ForAGet, found.into_page_use())))
            }
            Look::Kept => Err(self.not_counted(store, &key)),
            Look::AllClaimed | Look::Exhausted => Err(self.over_get(store, &key)),
        }
    }

    #[inline(always)]
    pub(crate) fn find<'s, K: ItemKey, V>(
        &self,
        store: &'s ItemStore<'g, K, V>,
        key: &K,
    ) -> StepResult<ItemPlace<'s, V, ReadyStep<'g>>> {
        match store.storage.find(key) {
            Ok(found) => Ok(found),
            Err(NoPlace::Retired) => Err(self.over_get(store, key)),
            Err(NoPlace::Outside) => Err(self.outside(store, key)),
        }
    }

    #[cold]
    pub(crate) fn outside<K: ItemKey, V>(&self, store: &ItemStore<'g, K, V>, key: &K) -> Halted {
        let (collection, key) = store.name_and_key(key);
        self.fault(FaultCause::Outside { collection, key })
    }

    #[cold]
    pub(crate) fn over_get<K: ItemKey, V>(&self, store: &ItemStore<'g, K, V>, key: &K) -> Halted {
        let (collection, key) = store.name_and_key(key);
        self.fault(FaultCause::OverGet { collection, key })
    }

    #[cold]
    pub(crate) fn not_counted<K: ItemKey, V>(&self, store: &ItemStore<'g, K, V>, key: &K) -> Halted {
        let (collection, key) = store.name_and_key(key);
        self.fault(FaultCause::NotCounted { collection, key })
    }
}
