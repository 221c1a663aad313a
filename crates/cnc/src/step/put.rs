//! The effects of a step: items, tags and new collections. The program calls them in
//! a step or in the environment; `AsyncStep::put` calls `put_as`.
//!
//! The short way of `put_as` is for an item that is kept in an array, and puts no tag. All other
//! cases are in `put_slowly`. A put that finds waiters makes them ready on this worker.
//!
//! `begin_effect` comes first in each effect. It refuses an effect of an instance that has missed
//! an item, because that instance will run again. It also notes the effect, after which a get is a
//! fault.
//!
//! `kinds/forked.rs` has the fork of a step, with a number from here.
//!
//! Paper: [NCM11 §2.1] `put` and `putt`, §2.2 `newItemCol`.

use super::StepContext;
use crate::error::{Halted, StepResult};
use crate::faults::{DoublePut, PutBy};
use crate::first_panic::FirstPanic;
use crate::item_store::ItemStore;
use crate::items::{ItemCol, Items};
use crate::key::{ItemKey, fold};
use crate::ready_step::{ReadyStep, StepEntry};
use crate::record::EdgeEnd;
#[cfg(all(test, not(loom)))]
use crate::seeded::{SeededFault, is_seeded};
use crate::slot::{GetCount, ItemSlot, NO_STEP};
use crate::storage::NoPlace;
use crate::tag_word::to_word;
use crate::tags::{TagCol, TagStore};

impl<'g> StepContext<'g> {
    /// The step that has put an item.
    fn maker_of<V>(&self, slot: &ItemSlot<V, ReadyStep<'g>>) -> PutBy {
        slot.state.until_full();
        self.core.put_by_maker(slot.state.maker())
    }

