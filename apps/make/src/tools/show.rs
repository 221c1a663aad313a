//! The tools that show the graph: `commands`, `inputs`, `query`, `targets`, `rules`, `graph` and
//! `compdb`.
//!
//! `tools::run` calls one function for each. They write to `out`, which is the standard output. The
//! formats are ninja's, and those of Graphviz (`graph`) and of Clang's compilation database
//! (`compdb`).

use std::io::{self, Write};

use super::{flag, in_order, named, text};
use crate::evaluate::quote;
use crate::graph::{EdgeId, Files, Graph, NodeId, names};
use crate::json::json;

fn rule_name(graph: &Graph, edge: EdgeId) -> String {
    String::from_utf8_lossy(graph.name(graph.rules[graph.edge(edge).rule.index()].name)).into_owned()
}

fn command(graph: &Graph, edge: EdgeId) -> Result<Vec<u8>, String> {
    graph.value(edge, names::COMMAND).map_err(|circle| circle.to_string())
}

pub(super) fn commands(graph: &Graph, arguments: &[String], out: &mut impl Write) -> Result<u8, String> {
    let (single, rest) = flag(arguments, "-s");
    let targets = named(graph, &rest)?;
    let edges = match single {
        true => targets.iter().filter_map(|target| graph.maker(*target)).collect(),
        false => in_order(graph, &targets),
    };
    for edge in edges.into_iter().filter(|edge| !graph.is_phony(*edge)) {
        let mut line = command(graph, edge)?;
        line.push(b'\n');
        out.write_all(&line).map_err(text)?;
    }
    Ok(0)
}

pub(super) fn inputs(graph: &Graph, arguments: &[String], out: &mut impl Write) -> Result<u8, String> {
    let arguments: Vec<_> = arguments.iter().collect();
    let mut paths: Vec<&[u8]> = Vec::new();
    // No command reads the inputs of a phony edge. `in_order` reaches the commands behind them.
    for edge in in_order(graph, &named(graph, &arguments)?) {
        if !graph.is_phony(edge) {
            paths.extend(graph.inputs(edge).map(|input| graph.path(input)));
        }
    }
    paths.sort_unstable();
    paths.dedup();
    for path in paths {
        let mut line = Vec::new();
        quote(path, &mut line);
        line.push(b'\n');
        out.write_all(&line).map_err(text)?;
    }
    Ok(0)
}

pub(super) fn query(graph: &Graph, arguments: &[String], out: &mut impl Write) -> Result<u8, String> {
    if arguments.is_empty() {
        return Err("expected a target to query".into());
    }
    let users = graph.users();
    for node in named(graph, &arguments.iter().collect::<Vec<_>>())? {
        write_query(graph, node, &users[node.index()], out).map_err(text)?;
    }
    Ok(0)
}

fn write_query(graph: &Graph, node: NodeId, users: &[EdgeId], out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "{}:", graph.path_text(node))?;
    if let Some(edge) = graph.maker(node) {
        writeln!(out, "  input: {}", rule_name(graph, edge))?;
        for (kind, mark) in [(Files::Inputs, ""), (Files::ImplicitInputs, "| "), (Files::OrderOnly, "|| ")] {
            for input in graph.files_of(edge, kind) {
                writeln!(out, "    {mark}{}", graph.path_text(*input))?;
            }
        }
        let validations = graph.files_of(edge, Files::Validations);
        if !validations.is_empty() {
            writeln!(out, "  validations:")?;
        }
        for validation in validations {
            writeln!(out, "    {}", graph.path_text(*validation))?;
        }
    }
    writeln!(out, "  outputs:")?;
    for output in users.iter().flat_map(|edge| graph.outputs(*edge)) {
        writeln!(out, "    {}", graph.path_text(output))?;
    }
    let validates = |edge: &EdgeId| graph.files_of(*edge, Files::Validations).contains(&node);
    for (index, edge) in graph.edge_ids().filter(validates).enumerate() {
        if index == 0 {
            writeln!(out, "  validation for:")?;
        }
        for output in graph.outputs(edge) {
            writeln!(out, "    {}", graph.path_text(output))?;
        }
    }
    Ok(())
}

