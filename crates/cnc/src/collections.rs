//! Item collections. The program has the handle [`ItemCol`], and describes a collection with
//! [`Items`]. The graph owns the store, [`ItemStore`].
//!
//! `Core::add_items` makes the stores. The gets and puts of `step/get.rs`, `step/put.rs` and
//! `async_step.rs` use them with their types. `Core` and the reports use them without their types,
//! as [`AnyItems`].
//!
//! A get of a counted item makes a [`GetClaim`]. The step returns it with [`AnyItems::give_back`]
//! when the step ends, or takes it back with [`AnyItems::unclaim`] when the step will run again.
//! The last `give_back` drops the value.
//!
//! Paper: [NCM11 §2, §2.1].

use std::collections::HashMap;
use std::fmt;
use std::sync::OnceLock;

use crate::arena::{Owned, UntilTheEnd};
use crate::code::ReadyStep;
use crate::core::Core;
use crate::error::{FaultCause, StepFault};
use crate::faults::{FaultOrder, FaultyItem};
use crate::first_panic::FirstPanic;
use crate::in_use::{InUse, InUseWaiters};
use crate::key::{Grid, ItemKey, is_word, text_of};
use crate::primitives::{AtomicBool, Ordering};
use crate::slot::{GetCount, ItemSlot, Left};
use crate::statistics::ItemStatistics;
use crate::storage::{ItemPlace, Shape, Storage};
use crate::stuck::{AwaitedItem, MadeItem, WaitingStep};
use crate::tags::{TagCol, TagStore};
use crate::waiters::WaiterPool;

/// A handle of an item collection: a table in which each key is put once.
///
/// The handle is a copy of a reference. It belongs to one graph: with another graph's steps it does
/// not compile.
///
/// # Paper
/// [NCM11 §2, §2.1]: `ItemCol`, a table of single-assignment items. Appendix A: the table is chosen
/// by the type of the keys.
///
/// # Examples
/// ```compile_fail,E0521
/// use selvedge::cnc;
///
/// cnc::graph(|one| {
///     cnc::graph(|other| {
///         let items = one.items::<u32, u32>("of the first graph");
///         other.initialize(|env| env.put(items, 1, 1)) // another graph's handle
///     })
/// });
/// ```
pub struct ItemCol<'g, K, V>(pub(crate) &'g ItemStore<'g, K, V>);

impl<K, V> Clone for ItemCol<'_, K, V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<K, V> Copy for ItemCol<'_, K, V> {}

impl<'g, K, V> ItemCol<'g, K, V> {
    /// The name of the collection, for reports.
    pub fn name(&self) -> &'g str {
        &self.0.name
    }
}

impl<K, V> fmt::Debug for ItemCol<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ItemCol({})", self.0.name)
    }
}

/// How the items of a collection are kept. The default: hashed, and kept to the end of the graph.
///
/// # Paper
/// [NCM11 §3.4]: maps, because there was no concurrent hash table. Appendix A: the form of a map is
/// chosen by the type of its keys.
///
/// # Differences
/// 1. The program chooses the form, because an array needs to know its extent. Of a hashed
///    collection the type of the keys chooses whether they are compared as words.
///
/// # Examples
/// ```
/// use selvedge::cnc::{self, Items, schedulers::OneByOne};
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// let (rows, columns) = (4_u32, 6_u32);
/// let sum = cnc::graph(|graph| {
///     let cells = graph.items_with("cells", Items::dense((rows, columns)).counted(|_| Some(1)));
///     let total = graph.items::<(), u32>("total");
///     let tags = graph.tags::<()>("all");
///     graph.prescribe(tags, "sum", move |(), step| {
///         let mut sum = 0;
///         for cell in (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))) {
///             sum += *step.get(cells, cell)?;
///         }
///         step.put(total, (), sum)
///     });
///     graph.initialize(|env| {
///         env.put_tag(tags, ())?;
///         (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
///             .try_for_each(|cell| env.put(cells, cell, cell.0 * cell.1))
///     })?;
///     let finished = graph.run(&OneByOne)?;
///     Ok(finished.finalize(|view| view.get(total, ()).copied()))
/// })?;
/// assert_eq!(sum, Some(90));
/// # Ok(())
/// # }
/// ```
pub struct Items<'g, K, V> {
    place: StoragePlan<K>,
    count: Option<CountOf<'g, K>>,
    equal: Option<fn(&V, &V) -> bool>,
}

/// Where the items of a collection are to lie.
enum StoragePlan<K> {
    Hashed,
    Dense(Shape<K>),
    Paged(Shape<K>),
    Streamed,
}

/// How often the item of a key is got.
pub(crate) type CountOf<'g, K> = Box<dyn Fn(&K) -> Option<u32> + Send + Sync + 'g>;

