//! The record of a run: which step ran when, and which collections it used. `Graph::record`
//! begins it, and [`Recording`] is the result.
//!
//! A worker collects a [`WorkerRecord`] in `StepContext::attend` (`step/attend.rs`), and hands it
//! to the [`Recorder`] of the graph when the record is full and when the worker ends.
//! `Graph::recording`, `Graph::picture` and the scheduler `Replay` use the result.
//!
//! Without `Graph::record` no step pays for this: `Core::record` sets `Attention`, and only then a
//! worker leaves the short way.

use crate::primitives::{Mutex, lock};
use selvedge_core::internal::advise_huge_pages;
use std::collections::BTreeSet;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{convert, fmt, mem};

/// The number of runs with which a worker hands its record over.
const HELD_MAX: usize = 1024;

/// The number of runs for which a recorder has room from the beginning, as far as it may keep them.
/// The memory is not touched before a run is in it.
const ROOM_MAX: usize = 1 << 20;

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
    /// The tags that are no words.
    texts: Vec<String>,
    forgotten: usize,
    edges: BTreeSet<Edge>,
}

/// The record of one worker that is not handed over yet.
#[derive(Default)]
pub(crate) struct WorkerRecord {
    /// The number of the worker, from its first step on. The environment has none.
    worker: Option<u16>,
    runs: Vec<RunRecord>,
    texts: Vec<String>,
    edges: BTreeSet<Edge>,
    /// The edges that were new last. A step uses the same ones again and again, in the same order.
    recent: [Option<Edge>; 4],
    /// The place of the edge that comes next, if the order is the same.
    next_recent: usize,
}

/// A step that was run by a worker. Times are nanoseconds since the recorder began.
struct RunRecord {
    began: u64,
    ended: u64,
    /// The tag's word, or the number of its text in `texts`.
    tag: u64,
    /// The number of the step collection.
    step: u32,
    worker: u16,
    is_text: bool,
    missed: bool,
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
        let runs: Vec<RunRecord> = Vec::with_capacity(runs_max.min(ROOM_MAX));
        advise_huge_pages(runs.as_ptr().cast(), runs.capacity() * mem::size_of::<RunRecord>());
        let recorded = Mutex::new(Recorded { runs, ..Recorded::default() });
        Recorder { began, runs_max, workers, recorded }
    }

    pub(crate) fn now(&self) -> u64 {
        self.began.elapsed().as_nanos() as u64
    }

    /// Takes the runs and the edges that a worker has recorded.
    pub(crate) fn take(&self, record: &mut WorkerRecord) {
        let mut recorded = lock(&self.recorded);
        let room = self.runs_max - recorded.runs.len();
        recorded.forgotten += record.runs.len().saturating_sub(room);
        if !record.texts.is_empty() {
            let before = recorded.texts.len() as u64;
            record.runs.iter_mut().filter(|run| run.is_text).for_each(|run| run.tag += before);
            recorded.texts.append(&mut record.texts);
        }
        recorded.runs.extend(record.runs.drain(..).take(room));
        recorded.edges.append(&mut record.edges);
    }

    pub(crate) fn edges(&self) -> BTreeSet<Edge> {
        lock(&self.recorded).edges.clone()
    }

    /// What was recorded so far. `see` returns the name of a step, how many steps before it have
    /// the same name, and the text of the tag.
    pub(crate) fn recording(&self, see: impl Fn(usize, RecordedTag) -> (String, usize, String)) -> Recording {
        let mut recorded = lock(&self.recorded);
        let Recorded { runs, texts, forgotten, .. } = &mut *recorded;
        runs.sort_by_key(|run| (run.began, run.worker));
        let see_run = |run: &RunRecord| {
            let tag = match run.is_text {
                false => RecordedTag::Word(run.tag),
                true => RecordedTag::Text(texts[run.tag as usize].clone()),
            };
            let (step, twin, tag) = see(run.step as usize, tag);
            StepRun {
                worker: run.worker.into(),
                step,
                twin,
                tag,
                began: Duration::from_nanos(run.began),
                ended: Duration::from_nanos(run.ended),
                missed: run.missed,
            }
        };
        Recording { runs: runs.iter().map(see_run).collect(), forgotten: *forgotten }
    }
}

