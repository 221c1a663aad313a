//! A graph after a run that ended well: [`FinishedGraph`], and the [`View`] of its items.
//!
//! Both stay on the OS thread of the graph, because a view reads the collections while no worker
//! runs.

use crate::core::Core;
use crate::items::ItemCol;
use crate::key::ItemKey;
use crate::primitives::Ordering;
use crate::ready_step::ReadyStep;
use crate::slot::ItemSlot;
use crate::statistics::Statistics;
use crate::storage::KeyOf;
use std::fmt;
use std::marker::PhantomData;

/// A graph that has run to its end: no step is ready, and none waits.
///
/// It stays on the OS thread of the graph, so that no step of a later run can look at the items
/// while other steps put some:
/// ```compile_fail,E0277
/// fn in_a_step<T: Send>() {}
/// in_a_step::<selvedge::cnc::FinishedGraph<'static>>();
/// ```
/// ```compile_fail,E0277
/// fn by_a_step<T: Sync>() {}
/// by_a_step::<selvedge::cnc::FinishedGraph<'static>>();
/// ```
pub struct FinishedGraph<'g> {
    core: &'g Core<'g>,
    one_thread: PhantomData<*mut ()>,
}

impl<'g> FinishedGraph<'g> {
    /// On the OS thread of the graph, after a run that ended well.
    pub(super) fn of(core: &'g Core<'g>) -> FinishedGraph<'g> {
        FinishedGraph { core, one_thread: PhantomData }
    }

    /// Looks at the items.
    ///
    /// # Paper
    /// [NCM11 §2.1] `finalize`.
    pub fn finalize<A>(&self, look: impl FnOnce(&View<'g>) -> A) -> A {
        look(&View::of(self.core))
    }

    /// How often each step has run, and how many items were put and are still there.
    pub fn statistics(&self) -> Statistics {
        self.core.statistics()
    }
}

impl fmt::Debug for FinishedGraph<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FinishedGraph").finish_non_exhaustive()
    }
}

/// The items of a graph that has run to its end. It stays on the OS thread of the graph, as
/// [`FinishedGraph`] does.
/// ```compile_fail,E0277
/// fn in_a_step<T: Send>() {}
/// in_a_step::<selvedge::cnc::View<'static>>();
/// ```
/// ```compile_fail,E0277
/// fn by_a_step<T: Sync>() {}
/// by_a_step::<selvedge::cnc::View<'static>>();
/// ```
pub struct View<'g> {
    core: &'g Core<'g>,
    one_thread: PhantomData<*mut ()>,
}

impl Drop for View<'_> {
    fn drop(&mut self) {
        self.core.tally.views.fetch_sub(1, Ordering::Relaxed);
    }
}

impl<'g> View<'g> {
    /// The view is counted, so that the graph is not reset meanwhile.
    fn of(core: &'g Core<'g>) -> View<'g> {
        core.tally.views.fetch_add(1, Ordering::Relaxed);
        View { core, one_thread: PhantomData }
    }

    /// The item of a key, if it was put and is kept.
    pub fn get<K: ItemKey, V: Send + Sync>(&self, items: ItemCol<'g, K, V>, key: K) -> Option<&V> {
        let found = items.0.storage.look(&key)?;
        let slot = found.slot;
        // SAFETY: `is_kept` comes first. The drop of the arena drops a kept item after `'g`, and a
        // view lives within `'g`. A reset of the graph refuses while there is a view.
        slot.state.is_kept().then(|| unsafe { slot.value() })
    }

    /// All items that are kept, in the order of their keys.
    pub fn iter<'v, K: ItemKey, V: Send + Sync>(
        &'v self,
        items: ItemCol<'g, K, V>,
    ) -> impl Iterator<Item = (K, &'v V)> + use<'v, 'g, K, V> {
        let storage = &items.0.storage;
        let kept = |key: KeyOf<'g, K>, slot: &'g ItemSlot<V, ReadyStep<'g>>| {
            // SAFETY: as in `get`.
            slot.state.is_kept().then(|| (key.key(), unsafe { slot.value() }))
        };
        let mut others = Vec::new();
        if !storage.is_dense() {
            storage.each(|key, slot| others.extend(kept(key, slot)));
        }
        if !storage.is_ordered() {
            others.sort_by(|(a, _), (b, _)| a.cmp(b));
        }
        storage.dense_slots().filter_map(move |(key, slot)| kept(key, slot)).chain(others)
    }
}

impl fmt::Debug for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("View").field("collections", &self.core.catalogue.each_items().len()).finish()
    }
}