impl<K: ItemKey, V> Default for Items<'_, K, V> {
    fn default() -> Self {
        Items::hashed()
    }
}

impl<'g, K: ItemKey, V> Items<'g, K, V> {
    /// Any keys. Keys that fit in a word are compared as words.
    ///
    /// # Complexity
    /// A get of an item that is there is a search in a table, without a lock. A new key takes a
    /// lock of one of 16 parts of the table, and memory of its own until the graph ends.
    pub fn hashed() -> Self {
        Items { place: StoragePlan::Hashed, count: None, equal: None }
    }

    /// The keys below `extent` on each axis, in an array that is made at once.
    ///
    /// # Complexity
    /// A get is an index into the array. An item takes 16 bytes beside its value. A page of memory
    /// is used from its first touch on. An array of 4 MiB or more asks the system for pages of
    /// 2 MiB, so a large array with few items is better [`paged`](Items::paged).
    pub fn dense(extent: K) -> Self
    where
        K: Grid,
    {
        Items { place: StoragePlan::Dense(Shape::new(&extent)), count: None, equal: None }
    }

    /// The keys below `extent` on each axis, in pages of 1,024 items. A page is made when the first
    /// of its items is touched, and is used for others when all its items are gone.
    ///
    /// # Complexity
    /// A get of a kept item is two indices. A put, and a get of a counted or missing item, is also
    /// two atomic additions. The directory takes 8 bytes for 1,024 keys.
    pub fn paged(extent: K) -> Self
    where
        K: Grid,
    {
        Items { place: StoragePlan::Paged(Shape::new(&extent)), count: None, equal: None }
    }

    /// Any keys, for a stream of [counted](Items::counted) items that may have no end: an item that
    /// has gone leaves nothing behind, and its place is used for another key.
    ///
    /// The result is the same under every scheduler, as that of any collection. A program with a
    /// fault is told of less:
    /// - If the keys fit in a word ([`ItemKey::BITS`]), the collection remembers which keys have
    ///   gone, as runs of keys that follow one another. So a second put and a get too many are told
    ///   as ever; a second put names one of the two steps.
    /// - Of other keys it remembers nothing. A second put is told until the last step with a get of
    ///   the item has ended, and makes another item from then on. A get too many waits for such an
    ///   item, and is told as [`Stuck`](crate::GraphError::Stuck). Which of both comes depends on
    ///   the schedule. So only a program that puts each key once, and counts its gets right, has
    ///   one result. A step that [declares](crate::Needs::on) an item and does not get it waits for
    ///   ever if it comes after the last get.
    ///
    /// # Complexity
    /// A get, a put, and the end of an item each take a lock of one of 16 parts of the table, and
    /// both a new key that fits in a word and its end take another one. The memory is that of the
    /// most items that were there at one time, and 16 to 50 bytes for each gap between keys that
    /// have gone and fit in a word. Keys that are far apart are better of a type that fits in no
    /// word.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::TaskPool};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let last = cnc::graph(|graph| {
    ///     let rounds = graph.tags::<u64>("rounds");
    ///     let once = Items::streamed().counted(|&n: &u64| (n < 50_000).then_some(1));
    ///     let state = graph.items_with("state", once);
    ///     graph.prescribe(rounds, "round", move |n, step| {
    ///         let before: u64 = *step.get(state, n)?;
    ///         step.put(state, n + 1, before + n)?;
    ///         if n + 1 < 50_000 { step.put_tag(rounds, n + 1) } else { Ok(()) }
    ///     });
    ///     graph.initialize(|env| env.put(state, 0, 0).and_then(|()| env.put_tag(rounds, 0)))?;
    ///     let finished = graph.run(&TaskPool::fifo(2))?;
    ///     assert_eq!(finished.statistics().items[0].put, 50_001);
    ///     Ok(finished.finalize(|view| view.get(state, 50_000).copied()))
    /// })?;
    /// assert_eq!(last, Some(1_249_975_000));
    /// # Ok(())
    /// # }
    /// ```
    pub fn streamed() -> Self {
        Items { place: StoragePlan::Streamed, count: None, equal: None }
    }

    /// Says how often the item of a key is got; `None` for an item that is kept. An item is dropped
    /// when the last step that got it has ended. So a get too many is an error, and so is a count
    /// that is left when the run has ended.
    ///
    /// A report does not name the tag of the step that has put an item with more than 65,535 gets.
    ///
    /// # Complexity
    /// A get takes two atomic exchanges. With more than 65,535 gets of an item, they are of another
    /// word of the item, and the last two steps with a get take one more each.
    #[must_use]
    pub fn counted(mut self, count: impl Fn(&K) -> Option<u32> + Send + Sync + 'g) -> Self {
        self.count = Some(Box::new(count));
        self
    }

