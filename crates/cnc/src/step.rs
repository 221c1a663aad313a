//! What a step sees of its graph, [`StepContext`], and what a scheduler sees of a worker,
//! [`Worker`].

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::code::{ForkedBody, ReadyStep, StepEntry, to_word};
use crate::collections::{AnyItems, GetClaim, ItemCol, ItemStore, Items, NO_TAG, TagCol, maker_of};
use crate::core::Core;
use crate::error::{FaultCause, FaultOrder, Halted, StepFault, StepResult, message};
use crate::key::ItemKey;
use crate::slot::{GetCount, ItemSlot, Look, SlotState, SuspendedStep};
use crate::storage::NoPlace;

/// The step has missed an item, so it ends and runs again.
const MISSED: u8 = 1;
/// The step has failed.
const FAILED: u8 = 2;
/// The step has put something.
const PUT: u8 = 4;
/// The step declares the items that it will get.
const DECLARES: u8 = 8;
/// The step gets declared items alone.
const DECLARED: u8 = 16;
/// The code is the environment's, which cannot run again.
const ENVIRONMENT: u8 = 32;
/// The code runs once, with continuations.
const ONCE: u8 = 64;

/// What a step does now.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Phase {
    Declares,
    Declared,
    Once,
}

/// What a suspended step waits for.
enum MissedGet<'g> {
    Item(&'g SlotState<ReadyStep<'g>>),
    ToBeLast(&'g dyn AnyItems<'g>, *const ()),
}

/// What a worker has that its scheduler shares with others.
pub trait Outlet<'g>: Send + Sync {
    /// Whether a worker has nothing to do. Asked at every put of a tag.
    fn is_wanted(&self) -> bool;

    /// Takes steps of a worker that is in the middle of a step.
    fn give(&self, ready: Vec<ReadyStep<'g>>);
}

/// A worker has given `Outlet::give` its oldest steps when it has so many.
const HELD_MAX: usize = 4096;

/// The graph, as a step sees it: a step gets and puts items, and puts tags.
///
/// # Paper
/// [NCM11 §2.1]: `StepCode`, with `get`, `put` and `putt`. §2.2: `forkStep` and `newItemCol`.
///
/// # Differences
/// 1. Both of the paper's interfaces are one type.
/// 2. A step that misses an item returns an error, which it hands on with `?`. It then waits for
///    the item, and runs again from its beginning.
/// 3. A step that may run again gets before it puts. A get after a put is an error, also if the
///    item is there, so that the error does not depend on the schedule.
#[doc(alias = "StepCode")]
pub struct StepContext<'g> {
    core: &'g Core<'g>,
    entry: Cell<&'g StepEntry<'g>>,
    word: Cell<u64>,
    flags: Cell<u8>,
    missed: Cell<Option<MissedGet<'g>>>,
    /// What waits instead of the step: its continuation.
    rest: RefCell<Option<ReadyStep<'g>>>,
    claims: RefCell<Vec<GetClaim<'g>>>,
    declared: RefCell<Vec<*const ()>>,
    ready: RefCell<VecDeque<ReadyStep<'g>>>,
    outlet: Option<Arc<dyn Outlet<'g> + 'g>>,
    /// The steps that were made ready here, and those that were run here.
    made: Cell<u64>,
    ran: Cell<u64>,
    /// How often each step collection ran and missed here.
    counts: RefCell<Vec<(u64, u64)>>,
}

