//! The store of an item collection: [`ItemStore`], with the items, their counts, and the steps that
//! wait for the users of an item.
//!
//! `ItemCol::add` makes the stores. The gets and puts of `step/` and of `kinds/async_step.rs` use
//! them with their types. `Core` and the reports use them without their types, as [`AnyItems`].
//!
//! Paper: [NCM11 §2, §2.1].

use crate::any_items::{AnyItems, GetClaim, Maker};
use crate::arena::{Owned, UntilTheEnd};
use crate::error::{FaultCause, StepFault};
use crate::faults::{FaultOrder, FaultyItem, PutBy};
use crate::first_panic::FirstPanic;
use crate::in_use::{InUse, InUseWaiters};
use crate::key::{ItemKey, is_word, text_of};
use crate::primitives::{AtomicBool, Ordering};
use crate::ready_step::ReadyStep;
use crate::slot::{GetCount, ItemSlot, Left};
use crate::statistics::ItemStatistics;
use crate::storage::{ItemPlace, Storage};
use crate::stuck::{AwaitedItem, MadeItem, WaitingStep};
use crate::tags::{TagCol, TagStore};
use crate::waiters::WaiterPool;
use std::collections::HashMap;
use std::sync::OnceLock;

/// The items of a collection.
pub(crate) struct ItemStore<'g, K, V> {
    pub(crate) number: usize,
    /// A step has made the collection, and not the environment.
    pub(crate) by_step: bool,
    pub(crate) name: String,
    pub(crate) storage: Storage<K, V, ReadyStep<'g>>,
    pub(crate) count: UntilTheEnd<Option<CountOf<'g, K>>>,
    equal: Option<fn(&V, &V) -> bool>,
    /// Whether the items have no count, and put no tags.
    is_plain: AtomicBool,
    /// The tags that the items put.
    on_put: OnceLock<&'g TagStore<'g, K>>,
    /// The steps that wait for the end of other steps with gets of an item.
    in_use: InUseWaiters<ReadyStep<'g>>,
}

/// How often the item of a key is got.
pub(crate) type CountOf<'g, K> = Box<dyn Fn(&K) -> Option<u32> + Send + Sync + 'g>;

impl<'g, K: ItemKey, V> ItemStore<'g, K, V> {
    /// A store with a number and a name. A step has made it, or the environment.
    pub(crate) fn new(
        (number, name, by_step): (usize, &str, bool),
        storage: Storage<K, V, ReadyStep<'g>>,
        count: Option<CountOf<'g, K>>,
        equal: Option<fn(&V, &V) -> bool>,
    ) -> Self {
        ItemStore {
            number,
            by_step,
            name: name.to_owned(),
            storage,
            is_plain: AtomicBool::new(count.is_none()),
            on_put: OnceLock::new(),
            count: UntilTheEnd::new(count),
            equal,
            in_use: InUseWaiters::new(),
        }
    }

    #[inline]
    pub(crate) fn count(&self, key: &K) -> GetCount {
        match &*self.count {
            None => GetCount::Kept,
            Some(count) => count(key).map_or(GetCount::Kept, GetCount::times),
        }
    }

    /// Whether the items have no count, and put no tags.
    #[inline]
    pub(crate) fn is_plain(&self) -> bool {
        self.is_plain.load(Ordering::Relaxed)
    }

    /// The collection of the tags that the items put.
    pub(crate) fn tags_of_puts(&self) -> Option<&'g TagStore<'g, K>> {
        self.on_put.get().copied()
    }

