//! The tools that show the graph: `commands`, `inputs`, `multi-inputs`, `query`, `targets`, `rules`
//! and `graph`.
//!
//! `tools::run` calls one function for each. They write to `out`, which is the standard output. The
//! formats are ninja's, and that of Graphviz (`graph`).

use super::edges::{command, in_order, rule_name};
use super::output::{json, line};
use super::{Arguments, ToolError, named};
use crate::error::MakeError;
use crate::evaluate::quote;
use crate::graph::{EdgeId, Files, Graph, NodeId, names};
use std::io::{self, Write};

pub(super) fn commands(graph: &Graph, arguments: &Arguments, out: &mut impl Write) -> Result<u8, MakeError> {
    let targets = named(graph, arguments)?;
    let edges = match arguments.has('s') {
        true => targets.iter().filter_map(|target| graph.maker(*target)).collect(),
        false => in_order(graph, &targets),
    };
    for edge in edges.into_iter().filter(|edge| !graph.is_phony(*edge)) {
        line(out, &[&command(graph, edge)?])?;
    }
    Ok(0)
}

/// The files from which the build makes the targets, sources too. A file comes after the files from
/// which the build makes it. The outputs of phony edges are no files, and are left out. O(size of
/// the graph).
fn inputs_of(graph: &Graph, targets: &[NodeId]) -> Vec<NodeId> {
    let mut met = vec![false; graph.nodes()];
    let mut found = Vec::new();
    // Edges with inputs that are being visited, each with the node through which it was reached.
    let mut open: Vec<(Vec<NodeId>, Option<NodeId>)> = Vec::new();
    for target in targets {
        open.extend(graph.maker(*target).map(|edge| (inputs_reversed(graph, edge), None)));
        while let Some((inputs, through)) = open.last_mut() {
            let Some(input) = inputs.pop() else {
                found.extend(through.take());
                open.pop();
                continue;
            };
            if std::mem::replace(&mut met[input.index()], true) {
                continue;
            }
            match graph.maker(input) {
                None => found.push(input),
                Some(edge) => {
                    let through = (!graph.is_phony(edge)).then_some(input);
                    open.push((inputs_reversed(graph, edge), through));
                }
            }
        }
    }
    found
}

fn inputs_reversed(graph: &Graph, edge: EdgeId) -> Vec<NodeId> {
    let mut inputs: Vec<_> = graph.inputs(edge).collect();
    inputs.reverse();
    inputs
}

/// The end of an entry.
fn terminator(arguments: &Arguments) -> &'static [u8] {
    if arguments.has('0') { b"\0" } else { b"\n" }
}

pub(super) fn inputs(graph: &Graph, arguments: &Arguments, out: &mut impl Write) -> Result<u8, MakeError> {
    let path = |node: NodeId| {
        let mut path = Vec::new();
        match arguments.has('E') {
            true => path.extend_from_slice(graph.path(node)),
            false => quote(graph.path(node), &mut path),
        }
        path
    };
    let mut paths: Vec<_> = inputs_of(graph, &named(graph, arguments)?).into_iter().map(path).collect();
    if !arguments.has('d') {
        paths.sort_unstable();
    }
    for path in paths {
        out.write_all(&path).and_then(|()| out.write_all(terminator(arguments)))?;
    }
    Ok(0)
}

pub(super) fn multi_inputs(
    graph: &Graph,
    arguments: &Arguments,
    out: &mut impl Write,
) -> Result<u8, MakeError> {
    let delimiter = arguments.value('d').unwrap_or(b"\t");
    for target in named(graph, arguments)? {
        for input in inputs_of(graph, &[target]) {
            let entry = [graph.path(target), delimiter, graph.path(input), terminator(arguments)];
            out.write_all(&entry.concat())?;
        }
    }
    Ok(0)
}

pub(super) fn query(graph: &Graph, arguments: &Arguments, out: &mut impl Write) -> Result<u8, MakeError> {
    if arguments.words.is_empty() {
        return Err(ToolError::NothingToQuery.into());
    }
    let users = graph.users();
    for node in named(graph, arguments)? {
        write_query(graph, node, &users[node.index()], out)?;
    }
    Ok(0)
}

fn write_query(graph: &Graph, node: NodeId, users: &[EdgeId], out: &mut impl Write) -> io::Result<()> {
    line(out, &[graph.path(node), b":"])?;
    if let Some(edge) = graph.maker(node) {
        line(out, &[b"  input: ", rule_name(graph, edge)])?;
        let marks: [(_, &[u8]); 3] =
            [(Files::Inputs, b""), (Files::ImplicitInputs, b"| "), (Files::OrderOnly, b"|| ")];
        for (kind, mark) in marks {
            for input in graph.files_of(edge, kind) {
                line(out, &[b"    ", mark, graph.path(*input)])?;
            }
        }
        let validations = graph.files_of(edge, Files::Validations);
        if !validations.is_empty() {
            writeln!(out, "  validations:")?;
        }
        for validation in validations {
            line(out, &[b"    ", graph.path(*validation)])?;
        }
    }
    writeln!(out, "  outputs:")?;
    for output in users.iter().flat_map(|edge| graph.outputs(*edge)) {
        line(out, &[b"    ", graph.path(output)])?;
    }
    let validates = |edge: &EdgeId| graph.files_of(*edge, Files::Validations).contains(&node);
    for (index, edge) in graph.edge_ids().filter(validates).enumerate() {
        if index == 0 {
            writeln!(out, "  validation for:")?;
        }
        for output in graph.outputs(edge) {
            line(out, &[b"    ", graph.path(output)])?;
        }
    }
    Ok(())
}