    /// A second put of an equal value is no error, and has no effect. For an item that is
    /// [counted](Items::counted) it is an error, because its value may be gone.
    #[must_use]
    pub fn equal_allowed(mut self) -> Self
    where
        V: PartialEq,
    {
        self.equal = Some(V::eq);
        self
    }

    pub(crate) fn build(self, number: usize, name: &str, by_step: bool) -> ItemStore<'g, K, V> {
        let storage = match self.place {
            StoragePlan::Hashed => Storage::table(),
            StoragePlan::Dense(shape) => Storage::dense(shape),
            StoragePlan::Paged(shape) => Storage::paged(shape),
            StoragePlan::Streamed => Storage::streamed(),
        };
        ItemStore {
            number,
            by_step,
            name: name.to_owned(),
            storage,
            is_plain: AtomicBool::new(self.count.is_none()),
            on_put: OnceLock::new(),
            count: UntilTheEnd::new(self.count),
            equal: self.equal,
            in_use: InUseWaiters::new(),
        }
    }
}

impl<K, V> fmt::Debug for Items<'_, K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Items").field("counted", &self.count.is_some()).finish_non_exhaustive()
    }
}

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

impl<'g, K: ItemKey, V> ItemStore<'g, K, V> {
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

/// A get of a counted item by a step that has not ended.
pub(crate) struct GetClaim<'g> {
    pub(crate) items: &'g dyn AnyItems<'g>,
    /// A `ItemSlot` of the collection.
    pub(crate) slot: *const (),
    pub(crate) place: usize,
}

// SAFETY: the slot is a place in the collection, which is `Sync`.
unsafe impl Send for GetClaim<'_> {}

/// An item collection, whatever its types.
pub(crate) trait AnyItems<'g>: Sync {
    fn name(&self) -> &str;

    /// Whether a step has made the collection, and not the environment.
    fn is_made_by_step(&self) -> bool;

    /// The number of the collection of the tags that the items put.
    fn put_tags(&self) -> Option<usize>;

    /// Takes a claim back, because its step will run again, or was cancelled.
    fn unclaim(&self, claim: &GetClaim<'g>);

    /// Returns a claim, because its step has ended. Steps that wait for the users of the item, and
    /// may now go on, go to `wake`.
    fn give_back(&self, claim: &GetClaim<'g>, wake: &mut dyn FnMut(ReadyStep<'g>));

    /// Suspends a step until the users of an item have gone.
    ///
    /// # Errors
    /// Gives the step back if it need not wait.
    fn wait_for_users(&self, slot: *const (), ready: ReadyStep<'g>, why: InUse) -> Result<(), ReadyStep<'g>>;

    /// Takes out the steps that wait because all gets of an item are claimed.
    fn late(&self) -> Vec<ReadyStep<'g>>;

    /// Takes out the steps that wait and that `is_out` names. No worker may run.
    fn take_waiting(
        &self,
        pool: &WaiterPool<'_, ReadyStep<'g>>,
        is_out: fn(&ReadyStep<'g>) -> bool,
    ) -> Vec<ReadyStep<'g>>;

    /// Calls `see` with each step that waits. No worker may run.
    fn each_waiting(&self, see: &mut dyn FnMut(&ReadyStep<'g>));

    /// The missing items for which steps wait. No worker may run.
    fn missing(&self) -> Vec<AwaitedItem>;

    /// The counted items that are left. No worker may run.
    fn left_over(&self, core: &Core<'g>) -> Vec<StepFault>;

    /// How many items were put, and how many of them are still there. No worker may run.
    fn statistics(&self) -> ItemStatistics;

    /// Drops all suspended steps. No worker may run any more.
    fn drop_waiting(&self, panics: &mut FirstPanic);
}

impl<'g, K: ItemKey, V: Send + Sync> AnyItems<'g> for ItemStore<'g, K, V> {
    fn name(&self) -> &str {
        &self.name
    }

    fn is_made_by_step(&self) -> bool {
        self.by_step
    }

    fn put_tags(&self) -> Option<usize> {
        self.tags_of_puts().map(|tags| tags.number)
    }

    fn unclaim(&self, claim: &GetClaim<'g>) {
        // SAFETY: a claim's slot is one of its collection, by `StepContext` and `AsyncStep`, and
        // stays claimed.
        unsafe { &*claim.slot.cast::<ItemSlot<V, ReadyStep<'g>>>() }.state.unclaim();
    }

    fn give_back(&self, claim: &GetClaim<'g>, wake: &mut dyn FnMut(ReadyStep<'g>)) {
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

    fn left_over(&self, core: &Core<'g>) -> Vec<StepFault> {
        let mut faults = Vec::new();
        if self.count.is_some() {
            self.storage.each(|key, slot| {
                let gets = slot.state.claims_left();
                if gets > 0 {
                    let item = self.faulty_item(&key.key());
                    let by = core.put_by_maker(slot.state.maker());
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