impl<'g> StepContext<'g> {
    fn new(core: &'g Core<'g>, outlet: Option<Arc<dyn Outlet<'g> + 'g>>) -> StepContext<'g> {
        StepContext {
            core,
            entry: Cell::new(core.environment()),
            word: Cell::new(0),
            flags: Cell::new(0),
            missed: Cell::new(None),
            rest: RefCell::new(None),
            claims: RefCell::default(),
            declared: RefCell::default(),
            ready: RefCell::default(),
            outlet,
            made: Cell::new(0),
            ran: Cell::new(0),
            counts: RefCell::new(vec![(0, 0); core.entries()]),
        }
    }

    pub(crate) fn core(&self) -> &'g Core<'g> {
        self.core
    }

    /// The item of a key.
    ///
    /// # Errors
    /// If the item is not there yet: the step is to return the error, and runs again when the item
    /// is there. Other errors end the run; see [`FaultCause`].
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
    ///     let matrix = graph.items_with("matrix", Items::dense((9, 9)));
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
    #[inline]
    pub fn get<K: ItemKey, V: Send + Sync>(&self, items: ItemCol<'g, K, V>, key: K) -> StepResult<&V> {
        if self.flags.get() == 0
            && let Ok(found) = items.0.storage.find(&key)
            && found.slot.state.is_kept()
        {
            let slot: &'g ItemSlot<V, ReadyStep<'g>> = found.slot;
            // SAFETY: `is_kept` is true.
            return Ok(unsafe { slot.value() });
        }
        self.get_slowly(items.0, &key)
    }

    #[cold]
    #[inline(never)]
    fn get_slowly<K: ItemKey, V: Send + Sync>(
        &self,
        store: &'g ItemStore<'g, K, V>,
        key: &K,
    ) -> StepResult<&V> {
        let flags = self.flags.get();
        if flags & (MISSED | FAILED) != 0 {
            return Err(Halted(None));
        }
        if flags & PUT != 0 && flags & (ENVIRONMENT | DECLARED) == 0 {
            let (collection, key) = store.name_and_key(key);
            return Err(self.fault(FaultCause::GetAfterPut { collection, key }));
        }
        let found = self.find(store, key)?;
        let slot: &'g ItemSlot<V, ReadyStep<'g>> = found.slot;
        let at = std::ptr::from_ref(slot).cast();
        if flags & DECLARED != 0 && !self.declared.borrow().contains(&at) {
            let (collection, key) = store.name_and_key(key);
            return Err(self.fault(FaultCause::Undeclared { collection, key }));
        }
        match slot.state.look() {
            Look::Kept => {}
            Look::Claimed => {
                self.claims.borrow_mut().push(GetClaim { items: store, slot: at, place: found.place });
            }
            Look::Missing if flags & ENVIRONMENT != 0 => {
                let (collection, key) = store.name_and_key(key);
                return Err(self.fault(FaultCause::NotThere { collection, key }));
            }
            Look::Missing => return Err(self.miss(MissedGet::Item(&slot.state))),
            Look::Exhausted | Look::InUse => return Err(self.over_get(store, key)),
        }
        // SAFETY: the item is kept, or this step has claimed it and returns the claim when it ends.
        Ok(unsafe { slot.value() })
    }

    /// The item of a counted key, by value, when this is the last step that gets it. So a large
    /// item is changed in place, and put under another key.
    ///
    /// # Errors
    /// As for [`get`](StepContext::get), if the item is not there, or if steps with other gets of
    /// it have not ended. A step that takes must get everything else before.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::OneByOne};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let last = cnc::graph(|graph| {
    ///     let rounds = graph.tags::<u32>("rounds");
    ///     let kinds = Items::hashed().counted(|&n: &u32| (n < 5).then_some(1));
    ///     let tiles = graph.items_with("tiles", kinds);
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
        if flags & (MISSED | FAILED) != 0 {
            return Err(Halted(None));
        }
        if flags & PUT != 0 && flags & (ENVIRONMENT | DECLARED) == 0 {
            let (collection, key) = store.name_and_key(&key);
            return Err(self.fault(FaultCause::GetAfterPut { collection, key }));
        }
        let found = self.find(store, &key)?;
        let slot: &'g ItemSlot<V, ReadyStep<'g>> = found.slot;
        let at: *const () = std::ptr::from_ref(slot).cast();
        if flags & DECLARED != 0 && !self.declared.borrow().contains(&at) {
            let (collection, key) = store.name_and_key(&key);
            return Err(self.fault(FaultCause::Undeclared { collection, key }));
        }
        match slot.state.take() {
            Look::Claimed => {
                self.flags.set(flags | PUT);
                // SAFETY: `take` has said `Claimed`.
                let value = unsafe { slot.move_out() };
                let place = found.place;
                drop(found);
                store.storage.note_gone(place);
                Ok(value)
            }
            Look::Missing | Look::InUse if flags & ENVIRONMENT != 0 => {
                let (collection, key) = store.name_and_key(&key);
                Err(self.fault(FaultCause::NotThere { collection, key }))
            }
            Look::Missing => Err(self.miss(MissedGet::Item(&slot.state))),
            Look::InUse => Err(self.miss(MissedGet::ToBeLast(store, at))),
            Look::Kept => {
                let (collection, key) = store.name_and_key(&key);
                Err(self.fault(FaultCause::NotCounted { collection, key }))
            }
            Look::Exhausted => Err(self.over_get(store, &key)),
        }
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
        self.begin_effect()?;
        let count = store.count(&key);
        let found = self.find(store, &key)?;
        match found.slot.put(value, count, maker, word) {
            Ok(woken) => {
                if !woken.is_empty() {
                    woken.for_each(|ready| self.push(ready));
                }
                if count == GetCount::Times(0) {
                    store.storage.note_gone(found.place);
                }
                Ok(())
            }
            Err(value) if store.is_equal(found.slot, &value) => Ok(()),
            Err(_) => Err(self.double_put(store, &key, found.slot, (maker, word))),
        }
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
        self.begin_effect()?;
        if !tags.0.is_new(&tag) {
            return Ok(());
        }
        let mut steps = tags.0.steps();
        if let Some(mut entry) = steps.next() {
            for next in steps {
                self.push(ReadyStep { entry, word: to_word(tag.clone()) });
                entry = next;
            }
            self.push(ReadyStep { entry, word: to_word(tag) });
        }
        Ok(())
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
        self.begin_effect()?;
        let body: Box<ForkedBody<'g>> = Box::new(Box::new(body));
        let word = Box::into_raw(body).expose_provenance() as u64;
        self.push(ReadyStep { entry: self.core.forked(), word });
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

    /// Whether the run was cancelled, or has failed. A long step may look now and then.
    pub fn is_cancelled(&self) -> bool {
        self.core.is_cancelled()
    }

    #[inline]
    fn begin_effect(&self) -> StepResult {
        let flags = self.flags.get();
        if flags & (MISSED | FAILED | DECLARES) != 0 {
            return Err(Halted(None));
        }
        self.flags.set(if flags & ONCE != 0 { flags } else { flags | PUT });
        Ok(())
    }

    #[inline(always)]
    pub(crate) fn find<'s, K: ItemKey, V>(
        &self,
        store: &'s ItemStore<'g, K, V>,
        key: &K,
    ) -> StepResult<crate::storage::ItemPlace<'s, V, ReadyStep<'g>>> {
        match store.storage.find(key) {
            Ok(found) => Ok(found),
            Err(NoPlace::Retired) => Err(self.over_get(store, key)),
            Err(NoPlace::Outside) => {
                let (collection, key) = store.name_and_key(key);
                Err(self.fault(FaultCause::Outside { collection, key }))
            }
        }
    }

    #[cold]
    fn over_get<K: ItemKey, V>(&self, store: &ItemStore<'g, K, V>, key: &K) -> Halted {
        let (collection, key) = store.name_and_key(key);
        self.fault(FaultCause::OverGet { collection, key })
    }

    #[cold]
    fn miss(&self, missed: MissedGet<'g>) -> Halted {
        self.flags.set(self.flags.get() | MISSED);
        self.missed.set(Some(missed));
        Halted(None)
    }

    /// Ends the run with a fault of this step.
    #[cold]
    pub(crate) fn fault(&self, why: FaultCause) -> Halted {
        let (entry, word) = (self.entry.get(), self.word.get());
        // SAFETY: the word is that of the instance that runs, and is freed after its end only.
        let (order, tag) = unsafe { (entry.code.order(word), entry.code.tag(word)) };
        self.fault_of(entry, order, tag, why)
    }

    pub(crate) fn fault_of(&self, entry: &StepEntry<'g>, word: u64, tag: String, why: FaultCause) -> Halted {
        self.flags.set(self.flags.get() | FAILED);
        let step = entry.name.clone();
        let order = FaultOrder { cause: why.cause(), collection: entry.number, word, step, tag };
        self.core.fail(StepFault { order, why });
        Halted(None)
    }

    pub(crate) fn enter(&self, phase: Phase) {
        match phase {
            Phase::Declares => {
                self.declared.borrow_mut().clear();
                self.flags.set(DECLARES);
            }
            Phase::Declared => self.flags.set(DECLARED),
            Phase::Once => self.flags.set(ONCE),
        }
    }

    /// Makes a step ready.
    #[inline]
    pub(crate) fn push(&self, ready: ReadyStep<'g>) {
        self.made.set(self.made.get() + 1);
        let mut mine = self.ready.borrow_mut();
        mine.push_back(ready);
        if let Some(outlet) = &self.outlet
            && (mine.len() >= HELD_MAX || mine.len() > 1 && outlet.is_wanted())
        {
            let oldest = mine.len().div_ceil(2);
            outlet.give(mine.drain(..oldest).collect());
        }
    }

    /// Makes another instance of the running step ready.
    pub(crate) fn push_like_this(&self, word: u64) {
        self.push(ReadyStep { entry: self.entry.get(), word });
    }

    /// Gives the running instance another word, which is a tag.
    pub(crate) fn narrow(&self, word: u64) {
        self.word.set(word);
    }

    /// Whether another worker has nothing to do.
    pub(crate) fn is_wanted(&self) -> bool {
        self.outlet.as_ref().is_some_and(|outlet| outlet.is_wanted())
    }

    pub(crate) fn current_entry(&self) -> &'g StepEntry<'g> {
        self.entry.get()
    }

    pub(crate) fn entry_number(&self) -> usize {
        self.entry.get().number
    }

    /// Notes that the running instance goes on as another one.
    pub(crate) fn become_this(&self, ready: &ReadyStep<'g>) {
        self.entry.set(ready.entry);
        self.word.set(ready.word);
    }

    /// Has the running instance wait for an item; its continuation runs then.
    pub(crate) fn wait_once(&self, state: &'g SlotState<ReadyStep<'g>>) {
        self.flags.set(self.flags.get() | MISSED);
        self.missed.set(Some(MissedGet::Item(state)));
    }

    /// What waits if the instance has missed an item.
    pub(crate) fn set_rest(&self, rest: ReadyStep<'g>) {
        *self.rest.borrow_mut() = Some(rest);
    }

    /// Runs an instance.
    fn run(&self, ready: ReadyStep<'g>) {
        self.ran.set(self.ran.get() + 1);
        if self.core.is_cancelled() {
            return;
        }
        let mut next = Some(ready);
        while let Some(ready) = next {
            next = self.run_once(ready);
        }
    }

    /// Runs an instance; returns it if it missed an item that is there now.
    #[inline]
    fn run_once(&self, ready: ReadyStep<'g>) -> Option<ReadyStep<'g>> {
        let (entry, word) = ready.into_parts();
        self.entry.set(entry);
        self.word.set(word);
        self.flags.set(0);
        // SAFETY: `into_parts` gave the word to this function.
        let end = panic::catch_unwind(AssertUnwindSafe(|| unsafe { entry.code.run(word, self) }));
        if let Some((runs, _)) = self.counts.borrow_mut().get_mut(entry.number) {
            *runs += 1;
        }
        match end {
            Ok(Ok(())) if self.flags.get() & (MISSED | FAILED) == 0 => {
                if entry.free.is_some() && !entry.takes_word || !self.claims.borrow().is_empty() {
                    self.end_with_drops(entry, word);
                }
                None
            }
            end => self.end_badly(entry, end),
        }
    }

    /// Frees the tag of an instance that has ended, and returns its claims. Both may run
    /// destructors of the program's.
    #[inline(never)]
    fn end_with_drops(&self, entry: &'g StepEntry<'g>, word: u64) {
        let end = panic::catch_unwind(AssertUnwindSafe(|| {
            if !entry.takes_word {
                drop(ReadyStep { entry, word });
            }
            self.give_back();
        }));
        if let Err(panic) = end {
            self.fault_of(entry, 0, NO_TAG.to_owned(), FaultCause::Panicked(message(&*panic)));
        }
    }

    /// Returns the claims of the instance, which has ended.
    fn give_back(&self) {
        let mut claims = self.claims.take();
        for claim in claims.drain(..) {
            claim.items.give_back(&claim, &mut |ready| self.push(ready));
        }
        // The same memory for the next instance, unless a destructor has made claims.
        self.claims.replace(claims);
    }

    /// What becomes of an instance that has not come to its end.
    #[cold]
    #[inline(never)]
    fn end_badly(
        &self,
        entry: &'g StepEntry<'g>,
        end: std::thread::Result<StepResult>,
    ) -> Option<ReadyStep<'g>> {
        let rest = self.rest.take();
        let this = if entry.takes_word { rest } else { Some(ReadyStep { entry, word: self.word.get() }) };
        for claim in self.claims.borrow_mut().drain(..) {
            claim.items.unclaim(&claim);
        }
        let missed = self.missed.take();
        // Without `this`, the code has freed its word, so the tag cannot be read any more. `this`
        // lives until the end of this function.
        let fault = |why| match &this {
            Some(_) => self.fault(why),
            None => self.fault_of(entry, 0, NO_TAG.to_owned(), why),
        };
        match end {
            Err(panic) => {
                fault(FaultCause::Panicked(message(&*panic)));
                return None;
            }
            _ if self.flags.get() & FAILED != 0 => return None,
            Ok(Err(Halted(Some(error)))) => {
                fault(FaultCause::Error(*error));
                return None;
            }
            _ => {}
        }
        let Some(missed) = missed else {
            fault(FaultCause::Foreign);
            return None;
        };
        let Some(this) = this else {
            self.fault_of(entry, 0, NO_TAG.to_owned(), FaultCause::Foreign);
            return None;
        };
        if let Some((_, misses)) = self.counts.borrow_mut().get_mut(entry.number) {
            *misses += 1;
        }
        match missed {
            MissedGet::Item(state) => state.wait(SuspendedStep::new(this)).err().map(|waiter| waiter.ready),
            MissedGet::ToBeLast(items, slot) => items.wait_as_last(slot, this).err(),
        }
    }

    /// Runs code of the environment.
    pub(crate) fn environment<A>(
        core: &'g Core<'g>,
        work: impl FnOnce(&StepContext<'g>) -> StepResult<A>,
    ) -> Option<A> {
        let worker = Worker::new(core, None);
        let step = &worker.0;
        step.flags.set(ENVIRONMENT);
        let end = work(step);
        step.give_back();
        match end {
            Ok(answer) if step.flags.get() & (MISSED | FAILED) == 0 => Some(answer),
            Err(Halted(Some(error))) => {
                step.fault(FaultCause::Error(*error));
                None
            }
            _ => None,
        }
    }
}