pub(super) fn targets(graph: &Graph, arguments: &Arguments, out: &mut impl Write) -> Result<u8, MakeError> {
    let words: Vec<_> = arguments.words.iter().map(|word| &word[..]).collect();
    let shown = match &words[..] {
        [b"all"] => graph.edge_ids().try_for_each(|edge| {
            let rule = rule_name(graph, edge);
            graph.outputs(edge).try_for_each(|output| line(out, &[graph.path(output), b": ", rule]))
        }),
        [b"rule"] => {
            let mut inputs: Vec<_> = graph.edge_ids().flat_map(|edge| graph.inputs(edge)).collect();
            inputs.sort();
            inputs.dedup();
            let sources = inputs.into_iter().filter(|input| graph.maker(*input).is_none());
            sources.into_iter().try_for_each(|source| line(out, &[graph.path(source)]))
        }
        [b"rule", name] => {
            let edges = graph.edge_ids().filter(|edge| rule_name(graph, *edge) == *name);
            let mut outputs: Vec<_> = edges.flat_map(|edge| graph.outputs(edge)).collect();
            outputs.sort_by_key(|output| graph.path(*output));
            outputs.into_iter().try_for_each(|output| line(out, &[graph.path(output)]))
        }
        [] | [b"depth"] => tree(graph, Some(1), out),
        [b"depth", depth] => {
            let depth = String::from_utf8_lossy(depth);
            let depth: usize = depth.parse().map_err(|_| ToolError::NotADepth(depth.into_owned()))?;
            tree(graph, (depth > 0).then_some(depth), out)
        }
        _ => return Err(ToolError::UnknownList.into()),
    };
    shown.map(|()| 0).map_err(MakeError::System)
}

/// Writes the outputs that no edge has as an input, and the files before them, `depth` levels deep.
fn tree(graph: &Graph, depth: Option<usize>, out: &mut impl Write) -> io::Result<()> {
    let users = graph.users();
    let roots = graph.edge_ids().flat_map(|edge| graph.outputs(edge));
    let mut open: Vec<_> =
        roots.filter(|root| users[root.index()].is_empty()).map(|root| (root, 0)).collect();
    open.reverse();
    while let Some((node, level)) = open.pop() {
        let indent = "  ".repeat(level);
        let Some(edge) = graph.maker(node) else {
            line(out, &[indent.as_bytes(), graph.path(node)])?;
            continue;
        };
        line(out, &[indent.as_bytes(), graph.path(node), b": ", rule_name(graph, edge)])?;
        if depth.is_none_or(|depth| level + 1 < depth) {
            let inputs: Vec<_> = graph.inputs(edge).map(|input| (input, level + 1)).collect();
            open.extend(inputs.into_iter().rev());
        }
    }
    Ok(())
}

pub(super) fn rules(graph: &Graph, arguments: &Arguments, out: &mut impl Write) -> Result<u8, MakeError> {
    let described = arguments.has('d');
    let mut rules: Vec<_> = graph.rules_of_manifest().collect();
    rules.sort_by_key(|rule| graph.name(rule.name));
    for rule in rules {
        let description = rule.variable(names::DESCRIPTION).filter(|_| described);
        let description = description.map(|description| [b": ", &graph.source(description)[..]].concat());
        line(out, &[graph.name(rule.name), &description.unwrap_or_default()])?;
    }
    Ok(0)
}

pub(super) fn graph(graph: &Graph, arguments: &Arguments, out: &mut impl Write) -> Result<u8, MakeError> {
    let edges = in_order(graph, &named(graph, arguments)?);
    write_graph(graph, &edges, out).map(|()| 0).map_err(MakeError::System)
}

fn write_graph(graph: &Graph, edges: &[EdgeId], out: &mut impl Write) -> io::Result<()> {
    writeln!(
        out,
        "digraph ninja {{\nrankdir=\"LR\"\nnode [fontsize=10, shape=box, height=0.25]\nedge [fontsize=10]"
    )?;
    let mut nodes: Vec<_> =
        edges.iter().flat_map(|edge| graph.inputs(*edge).chain(graph.outputs(*edge))).collect();
    nodes.sort();
    nodes.dedup();
    for node in nodes {
        write!(out, "\"n{}\" [label=", node.0)?;
        line(out, &[&json(graph.path(node)), b"]"])?;
    }
    for edge in edges {
        write!(out, "\"e{}\" [label=", edge.0)?;
        line(out, &[&json(rule_name(graph, *edge)), b", shape=ellipse]"])?;
        for output in graph.outputs(*edge) {
            writeln!(out, "\"e{}\" -> \"n{}\"", edge.0, output.0)?;
        }
        for input in graph.reasons(*edge) {
            writeln!(out, "\"n{}\" -> \"e{}\" [arrowhead=none]", input.0, edge.0)?;
        }
        for input in graph.files_of(*edge, Files::OrderOnly) {
            writeln!(out, "\"n{}\" -> \"e{}\" [arrowhead=none style=dotted]", input.0, edge.0)?;
        }
    }
    writeln!(out, "}}")
}
