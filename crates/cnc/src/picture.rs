//! What a picture of a graph shows: [`Picture`], with the collections as nodes and their uses as
//! arrows. `dot.rs` and `svg.rs` draw it.
//!
//! The steps that a tag collection prescribes are always known, and the puts that the program has
//! declared (`StepCol::makes`). The gets and puts of steps are [`Edge`]s, which workers note while
//! a run is recorded or monitored.
//!
//! The nodes and arrows are in the order of the collections' numbers, so the same program has the
//! same picture. An async step has two entries; the picture shows the entry that begins. Of the
//! collections that steps make, those with one name are one node, because there may be as many as
//! steps, and their numbers depend on the schedule.

use std::collections::BTreeSet;
use std::iter;

use crate::collections::AnyItems;
use crate::core::Core;
use crate::record::{Edge, EdgeEnd};

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
    shown: Vec<usize>,
    /// The number under which each item collection is shown.
    shown_items: Vec<usize>,
    /// The number of the forked steps.
    forked: usize,
}

/// The number under which each item collection is shown, and the names of those numbers: first the
/// collections of the environment, then the names of those that steps have made.
fn shown_items<'g>(core: &Core<'g>) -> (Vec<usize>, Vec<&'g str>) {
    let items = core.each_items();
    type Several<'g> = Vec<&'g dyn AnyItems<'g>>;
    let (of_steps, others): (Several<'g>, Several<'g>) =
        items.iter().copied().partition(|items| items.is_made_by_step());
    let mut names: Vec<&'g str> = others.into_iter().map(|items| items.name()).collect();
    let first = names.len();
    names.extend(of_steps.into_iter().map(|items| items.name()).collect::<BTreeSet<_>>());
    let mut next = 0..first;
    let number = |items: &&'g dyn AnyItems<'g>| match items.is_made_by_step() {
        true => first + names[first..].binary_search(&items.name()).unwrap_or(0),
        false => next.next().unwrap_or(first),
    };
    (items.iter().map(number).collect(), names)
}

impl Picture {
    /// The collections, which tags prescribe which steps, and the declared puts.
    pub(crate) fn of<'g>(core: &'g Core<'g>) -> Picture {
        let forks = core.has_forks().then(|| core.forked().number);
        let entries: Vec<_> = (0..core.entries()).filter_map(|number| core.entry(number)).collect();
        let mut shown: Vec<usize> = (0..entries.len()).collect();
        for entry in &entries {
            if let Some(rest) = entry.code.rest() {
                shown[rest] = entry.number;
            }
        }
        let environment = core.environment().number;
        let steps = entries.iter().filter(|entry| shown[entry.number] == entry.number).map(|entry| Node {
            place: Place::Step(entry.number),
            name: entry.name.clone(),
            is_environment: entry.number == environment,
        });
        let (shown_items, items) = shown_items(core);
        let tags = core.each_tags();
        let node = |place, name: &str| Node { place, name: name.to_owned(), is_environment: false };
        let items = items.into_iter().enumerate().map(|(number, name)| node(Place::Items(number), name));
        let prescribed = tags.iter().enumerate().flat_map(|(number, tags)| {
            iter::successors(tags.first(), |entry| entry.next.get().copied())
                .map(move |entry| (Place::Tags(number), Place::Step(entry.number)))
        });
        let prescribed = prescribed.map(|(from, to)| Arrow { from, to, kind: ArrowKind::Prescribes });
        let declared: BTreeSet<(Place, Place)> = entries
            .iter()
            .filter(|entry| shown[entry.number] == entry.number)
            .flat_map(|entry| entry.code.made_collections().into_iter().map(|items| (entry.number, items)))
            .map(|(step, items)| (Place::Step(step), Place::Items(shown_items[items])))
            .collect();
        let of_puts = core.each_items().into_iter().zip(&shown_items).filter_map(|(items, &shown)| {
            let (from, to) = (Place::Items(shown), Place::Tags(items.put_tags()?));
            Some(Arrow { from, to, kind: ArrowKind::Prescribes })
        });
        let of_puts: Vec<Arrow> = of_puts.collect();
        let declared = declared.into_iter().map(|(from, to)| Arrow { from, to, kind: ArrowKind::Declared });
        let arrows = prescribed.chain(of_puts).chain(declared).collect();
        let tags = tags.iter().enumerate().map(|(number, tags)| node(Place::Tags(number), tags.name()));
        let nodes = steps.chain(items).chain(tags).collect();
        Picture { nodes, arrows, shown, shown_items, forked: forks.unwrap_or(usize::MAX) }
    }

    /// The number under which an entry is shown. An entry that is younger than the picture has its
    /// own.
    pub(crate) fn shown(&self, entry: usize) -> usize {
        self.shown.get(entry).copied().unwrap_or(entry)
    }

    /// The number under which an item collection is shown. One that is younger than the picture is
    /// not shown.
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