    /// The same, which `make` makes if there is none.
    pub(crate) fn on_put(&self, make: impl FnOnce() -> &'g TagStore<'g, K>) -> TagCol<'g, K> {
        let tags = self.on_put.get_or_init(make);
        // Relaxed: a graph's collections are set up on the OS thread that runs it.
        self.is_plain.store(false, Ordering::Relaxed);
        TagCol(tags)
    }

    /// Whether a second put of `value` is allowed, because it is equal to the first one.
    pub(crate) fn is_equal(&self, slot: &ItemSlot<V, ReadyStep<'_>>, value: &V) -> bool {
        let Some(equal) = self.equal else { return false };
        // The first put may still be writing.
        slot.state.until_full();
        // SAFETY: `is_kept` comes first. Only the drop of the arena and a reset of the graph drop a
        // kept value, and no step runs then.
        slot.state.is_kept() && equal(unsafe { slot.value() }, value)
    }

    /// Whether what is known of a put may be given up when its item has gone.
    pub(crate) fn forgets_puts(&self) -> bool {
        self.count.is_some() && self.storage.forgets()
    }

    /// The number by which reports sort the collection. Collections that steps have made have the
    /// same one, because their own numbers depend on the schedule.
    pub(crate) fn report_number(&self) -> usize {
        if self.by_step { usize::MAX } else { self.number }
    }

    pub(crate) fn faulty_item(&self, key: &K) -> FaultyItem {
        let (collection, text) = self.name_and_key(key);
        let (order, store) = (self.report_number(), self.number);
        FaultyItem { order, store, collection, word: Self::order(key), key: text }
    }

    /// The key of a fault about an item of the collection.
    pub(crate) fn name_and_key(&self, key: &K) -> (String, String) {
        (self.name.clone(), text_of(key))
    }

    /// Moves an item out of its place.
    ///
    /// # Safety
    /// `SlotState::take` has just said `Claimed` for this place.
    pub(crate) unsafe fn take_out(&self, found: ItemPlace<'_, V, ReadyStep<'g>>) -> V {
        // SAFETY: as promised by the caller, which now owns the value.
        let value = unsafe { found.slot.move_out() };
        let place = found.place;
        drop(found);
        self.storage.note_gone(place);
        value
    }

    /// A word by which keys are sorted, as far as they fit.
    pub(crate) fn order(key: &K) -> u64 {
        if is_word::<K>() { key.to_word() } else { 0 }
    }
}

impl<'g, K: ItemKey, V: Send + Sync> AnyItems<'g, ReadyStep<'g>> for ItemStore<'g, K, V> {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_made_by_step(&self) -> bool {
        self.by_step
    }

    fn put_tags(&self) -> Option<usize> {
        self.tags_of_puts().map(|tags| tags.number)
    }

