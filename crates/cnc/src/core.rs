//! The part of a graph that its workers share: [`Core`].
//!
//! `Graph` (`graph.rs`) owns the `Core`, and the `StepContext` of each worker borrows it for `'g`.
//! A `Core` is five parts, each in a file of its own:
//!
//! | part | what it has |
//! |---|---|
//! | [`Catalogue`] | the steps and collections, and the arena in which they lie |
//! | [`Tally`] | the counts that each worker adds at its end, or before it sleeps |
//! | [`FaultLog`] | the faults |
//! | [`WorkerMemory`] | the places and numbers that workers take |
//! | [`PendingSteps`] | the steps that are ready for the next run |
//!
//! It also has what the program looks with, the recorder and the monitor, and the word that a
//! worker looks at before each step (`cancel.rs`). What needs several parts is here.
//! `core/observe.rs` makes plain data of them: the picture, the recording and the statistics.
//!
//! A run calls [`Core::take_start`] first. After the scheduler has returned, `Graph::run`
//! compares [`Tally::outstanding`] with 0. It repeats the gets of the steps of [`Core::waiting`]
//! (`StepContext::get_again`), takes the faults, and asks for the [`Core::missing`] items. No other
//! worker may run then, because `waiting` and `missing` read the lists of waiters without a
//! lock. At the end of the graph, [`Core::close`] drops the steps that still wait; `graph` calls it
//! before it drops the `Core`.
//!
//! This file is in the knot of three files that the head of `ready_step.rs` explains.

mod observe;

use crate::any_items::Maker;
use crate::arena::UntilTheEnd;
use crate::cancel::Attention;
use crate::catalogue::Catalogue;
use crate::error::StepFault;
use crate::fault_log::FaultLog;
use crate::faults::{PutBy, settle};
use crate::first_panic::FirstPanic;
use crate::key::NO_TAG;
use crate::monitor::Monitor;
use crate::pending::PendingSteps;
use crate::primitives::Ordering;
use crate::ready_step::{Code, NoCode, ReadyStep, StepEntry};
use crate::record::Recorder;
use crate::slot::NO_STEP;
use crate::stuck::AwaitedItem;
use crate::tally::Tally;
use crate::worker_memory::WorkerMemory;
use std::sync::{Arc, OnceLock};

/// The graph, without the functions that build it.
///
/// A field has no destructor that touches something of the lifetime `'g`, so that a `&'g Core<'g>`
/// can exist: `Graph` closes it first.
pub(crate) struct Core<'g> {
    pub(crate) catalogue: Catalogue<'g, StepEntry<'g>, ReadyStep<'g>>,
    pub(crate) tally: Tally,
    pub(crate) faults: FaultLog,
    pub(crate) memory: WorkerMemory<ReadyStep<'g>>,
    pub(crate) pending: PendingSteps<'g, ReadyStep<'g>>,
    attention: Arc<Attention>,
    recorder: OnceLock<Recorder>,
    monitor: OnceLock<Monitor>,
}

