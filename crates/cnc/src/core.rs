//! The part of a graph that its workers share: [`Core`].
//!
//! `Graph` (`graph.rs`) owns the `Core`, and the `StepContext` of each worker borrows it for `'g`.
//! `Core` owns the arena with the collections and the steps. It also has the steps that are ready
//! for the next run, the faults, and the counts that each worker adds with [`Core::account`] at its
//! end, or before it sleeps. `core/observe.rs` makes plain data of all this: the picture, the
//! recording and the statistics.
//!
//! A run calls [`Core::take_start`] first. After the scheduler has returned, `Graph::run`
//! compares [`Core::outstanding`] with 0. It repeats the gets of the steps of [`Core::waiting`]
//! (`StepContext::get_again`), takes the faults, and asks for the [`Core::missing`] items. No other
//! worker may run then, because `waiting` and `missing` read the lists of waiters without a
//! lock. At the end of the graph, [`Core::close`] drops the steps that still wait; `graph` calls it
//! before it drops the `Core`.

mod observe;

use std::collections::{BTreeSet, VecDeque};
use std::mem::{self, ManuallyDrop};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use crate::arena::{Arena, Owned, UntilTheEnd};
use crate::cancel::Attention;
use crate::code::{Code, EnvironmentCode, ForkCode, ReadyStep, StepEntry, free_forked};
use crate::collections::{AnyItems, ItemCol, Items};
use crate::error::StepFault;
use crate::faults::{PutBy, settle};
use crate::first_panic::FirstPanic;
use crate::frames::FrameMemory;
use crate::key::{ItemKey, NO_TAG};
use crate::monitor::Monitor;
use crate::primitives::{AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use crate::record::Recorder;
use crate::slot::NO_STEP;
use crate::stuck::AwaitedItem;
use crate::tags::{AnyTags, TagCol, TagStore};
use crate::waiters::WaiterMemory;

/// How many numbers for async steps a worker takes at a time.
pub(crate) const SERIALS: u64 = 1 << 16;

/// The graph, without the functions that build it.
///
/// A field has no destructor that touches something of the lifetime `'g`, so that a `&'g Core<'g>`
/// can exist: `Graph` closes it first.
pub(crate) struct Core<'g> {
    arena: Arena,
    entries: Mutex<Vec<&'g StepEntry<'g>>>,
    items: Mutex<Vec<&'g dyn AnyItems<'g>>>,
    environment: OnceLock<&'g StepEntry<'g>>,
    forked: OnceLock<&'g StepEntry<'g>>,
    /// The ready steps that no scheduler has taken.
    pending: Mutex<ManuallyDrop<PendingSteps<'g>>>,
    /// The faults since the last report.
    faults: Mutex<Vec<StepFault>>,
    /// The faults that were reported.
    reported: Mutex<Vec<StepFault>>,
    attention: Arc<Attention>,
    recorder: OnceLock<Recorder>,
    monitor: OnceLock<Monitor>,
    tags: Mutex<Vec<&'g dyn AnyTags<'g>>>,
    /// Whether a fault stops the others.
    pub(crate) stop_at_fault: AtomicBool,
    /// Whether `Graph::run` is running.
    pub(crate) running: AtomicBool,
    /// The views of the graph that are in existence.
    pub(crate) views: AtomicUsize,
    /// The number of steps that were made ready, and the number of steps that were run.
    made: AtomicU64,
    ran: AtomicU64,
    /// The number of steps that were suspended, minus the number of steps that were woken. It
    /// wraps, because each worker adds its own difference.
    suspended: AtomicU64,
    /// The workers that have not added their counts yet.
    workers: AtomicUsize,
    /// How often each step collection ran and missed.
    counts: Mutex<Vec<(u64, u64)>>,
    /// The handles of async steps that are in existence, and the frames of these steps. It wraps,
    /// as `suspended` does.
    pub(crate) handles: AtomicU64,
    /// The numbers for async steps that no worker has taken. The first one is a multiple of
    /// [`SERIALS`].
    serials: AtomicU64,
    waiters: WaiterMemory<ReadyStep<'g>>,
    frames: FrameMemory,
    /// The steps that the environment has forked.
    environment_forks: AtomicU64,
    /// The waiting steps with a fault that says that they come too late, from the end of a run: the
    /// number of the entry and the word of each step.
    told: Mutex<BTreeSet<(usize, u64)>>,
    /// The number of cancellations at the last search for cancelled steps among the waiting steps.
    settled: AtomicU64,
    /// Whether a step has begun to wait for a get of an item while other steps claim all gets of
    /// that item.
    some_late: AtomicBool,
    /// How a put wakes a worker, in a run with workers that stay. The scheduler takes it away
    /// before it returns.
    wake: Mutex<ManuallyDrop<Option<WakeWorker<'g>>>>,
}

