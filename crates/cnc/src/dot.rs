//! The picture of a graph in the language of Graphviz: [`Graph::dot`]. The program calls it between
//! runs. `picture.rs` has the nodes and arrows.

use std::fmt::Write as _;

use crate::graph::Graph;
use crate::picture::{ArrowKind, Picture, Place};

impl<'g> Graph<'g, '_> {
    /// The graph in the language of Graphviz: steps are ovals, item collections boxes, tag
    /// collections triangles. Which tags prescribe which steps is known, and so are the puts that
    /// [`StepCol::makes`](crate::StepCol::makes) has declared; these are dashed. The other edges are
    /// those that were used since [`Graph::record`] or [`Graph::monitor`].
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, schedulers::OneByOne};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let picture = cnc::graph(|graph| {
    ///     let tags = graph.tags::<u32>("numbers");
    ///     let squares = graph.items("squares");
    ///     graph.prescribe(tags, "square", move |n, step| step.put(squares, n, n * n));
    ///     graph.record(0);
    ///     graph.initialize(|env| env.put_tag(tags, 3))?;
    ///     graph.run(&OneByOne)?;
    ///     Ok::<_, cnc::GraphError>(graph.dot())
    /// })?;
    /// assert_eq!(picture, r#"digraph cnc {
    ///   step0 [label="the environment", shape=oval, style=dashed];
    ///   step1 [label="square", shape=oval];
    ///   items0 [label="squares", shape=box];
    ///   tags0 [label="numbers", shape=triangle];
    ///   tags0 -> step1 [style=dotted];
    ///   step0 -> tags0;
    ///   step1 -> items0;
    /// }
    /// "#);
    /// # Ok(())
    /// # }
    /// ```
    pub fn dot(&'g self) -> String {
        let mut picture = Picture::of(self.core());
        picture.add(self.core().used_edges());
        dot(&picture)
    }
}

/// A name between quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The name of a place in the text.
fn id(place: Place) -> String {
    match place {
        Place::Step(number) => format!("step{number}"),
        Place::Items(number) => format!("items{number}"),
        Place::Tags(number) => format!("tags{number}"),
    }
}

fn dot(picture: &Picture) -> String {
    let mut text = String::from("digraph cnc {\n");
    let mut line = |parts: std::fmt::Arguments<'_>| {
        writeln!(text, "  {parts}").expect("a string takes all");
    };
    for node in &picture.nodes {
        let shape = match node.place {
            Place::Step(_) => "oval",
            Place::Items(_) => "box",
            Place::Tags(_) => "triangle",
        };
        let style = if node.is_environment { ", style=dashed" } else { "" };
        line(format_args!("{} [label={}, shape={shape}{style}];", id(node.place), quoted(&node.name)));
    }
    for arrow in &picture.arrows {
        let style = match arrow.kind {
            ArrowKind::Prescribes => " [style=dotted]",
            ArrowKind::Declared => " [style=dashed]",
            ArrowKind::Used => "",
        };
        line(format_args!("{} -> {}{style};", id(arrow.from), id(arrow.to)));
    }
    text.push_str("}\n");
    text
}