pub(super) fn targets(graph: &Graph, arguments: &[String], out: &mut impl Write) -> Result<u8, String> {
    let arguments: Vec<_> = arguments.iter().map(|argument| &argument[..]).collect();
    let shown = match &arguments[..] {
        ["all"] => graph.edge_ids().try_for_each(|edge| {
            let rule = rule_name(graph, edge);
            graph.outputs(edge).try_for_each(|output| writeln!(out, "{}: {rule}", graph.path_text(output)))
        }),
        ["rule"] => {
            let mut inputs: Vec<_> = graph.edge_ids().flat_map(|edge| graph.inputs(edge)).collect();
            inputs.sort();
            inputs.dedup();
            let sources = inputs.into_iter().filter(|input| graph.maker(*input).is_none());
            sources.into_iter().try_for_each(|source| writeln!(out, "{}", graph.path_text(source)))
        }
        ["rule", name] => {
            let edges = graph.edge_ids().filter(|edge| rule_name(graph, *edge) == *name);
            let mut outputs: Vec<_> = edges.flat_map(|edge| graph.outputs(edge)).collect();
            outputs.sort_by_key(|output| graph.path(*output));
            outputs.into_iter().try_for_each(|output| writeln!(out, "{}", graph.path_text(output)))
        }
        [] | ["depth"] => tree(graph, Some(1), out),
        ["depth", depth] => {
            let depth: usize = depth.parse().map_err(|_| format!("not a depth: {depth}"))?;
            tree(graph, (depth > 0).then_some(depth), out)
        }
        _ => return Err("targets: expected rule [NAME], depth [N] or all".into()),
    };
    shown.map(|()| 0).map_err(text)
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
            writeln!(out, "{indent}{}", graph.path_text(node))?;
            continue;
        };
        writeln!(out, "{indent}{}: {}", graph.path_text(node), rule_name(graph, edge))?;
        if depth.is_none_or(|depth| level + 1 < depth) {
            let inputs: Vec<_> = graph.inputs(edge).map(|input| (input, level + 1)).collect();
            open.extend(inputs.into_iter().rev());
        }
    }
    Ok(())
}

pub(super) fn rules(graph: &Graph, arguments: &[String], out: &mut impl Write) -> Result<u8, String> {
    let (described, _) = flag(arguments, "-d");
    let mut rules: Vec<_> = graph.rules_of_manifest().collect();
    rules.sort_by_key(|rule| graph.name(rule.name));
    for rule in rules {
        let mut line = graph.name(rule.name).to_vec();
        if described && let Some(description) = rule.variable(names::DESCRIPTION) {
            line.extend_from_slice(b": ");
            line.extend(graph.source(description));
        }
        line.push(b'\n');
        out.write_all(&line).map_err(text)?;
    }
    Ok(0)
}

pub(super) fn graph(graph: &Graph, arguments: &[String], out: &mut impl Write) -> Result<u8, String> {
    let arguments: Vec<_> = arguments.iter().collect();
    let edges = in_order(graph, &named(graph, &arguments)?);
    write_graph(graph, &edges, out).map(|()| 0).map_err(text)
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
        writeln!(out, "\"n{}\" [label={}]", node.0, json(graph.path(node)))?;
    }
    for edge in edges {
        let rule = json(rule_name(graph, *edge).as_bytes());
        writeln!(out, "\"e{}\" [label={rule}, shape=ellipse]", edge.0)?;
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

pub(super) fn compdb(graph: &Graph, arguments: &[String], out: &mut impl Write) -> Result<u8, String> {
    let (expand, rules) = flag(arguments, "-x");
    let directory = std::env::current_dir().map_err(text)?;
    let directory = json(directory.as_os_str().as_encoded_bytes());
    let mut entries = Vec::new();
    for edge in graph.edge_ids().filter(|edge| !graph.is_phony(*edge)) {
        let rule = rule_name(graph, edge);
        let Some(input) = graph.files_of(edge, Files::Inputs).first() else { continue };
        if !rules.is_empty() && !rules.iter().any(|name| **name == rule) {
            continue;
        }
        let mut command = command(graph, edge)?;
        if expand {
            expand_rspfile(graph, edge, &mut command)?;
        }
        let output = graph.outputs(edge).next().map(|output| json(graph.path(output))).unwrap_or_default();
        entries.push(format!(
            "  {{\n    \"directory\": {directory},\n    \"command\": {},\n    \"file\": {},\n    \"output\": {output}\n  }}",
            json(&command),
            json(graph.path(*input))
        ));
    }
    writeln!(out, "[\n{}\n]", entries.join(",\n")).map(|()| 0).map_err(text)
}

/// Puts the content of the response file where the command names the file.
fn expand_rspfile(graph: &Graph, edge: EdgeId, command: &mut Vec<u8>) -> Result<(), String> {
    let rspfile = graph.path_value(edge, names::RSPFILE)?;
    if rspfile.is_empty() {
        return Ok(());
    }
    let named = [b"@", &rspfile[..]].concat();
    let Some(at) = command.windows(named.len()).position(|window| window == named) else { return Ok(()) };
    let content = graph.value(edge, names::RSPFILE_CONTENT)?;
    let content = content.into_iter().map(|byte| if byte == b'\n' { b' ' } else { byte });
    command.splice(at..at + named.len(), content);
    Ok(())
}