    /// Puts an item. The steps that wait for it become ready.
    ///
    /// # Errors
    /// If there is an item with this key, or the key is outside of the extent of the collection.
    /// The run ends with this fault.
    #[inline]
    pub fn put<K, V>(&self, items: ItemCol<'g, K, V>, key: K, value: V) -> StepResult
    where
        K: ItemKey,
        V: Send + Sync,
    {
        self.put_as(items.0, key, value, self.entry.get().number, self.word.get())
    }

    #[inline]
    pub(crate) fn put_as<K: ItemKey, V: Send + Sync>(
        &self,
        store: &'g ItemStore<'g, K, V>,
        key: K,
        value: V,
        maker: usize,
        word: u64,
    ) -> StepResult {
        self.begin_effect(EdgeEnd::Puts(store.number))?;
        #[cfg(all(test, not(loom)))]
        if is_seeded(SeededFault::LostPut) {
            return Ok(());
        }
        if store.is_plain()
            && let Some(slot) = store.storage.dense_slot(&key)
        {
            return match slot.put(value, GetCount::Kept, maker, word) {
                Ok(woken) => {
                    if !woken.is_empty() {
                        self.wake(woken);
                    }
                    Ok(())
                }
                Err(value) => self.put_again(store, &key, slot, value, (maker, word)),
            };
        }
        self.put_slowly(store, key, value, maker, word)
    }

    /// A put of an item that is counted, or is in no array, or puts a tag.
    #[inline(never)]
    fn put_slowly<K: ItemKey, V: Send + Sync>(
        &self,
        store: &'g ItemStore<'g, K, V>,
        key: K,
        value: V,
        maker: usize,
        word: u64,
    ) -> StepResult {
        let count = store.count(&key);
        let found = match store.storage.find(&key) {
            Ok(found) => found,
            // The item was put, and has gone.
            Err(NoPlace::Retired) => return Err(self.double_put(store, &key, None, (maker, word))),
            Err(NoPlace::Outside) => return Err(self.outside(store, &key)),
        };
        match found.slot.put(value, count, maker, word) {
            Ok(woken) => {
                if !woken.is_empty() {
                    self.wake(woken);
                }
                if count == GetCount::Times(0) {
                    let mut panics = FirstPanic::default();
                    // SAFETY: the item was gone from the moment it was full, so no other user has
                    // touched it, and `put` has left the drop to its caller.
                    panics.run(|| unsafe { found.slot.drop_value() });
                    panics.run(|| store.storage.note_gone(found.place));
                    panics.go_on();
                }
                if let Some(tags) = store.tags_of_puts() {
                    drop(found);
                    self.push_prescribed(tags, key);
                }
                Ok(())
            }
            Err(value) => self.put_again(store, &key, found.slot, value, (maker, word)),
        }
    }

    /// What becomes of the second put of an item.
    #[cold]
    #[inline(never)]
    fn put_again<K: ItemKey, V>(
        &self,
        store: &ItemStore<'g, K, V>,
        key: &K,
        slot: &ItemSlot<V, ReadyStep<'g>>,
        value: V,
        made_by: (usize, u64),
    ) -> StepResult {
        #[cfg(all(test, not(loom)))]
        if is_seeded(SeededFault::SwallowedPut) {
            return Ok(());
        }
        if store.is_equal(slot, &value) {
            return Ok(());
        }
        Err(self.double_put(store, key, Some(slot), made_by))
    }

    /// Notes the fault of a second put. `slot` is that of the item, unless its place was given up.
    ///
    /// Whether a place was given up depends on the schedule, and the report must not. So the first
    /// put is named only if the places of the collection stay.
    #[cold]
    fn double_put<K: ItemKey, V>(
        &self,
        store: &ItemStore<'g, K, V>,
        key: &K,
        slot: Option<&ItemSlot<V, ReadyStep<'g>>>,
        (maker, word): (usize, u64),
    ) -> Halted {
        let first = match slot {
            Some(slot) if !store.forgets_puts() => self.maker_of(slot),
            _ => self.core.put_by(NO_STEP, 0),
        };
        let puts = [self.core.put_by(maker, word), first];
        self.flags.set(self.flags.get().failed());
        self.core.fail(DoublePut { item: store.faulty_item(key), puts }.fault());
        Halted(None)
    }

    /// Puts a tag: each step that the collection prescribes becomes ready with it.
    ///
    /// # Errors
    /// If the step has missed an item before and has not returned.
    #[doc(alias = "putt")]
    #[inline]
    pub fn put_tag<T: ItemKey>(&self, tags: TagCol<'g, T>, tag: T) -> StepResult {
        self.begin_effect(EdgeEnd::PutsTags(tags.0.number))?;
        if tags.0.is_new(&tag) {
            self.push_prescribed(tags.0, tag);
        }
        Ok(())
    }

    /// Makes the steps ready that a tag collection prescribes.
    #[inline]
    fn push_prescribed<T: ItemKey>(&self, tags: &TagStore<'g, T>, tag: T) {
        let Some(&entry) = tags.first.get() else { return };
        if entry.next.get().is_some() {
            self.push_others(entry, &tag);
        }
        self.push_new(entry, to_word(tag));
    }

    /// Makes a new instance ready.
    #[inline]
    pub(crate) fn push_new(&self, entry: &'g StepEntry<'g>, word: u64) {
        if self.flags.get().is_observed() {
            self.note_made(entry, word);
        }
        self.push(ReadyStep { entry, word });
    }

    /// Makes the steps ready that a tag collection prescribes after its first one.
    #[inline(never)]
    fn push_others<T: ItemKey>(&self, mut entry: &'g StepEntry<'g>, tag: &T) {
        while let Some(&next) = entry.next.get() {
            entry = next;
            self.push_new(entry, to_word(tag.clone()));
        }
    }

    /// [`put_tag`](StepContext::put_tag), by the paper's name.
    ///
    /// # Errors
    /// As for `put_tag`.
    #[inline]
    pub fn putt<T: ItemKey>(&self, tags: TagCol<'g, T>, tag: T) -> StepResult {
        self.put_tag(tags, tag)
    }

    /// A new item collection, hashed. It lasts as long as the graph.
    ///
    /// It is an effect, as a put: a step that may run again gets its items before. Reports sort the
    /// collections that steps have made by their names, because the order in which they are made
    /// depends on the schedule.
    ///
    /// # Paper
    /// [NCM11 §2.2] `newItemCol`.
    #[doc(alias = "newItemCol")]
    pub fn items<K: ItemKey + 'g, V: Send + Sync + 'g>(&self, name: &str) -> ItemCol<'g, K, V> {
        self.items_in(name, Items::hashed())
    }

