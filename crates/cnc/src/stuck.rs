//! The report of steps that wait for ever: [`Stuck`]. A step waits for an item that was never put,
//! or waits to take an item that other steps have still to get.
//!
//! `Graph::run` calls `Stuck::of` with the [`AwaitedItem`]s of `Core::missing`, after a run without
//! faults in which steps still wait. `StepCol::makes` gives the [`MadeItem`]s from which the
//! circles are found.
//!
//! Items and steps are sorted, so the report does not depend on the schedule. Each step waits for
//! one item at most, so each step is in one circle at most.

use crate::error::LINES_MAX;
use std::collections::HashMap;
use std::fmt;

/// The steps that wait for items which were never put, or which they want to take and which have
/// other gets left.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// The missing items, by collection and key.
    pub items: Vec<MissingItem>,
    /// The circles in which steps wait for one another: each step waits for an item that the next
    /// one puts, and the last one for an item of the first. Only steps that have said what they put
    /// are in a circle; see [`StepCol::makes`](crate::StepCol::makes).
    pub circles: Vec<Vec<StuckStep>>,
}

/// An item that was never put, though steps wait for it; or one that was put, and that steps want
/// to take though others have still to get it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MissingItem {
    /// The name of the collection.
    pub collection: String,
    /// The key.
    pub key: String,
    /// Whether it was put. Then the steps wait to be the last ones that get it.
    pub was_put: bool,
    /// The name and the tag of each step that waits for it, in order.
    pub steps: Vec<(String, String)>,
}

/// A step that waits in a circle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StuckStep {
    /// The name of the step.
    pub step: String,
    /// Its tag.
    pub tag: String,
    /// The name of the collection of the item for which it waits.
    pub collection: String,
    /// The key of that item.
    pub key: String,
}

/// An item that a step puts, as the program has said.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct MadeItem {
    /// The number of the collection.
    pub(crate) collection: usize,
    pub(crate) key: String,
}

/// A step that waits. They are sorted by name, order and tag.
#[derive(Clone, Debug)]
pub(crate) struct WaitingStep {
    pub(crate) step: String,
    /// The word of the tag, if it fits.
    pub(crate) order: u64,
    pub(crate) tag: String,
    pub(crate) makes: Vec<MadeItem>,
}

impl WaitingStep {
    pub(crate) fn sort(steps: &mut [WaitingStep]) {
        steps.sort_by(|a, b| (&a.step, a.order, &a.tag).cmp(&(&b.step, b.order, &b.tag)));
    }
}

/// A missing item with the steps that wait for it.
#[derive(Debug)]
pub(crate) struct AwaitedItem {
    pub(crate) item: MadeItem,
    /// A step has made the collection, so its number depends on the schedule.
    pub(crate) by_step: bool,
    /// The item was put: the steps wait to be the last ones with a get of it.
    pub(crate) was_put: bool,
    /// The name of the collection.
    pub(crate) collection: String,
    pub(crate) steps: Vec<WaitingStep>,
}

impl AwaitedItem {
    /// Sorts the items of collections that steps have made behind the others, by what a report says
    /// of them.
    pub(crate) fn sort_made_by_steps(awaited: &mut [AwaitedItem]) {
        let steps = |item: &AwaitedItem| -> Vec<(String, u64, String)> {
            item.steps.iter().map(|step| (step.step.clone(), step.order, step.tag.clone())).collect()
        };
        // The sort is stable, so the other items stay in the order of their collections and keys.
        awaited.sort_by_cached_key(|item| {
            item.by_step.then(|| (item.collection.clone(), item.item.key.clone(), steps(item)))
        });
    }
}

impl Stuck {
    pub(crate) fn of(awaited: Vec<AwaitedItem>) -> Stuck {
        let circles = circles(&awaited);
        let items = awaited.into_iter().map(|awaited| MissingItem {
            collection: awaited.collection,
            key: awaited.item.key,
            was_put: awaited.was_put,
            steps: awaited.steps.into_iter().map(|step| (step.step, step.tag)).collect(),
        });
        Stuck { items: items.collect(), circles }
    }
}

/// The circles. Each step waits for one item, so it is in one circle at most.
fn circles(awaited: &[AwaitedItem]) -> Vec<Vec<StuckStep>> {
    let steps: Vec<(&AwaitedItem, &WaitingStep)> =
        awaited.iter().flat_map(|item| item.steps.iter().map(move |step| (item, step))).collect();
    let mut makers: HashMap<&MadeItem, usize> = HashMap::new();
    for (number, (_, step)) in steps.iter().enumerate() {
        for item in &step.makes {
            makers.entry(item).or_insert(number);
        }
    }
    let next = |number: usize| makers.get(&steps[number].0.item).copied();
    // The way on which a step was met first; 0 for none.
    let mut met = vec![0_usize; if makers.is_empty() { 0 } else { steps.len() }];
    let mut circles = Vec::new();
    for begin in 0..met.len() {
        let (way, mut at) = (begin + 1, Some(begin));
        while let Some(number) = at.filter(|&number| met[number] == 0) {
            met[number] = way;
            at = next(number);
        }
        let Some(first) = at.filter(|&number| met[number] == way) else { continue };
        let around = std::iter::successors(Some(first), |&number| next(number).filter(|&next| next != first));
        let stuck = |number: usize| {
            let (item, step) = steps[number];
            StuckStep {
                step: step.step.clone(),
                tag: step.tag.clone(),
                collection: item.collection.clone(),
                key: item.item.key.clone(),
            }
        };
        let mut circle: Vec<usize> = around.collect();
        let smallest = circle.iter().enumerate().min_by_key(|(_, number)| **number).map_or(0, |(at, _)| at);
        circle.rotate_left(smallest);
        circles.push(circle.into_iter().map(stuck).collect());
    }
    circles
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let steps: usize = self.items.iter().map(|item| item.steps.len()).sum();
        write!(f, "{steps} steps wait for {} items", self.items.len())?;
        if self.items.iter().all(|item| !item.was_put) {
            f.write_str(" that no step has put")?;
        }
        for circle in self.circles.iter().take(LINES_MAX) {
            f.write_str("\n  in a circle:")?;
            for StuckStep { step, tag, collection, key } in circle.iter().take(LINES_MAX) {
                write!(f, " {step}({tag}) waits for {collection}[{key}];")?;
            }
            if circle.len() > LINES_MAX {
                write!(f, " and {} more", circle.len() - LINES_MAX)?;
            }
        }
        if self.circles.len() > LINES_MAX {
            write!(f, "\n  and {} more circles", self.circles.len() - LINES_MAX)?;
        }
        let lines = self.items.iter().flat_map(|item| item.steps.iter().map(move |step| (item, step)));
        for (item, (step, tag)) in lines.take(LINES_MAX) {
            let put = if item.was_put { ", which was put and has other gets left" } else { "" };
            write!(f, "\n  item {}[{}]{put}: step {step}({tag})", item.collection, item.key)?;
        }
        if steps > LINES_MAX { write!(f, "\n  and {} more", steps - LINES_MAX) } else { Ok(()) }
    }
}
