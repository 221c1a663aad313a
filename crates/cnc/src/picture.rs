//! What a picture of a graph shows: [`Picture`], with the collections as nodes and their uses as
//! arrows. `Core::picture` makes it, `dot.rs` and `svg.rs` draw it.
//!
//! The steps that a tag collection prescribes are always known, and the puts that the program has
//! declared (`StepCol::makes`). The gets and puts of steps are [`Edge`]s, which workers note while
//! a run is recorded or monitored.
//!
//! The nodes and arrows are in the order of the collections' numbers, so the same program has the
//! same picture. An async step has two entries; the picture shows the entry that begins. The
//! collections that steps make are one node if they have one name: each step may make one, and
//! their numbers depend on the schedule.

use crate::record::{Edge, EdgeEnd};
use std::collections::BTreeSet;

/// A collection, by its number among those of its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Place {
    Step(usize),
    Items(usize),
    Tags(usize),
}

/// A collection in a picture.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) place: Place,
    pub(crate) name: String,
    /// It is the environment, and no step.
    pub(crate) is_environment: bool,
}

/// A use of a collection by another one.
#[derive(Clone, Debug)]
pub(crate) struct Arrow {
    pub(crate) from: Place,
    pub(crate) to: Place,
    pub(crate) kind: ArrowKind,
}

/// How a picture knows an arrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ArrowKind {
    /// A tag collection prescribes a step, or an item collection puts its tags.
    Prescribes,
    /// The program has said that a step puts items there, and none of its puts was noted.
    Declared,
    /// It was noted.
    Used,
}

/// The collections of a graph, and their uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct Picture {
    pub(crate) nodes: Vec<Node>,
    pub(crate) arrows: Vec<Arrow>,
    /// The number under which each entry is shown.
    pub(crate) shown: Vec<usize>,
    /// The number under which each item collection is shown.
    pub(crate) shown_items: Vec<usize>,
    /// The number of the forked steps.
    pub(crate) forked: usize,
}

impl Picture {
    /// The number under which an entry is shown. An entry that is younger than the picture has its
    /// own.
    pub(crate) fn shown(&self, entry: usize) -> usize {
        self.shown.get(entry).copied().unwrap_or(entry)
    }

    /// The number under which an item collection is shown. A collection that is younger than the
    /// picture is not shown.
    pub(crate) fn shown_items(&self, number: usize) -> usize {
        self.shown_items.get(number).copied().unwrap_or(usize::MAX)
    }

    /// Whether the picture is younger than an entry.
    pub(crate) fn has_entry(&self, entry: usize) -> bool {
        entry < self.shown.len()
    }

    /// Adds an arrow for each use. A use of a collection that is younger than the picture is left
    /// out.
    pub(crate) fn add(&mut self, edges: impl IntoIterator<Item = Edge>) {
        let shown = |edge: Edge| {
            let end = match edge.end {
                EdgeEnd::Gets(items) => EdgeEnd::Gets(self.shown_items(items)),
                EdgeEnd::Puts(items) => EdgeEnd::Puts(self.shown_items(items)),
                end @ (EdgeEnd::PutsTags(_) | EdgeEnd::Forks) => end,
            };
            Edge { step: self.shown(edge.step), end }
        };
        let edges: BTreeSet<Edge> = edges.into_iter().map(shown).collect();
        let known: BTreeSet<Place> = self.nodes.iter().map(|node| node.place).collect();
        let forked = self.forked;
        let arrows = edges.into_iter().map(|Edge { step, end }| {
            let step = Place::Step(step);
            match end {
                EdgeEnd::Gets(items) => (Place::Items(items), step),
                EdgeEnd::Puts(items) => (step, Place::Items(items)),
                EdgeEnd::PutsTags(tags) => (step, Place::Tags(tags)),
                EdgeEnd::Forks => (step, Place::Step(forked)),
            }
        });
        let arrows: Vec<(Place, Place)> =
            arrows.filter(|(from, to)| known.contains(from) && known.contains(to)).collect();
        let used: BTreeSet<&(Place, Place)> = arrows.iter().collect();
        self.arrows.retain(|of| of.kind != ArrowKind::Declared || !used.contains(&(of.from, of.to)));
        self.arrows.extend(arrows.into_iter().map(|(from, to)| Arrow { from, to, kind: ArrowKind::Used }));
    }
}
