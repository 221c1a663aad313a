//! What a graph has before its uses are noted: [`Outline`], of which pictures are made.
//!
//! `Core::outline` makes it. `Graph::picture` adds the uses that were noted, and a `Monitor` keeps
//! an outline for as long as the collections are the same.
//!
//! The steps that a tag collection prescribes are always known, and the puts that the program has
//! declared (`StepCol::makes`). The gets and puts of steps are [`Edge`]s, which workers note while
//! a run is recorded or monitored.
//!
//! The nodes and arrows are in the order of the collections' numbers, so the same program has the
//! same picture. An async step has two entries; the picture shows the entry that begins. The
//! collections that steps make are one node if they have one name: each step may make one, and
//! their numbers depend on the schedule.

use crate::picture::{ArrowKind, CollectionId, Picture, PictureArrow};
use crate::record::{Edge, EdgeEnd};
use std::collections::BTreeSet;

/// A picture without noted uses, and the numbers under which it shows collections.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outline {
    pub(crate) picture: Picture,
    /// The number under which each entry is shown.
    pub(crate) shown: Vec<usize>,
    /// The number under which each item collection is shown.
    pub(crate) shown_items: Vec<usize>,
    /// The number of the forked steps.
    pub(crate) forked: usize,
}

impl Outline {
    /// The number under which an entry is shown. An entry that is younger than the outline has its
    /// own.
    pub(crate) fn shown(&self, entry: usize) -> usize {
        self.shown.get(entry).copied().unwrap_or(entry)
    }

    /// The number under which an item collection is shown. A collection that is younger than the
    /// outline is not shown.
    pub(crate) fn shown_items(&self, number: usize) -> usize {
        self.shown_items.get(number).copied().unwrap_or(usize::MAX)
    }

    /// Whether the outline is younger than an entry.
    pub(crate) fn has_entry(&self, entry: usize) -> bool {
        entry < self.shown.len()
    }

    /// Returns the picture with an arrow for each use. A use of a collection that is younger than
    /// the outline is left out.
    pub(crate) fn picture(&self, edges: impl IntoIterator<Item = Edge>) -> Picture {
        let shown = |edge: Edge| {
            let end = match edge.end {
                EdgeEnd::Gets(items) => EdgeEnd::Gets(self.shown_items(items)),
                EdgeEnd::Puts(items) => EdgeEnd::Puts(self.shown_items(items)),
                end @ (EdgeEnd::PutsTags(_) | EdgeEnd::Forks) => end,
            };
            Edge { step: self.shown(edge.step), end }
        };
        let edges: BTreeSet<Edge> = edges.into_iter().map(shown).collect();
        let known: BTreeSet<CollectionId> = self.picture.nodes.iter().map(|node| node.collection).collect();
        let arrows = edges.into_iter().map(|Edge { step, end }| {
            let step = CollectionId::Step(step);
            match end {
                EdgeEnd::Gets(items) => (CollectionId::Items(items), step),
                EdgeEnd::Puts(items) => (step, CollectionId::Items(items)),
                EdgeEnd::PutsTags(tags) => (step, CollectionId::Tags(tags)),
                EdgeEnd::Forks => (step, CollectionId::Step(self.forked)),
            }
        });
        let arrows: Vec<(CollectionId, CollectionId)> =
            arrows.filter(|(from, to)| known.contains(from) && known.contains(to)).collect();
        let used: BTreeSet<&(CollectionId, CollectionId)> = arrows.iter().collect();
        let mut picture = self.picture.clone();
        picture.arrows.retain(|of| of.kind != ArrowKind::Declared || !used.contains(&(of.from, of.to)));
        let used =
            |&(from, to): &(CollectionId, CollectionId)| PictureArrow { from, to, kind: ArrowKind::Used };
        picture.arrows.extend(arrows.iter().map(used));
        picture
    }
}
