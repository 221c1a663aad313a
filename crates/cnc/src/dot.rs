//! The picture of a graph in the language of Graphviz, for `Graph::dot`. `picture.rs` has the nodes
//! and arrows.

use crate::picture::{ArrowKind, Picture, Place};
use std::fmt::Write as _;

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

pub(crate) fn dot(picture: &Picture) -> String {
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
