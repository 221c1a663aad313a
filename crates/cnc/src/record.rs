//! The record of a run: which step ran when, and which collections it used. [`Graph::record`]
//! begins it, and [`Recording`] is the result.
//!
//! A worker collects a [`WorkerRecord`] in `StepContext::attend` (`step/attend.rs`), and hands it
//! to the [`Recorder`] of the graph when the record is full and when the worker ends.
//! `Graph::recording`, `Graph::dot` and the scheduler `Replay` use the result.
//!
//! Without `Graph::record` no step pays for this: `Core::record` sets `Attention`, and only then a
//! worker leaves the short way.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fmt, mem};

use crate::core::Core;
use crate::graph::Graph;
use crate::primitives::{Mutex, lock};
use crate::schedulers::RunOrder;

/// A worker hands its record over when it has so many runs.
const HELD_MAX: usize = 1024;

/// The records of all workers.
pub(crate) struct Recorder {
    began: Instant,
    runs_max: usize,
    workers: AtomicUsize,
    recorded: Mutex<Recorded>,
}

#[derive(Default)]
struct Recorded {
    runs: Vec<RunRecord>,
    forgotten: usize,
    edges: BTreeSet<Edge>,
}

/// The record of one worker that is not handed over yet.
#[derive(Default)]
pub(crate) struct WorkerRecord {
    /// The number of the worker, from its first step on. The environment has none.
    worker: Option<usize>,
    runs: Vec<RunRecord>,
    edges: BTreeSet<Edge>,
}

/// A step that was run by a worker. Times are nanoseconds since the recorder began.
pub(crate) struct RunRecord {
    pub(crate) worker: usize,
    /// The number of the step collection.
    pub(crate) step: usize,
    pub(crate) tag: RecordedTag,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) missed: bool,
}

/// A tag as its word, if it is one; its text is made when the record is looked at.
pub(crate) enum RecordedTag {
    Word(u64),
    Text(String),
}

/// A step collection has used another collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Edge {
    pub(crate) step: usize,
    pub(crate) end: EdgeEnd,
}

/// What a step has used: the number of an item collection or of a tag collection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum EdgeEnd {
    Gets(usize),
    Puts(usize),
    PutsTags(usize),
    Forks,
}

impl Recorder {
    pub(crate) fn new(runs_max: usize) -> Recorder {
        let (began, workers) = (Instant::now(), AtomicUsize::new(0));
        Recorder { began, runs_max, workers, recorded: Mutex::default() }
    }

    pub(crate) fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Takes the runs and the edges that a worker has recorded.
    pub(crate) fn take(&self, record: &mut WorkerRecord) {
        let mut recorded = lock(&self.recorded);
        let room = self.runs_max - recorded.runs.len();
        recorded.forgotten += record.runs.len().saturating_sub(room);
        recorded.runs.extend(record.runs.drain(..).take(room));
        recorded.edges.append(&mut record.edges);
    }

    pub(crate) fn edges(&self) -> BTreeSet<Edge> {
        lock(&self.recorded).edges.clone()
    }
}

impl WorkerRecord {
    pub(crate) fn number(&mut self, recorder: &Recorder) -> usize {
        *self.worker.get_or_insert_with(|| recorder.workers.fetch_add(1, Ordering::Relaxed))
    }

    pub(crate) fn add(&mut self, run: RunRecord) {
        self.runs.push(run);
    }

    pub(crate) fn note(&mut self, edge: Edge) {
        self.edges.insert(edge);
    }

    pub(crate) fn is_full(&self) -> bool {
        self.runs.len() == HELD_MAX
    }
}

/// A step that a worker has run: to its end, or to an item that it missed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepRun {
    /// The number of the worker, in the order of their first steps.
    pub worker: usize,
    /// The name of the step.
    pub step: String,
    /// How many steps before it have the same name.
    twin: usize,
    /// The tag, as `Debug` writes it. For a forked step, a number that is the same in each run.
    pub tag: String,
    /// When it began, since the record began.
    pub began: Duration,
    /// When it ended.
    pub ended: Duration,
    /// Whether it missed an item, and waits for it.
    pub missed: bool,
}

/// What a graph has recorded, by [`Graph::record`].
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recording {
    /// The runs of steps, in the order in which they began.
    pub runs: Vec<StepRun>,
    /// The number of runs for which there was no room.
    pub forgotten: usize,
}

impl Recording {
    /// The order in which the steps began, for [`Replay`](crate::schedulers::Replay).
    pub fn order(&self) -> RunOrder {
        RunOrder::of(self.runs.iter().map(|run| (run.step.as_str(), run.twin, run.tag.as_str())))
    }

    fn of(core: &Core<'_>) -> Recording {
        let Some(recorder) = core.recorder() else { return Recording { runs: Vec::new(), forgotten: 0 } };
        let mut recorded = lock(&recorder.recorded);
        recorded.runs.sort_by_key(|run| (run.began, run.worker));
        let see = |run: &RunRecord| {
            let entry = core.entry(run.step).expect("the step was run");
            let tag = match &run.tag {
                RecordedTag::Word(word) => entry.tag_of_word(*word).unwrap_or_default(),
                RecordedTag::Text(text) => text.clone(),
            };
            StepRun {
                worker: run.worker,
                step: entry.name.clone(),
                twin: entry.twin,
                tag,
                began: Duration::from_nanos(run.began),
                ended: Duration::from_nanos(run.ended),
                missed: run.missed,
            }
        };
        Recording { runs: recorded.runs.iter().map(see).collect(), forgotten: recorded.forgotten }
    }
}

impl<'g> Graph<'g, '_> {
    /// Records from now on which steps run when, at most `runs_max` of them, and which collections
    /// each step uses. The first call counts. [`Graph::dot`] then shows the edges that were used.
    ///
    /// # Complexity
    /// A step that is recorded reads the clock twice, and takes about 60 bytes. Without a record
    /// there is no cost.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, schedulers::{Replay, TaskPool}};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let steps_of = |scheduler: &dyn cnc::schedulers::Scheduler| {
    ///     cnc::graph(|graph| {
    ///         let tags = graph.tags::<u32>("tags");
    ///         let items = graph.items::<u32, u32>("items");
    ///         graph.prescribe(tags, "next", move |n, step| {
    ///             step.put(items, n + 1, step.get(items, n)? + 1)
    ///         });
    ///         graph.record(1_000);
    ///         graph.initialize(|env| {
    ///             (0..20).try_for_each(|n| env.put_tag(tags, n))?;
    ///             env.put(items, 0, 0)
    ///         })?;
    ///         graph.run(scheduler)?;
    ///         Ok::<_, cnc::GraphError>(graph.recording())
    ///     })
    /// };
    /// let recording = steps_of(&TaskPool::fuzz(1, 7))?;
    /// let replayed = steps_of(&Replay::new(recording.order()))?;
    /// assert!(recording.runs.len() > 20, "some steps have missed an item");
    /// assert_eq!(recording.order(), replayed.order());
    /// # Ok(())
    /// # }
    /// ```
    pub fn record(&'g self, runs_max: usize) {
        self.core().record(runs_max);
    }

    /// What was recorded so far; nothing without [`Graph::record`].
    pub fn recording(&'g self) -> Recording {
        Recording::of(self.core())
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("runs_max", &self.runs_max).finish_non_exhaustive()
    }
}

// A run is kept for each step of a long run, so its size matters.
const _: () = assert!(mem::size_of::<RunRecord>() <= 72);