impl WorkerRecord {
    /// Adds the run of a step, by the number of the step, the tag, and the times of the begin and
    /// of the end.
    pub(crate) fn add(
        &mut self,
        recorder: &Recorder,
        (step, tag): (usize, RecordedTag),
        (began, ended): (u64, u64),
        missed: bool,
    ) {
        let worker = *self.worker.get_or_insert_with(|| {
            let number = recorder.workers.fetch_add(1, Ordering::Relaxed);
            u16::try_from(number).unwrap_or(u16::MAX)
        });
        let (tag, is_text) = match tag {
            RecordedTag::Word(word) => (word, false),
            RecordedTag::Text(text) => {
                self.texts.push(text);
                (self.texts.len() as u64 - 1, true)
            }
        };
        // A graph has at most `STEPS_MAX` steps.
        self.runs.push(RunRecord { began, ended, tag, step: step as u32, worker, is_text, missed });
    }

    pub(crate) fn note(&mut self, edge: Edge) {
        let edge = Some(edge);
        let at = self.next_recent;
        if self.recent[at] == edge {
            self.next_recent = (at + 1) % self.recent.len();
            return;
        }
        let at = self.recent.iter().position(|recent| *recent == edge).unwrap_or_else(|| {
            self.edges.extend(edge);
            self.recent[at] = edge;
            at
        });
        self.next_recent = (at + 1) % self.recent.len();
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
    /// When it began, since the record began. If its worker had it ready when the step before
    /// ended, it began then.
    pub began: Duration,
    /// When it ended.
    pub ended: Duration,
    /// Whether it missed an item, and waits for it.
    pub missed: bool,
}

/// What a graph has recorded, by [`Graph::record`](crate::Graph::record).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Recording {
    /// The runs of steps, in the order in which they began.
    pub runs: Vec<StepRun>,
    /// The number of runs for which there was no room.
    pub forgotten: usize,
}

impl Recording {
    /// The recording of a graph that records nothing.
    pub(crate) fn nothing() -> Recording {
        Recording { runs: Vec::new(), forgotten: 0 }
    }

    /// The order in which the steps began, for [`Replay`](crate::schedulers::Replay).
    pub fn order(&self) -> RunOrder {
        RunOrder::of(self.runs.iter().map(|run| (run.step.as_str(), run.twin, run.tag.as_str())))
    }
}

/// The order in which steps began, a line for each: its name, a tabulator, and its tag. Of several
/// steps with one name, the second has ` (2)` behind its name. The tag of a forked step is a number
/// that is the same in each run. The text is for files; it is read with `parse`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunOrder(Vec<String>);

/// A line of a [`RunOrder`]. `twin` steps before this one have the same name.
pub(crate) fn line(step: &str, twin: usize, tag: &str) -> String {
    let twin = if twin == 0 { String::new() } else { format!(" ({})", twin + 1) };
    format!("{step}{twin}\t{tag}").replace('\n', " ")
}

impl RunOrder {
    /// Of steps in their order: the name of each, how many steps before it have the same name, and
    /// its tag.
    fn of<'a>(steps: impl Iterator<Item = (&'a str, usize, &'a str)>) -> RunOrder {
        RunOrder(steps.map(|(step, twin, tag)| line(step, twin, tag)).collect())
    }

    /// The lines, in their order.
    pub(crate) fn lines(&self) -> &[String] {
        &self.0
    }
}

impl fmt::Display for RunOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}

impl FromStr for RunOrder {
    type Err = convert::Infallible;

    fn from_str(text: &str) -> Result<RunOrder, convert::Infallible> {
        Ok(RunOrder(text.lines().map(str::to_owned).collect()))
    }
}

impl fmt::Debug for Recorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Recorder").field("runs_max", &self.runs_max).finish_non_exhaustive()
    }
}

// A run is kept for each step of a long run, so its size matters.
const _: () = assert!(mem::size_of::<RunRecord>() == 32);
