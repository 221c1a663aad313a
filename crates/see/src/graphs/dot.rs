//! The picture of a graph of steps in the language of Graphviz: [`graph_dot`].

use selvedge_cnc::{ArrowKind, CollectionId, Picture};
use std::fmt::Write as _;

/// A name between quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

/// The name of a collection in the text.
fn id(collection: CollectionId) -> String {
    match collection {
        CollectionId::Step(number) => format!("step{number}"),
        CollectionId::Items(number) => format!("items{number}"),
        CollectionId::Tags(number) => format!("tags{number}"),
    }
}

/// A picture of a graph in the language of Graphviz: steps are ovals, item collections boxes, tag
/// collections triangles. Arrows to the steps that tags prescribe are dotted, and puts that were
/// declared alone are dashed. It has no numbers.
///
/// # Examples
/// ```
/// use selvedge::cnc::{self, schedulers::OneByOne};
/// use selvedge::see::graph_dot;
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// let picture = cnc::graph(|graph| {
///     let tags = graph.tags::<u32>("numbers");
///     let squares = graph.items("squares");
///     graph.prescribe(tags, "square", move |n, step| step.put(squares, n, n * n));
///     graph.record(0);
///     graph.initialize(|env| env.put_tag(tags, 3))?;
///     graph.run(&OneByOne)?;
///     Ok::<_, cnc::GraphError>(graph.picture())
/// })?;
/// assert_eq!(graph_dot(&picture), r#"digraph cnc {
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
pub fn graph_dot(picture: &Picture) -> String {
    let mut text = String::from("digraph cnc {\n");
    let mut line = |parts: std::fmt::Arguments<'_>| {
        writeln!(text, "  {parts}").expect("a string takes all");
    };
    for node in &picture.nodes {
        let shape = match node.collection {
            CollectionId::Step(_) => "oval",
            CollectionId::Items(_) => "box",
            CollectionId::Tags(_) => "triangle",
        };
        let style = if node.is_environment { ", style=dashed" } else { "" };
        line(format_args!("{} [label={}, shape={shape}{style}];", id(node.collection), quoted(&node.name)));
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
