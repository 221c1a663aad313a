//! What a graph does now: [`Monitor`], which any OS thread may ask while the graph runs, and
//! [`Stalled`], which the scheduler `Watchdog` tells.
//!
//! `Core` has one monitor after `Graph::monitor`. Then `Attention` is set, so workers leave the
//! short way and call `begin` and `end` in `StepContext::attend`, `used` for each get and put, and
//! `waits` before a step is suspended. Without a monitor no step pays for it.
//!
//! All of it is under one lock. Code of the program (the `Debug` of tags and keys) runs before the
//! lock is taken.
//!
//! **A step that waits is told once.** `waits` comes before the step is in the list of its item, so
//! before another worker can take it from there. `goes_on` comes when the step begins again.

use crate::outline::Outline;
use crate::picture::{CollectionId, Picture};
use crate::primitives::{Mutex, lock};
use crate::progress::StepProgress;
use crate::record::{Edge, EdgeEnd};
use crate::stuck::{AwaitedItem, MadeItem, Stuck, WaitingStep};
use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// A view of a graph that runs, for any OS thread: how far its steps are, for which items they
/// wait, and a picture.
///
/// It may outlive its graph; then it shows the end of it.
///
/// # Examples
/// See [`Graph::monitor`](crate::Graph::monitor).
#[derive(Clone)]
pub struct Monitor(Arc<Mutex<MonitorState>>);

#[derive(Default)]
struct MonitorState {
    outline: Outline,
    /// Begins and ends of steps so far.
    changes: u64,
    /// By the number of the entry.
    steps: Vec<StepTally>,
    /// The steps that wait, by the number of the entry and the word of the instance. The same tag
    /// may be put twice.
    waiting: HashMap<(usize, u64), Vec<WaitingAt>>,
    /// What each worker runs.
    running: BTreeMap<usize, RunningAt>,
    /// How often each step has used each collection.
    uses: BTreeMap<Edge, u64>,
}

#[derive(Clone, Copy, Default)]
struct StepTally {
    made: u64,
    ended: u64,
}

/// A step that waits, and its item.
struct WaitingAt {
    item: MissedItem,
    step: WaitingStep,
}

/// An item that a step has missed.
#[derive(Clone)]
pub(crate) struct MissedItem {
    pub(crate) number: usize,
    pub(crate) collection: String,
    /// The word of the key, if it fits.
    pub(crate) order: u64,
    pub(crate) key: String,
    /// The item was put, and the step waits to be the last one with a get of it.
    pub(crate) was_put: bool,
    /// A step has made the collection.
    pub(crate) by_step: bool,
}

struct RunningAt {
    entry: usize,
    step: String,
    tag: String,
    since: Instant,
}

/// A step that runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RunningStep {
    /// The name of the step.
    pub step: String,
    /// The tag, as `Debug` writes it.
    pub tag: String,
    /// How long it has run.
    pub time: Duration,
}

/// A run without progress: steps wait, and for some time no step has begun or ended.
///
/// # Examples
/// See [`Watchdog`](crate::schedulers::Watchdog).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stalled {
    /// The time since a step has begun or ended.
    pub time: Duration,
    /// The steps that wait. Its text is that of [`GraphError::Stuck`](crate::GraphError::Stuck).
    pub stuck: Stuck,
    /// The steps that run, the longest first.
    pub running: Vec<RunningStep>,
}

impl fmt::Display for Stalled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n  no step has begun or ended for {:.1?}", self.stuck, self.time)?;
        let runs = |running: &RunningStep| format!("{}({})", running.step, running.tag);
        let running: Vec<String> = self.running.iter().map(runs).collect();
        if running.is_empty() { Ok(()) } else { write!(f, "; there run: {}", running.join(", ")) }
    }
}

impl MonitorState {
    fn tally(&mut self, entry: usize) -> &mut StepTally {
        if self.steps.len() <= entry {
            self.steps.resize(entry + 1, StepTally::default());
        }
        &mut self.steps[entry]
    }

    fn goes_on(&mut self, entry: usize, word: u64) {
        if let Some(waiting) = self.waiting.get_mut(&(entry, word)) {
            waiting.pop();
            if waiting.is_empty() {
                self.waiting.remove(&(entry, word));
            }
        }
    }

    fn stuck(&self) -> Stuck {
        let mut waiting: Vec<&WaitingAt> = self.waiting.values().flatten().collect();
        waiting.sort_by(|a, b| {
            let by = |at: &WaitingAt| (at.item.number, at.item.order);
            by(a).cmp(&by(b)).then_with(|| a.item.key.cmp(&b.item.key))
        });
        let items = waiting.chunk_by(|a, b| a.item.number == b.item.number && a.item.key == b.item.key);
        let awaited = items.map(|group| {
            let mut steps: Vec<WaitingStep> = group.iter().map(|at| at.step.clone()).collect();
            WaitingStep::sort(&mut steps);
            let was_put = group.iter().any(|at| at.item.was_put);
            let MissedItem { number, collection, key, by_step, .. } = group[0].item.clone();
            AwaitedItem { item: MadeItem { collection: number, key }, by_step, was_put, collection, steps }
        });
        let mut awaited: Vec<AwaitedItem> = awaited.collect();
        AwaitedItem::sort_made_by_steps(&mut awaited);
        Stuck::of(awaited)
    }

