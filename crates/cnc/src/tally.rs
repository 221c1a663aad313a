//! What a graph counts: [`Tally`], with the steps that were made, run and suspended, the workers,
//! and the users of the graph between two runs. `Core` owns it.
//!
//! A worker counts for itself, and adds its [`WorkerCounts`] with [`Tally::account`] at its end, or
//! before it sleeps in a run that lives on. So the counts are right when no worker runs. Several
//! wrap, because one worker suspends a step and another one wakes it.

use crate::primitives::{AtomicBool, AtomicU64, AtomicUsize, Mutex, Ordering, lock};
use std::collections::BTreeSet;

/// What a worker has counted since it was made, or since it slept.
pub(crate) struct WorkerCounts {
    /// The number of steps that were made ready, and the number of steps that were run.
    pub(crate) made: u64,
    pub(crate) ran: u64,
    /// The number of steps that were suspended, minus the number that were woken: it may wrap.
    pub(crate) suspended: u64,
    /// The number of handles and frames of async steps that were made, minus the number that were
    /// dropped: it may wrap.
    pub(crate) handles: u64,
    /// How often each step collection ran and missed.
    pub(crate) of_steps: Vec<(u64, u64)>,
}

/// The counts of a graph, since it was made or reset.
pub(crate) struct Tally {
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
    /// The steps that the environment has forked.
    environment_forks: AtomicU64,
    /// Whether `Graph::run` is running.
    pub(crate) running: AtomicBool,
    /// The views of the graph that are in existence.
    pub(crate) views: AtomicUsize,
    /// The waiting steps with a fault that says that they come too late, from the end of a run: the
    /// number of the entry and the word of each step.
    told: Mutex<BTreeSet<(usize, u64)>>,
    /// The number of cancellations at the last search for cancelled steps among the waiting steps.
    settled: AtomicU64,
    /// Whether a step has begun to wait for a get of an item while other steps claim all gets of
    /// that item.
    some_late: AtomicBool,
}

impl Tally {
    pub(crate) fn new() -> Tally {
        Tally {
            made: AtomicU64::new(0),
            ran: AtomicU64::new(0),
            suspended: AtomicU64::new(0),
            workers: AtomicUsize::new(0),
            counts: Mutex::new(Vec::new()),
            handles: AtomicU64::new(0),
            environment_forks: AtomicU64::new(0),
            running: AtomicBool::new(false),
            views: AtomicUsize::new(0),
            told: Mutex::new(BTreeSet::new()),
            settled: AtomicU64::new(0),
            some_late: AtomicBool::new(false),
        }
    }

    /// Notes a worker that is new or awake again, and calls [`account`](Tally::account) later.
    pub(crate) fn note_worker(&self) {
        self.workers.fetch_add(1, Ordering::Relaxed);
    }

    /// Adds the counts of a worker.
    pub(crate) fn account(&self, of: &WorkerCounts) {
        self.workers.fetch_sub(1, Ordering::Release);
        self.suspended.fetch_add(of.suspended, Ordering::Relaxed);
        self.handles.fetch_add(of.handles, Ordering::Release);
        self.made.fetch_add(of.made, Ordering::Relaxed);
        self.ran.fetch_add(of.ran, Ordering::Relaxed);
        let mut all = lock(&self.counts);
        if all.len() < of.of_steps.len() {
            all.resize(of.of_steps.len(), (0, 0));
        }
        for (all, mine) in all.iter_mut().zip(&of.of_steps) {
            *all = (all.0 + mine.0, all.1 + mine.1);
        }
    }

    /// How many steps were made ready and not run.
    pub(crate) fn outstanding(&self) -> u64 {
        self.made.load(Ordering::Relaxed) - self.ran.load(Ordering::Relaxed)
    }

    /// How often each step collection ran and missed. A collection that has not run may be missing
    /// at the end.
    pub(crate) fn of_steps(&self) -> Vec<(u64, u64)> {
        lock(&self.counts).clone()
    }

    /// Whether a worker has not added its counts, because it runs, or because its scheduler has
    /// forgotten it.
    pub(crate) fn some_work(&self) -> bool {
        self.workers.load(Ordering::Acquire) != 0
    }

    /// Whether the handle or the frame of an async step is in existence.
    pub(crate) fn some_have_handles(&self) -> bool {
        self.handles.load(Ordering::Acquire) != 0
    }

    /// Whether steps may wait for items. No worker may run.
    pub(crate) fn some_may_wait(&self) -> bool {
        // A scheduler may have forgotten a worker, and with it the worker's counts.
        self.suspended.load(Ordering::Relaxed) != 0 || self.workers.load(Ordering::Relaxed) != 0
    }

    /// Compares the number of suspended steps with the number of steps that the items know of. No
    /// worker may run.
    ///
    /// # Panics
    /// If a step is lost: an item has forgotten it.
    pub(crate) fn check_suspended(&self, known: u64) {
        let suspended = self.suspended.load(Ordering::Relaxed);
        // If a scheduler has forgotten a worker, the number of suspended steps is not known.
        assert!(
            self.workers.load(Ordering::Relaxed) != 0 || suspended == known,
            "{suspended} steps wait for items, and the items know of {known}"
        );
    }

    /// Whether some steps that wait may be cancelled ones, if the program has cancelled steps so
    /// often. No worker may run.
    pub(crate) fn some_wait_cancelled(&self, cancellations: u64) -> bool {
        self.some_may_wait() && cancellations != self.settled.load(Ordering::Relaxed)
    }

    /// Notes that the caller takes out the waiting steps that are cancelled, which it does next.
    pub(crate) fn note_settled(&self, cancellations: u64) {
        self.settled.store(cancellations, Ordering::Relaxed);
    }

    /// Notes that a step begins to wait for a get of an item, all gets of which are claimed.
    pub(crate) fn note_late(&self) {
        self.some_late.store(true, Ordering::Relaxed);
    }

    /// Whether a step was late since the last call.
    pub(crate) fn were_some_late(&self) -> bool {
        self.some_late.swap(false, Ordering::Relaxed)
    }

    /// Whether a step that waits was told already that it comes too late.
    pub(crate) fn was_told(&self, entry: usize, word: u64) -> bool {
        lock(&self.told).contains(&(entry, word))
    }

    pub(crate) fn note_told(&self, entry: usize, word: u64) {
        lock(&self.told).insert((entry, word));
    }

    /// The number of the next step that the environment forks.
    pub(crate) fn next_fork_of_environment(&self) -> u64 {
        self.environment_forks.fetch_add(1, Ordering::Relaxed)
    }

    /// Forgets the runs, once no step is ready, none waits, and no worker is in existence.
    pub(crate) fn reset(&self) {
        for count in [&self.made, &self.ran, &self.suspended, &self.environment_forks, &self.settled] {
            count.store(0, Ordering::Relaxed);
        }
        lock(&self.counts).fill((0, 0));
        lock(&self.told).clear();
        self.some_late.store(false, Ordering::Relaxed);
    }
}
