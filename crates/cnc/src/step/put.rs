//! The effects of a step: items, tags, forked steps and new collections. The program calls them in
//! a step or in the environment; `AsyncStep::put` calls `put_as`.
//!
//! The short way of `put_as` is for an item that is kept in an array. All other cases are in
//! `put_slowly`. A put that finds waiters makes them ready on this worker.
//!
//! `begin_effect` comes first in each effect. It refuses an effect of an instance that has missed
//! an item, because that instance will run again. It also sets `PUT`, after which a get is a fault.
//!
//! Paper: [NCM11 §2.1] `put` and `putt`, §2.2 `forkStep` and `newItemCol`.

use crate::code::{ForkedBody, ReadyStep, StepEntry, to_word};
use crate::collections::{ItemCol, ItemStore, Items, TagCol, maker_of};
use crate::error::{FaultCause, FaultOrder, Halted, StepFault, StepResult};
use crate::key::ItemKey;
use crate::record::EdgeEnd;
use crate::slot::{GetCount, ItemSlot};

use super::{DECLARES, FAILED, MISSED, OBSERVED, ONCE, PUT, StepContext};

impl<'g> StepContext<'g> {
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
        if store.count.is_none()
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

    /// A put of an item that is counted, or is in no array.
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
        let found = self.find(store, &key)?;
        match found.slot.put(value, count, maker, word) {
            Ok(woken) => {
                if !woken.is_empty() {
                    self.wake(woken);
                }
                if count == GetCount::Times(0) {
                    store.storage.note_gone(found.place);
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
        if store.is_equal(slot, &value) { Ok(()) } else { Err(self.double_put(store, key, slot, made_by)) }
    }

    #[cold]
    fn double_put<K: ItemKey, V>(
        &self,
        store: &ItemStore<'g, K, V>,
        key: &K,
        slot: &ItemSlot<V, ReadyStep<'g>>,
        (maker, word): (usize, u64),
    ) -> Halted {
        let name = |entry: &StepEntry<'g>| entry.made_by(word);
        let mine = self.core.entry(maker).map_or_else(Default::default, name);
        let mut steps = [mine, maker_of(slot, self)];
        steps.sort();
        let (collection, text) = store.name_and_key(key);
        let order = FaultOrder {
            cause: FaultCause::DOUBLE_PUT,
            collection: store.number,
            word: ItemStore::<K, V>::order(key),
            step: steps[0].0.clone(),
            tag: format!("{text} {}", steps[0].1),
        };
        self.flags.set(self.flags.get() | FAILED);
        self.core.fail(StepFault { order, why: FaultCause::DoublePut { collection, key: text, steps } });
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
        if !tags.0.is_new(&tag) {
            return Ok(());
        }
        let Some(&entry) = tags.0.first.get() else { return Ok(()) };
        if entry.next.get().is_some() {
            self.push_others(entry, &tag);
        }
        self.push_new(entry, to_word(tag));
        Ok(())
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
    /// [NCM11 §2.2] `forkStep`.
    ///
    /// # Examples
    /// A parallel loop of the dynamic interface, and an item made in a step:
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
    ///     step.fork(move |step| step.put(to, (), { *step.get(one, ())? + *step.get(two, ())? }))
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
        self.begin_effect(EdgeEnd::Forks)?;
        let body: Box<ForkedBody<'g>> = Box::new(Box::new(body));
        let word = Box::into_raw(body).expose_provenance() as u64;
        self.push_new(self.core.forked(), word);
        Ok(())
    }

    /// A new item collection, hashed. It lasts as long as the graph.
    ///
    /// # Paper
    /// [NCM11 §2.2] `newItemCol`.
    #[doc(alias = "newItemCol")]
    pub fn items<K: ItemKey + 'g, V: Send + Sync + 'g>(&self, name: &str) -> ItemCol<'g, K, V> {
        self.core.add_items(name, Items::hashed())
    }

    /// A new item collection with one item. Its key is `()`.
    pub fn item<V: Send + Sync + 'g>(&self, name: &str) -> ItemCol<'g, (), V> {
        self.core.add_items(name, Items::dense(()))
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