impl<'g> Core<'g> {
    pub(crate) fn new() -> Core<'g> {
        Core {
            catalogue: Catalogue::new(),
            tally: Tally::new(),
            faults: FaultLog::new(),
            memory: WorkerMemory::new(),
            pending: PendingSteps::new(),
            attention: Arc::default(),
            recorder: OnceLock::new(),
            monitor: OnceLock::new(),
        }
    }

    /// The entry of the environment, which has no instances.
    pub(crate) fn environment(&'g self) -> &'g StepEntry<'g> {
        self.catalogue.environment(|| self.add_entry("the environment", Box::new(NoCode), None, false))
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
        self.catalogue.add_step(|entries| {
            let number = entries.len();
            assert!(number < NO_STEP, "a graph has at most {NO_STEP} step collections");
            let row = row.unwrap_or(number);
            let has_name = |entry: &&&StepEntry<'g>| entry.row == entry.number && entry.name == name;
            let twin = match entries.get(row) {
                Some(first) => first.twin,
                None => entries.iter().filter(has_name).count(),
            };
            let (code, drops) = (UntilTheEnd::new(code), free.is_some() && !takes_word);
            self.catalogue.own(StepEntry {
                number,
                row,
                twin,
                name: name.to_owned(),
                code,
                free,
                takes_word,
                cancelled: Default::default(),
                drops,
                missed_with_claims: Default::default(),
                next: OnceLock::new(),
            })
        })
    }

    /// The step that has put an item, by the number of its entry and the word of its tag.
    pub(crate) fn put_by(&self, number: usize, word: u64) -> PutBy {
        match self.catalogue.step(number) {
            Some(entry) => {
                let (tag, row) = (entry.tag_of_word(word), entry.row);
                let word = if tag.is_some() { word } else { 0 };
                PutBy { row, word, step: entry.name.clone(), tag: tag.unwrap_or_else(|| NO_TAG.to_owned()) }
            }
            None => PutBy { row: number, word: 0, step: String::new(), tag: NO_TAG.to_owned() },
        }
    }

    /// The step that has put an item, as the item's slot names it.
    pub(crate) fn put_by_maker(&self, maker: Maker) -> PutBy {
        match maker {
            Some((number, Some(word))) => self.put_by(number, word),
            Some((number, None)) => {
                let entry = self.catalogue.step(number).expect("the step has put an item");
                PutBy { row: entry.row, word: 0, step: entry.name.clone(), tag: NO_TAG.to_owned() }
            }
            None => self.put_by(NO_STEP, 0),
        }
    }

    pub(crate) fn fail(&self, fault: StepFault) {
        if self.faults.note(fault) {
            self.attention.stop();
        }
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

    /// Whether some steps that wait may be cancelled ones. No worker may run.
    pub(crate) fn some_wait_cancelled(&self) -> bool {
        self.tally.some_wait_cancelled(self.attention.cancellations())
    }

    /// Takes out the late steps: other steps claim all gets of the items for which they wait. No
    /// worker may run.
    pub(crate) fn take_late(&self) -> Vec<ReadyStep<'g>> {
        if !self.tally.were_some_late() {
            return Vec::new();
        }
        self.catalogue.each_items().iter().flat_map(|items| items.late()).collect()
    }

    /// Takes the steps with which a scheduler starts: the steps that were ready when the run began.
    ///
    /// If there are none, takes the oldest step of the living environment, and rings the bell for
    /// its later steps. A worker that runs its newest step first then runs the later steps before
    /// the oldest one, as it does when they come in the middle of a run.
    pub(crate) fn take_start(&self) -> Vec<ReadyStep<'g>> {
        let (start, are_others) = self.pending.take_start();
        if are_others {
            self.attention.bell().ring();
        }
        start
    }

    /// The steps that wait, without cancelled steps. No worker may run.
    ///
    /// # Panics
    /// If a step is lost: an item has forgotten it.
    pub(crate) fn waiting(&self) -> Vec<(&'g StepEntry<'g>, u64)> {
        let (mut waiting, mut count) = (Vec::new(), 0);
        if self.tally.some_may_wait() {
            for items in self.catalogue.each_items() {
                items.each_waiting(&mut |ready| {
                    count += 1;
                    if !ready.is_cancelled() {
                        waiting.push((ready.entry, ready.word));
                    }
                });
            }
        }
        self.tally.check_suspended(count);
        waiting
    }

    /// The missing items for which steps wait. No worker may run.
    pub(crate) fn missing(&self) -> Vec<AwaitedItem> {
        let items = self.catalogue.each_items();
        if !self.tally.some_may_wait() {
            debug_assert!(items.iter().all(|items| items.missing().is_empty()));
            return Vec::new();
        }
        let mut missing: Vec<_> = items.iter().flat_map(|items| items.missing()).collect();
        AwaitedItem::sort_made_by_steps(&mut missing);
        missing
    }

    /// A fault for each counted item that has gets left. No worker may run.
    pub(crate) fn left_over(&self) -> Vec<StepFault> {
        let put_by = |maker| self.put_by_maker(maker);
        settle(self.catalogue.each_items().iter().flat_map(|items| items.left_over(&put_by)).collect())
    }

    /// Why the graph cannot be reset now, if it cannot.
    pub(crate) fn is_used(&self) -> Option<&'static str> {
        if self.tally.running.load(Ordering::Relaxed) {
            Some("within its run")
        } else if self.tally.some_work() {
            Some("within `initialize`, or after its scheduler has lost a worker")
        } else if self.tally.views.load(Ordering::Relaxed) != 0 {
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
        if self.tally.some_have_handles() {
            self.attention.stop();
            panic!("a graph cannot be reset while the program keeps the handle of an async step");
        }
        // SAFETY: no run is under way, and no worker is in existence, so no step runs. The caller
        // has dropped the waiting steps. A reference to an item belongs to a step, to `initialize`,
        // to a view, or to the handle of an async step, and none of these exists now.
        unsafe { self.catalogue.reset(panics) };
        let faults = self.faults.take();
        panics.run(|| drop(faults));
        self.attention.reset(self.recorder.get().is_some() || self.monitor.get().is_some());
        self.tally.reset();
    }

    /// Drops the ready steps and the waiting steps, before the arena is dropped. A destructor that
    /// panics stops nothing; the first panic goes on when all is dropped.
    pub(crate) fn close(&self) {
        let mut panics = FirstPanic::default();
        for ready in self.pending.take_all() {
            panics.run(|| drop(ready));
        }
        if self.tally.some_may_wait() {
            self.catalogue.each_items().into_iter().for_each(|items| items.drop_waiting(&mut panics));
        }
        if self.tally.some_have_handles() || self.tally.some_work() {
            // A handle of an async step has outlived its step, and with it perhaps a reference to
            // an item. Or a scheduler has forgotten a ready step, and its future is never dropped.
            // If a scheduler has forgotten a worker, the number of handles is not known.
            self.catalogue.leak();
            self.memory.frames.leak();
        }
        panics.go_on();
    }
}