    /// A new item collection that keeps its items as [`Items`] say: an array, or counted items. It
    /// is an effect, as [`items`](StepContext::items).
    ///
    /// # Paper
    /// [NCM11 §2.2] `newItemCol`, and parallel loops of forked steps.
    ///
    /// # Examples
    /// A step with a loop of its own, and an array for what the turns find:
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let sums = cnc::graph(|graph| {
    ///     let lengths = graph.tags::<u32>("lengths");
    ///     let sums = graph.items("sums");
    ///     graph.prescribe(lengths, "sum of squares", move |n, step| {
    ///         // A square is dropped when the sum has got it.
    ///         let squares = step.items_in("squares", Items::dense(n).counted(|_| Some(1)));
    ///         (0..n).try_for_each(|i| step.fork(move |step| step.put(squares, i, i * i)))?;
    ///         step.fork(move |step| {
    ///             let mut sum = 0;
    ///             for i in 0..n {
    ///                 sum += step.get(squares, i)?;
    ///             }
    ///             step.put(sums, n, sum)
    ///         })
    ///     });
    ///     graph.initialize(|env| [3, 10].into_iter().try_for_each(|n| env.put_tag(lengths, n)))?;
    ///     let finished = graph.run(&Stealing::new(2))?;
    ///     Ok(finished.finalize(|view| view.iter(sums).map(|(_, sum)| *sum).collect::<Vec<_>>()))
    /// })?;
    /// assert_eq!(sums, [5, 285]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn items_in<K, V>(&self, name: &str, items: Items<'g, K, V>) -> ItemCol<'g, K, V>
    where
        K: ItemKey + 'g,
        V: Send + Sync + 'g,
    {
        let flags = self.flags.get();
        // An instance that ran again would make another collection.
        self.flags.set(flags.acted());
        ItemCol::add(self.core, name, items, !flags.is_environment())
    }

    /// A new item collection with one item. Its key is `()`. It is an effect, as
    /// [`items`](StepContext::items).
    pub fn item<V: Send + Sync + 'g>(&self, name: &str) -> ItemCol<'g, (), V> {
        self.items_in(name, Items::dense(()))
    }

    /// The number of the next step that the running instance forks: it follows from the instance
    /// and from the forks before, so it is the same under every schedule. Two numbers may be equal,
    /// but hardly ever are. The steps of one parent are in the order in which they were made.
    pub(crate) fn next_fork(&self) -> u64 {
        let flags = self.flags.get();
        if flags.is_environment() {
            return self.core.tally.next_fork_of_environment();
        }
        if !flags.has_forked() {
            self.flags.set(flags.forked());
            self.forks.set(self.first_fork());
        }
        let number = self.forks.get();
        self.forks.set(number.wrapping_add(1));
        number
    }

    /// The number of the first step that the running instance forks.
    pub(crate) fn first_fork(&self) -> u64 {
        const ROOM: u32 = 20;
        let (entry, word) = (self.entry.get(), self.word.get());
        // SAFETY: the word is that of the instance that runs.
        let parent = fold(unsafe { entry.code.identity(word) }).wrapping_add(entry.row as u64);
        fold(parent) << ROOM
    }

    #[inline]
    pub(crate) fn begin_effect(&self, on: EdgeEnd) -> StepResult {
        let flags = self.flags.get();
        if !flags.may_act_unseen() {
            if !flags.may_act() {
                return Err(Halted(None));
            }
            self.note_edge(on);
        }
        self.flags.set(flags.acted());
        Ok(())
    }
}
