//! The effects of a step: items, tags, forked steps and new collections. The program calls them in
//! a step or in the environment; `AsyncStep::put` calls `put_as`.
//!
//! The short way of `put_as` is for an item that is kept in an array, and puts no tag. All other
//! cases are in `put_slowly`. A put that finds waiters makes them ready on this worker.
//!
//! `begin_effect` comes first in each effect. It refuses an effect of an instance that has missed
//! an item, because that instance will run again. It also sets `PUT`, after which a get is a fault.
//!
//! Paper: [NCM11 §2.1] `put` and `putt`, §2.2 `forkStep` and `newItemCol`.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::code::{ForkedStep, ReadyStep, StepEntry, to_word};
use crate::collections::{ItemCol, ItemStore, Items};
use crate::error::{Halted, StepResult};
use crate::faults::{DoublePut, PutBy};
use crate::first_panic::FirstPanic;
use crate::key::{ItemKey, fold};
use crate::record::EdgeEnd;
#[cfg(all(test, not(loom)))]
use crate::seeded::{SeededFault, is_seeded};
use crate::slot::{GetCount, ItemSlot, NO_STEP};
use crate::storage::NoPlace;
use crate::tags::{TagCol, TagStore};

use super::{DECLARES, ENVIRONMENT, FAILED, FORKED, MISSED, OBSERVED, ONCE, PUT, StepContext};

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
        self.flags.set(self.flags.get() | FAILED);
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
    fn push_new(&self, entry: &'g StepEntry<'g>, word: u64) {
        if self.flags.get() & OBSERVED != 0 {
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

    /// Runs a closure as a step of its own, without a tag.
    ///
    /// # Errors
    /// If the step has missed an item before and has not returned.
    ///
    /// # Paper
    /// [NCM11 §2.2] `forkStep`. §3.3 HCilk: a parent that has to wait for its forks gets the items
    /// that they put; it is an async step, or forks the step that goes on.
    ///
    /// # Examples
    /// Items made in a step, and a step that waits for two others:
    /// ```
    /// use selvedge::cnc::{self, StepContext, StepResult, schedulers::Stealing};
    ///
    /// fn fib<'g>(step: &StepContext<'g>, n: u64, to: cnc::ItemCol<'g, (), u64>) -> StepResult {
    ///     if n < 2 {
    ///         return step.put(to, (), n);
    ///     }
    ///     let (one, two) = (step.item("one"), step.item("two"));
    ///     step.fork(move |step| fib(step, n - 1, one))?;
    ///     step.fork(move |step| fib(step, n - 2, two))?;
    ///     step.fork(move |step| step.put(to, (), *step.get(one, ())? + *step.get(two, ())?))
    /// }
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let result = cnc::graph(|graph| {
    ///     let result = graph.item("result");
    ///     graph.initialize(|env| env.fork(move |step| fib(step, 12, result)))?;
    ///     Ok(graph.run(&Stealing::new(2))?.finalize(|view| view.get(result, ()).copied()))
    /// })?;
    /// assert_eq!(result, Some(144));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "forkStep")]
    pub fn fork(&self, body: impl Fn(&StepContext<'g>) -> StepResult + Send + 'g) -> StepResult {
        self.fork_as(body, None, || self.next_fork())
    }

    /// Forks a step that counts as cancelled when `given_up` is set.
    pub(crate) fn fork_until(
        &self,
        body: impl Fn(&StepContext<'g>) -> StepResult + Send + 'g,
        given_up: Arc<AtomicBool>,
    ) -> StepResult {
        self.fork_as(body, Some(given_up), || self.next_fork())
    }

    /// Forks a step with a number that `number` makes.
    pub(crate) fn fork_as(
        &self,
        body: impl Fn(&StepContext<'g>) -> StepResult + Send + 'g,
        given_up: Option<Arc<AtomicBool>>,
        number: impl FnOnce() -> u64,
    ) -> StepResult {
        self.begin_effect(EdgeEnd::Forks)?;
        let step = Box::new(ForkedStep { number: number(), body: Box::new(body), given_up });
        let word = Box::into_raw(step).expose_provenance() as u64;
        self.push_new(self.core.forked(), word);
        Ok(())
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
        self.items_with(name, Items::hashed())
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
    ///         let squares = step.items_with("squares", Items::dense(n).counted(|_| Some(1)));
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
    pub fn items_with<K, V>(&self, name: &str, items: Items<'g, K, V>) -> ItemCol<'g, K, V>
    where
        K: ItemKey + 'g,
        V: Send + Sync + 'g,
    {
        let flags = self.flags.get();
        if flags & ONCE == 0 {
            // An instance that ran again would make another collection.
            self.flags.set(flags | PUT);
        }
        self.core.add_items(name, items, flags & ENVIRONMENT == 0)
    }

    /// A new item collection with one item. Its key is `()`. It is an effect, as
    /// [`items`](StepContext::items).
    pub fn item<V: Send + Sync + 'g>(&self, name: &str) -> ItemCol<'g, (), V> {
        self.items_with(name, Items::dense(()))
    }

    /// The number of the next step that the running instance forks: it follows from the instance
    /// and from the forks before, so it is the same under every schedule. Two numbers may be equal,
    /// but hardly ever are. The steps of one parent are in the order in which they were made.
    fn next_fork(&self) -> u64 {
        let flags = self.flags.get();
        if flags & ENVIRONMENT != 0 {
            return self.core.next_fork_of_environment();
        }
        if flags & FORKED == 0 {
            self.flags.set(flags | FORKED);
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
    fn begin_effect(&self, on: EdgeEnd) -> StepResult {
        let flags = self.flags.get();
        if flags & (MISSED | FAILED | DECLARES | OBSERVED) != 0 {
            if flags & (MISSED | FAILED | DECLARES) != 0 {
                return Err(Halted(None));
            }
            self.note_edge(on);
        }
        self.flags.set(if flags & ONCE != 0 { flags } else { flags | PUT });
        Ok(())
    }
}
