//! A picture of a graph: [`Picture`], with the collections as nodes and their uses as arrows.
//!
//! It is plain data. `Graph::picture` and `Monitor::picture` return it, `Outline::picture`
//! (`outline.rs`) makes it, and `selvedge-see` draws it.

use crate::progress::StepProgress;

/// The collections of a graph, and their uses: what a drawing shows.
///
/// [`Graph::picture`](crate::Graph::picture) returns it, and
/// [`Monitor::picture`](crate::Monitor::picture) with numbers. The functions `graph_svg` and
/// `graph_dot` of `selvedge::see` draw it.
///
/// The same program has the same picture under every scheduler, with two exceptions: the numbers,
/// and the uses that depend on the schedule.
///
/// # Examples
/// See [`Graph::picture`](crate::Graph::picture).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Picture {
    /// The collections: first the steps, then the item collections, then the tag collections, each
    /// kind by its numbers.
    ///
    /// The environment is a step. Collections of one name that steps have made are one node.
    pub nodes: Vec<PictureNode>,
    /// The uses: first which tags prescribe which steps and which puts put tags, then the puts that
    /// were declared alone, then the uses that were noted. The ends of an arrow are nodes of the
    /// picture.
    pub arrows: Vec<PictureArrow>,
}

/// A collection in a [`Picture`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PictureNode {
    /// Which collection it is. No two nodes of a picture have the same one.
    pub collection: CollectionId,
    /// The name of the collection. Several collections may have the same name.
    pub name: String,
    /// Whether it is the environment, and no step.
    pub is_environment: bool,
    /// How far the steps of the collection are, if it is a step of a graph and a monitor has made
    /// the picture.
    pub progress: Option<StepProgress>,
    /// The number of puts into the collection that a monitor has seen. It is 0 for steps, and in a
    /// picture that no monitor has made.
    pub put: u64,
}

/// A collection, by its number among the collections of its kind. A picture may leave numbers out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CollectionId {
    /// A step collection, or the environment.
    Step(usize),
    /// An item collection.
    Items(usize),
    /// A tag collection.
    Tags(usize),
}

/// A use of a collection by another one, in a [`Picture`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PictureArrow {
    /// Where the items or tags come from: the step that puts them, or the collection.
    pub from: CollectionId,
    /// Where they go: the collection, or the step that gets the items or runs for the tags.
    pub to: CollectionId,
    /// How the graph knows of the use.
    pub kind: ArrowKind,
}

/// How a graph knows of an arrow of its [`Picture`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArrowKind {
    /// A tag collection prescribes a step, or an item collection puts its tags.
    Prescribes,
    /// The program has said that a step puts items there
    /// ([`StepCol::makes`](crate::StepCol::makes)), and none of its puts was noted.
    Declared,
    /// It was noted, since [`Graph::record`](crate::Graph::record) or
    /// [`Graph::monitor`](crate::Graph::monitor).
    Used,
}