    /// The tally of each step that is shown, with the numbers of its waiting and running instances,
    /// by its number.
    fn progress(&self) -> BTreeMap<usize, StepProgress> {
        let mut all: BTreeMap<usize, StepProgress> = BTreeMap::new();
        let steps = self.outline.picture.nodes.iter().filter(|node| !node.is_environment);
        for node in steps {
            if let CollectionId::Step(number) = node.collection {
                all.insert(number, StepProgress::none(node.name.clone()));
            }
        }
        let mut add = |entry: usize, to: &dyn Fn(&mut StepProgress)| {
            if let Some(progress) = all.get_mut(&self.outline.shown(entry)) {
                to(progress);
            }
        };
        for (entry, tally) in self.steps.iter().enumerate() {
            add(entry, &|of| (of.ended, of.known) = (of.ended + tally.ended, of.known + tally.made));
        }
        for ((entry, _), waiting) in &self.waiting {
            add(*entry, &|of| of.waiting += waiting.len() as u64);
        }
        for running in self.running.values() {
            add(running.entry, &|of| of.running += 1);
        }
        all
    }

    /// The number of puts into each collection, without collections that have none.
    fn puts(&self) -> HashMap<CollectionId, u64> {
        let mut puts = HashMap::new();
        for (edge, times) in &self.uses {
            let collection = match edge.end {
                EdgeEnd::Puts(items) => CollectionId::Items(self.outline.shown_items(items)),
                EdgeEnd::PutsTags(tags) => CollectionId::Tags(tags),
                EdgeEnd::Gets(_) | EdgeEnd::Forks => continue,
            };
            *puts.entry(collection).or_default() += times;
        }
        puts
    }
}

impl Monitor {
    pub(crate) fn new() -> Monitor {
        Monitor(Arc::new(Mutex::new(MonitorState::default())))
    }

    /// Takes the collections that there are now.
    pub(crate) fn show(&self, outline: Outline) {
        lock(&self.0).outline = outline;
    }

    pub(crate) fn edges(&self) -> Vec<Edge> {
        lock(&self.0).uses.keys().copied().collect()
    }

    /// Notes that a tag was put: an instance of `parts` parts. False if the outline does not have
    /// the step.
    pub(crate) fn made(&self, entry: usize, parts: u64) -> bool {
        let mut state = lock(&self.0);
        state.tally(entry).made += parts;
        state.outline.has_entry(entry)
    }

    /// Notes that a step has used a collection.
    pub(crate) fn used(&self, edge: Edge) {
        *lock(&self.0).uses.entry(edge).or_default() += 1;
    }

    /// Notes that a worker begins a step, or goes on with it: the number of the entry, the name of
    /// the step, and the tag.
    pub(crate) fn begin(&self, worker: usize, entry: usize, step: &str, tag: String) {
        let running = RunningAt { entry, step: step.to_owned(), tag, since: Instant::now() };
        let mut state = lock(&self.0);
        state.changes += 1;
        state.running.insert(worker, running);
    }

    /// Notes that a worker has ended a step, with the number of its parts, or has suspended it.
    pub(crate) fn end(&self, worker: usize, ended: Option<u64>) {
        let mut state = lock(&self.0);
        state.changes += 1;
        if let Some(running) = state.running.remove(&worker)
            && let Some(parts) = ended
        {
            state.tally(running.entry).ended += parts;
        }
    }

    /// Notes that a step waits no more. The instance is not known by its entry and word alone, as
    /// two instances may have the same tag. So this is called for each step that has waited, once.
    pub(crate) fn woken(&self, entry: usize, word: u64) {
        lock(&self.0).goes_on(entry, word);
    }

    /// Notes that a step waits for an item, before it is in the item's list.
    pub(crate) fn waits(&self, entry: usize, word: u64, step: WaitingStep, item: MissedItem) {
        lock(&self.0).waiting.entry((entry, word)).or_default().push(WaitingAt { item, step });
    }

    /// Counts the begins and ends of steps.
    pub(crate) fn changes(&self) -> u64 {
        lock(&self.0).changes
    }

    /// The report of a run without progress since `time`, if steps wait.
    pub(crate) fn stalled(&self, time: Duration) -> Option<Stalled> {
        let state = lock(&self.0);
        if state.waiting.is_empty() {
            return None;
        }
        let runs = |running: &RunningAt| RunningStep {
            step: running.step.clone(),
            tag: running.tag.clone(),
            time: running.since.elapsed(),
        };
        let mut running: Vec<RunningStep> = state.running.values().map(runs).collect();
        running.sort_by_key(|running| std::cmp::Reverse(running.time));
        Some(Stalled { time, stuck: state.stuck(), running })
    }

    /// How far the steps of each collection are.
    pub fn progress(&self) -> Vec<StepProgress> {
        lock(&self.0).progress().into_values().collect()
    }

    /// The steps that wait now, by their items. In a run that goes on they need not wait for ever.
    pub fn waiting(&self) -> Stuck {
        lock(&self.0).stuck()
    }

    /// A picture of the graph, with the numbers of steps and items so far. It shows the gets and
    /// puts that were seen. A collection that a step has made is shown from the end of the run on.
    ///
    /// # Complexity
    /// O(collections and their uses + steps that wait), and no step of the graph can begin or end
    /// meanwhile.
    pub fn picture(&self) -> Picture {
        let state = lock(&self.0);
        let mut picture = state.outline.picture(state.uses.keys().copied());
        let (mut progress, puts) = (state.progress(), state.puts());
        drop(state);
        for node in &mut picture.nodes {
            node.put = puts.get(&node.collection).copied().unwrap_or(0);
            if let CollectionId::Step(number) = node.collection {
                node.progress = progress.remove(&number);
            }
        }
        picture
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}