/// Wakes a worker of the scheduler. A put of the living environment calls it.
pub(crate) type WakeWorker<'g> = Arc<dyn Fn() + Send + Sync + 'g>;

/// The ready steps that no scheduler has taken.
#[derive(Default)]
struct PendingSteps<'g> {
    /// The steps that were ready when the run began, and the steps that late steps have made ready
    /// between two rounds.
    first: Vec<ReadyStep<'g>>,
    /// The steps that came later: from the environment between two runs, or while it lives on.
    later: Vec<ReadyStep<'g>>,
}

impl<'g> Core<'g> {
    pub(crate) fn new() -> Core<'g> {
        Core {
            arena: Arena::new(),
            entries: Mutex::new(Vec::new()),
            items: Mutex::new(Vec::new()),
            environment: OnceLock::new(),
            forked: OnceLock::new(),
            pending: Mutex::default(),
            faults: Mutex::new(Vec::new()),
            reported: Mutex::new(Vec::new()),
            attention: Arc::default(),
            recorder: OnceLock::new(),
            monitor: OnceLock::new(),
            tags: Mutex::new(Vec::new()),
            stop_at_fault: AtomicBool::new(true),
            running: AtomicBool::new(false),
            views: AtomicUsize::new(0),
            made: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            suspended: AtomicU64::new(0),
            workers: AtomicUsize::new(0),
            counts: Mutex::new(Vec::new()),
            handles: AtomicU64::new(0),
            serials: AtomicU64::new(0),
            waiters: WaiterMemory::new(),
            frames: FrameMemory::new(),
            environment_forks: AtomicU64::new(0),
            told: Mutex::new(BTreeSet::new()),
            settled: AtomicU64::new(0),
            some_late: AtomicBool::new(false),
            wake: Mutex::default(),
        }
    }

    pub(crate) fn environment(&'g self) -> &'g StepEntry<'g> {
        self.environment
            .get_or_init(|| self.add_entry("the environment", Box::new(EnvironmentCode), None, false))
    }

    /// Whether a step was forked.
    pub(crate) fn has_forks(&self) -> bool {
        self.forked.get().is_some()
    }

    pub(crate) fn forked(&'g self) -> &'g StepEntry<'g> {
        self.forked.get_or_init(|| self.add_entry("fork", Box::new(ForkCode), Some(free_forked), false))
    }

    /// Takes an object in, which lasts as long as the graph.
    pub(crate) fn own<T: Owned + Send + Sync + 'g>(&'g self, object: T) -> &'g T {
        // SAFETY: `self` is borrowed for `'g`, so the arena is dropped after `'g`. After `'g`,
        // `graph` calls `close` alone, which uses the entries of suspended steps before the drop of
        // the arena. `graph` makes `'g` for all lifetimes (`for<'g>`), so `T: 'g` says that all
        // that `T` borrows outlives the call of `graph`, and with it the drop of the arena.
        unsafe { self.arena.add(object) }
    }

    pub(crate) fn add_entry(
        &'g self,
        name: &str,
        code: Box<dyn Code<'g> + 'g>,
        free: Option<unsafe fn(u64)>,
        takes_word: bool,
    ) -> &'g StepEntry<'g> {
        self.add_entry_of(None, name, code, free, takes_word)
    }

    /// As [`add_entry`](Core::add_entry), for another entry of the step with the number `row`.
    pub(crate) fn add_entry_of(
        &'g self,
        row: Option<usize>,
        name: &str,
        code: Box<dyn Code<'g> + 'g>,
        free: Option<unsafe fn(u64)>,
        takes_word: bool,
    ) -> &'g StepEntry<'g> {
        let mut entries = lock(&self.entries);
        let number = entries.len();
        let row = row.unwrap_or(number);
        let twin = match entries.get(row) {
            Some(first) => first.twin,
            None => entries.iter().filter(|entry| entry.row == entry.number && entry.name == name).count(),
        };
        assert!(number < NO_STEP, "a graph has at most {NO_STEP} step collections");
        let (cancelled, next) = (AtomicU64::new(0), OnceLock::new());
        let missed_with_claims = AtomicBool::new(false);
        let (code, drops) = (UntilTheEnd::new(code), free.is_some() && !takes_word);
        let name = name.to_owned();
        let entry = self.own(StepEntry {
            number,
            row,
            twin,
            name,
            code,
            free,
            takes_word,
            cancelled,
            drops,
            missed_with_claims,
            next,
        });
        entries.push(entry);
        entry
    }

    pub(crate) fn entries(&self) -> usize {
        lock(&self.entries).len()
    }

    pub(crate) fn entry(&self, number: usize) -> Option<&'g StepEntry<'g>> {
        lock(&self.entries).get(number).copied()
    }

    /// The step that has put an item, by the number of its entry and the word of its tag.
    pub(crate) fn put_by(&self, number: usize, word: u64) -> PutBy {
        match self.entry(number) {
            Some(entry) => {
                let (tag, row) = (entry.tag_of_word(word), entry.row);
                let word = if tag.is_some() { word } else { 0 };
                PutBy { row, word, step: entry.name.clone(), tag: tag.unwrap_or_else(|| NO_TAG.to_owned()) }
            }
            None => PutBy { row: number, word: 0, step: String::new(), tag: NO_TAG.to_owned() },
        }
    }

    /// The step that has put an item, as the item's slot names it.
    pub(crate) fn put_by_maker(&self, maker: Option<(usize, Option<u64>)>) -> PutBy {
        match maker {
            Some((number, Some(word))) => self.put_by(number, word),
            Some((number, None)) => {
                let entry = self.entry(number).expect("the step has put an item");
                PutBy { row: entry.row, word: 0, step: entry.name.clone(), tag: NO_TAG.to_owned() }
            }
            None => self.put_by(NO_STEP, 0),
        }
    }

    /// Adds an item collection, which the environment makes, or a step.
    pub(crate) fn add_items<K, V>(
        &'g self,
        name: &str,
        items: Items<'g, K, V>,
        by_step: bool,
    ) -> ItemCol<'g, K, V>
    where
        K: ItemKey + 'g,
        V: Send + Sync + 'g,
    {
        let mut all = lock(&self.items);
        let store = self.own(items.build(all.len(), name, by_step));
        all.push(store);
        ItemCol(store)
    }

    pub(crate) fn add_tags<T: ItemKey + 'g>(&'g self, name: &str, memoised: bool) -> TagCol<'g, T> {
        let mut all = lock(&self.tags);
        let store = self.own(TagStore::new(all.len(), name, memoised));
        all.push(store);
        TagCol(store)
    }

    pub(crate) fn each_tags(&self) -> Vec<&'g dyn AnyTags<'g>> {
        lock(&self.tags).clone()
    }

    pub(crate) fn each_items(&self) -> Vec<&'g dyn AnyItems<'g>> {
        lock(&self.items).clone()
    }

    pub(crate) fn fail(&self, fault: StepFault) {
        lock(&self.faults).push(fault);
        if self.stop_at_fault.load(Ordering::Relaxed) {
            self.attention.stop();
        }
    }

    /// All faults so far, the smallest first. A fault that was reported before has the text of an
    /// error alone.
    pub(crate) fn report_faults(&self) -> Vec<StepFault> {
        let mut faults = mem::take(&mut *lock(&self.faults));
        let mut reported = lock(&self.reported);
        let again: Vec<StepFault> = faults.iter().map(StepFault::again).collect();
        faults.extend(reported.iter().map(StepFault::again));
        reported.extend(again);
        settle(faults)
    }

    #[inline]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.attention.is_stopped()
    }

    #[inline]
    pub(crate) fn attention(&self) -> &Arc<Attention> {
        &self.attention
    }

    /// Notes that the program has cancelled steps.
    pub(crate) fn note_cancelled_steps(&self) {
        self.attention.cancel_some();
    }

    /// Records from now on.
    pub(crate) fn record(&self, runs_max: usize) {
        self.recorder.get_or_init(|| Recorder::new(runs_max));
        self.attention.need();
    }

    pub(crate) fn recorder(&self) -> Option<&Recorder> {
        self.recorder.get()
    }

    /// The monitor of the graph. The workers tell it what they do, from now on.
    pub(crate) fn monitor(&'g self) -> &'g Monitor {
        let monitor = self.monitor.get_or_init(Monitor::new);
        self.attention.need();
        self.show_to_monitor();
        monitor
    }

    /// The monitor, if the program wants one.
    pub(crate) fn monitor_if_any(&self) -> Option<&Monitor> {
        self.monitor.get()
    }

    pub(crate) fn next_fork_of_environment(&self) -> u64 {
        self.environment_forks.fetch_add(1, Ordering::Relaxed)
    }

    pub(crate) fn waiters(&self) -> &WaiterMemory<ReadyStep<'g>> {
        &self.waiters
    }

    pub(crate) fn frames(&self) -> &FrameMemory {
        &self.frames
    }

    /// Takes [`SERIALS`] numbers for async steps. Returns the first one.
    pub(crate) fn new_serials(&self) -> u64 {
        self.serials.fetch_add(SERIALS, Ordering::Relaxed)
    }

    /// Notes a worker that is new or awake again, and calls [`account`](Core::account) later.
    pub(crate) fn note_worker(&self) {
        self.workers.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether steps may wait for items. No worker may run.
    pub(crate) fn some_may_wait(&self) -> bool {
        // A scheduler may have forgotten a worker, and with it the worker's counts.
        self.suspended.load(Ordering::Relaxed) != 0 || self.workers.load(Ordering::Relaxed) != 0
    }

    /// Whether some steps that wait may be cancelled ones. No worker may run.
    pub(crate) fn some_wait_cancelled(&self) -> bool {
        self.some_may_wait() && self.attention.cancellations() != self.settled.load(Ordering::Relaxed)
    }

    /// Notes that the caller takes out the waiting steps that are cancelled, which it does next.
    pub(crate) fn note_settled(&self) {
        self.settled.store(self.attention.cancellations(), Ordering::Relaxed);
    }

    /// Notes that a step begins to wait for a get of an item, all gets of which are claimed.
    pub(crate) fn note_late(&self) {
        self.some_late.store(true, Ordering::Relaxed);
    }

    /// Takes out the late steps: other steps claim all gets of the items for which they wait. No
    /// worker may run.
    pub(crate) fn take_late(&self) -> Vec<ReadyStep<'g>> {
        if !self.some_late.swap(false, Ordering::Relaxed) {
            return Vec::new();
        }
        self.each_items().iter().flat_map(|items| items.late()).collect()
    }

    /// Sets how a put of the living environment wakes a worker, and returns what was set before.
    pub(crate) fn set_wake(&self, wake: Option<WakeWorker<'g>>) -> Option<WakeWorker<'g>> {
        mem::replace(&mut **lock(&self.wake), wake)
    }

    /// Wakes a worker that sleeps, by the scheduler's own call, if the workers stay.
    pub(crate) fn wake_worker(&self) {
        if let Some(wake) = &**lock(&self.wake) {
            wake();
        }
    }

    /// Adds the counts of a worker, at the worker's end, or before the worker sleeps in a run that
    /// lives on.
    pub(crate) fn account(
        &self,
        made: u64,
        ran: u64,
        (suspended, handles): (u64, u64),
        counts: &[(u64, u64)],
    ) {
        self.workers.fetch_sub(1, Ordering::Release);
        self.suspended.fetch_add(suspended, Ordering::Relaxed);
        self.handles.fetch_add(handles, Ordering::Release);
        self.made.fetch_add(made, Ordering::Relaxed);
        self.ran.fetch_add(ran, Ordering::Relaxed);
        let mut all = lock(&self.counts);
        if all.len() < counts.len() {
            all.resize(counts.len(), (0, 0));
        }
        for (all, mine) in all.iter_mut().zip(counts) {
            *all = (all.0 + mine.0, all.1 + mine.1);
        }
    }

    /// How many steps were made ready and not run.
    pub(crate) fn outstanding(&self) -> u64 {
        self.made.load(Ordering::Relaxed) - self.ran.load(Ordering::Relaxed)
    }

    /// The name of each step collection, how often it ran and missed, and how many of its instances
    /// were cancelled.
    pub(crate) fn step_counts(&self) -> Vec<(String, u64, u64, u64)> {
        let counts = lock(&self.counts).clone();
        let entries = lock(&self.entries);
        let cancelled = |row: usize| {
            let of_row = entries.iter().filter(|entry| entry.row == row);
            of_row.map(|entry| entry.cancelled.load(Ordering::Relaxed)).sum()
        };
        let rows = entries.iter().filter(|entry| entry.row == entry.number);
        let counted = rows.map(|entry| {
            let (runs, misses) = counts.get(entry.row).copied().unwrap_or_default();
            (entry.name.clone(), runs, misses, cancelled(entry.row))
        });
        counted.collect()
    }

    /// Keeps ready steps for a scheduler that starts, or for a worker that looks at the bell.
    pub(crate) fn keep(&self, ready: VecDeque<ReadyStep<'g>>) {
        let later = &mut lock(&self.pending).later;
        if later.is_empty() {
            *later = ready.into();
        } else {
            later.extend(ready);
        }
    }

    /// Keeps ready steps for a scheduler that starts another round.
    pub(crate) fn keep_first(&self, ready: VecDeque<ReadyStep<'g>>) {
        lock(&self.pending).first.extend(ready);
    }

    /// A run begins, and with it the puts of the living environment.
    pub(crate) fn begin_run(&self) {
        let mut pending = lock(&self.pending);
        let PendingSteps { first, later } = &mut **pending;
        if first.is_empty() {
            mem::swap(first, later);
        } else {
            first.append(later);
        }
    }

    /// Takes the steps with which a scheduler starts: the steps that were ready when the run began.
    ///
    /// If there are none, takes the oldest step of the living environment, and rings the bell for
    /// its later steps. A worker that runs its newest step first then runs the later steps before
    /// the oldest one, as it does when they come in the middle of a run.
    pub(crate) fn take_start(&self) -> Vec<ReadyStep<'g>> {
        let mut pending = lock(&self.pending);
        if !pending.first.is_empty() || pending.later.is_empty() {
            return mem::take(&mut pending.first);
        }
        let oldest = pending.later.remove(0);
        let are_others = !pending.later.is_empty();
        drop(pending);
        if are_others {
            self.attention.bell().ring();
        }
        vec![oldest]
    }

    /// Takes the steps that the living environment has made ready.
    pub(crate) fn take_later(&self) -> Vec<ReadyStep<'g>> {
        mem::take(&mut lock(&self.pending).later)
    }

    /// Takes all steps that no scheduler has taken.
    pub(crate) fn take_pending(&self) -> Vec<ReadyStep<'g>> {
        let mut first = mem::take(&mut lock(&self.pending).first);
        first.append(&mut self.take_later());
        first
    }

    /// The steps that wait, without cancelled steps. No worker may run.
    ///
    /// # Panics
    /// If a step is lost: an item has forgotten it.
    pub(crate) fn waiting(&self) -> Vec<(&'g StepEntry<'g>, u64)> {
        let (mut waiting, mut count) = (Vec::new(), 0);
        if self.some_may_wait() {
            for items in self.each_items() {
                items.each_waiting(&mut |ready| {
                    count += 1;
                    if !ready.is_cancelled() {
                        waiting.push((ready.entry, ready.word));
                    }
                });
            }
        }
        let suspended = self.suspended.load(Ordering::Relaxed);
        // If a scheduler has forgotten a worker, the number of suspended steps is not known.
        assert!(
            self.workers.load(Ordering::Relaxed) != 0 || suspended == count,
            "{suspended} steps wait for items, and the items know of {count}"
        );
        waiting
    }

    /// Whether a step that waits was told already that it comes too late.
    pub(crate) fn was_told(&self, entry: usize, word: u64) -> bool {
        lock(&self.told).contains(&(entry, word))
    }

    pub(crate) fn note_told(&self, entry: usize, word: u64) {
        lock(&self.told).insert((entry, word));
    }

    /// The missing items for which steps wait. No worker may run.
    pub(crate) fn missing(&self) -> Vec<AwaitedItem> {
        if !self.some_may_wait() {
            debug_assert!(self.each_items().iter().all(|items| items.missing().is_empty()));
            return Vec::new();
        }
        let mut missing: Vec<_> = self.each_items().iter().flat_map(|items| items.missing()).collect();
        AwaitedItem::sort_made_by_steps(&mut missing);
        missing
    }

    pub(crate) fn left_over(&self) -> Vec<StepFault> {
        settle(self.each_items().iter().flat_map(|items| items.left_over(self)).collect())
    }

    /// Why the graph cannot be reset now, if it cannot.
    pub(crate) fn is_used(&self) -> Option<&'static str> {
        if self.running.load(Ordering::Relaxed) {
            Some("within its run")
        } else if self.workers.load(Ordering::Acquire) != 0 {
            Some("within `initialize`, or after its scheduler has lost a worker")
        } else if self.views.load(Ordering::Relaxed) != 0 {
            Some("within `finalize`")
        } else if self.attention.bell().is_open() {
            Some("while a `LiveEnvironment` is open")
        } else {
            None
        }
    }

    /// Forgets the runs, once no step is ready and none waits: items, tags that were put, faults,
    /// cancellations and counts. A destructor that panics stops nothing; `panics` has the first
    /// panic.
    ///
    /// # Panics
    /// If the program has kept the handle of an async step, because it may have a reference to an
    /// item. The graph is stopped then.
    ///
    /// # Safety
    /// [`is_used`](Core::is_used) has said `None`, and no code of the program has run since but
    /// destructors of steps.
    pub(crate) unsafe fn forget_runs(&self, panics: &mut FirstPanic) {
        if self.handles.load(Ordering::Acquire) != 0 {
            self.attention.stop();
            panic!("a graph cannot be reset while the program keeps the handle of an async step");
        }
        // SAFETY: no run is under way, and no worker is in existence, so no step runs. The caller
        // has dropped the waiting steps. A reference to an item belongs to a step, to `initialize`,
        // to a view, or to the handle of an async step, and none of these exists now.
        unsafe { self.arena.reset(panics) };
        let faults = [&self.faults, &self.reported].map(|faults| mem::take(&mut *lock(faults)));
        panics.run(|| drop(faults));
        self.attention.reset(self.recorder.get().is_some() || self.monitor.get().is_some());
        for count in [&self.made, &self.ran, &self.suspended, &self.environment_forks, &self.settled] {
            count.store(0, Ordering::Relaxed);
        }
        lock(&self.counts).fill((0, 0));
        lock(&self.told).clear();
        self.some_late.store(false, Ordering::Relaxed);
    }

    /// Drops the ready steps and the waiting steps, before the arena is dropped. A destructor that
    /// panics stops nothing; the first panic goes on when all is dropped.
    pub(crate) fn close(&self) {
        let mut panics = FirstPanic::default();
        for ready in self.take_pending() {
            panics.run(|| drop(ready));
        }
        if self.some_may_wait() {
            self.each_items().into_iter().for_each(|items| items.drop_waiting(&mut panics));
        }
        if self.handles.load(Ordering::Acquire) != 0 || self.workers.load(Ordering::Acquire) != 0 {
            // A handle of an async step has outlived its step, and with it perhaps a reference to
            // an item. Or a scheduler has forgotten a ready step, and its future is never dropped.
            // If a scheduler has forgotten a worker, the number of handles is not known.
            self.arena.leak();
            self.frames.leak();
        }
        panics.go_on();
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use crate::schedulers::OneByOne;
    use crate::{GraphError, graph};

    #[test]
    #[should_panic = "1 steps wait for items, and the items know of 0"]
    fn a_step_that_its_item_forgets_is_noticed() {
        graph(|graph| {
            let tags = graph.tags::<u32>("tags");
            let items = graph.items::<u32, u32>("items");
            graph.prescribe(tags, "get", move |n, step| step.get(items, n).map(|_| ()));
            graph.initialize(|env| env.put_tag(tags, 7)).unwrap();
            assert!(matches!(graph.run(&OneByOne), Err(GraphError::Stuck(_))));
            let place = items.0.storage.find(&7).unwrap();
            drop(place.slot.state.take_waiters());
            let _ = graph.run(&OneByOne);
        });
    }
}