    fn unclaim(&self, claim: &GetClaim<'g, ReadyStep<'g>>) {
        // SAFETY: a claim's slot is one of its collection, by `StepContext` and `AsyncStep`, and
        // stays claimed.
        unsafe { &*claim.slot.cast::<ItemSlot<V, ReadyStep<'g>>>() }.state.unclaim();
    }

    fn give_back(&self, claim: &GetClaim<'g, ReadyStep<'g>>, wake: &mut dyn FnMut(ReadyStep<'g>)) {
        // SAFETY: as in `unclaim`.
        let slot = unsafe { &*claim.slot.cast::<ItemSlot<V, ReadyStep<'g>>>() };
        let (left, is_waited) = slot.state.give_back();
        if is_waited && left != Left::More {
            self.in_use.of_slot(claim.slot.addr()).into_iter().for_each(wake);
        }
        if left == Left::None {
            let mut panics = FirstPanic::default();
            if std::mem::needs_drop::<V>() {
                // SAFETY: `SlotState::give_back` has made the item gone, and answers `Left::None`
                // to one caller alone.
                panics.run(|| unsafe { slot.drop_value() });
            }
            panics.run(|| self.storage.note_gone(claim.place));
            panics.go_on();
        }
    }

    fn wait_for_users(&self, slot: *const (), ready: ReadyStep<'g>, why: InUse) -> Result<(), ReadyStep<'g>> {
        // SAFETY: as in `unclaim`. The caller's use of the page has not ended, so the slot is not
        // one of another key.
        let state = unsafe { &(*slot.cast::<ItemSlot<V, ReadyStep<'g>>>()).state };
        self.in_use.wait(slot.addr(), state, ready, why)
    }

    fn late(&self) -> Vec<ReadyStep<'g>> {
        self.in_use.late()
    }

    fn take_waiting(
        &self,
        pool: &WaiterPool<'_, ReadyStep<'g>>,
        is_out: fn(&ReadyStep<'g>) -> bool,
    ) -> Vec<ReadyStep<'g>> {
        let mut out = self.in_use.some(is_out);
        self.storage.each(|_, slot| slot.state.take_some(pool, is_out, |ready| out.push(ready)));
        out
    }

    fn each_waiting(&self, see: &mut dyn FnMut(&ReadyStep<'g>)) {
        self.in_use.each(|_, ready| see(ready));
        self.storage.each(|_, slot| slot.state.each_waiter(&mut *see));
    }

    fn missing(&self) -> Vec<AwaitedItem> {
        let mut found: Vec<(K, bool, Vec<WaitingStep>)> = Vec::new();
        let mut takers: HashMap<usize, Vec<WaitingStep>> = HashMap::new();
        self.in_use.each(|slot, ready| {
            if !ready.is_cancelled() {
                takers.entry(slot).or_default().push(ready.describe());
            }
        });
        self.storage.each(|key, slot| {
            let mut steps = takers.remove(&std::ptr::from_ref(slot).addr()).unwrap_or_default();
            slot.state.each_waiter(|ready| {
                if !ready.is_cancelled() {
                    steps.push(ready.describe());
                }
            });
            if !steps.is_empty() {
                WaitingStep::sort(&mut steps);
                found.push((key.key(), slot.state.was_put(), steps));
            }
        });
        if !self.storage.is_ordered() {
            found.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        }
        let item = |(key, was_put, steps)| {
            let (collection, key) = self.name_and_key(&key);
            AwaitedItem {
                item: MadeItem { collection: self.number, key },
                by_step: self.by_step,
                was_put,
                collection,
                steps,
            }
        };
        found.into_iter().map(item).collect()
    }

    fn left_over(&self, put_by: &dyn Fn(Maker) -> PutBy) -> Vec<StepFault> {
        let mut faults = Vec::new();
        if self.count.is_some() {
            self.storage.each(|key, slot| {
                let gets = slot.state.claims_left();
                if gets > 0 {
                    let item = self.faulty_item(&key.key());
                    let by = put_by(slot.state.maker());
                    let order = FaultOrder {
                        cause: FaultCause::LEFT_OVER,
                        collection: item.order,
                        word: item.word,
                        key: item.key.clone(),
                        step: by.step,
                        tag: by.tag,
                    };
                    let why = FaultCause::LeftOver { collection: item.collection, key: item.key, gets };
                    faults.push(StepFault { order, puts: None, why });
                }
            });
        }
        faults
    }

    fn statistics(&self) -> ItemStatistics {
        let (mut put, mut there) = (self.storage.count_forgotten(), 0);
        self.storage.each(|_, slot| {
            put += usize::from(slot.state.was_put());
            there += usize::from(slot.state.has_value());
        });
        ItemStatistics { name: self.name.clone(), put, there }
    }

    fn drop_waiting(&self, panics: &mut FirstPanic) {
        self.storage.each(|_, slot| {
            let mut waiting = slot.state.take_waiters();
            while !waiting.is_empty() {
                panics.run(|| waiting.drop_next());
            }
        });
        for ready in self.in_use.some(|_| true) {
            panics.run(|| drop(ready));
        }
    }
}

impl<K: ItemKey, V> Owned for ItemStore<'_, K, V> {
    unsafe fn empty(&self) {
        // SAFETY: as promised by the caller.
        unsafe {
            self.storage.empty();
            self.count.replace(None);
        }
    }

    unsafe fn reset(&self) {
        // SAFETY: as promised by the caller.
        unsafe { self.storage.reset() };
    }
}