impl fmt::Debug for StepContext<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StepContext({})", self.entry.get().name)
    }
}

/// The items that a step will get, as it declares them; see
/// [`prescribe_depends`](crate::Graph::prescribe_depends).
#[derive(Debug)]
pub struct Needs<'s, 'g>(&'s StepContext<'g>);

impl<'s, 'g> Needs<'s, 'g> {
    pub(crate) fn of(step: &'s StepContext<'g>) -> Needs<'s, 'g> {
        Needs(step)
    }

    /// Declares that the step will get an item.
    ///
    /// # Errors
    /// If the item is not there yet. The step is to return the error, and declares again when the
    /// item is there.
    pub fn on<K: ItemKey, V: Send + Sync>(&self, items: ItemCol<'g, K, V>, key: K) -> StepResult {
        let step = self.0;
        if step.flags.get() & (MISSED | FAILED) != 0 {
            return Err(Halted(None));
        }
        let found = step.find(items.0, &key)?;
        let slot: &'g ItemSlot<V, ReadyStep<'g>> = found.slot;
        if !slot.state.was_put() {
            return Err(step.miss(MissedGet::Item(&slot.state)));
        }
        step.declared.borrow_mut().push(std::ptr::from_ref(slot).cast());
        Ok(())
    }
}

/// A worker of a run: it runs steps, and holds those that they make ready until the
/// [`Scheduler`](crate::schedulers::Scheduler) takes them.
#[derive(Debug)]
pub struct Worker<'g>(StepContext<'g>);

