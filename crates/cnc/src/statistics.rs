//! What a graph has done, in numbers: [`Statistics`]. `Graph::statistics` and
//! `FinishedGraph::statistics` return it. `Core::statistics` makes it of the counts of the workers.

use std::fmt;

/// What a graph has done so far.
///
/// # Examples
/// ```
/// use selvedge::cnc::{self, schedulers::OneByOne};
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// let statistics = cnc::graph(|graph| {
///     let tags = graph.tags::<u32>("tags");
///     let items = graph.items::<u32, u32>("items");
///     graph.prescribe(tags, "copy", move |n, step| {
///         let before = *step.get(items, n)?;
///         step.put(items, n + 1, before)
///     });
///     graph.initialize(|env| {
///         env.put(items, 0, 7)?;
///         [1, 0].into_iter().try_for_each(|n| env.put_tag(tags, n))
///     })?;
///     Ok(graph.run(&OneByOne)?.statistics())
/// })?;
/// let copy = &statistics.steps[1];
/// assert_eq!((copy.name.as_str(), copy.ended()), ("copy", 2));
/// assert_eq!(statistics.items[0].put, 3);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Statistics {
    /// The step collections. The first is the environment.
    pub steps: Vec<StepStatistics>,
    /// The item collections: first the environment's, in the order in which it has made them, then
    /// the collections that steps have made, by their names.
    pub items: Vec<ItemStatistics>,
}

/// How often a step collection has run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct StepStatistics {
    /// The name of the collection.
    pub name: String,
    /// The number of times that an instance has begun, or gone on.
    pub runs: u64,
    /// The number of times that an instance has missed an item.
    pub misses: u64,
    /// The number of instances that did not begin, or not go on, because their tags were cancelled.
    pub cancelled: u64,
}

/// What became of the items of a collection.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ItemStatistics {
    /// The name of the collection.
    pub name: String,
    /// The number of items that were put.
    pub put: usize,
    /// The number of items that are there.
    pub there: usize,
}

impl StepStatistics {
    /// The number of instances that have come to their end.
    pub fn ended(&self) -> u64 {
        self.runs - self.misses
    }
}

impl fmt::Display for Statistics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for step in self.steps.iter().filter(|step| step.runs > 0) {
            writeln!(f, "step {}: {} ended, {} misses", step.name, step.ended(), step.misses)?;
        }
        for items in &self.items {
            writeln!(f, "items {}: {} put, {} there", items.name, items.put, items.there)?;
        }
        Ok(())
    }
}
