//! A picture of a graph in the language of Graphviz: [`Graph::dot`].
//!
//! The program calls `Graph::dot` between runs. The steps that a tag collection prescribes are
//! always known. The gets and puts of steps come from the [`Edge`]s of `record.rs`, so the picture
//! has them only after `Graph::record`.
//!
//! The lines are in the order of the collections' numbers, so the same program prints the same
//! text. An async step has two entries; the picture shows the entry that begins.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::iter;

use crate::core::Core;
use crate::graph::Graph;
use crate::record::{Edge, EdgeEnd};

impl<'g> Graph<'g, '_> {
    /// The graph in the language of Graphviz: steps are ovals, item collections boxes, tag
    /// collections triangles. Which tags prescribe which steps is known; the other edges are those
    /// that were used since [`Graph::record`].
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
        dot(self.core())
    }
}

/// A name between quotes.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n"))
}

fn dot<'g>(core: &'g Core<'g>) -> String {
    let mut text = String::from("digraph cnc {\n");
    let mut line = |parts: std::fmt::Arguments<'_>| {
        writeln!(text, "  {parts}").expect("a string takes all");
    };
    // A step that goes on as another entry is shown as the one that begins.
    let entries: Vec<_> = (0..core.entries()).filter_map(|number| core.entry(number)).collect();
    let mut shown: Vec<usize> = (0..entries.len()).collect();
    for entry in &entries {
        if let Some(rest) = entry.code.rest() {
            shown[rest] = entry.number;
        }
    }
    let environment = core.environment().number;
    for entry in entries.iter().filter(|entry| shown[entry.number] == entry.number) {
        let style = if entry.number == environment { ", style=dashed" } else { "" };
        line(format_args!("step{} [label={}, shape=oval{style}];", entry.number, quoted(&entry.name)));
    }
    for (number, items) in core.each_items().iter().enumerate() {
        line(format_args!("items{number} [label={}, shape=box];", quoted(items.name())));
    }
    let tags = core.each_tags();
    for (number, tags) in tags.iter().enumerate() {
        line(format_args!("tags{number} [label={}, shape=triangle];", quoted(tags.name())));
    }
    for (number, tags) in tags.iter().enumerate() {
        for entry in iter::successors(tags.first(), |entry| entry.next.get().copied()) {
            line(format_args!("tags{number} -> step{} [style=dotted];", entry.number));
        }
    }
    let edges = core.recorder().map(|recorder| recorder.edges()).unwrap_or_default();
    let edges: BTreeSet<Edge> =
        edges.into_iter().map(|edge| Edge { step: shown[edge.step], ..edge }).collect();
    for Edge { step, end } in edges {
        match end {
            EdgeEnd::Gets(items) => line(format_args!("items{items} -> step{step};")),
            EdgeEnd::Puts(items) => line(format_args!("step{step} -> items{items};")),
            EdgeEnd::PutsTags(tags) => line(format_args!("step{step} -> tags{tags};")),
            EdgeEnd::Forks => line(format_args!("step{step} -> step{};", core.forked().number)),
        }
    }
    text.push_str("}\n");
    text
}
