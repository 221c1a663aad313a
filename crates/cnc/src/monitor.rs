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

use crate::picture::{Picture, Place};
use crate::primitives::{Mutex, lock};
use crate::record::{Edge, EdgeEnd};
use crate::stuck::{AwaitedItem, MadeItem, Stuck, WaitingStep};
use crate::svg::svg;
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
    picture: Picture,
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

/// How far the steps of a collection are.
///
/// # Examples
/// See [`Graph::monitor`](crate::Graph::monitor).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepProgress {
    /// The name of the collection.
    pub name: String,
    /// The number of instances that have ended. Of a range step, the numbers for which the body has
    /// ended.
    pub ended: u64,
    /// The number of instances for which tags were put so far. If the environment puts all tags,
    /// that is the number of all instances.
    pub known: u64,
    /// The number of instances that wait for items.
    pub waiting: u64,
    /// The number of instances that run.
    pub running: u64,
}

impl StepProgress {
    /// A bar of `width` characters, one `#` for each part that has ended.
    pub fn bar(&self, width: usize) -> String {
        let full = self.ended.saturating_mul(width as u64).checked_div(self.known).unwrap_or(0);
        let full = (full as usize).min(width);
        format!("[{}{}]", "#".repeat(full), ".".repeat(width - full))
    }
}

impl fmt::Display for StepProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} of {}", self.name, self.ended, self.known)?;
        if self.waiting > 0 { write!(f, ", {} wait", self.waiting) } else { Ok(()) }
    }
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

    /// The tally of each step that is shown, with the numbers of its waiting and running instances.
    fn progress(&self) -> Vec<(Place, StepProgress)> {
        let mut all: BTreeMap<usize, StepProgress> = BTreeMap::new();
        let steps = self.picture.nodes.iter().filter(|node| !node.is_environment);
        for node in steps {
            if let Place::Step(number) = node.place {
                let name = node.name.clone();
                all.insert(number, StepProgress { name, ended: 0, known: 0, waiting: 0, running: 0 });
            }
        }
        let mut add = |entry: usize, to: &dyn Fn(&mut StepProgress)| {
            if let Some(progress) = all.get_mut(&self.picture.shown(entry)) {
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
        all.into_iter().map(|(number, progress)| (Place::Step(number), progress)).collect()
    }
}

impl Monitor {
    pub(crate) fn new() -> Monitor {
        Monitor(Arc::new(Mutex::new(MonitorState::default())))
    }

    /// Takes the collections that there are now.
    pub(crate) fn show(&self, picture: Picture) {
        lock(&self.0).picture = picture;
    }

    pub(crate) fn edges(&self) -> Vec<Edge> {
        lock(&self.0).uses.keys().copied().collect()
    }

    /// Notes that a tag was put: an instance of `parts` parts. False if the picture does not have
    /// the step.
    pub(crate) fn made(&self, entry: usize, parts: u64) -> bool {
        let mut state = lock(&self.0);
        state.tally(entry).made += parts;
        state.picture.has_entry(entry)
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
        lock(&self.0).progress().into_iter().map(|(_, progress)| progress).collect()
    }

    /// The steps that wait now, by their items. In a run that goes on they need not wait for ever.
    pub fn waiting(&self) -> Stuck {
        lock(&self.0).stuck()
    }

    /// A picture of the graph as SVG, with the numbers of steps and items so far. It shows the gets
    /// and puts that were seen. A collection that a step has made is shown from the end of the run
    /// on.
    ///
    /// # Complexity
    /// The layout has the collections and their uses, and no instance of a step.
    pub fn svg(&self) -> String {
        let state = lock(&self.0);
        let mut picture = state.picture.clone();
        picture.add(state.uses.keys().copied());
        let mut notes: HashMap<Place, String> = state
            .progress()
            .into_iter()
            .map(|(place, of)| {
                let waiting = if of.waiting > 0 { format!(", {} wait", of.waiting) } else { String::new() };
                (place, format!("{} of {}{waiting}", of.ended, of.known))
            })
            .collect();
        let mut puts: BTreeMap<Place, u64> = BTreeMap::new();
        for (edge, times) in &state.uses {
            match edge.end {
                EdgeEnd::Puts(items) => {
                    *puts.entry(Place::Items(picture.shown_items(items))).or_default() += times;
                }
                EdgeEnd::PutsTags(tags) => *puts.entry(Place::Tags(tags)).or_default() += times,
                EdgeEnd::Gets(_) | EdgeEnd::Forks => {}
            }
        }
        drop(state);
        notes.extend(puts.into_iter().map(|(place, puts)| (place, format!("{puts} put"))));
        svg(&picture, |place| notes.get(&place).map_or("", String::as_str))
    }
}

impl fmt::Debug for Monitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Monitor").finish_non_exhaustive()
    }
}