impl<'g> Worker<'g> {
    pub(crate) fn new(core: &'g Core<'g>, outlet: Option<Arc<dyn Outlet<'g> + 'g>>) -> Worker<'g> {
        Worker(StepContext::new(core, outlet))
    }

    /// Runs a step, to its end or until it waits for an item.
    #[inline]
    pub fn run(&mut self, ready: ReadyStep<'g>) {
        self.0.run(ready);
    }

    /// Takes the step that became ready last.
    #[inline]
    pub fn newest(&mut self) -> Option<ReadyStep<'g>> {
        self.0.ready.get_mut().pop_back()
    }

    /// Takes the step that became ready first.
    #[inline]
    pub fn oldest(&mut self) -> Option<ReadyStep<'g>> {
        self.0.ready.get_mut().pop_front()
    }

    /// The number of ready steps that the worker holds.
    #[inline]
    pub fn ready(&self) -> usize {
        self.0.ready.borrow().len()
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        let step = &self.0;
        let ready = std::mem::take(&mut *step.ready.borrow_mut());
        step.core.account(step.made.get(), step.ran.get(), &step.counts.borrow());
        // The environment's steps run in the next run; those of a worker were lost by its
        // scheduler.
        step.core.keep(ready);
    }
}

/// A wish of the whole program: stop the run.
#[derive(Clone, Debug)]
pub struct Canceller(pub(crate) Arc<std::sync::atomic::AtomicBool>);

impl Canceller {
    /// Has the run end: steps that have begun come to their end, and no others begin.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, GraphError, schedulers::OneByOne};
    ///
    /// let end = cnc::graph(|graph| {
    ///     let tags = graph.tags::<u64>("numbers");
    ///     let canceller = graph.canceller();
    ///     graph.prescribe(tags, "count for ever", move |n, step| {
    ///         if n == 1_000 {
    ///             canceller.cancel();
    ///         }
    ///         step.put_tag(tags, n + 1)
    ///     });
    ///     graph.initialize(|env| env.put_tag(tags, 0))?;
    ///     graph.run(&OneByOne).map(|_| ())
    /// });
    /// assert!(matches!(end, Err(GraphError::Cancelled)));
    /// ```
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
