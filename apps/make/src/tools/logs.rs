//! The tools that read or write the logs: `critical-path`, `deps`, `recompact`, `restat` and
//! `missingdeps`.
//!
//! `tools::run` calls one function for each. They load the logs without opening them for records,
//! so only `recompact` and `restat` change a file.

use super::Arguments;
use super::edges::{in_order, rule_name};
use super::output::line;
use crate::build::critical_path as longest;
use crate::canonical::canonicalize;
use crate::disk;
use crate::error::MakeError;
use crate::graph::{EdgeId, Graph, NodeId, names};
use crate::load::{Loaded, warn};
use crate::log::build_log::BuildLog;
use crate::log::deps_log::is_live;
use crate::options::Options;
use crate::project::{Project, as_path};
use crate::targets::targets;
use std::collections::BTreeSet;
use std::io::{self, Write};

pub(super) fn critical_path(
    loaded: Loaded,
    arguments: &Arguments,
    out: &mut impl Write,
) -> Result<u8, MakeError> {
    let Project { graph, build_log, deps_log, .. } = &loaded.project;
    let path = longest::critical_path(graph, build_log, &targets(graph, Some(deps_log), &arguments.words)?);
    let total: u32 = path.iter().map(|(_, took)| took).sum();
    let all: u64 = {
        let edges = graph.edge_ids().filter(|edge| !graph.is_phony(*edge));
        let took = |edge| longest::took(graph, build_log, edge);
        edges.map(|edge| u64::from(took(edge))).sum()
    };
    for (edge, took) in &path {
        let output = graph.outputs(*edge).next().map(|output| graph.path(output)).unwrap_or_default();
        line(out, &[format!("{took:>8} ms  ").as_bytes(), output])?;
    }
    writeln!(out, "{total:>8} ms  in a row, of {all} ms in all commands")
        .map(|()| 0)
        .map_err(MakeError::System)
}

pub(super) fn deps(mut loaded: Loaded, arguments: &Arguments, out: &mut impl Write) -> Result<u8, MakeError> {
    let project = &mut loaded.project;
    let outputs: Vec<NodeId> = match arguments.words.is_empty() {
        true => {
            let all = project.deps_log.all().map(|(output, _)| output);
            all.filter(|output| is_live(&project.graph, *output)).collect()
        }
        false => targets(&project.graph, Some(&project.deps_log), &arguments.words)?,
    };
    for output in outputs {
        let mtime = project.mtime(output)?;
        write_deps(project, output, mtime, out)?;
    }
    Ok(0)
}

fn write_deps(project: &Project, output: NodeId, mtime: i64, out: &mut impl Write) -> io::Result<()> {
    let path = project.graph.path(output);
    let Some(deps) = project.deps_log.deps(output) else { return line(out, &[path, b": deps not found"]) };
    let state = if mtime == disk::MISSING || mtime > deps.mtime { "STALE" } else { "VALID" };
    let counts = format!(": #deps {}, deps mtime {} ({state})", deps.inputs.len(), deps.mtime);
    line(out, &[path, counts.as_bytes()])?;
    for input in &deps.inputs {
        line(out, &[b"    ", project.graph.path(*input)])?;
    }
    writeln!(out)
}

pub(super) fn recompact(loaded: Loaded) -> Result<u8, MakeError> {
    let Project { graph, mut build_log, mut deps_log, .. } = loaded.project;
    build_log
        .recompact(&graph)
        .and_then(|()| deps_log.recompact(&graph))
        .map(|()| 0)
        .map_err(MakeError::System)
}

pub(super) fn restat(options: &Options, arguments: &Arguments) -> Result<u8, MakeError> {
    let builddir = arguments.value('b').map(as_path);
    let canonical = |path: &Vec<u8>| {
        let mut path = path.clone();
        canonicalize(&mut path);
        path
    };
    let wanted: BTreeSet<_> = arguments.words.iter().map(canonical).collect();
    let (graph, mut build_log) = match builddir {
        Some(directory) => {
            let graph = Graph::new();
            let (build_log, warning) = BuildLog::load(directory.join(".ninja_log"), &graph)?;
            warning.iter().for_each(warn);
            (graph, build_log)
        }
        None => {
            let Project { graph, build_log, .. } = Loaded::for_tools(options)?.project;
            (graph, build_log)
        }
    };
    if !build_log.is_there() {
        return Ok(0);
    }
    let mtime = |path: &[u8]| {
        let asked = wanted.is_empty() || wanted.contains(path);
        asked.then(|| disk::mtime(path).ok()).flatten()
    };
    build_log.restat(&graph, mtime).map(|()| 0).map_err(MakeError::System)
}

pub(super) fn missing_deps(
    loaded: Loaded,
    arguments: &Arguments,
    out: &mut impl Write,
) -> Result<u8, MakeError> {
    let Project { graph, deps_log, .. } = &loaded.project;
    let mut missing = 0;
    for edge in in_order(graph, &targets(graph, Some(deps_log), &arguments.words)?) {
        let Some(output) = graph.outputs(edge).next() else { continue };
        if !graph.has(edge, names::DEPS)? {
            continue;
        }
        let inputs = deps_log.deps(output).map_or(&[][..], |deps| &deps.inputs);
        let makers: BTreeSet<EdgeId> = inputs.iter().filter_map(|input| graph.maker(*input)).collect();
        // An edge with `generator` makes the manifest, so it has run before all other edges.
        let hidden = makers
            .into_iter()
            .filter(|maker| !is_generator(graph, *maker) && !is_before(graph, *maker, edge));
        for maker in hidden {
            let rule = rule_name(graph, maker);
            let made = inputs.iter().filter(|input| graph.maker(**input) == Some(maker));
            for input in made {
                missing += 1;
                let (output, input) = (graph.path(output), graph.path(*input));
                let parts = [b"Missing dep: ", output, b" uses ", input, b" (generated by ", rule, b")"];
                line(out, &parts)?;
            }
        }
    }
    if missing == 0 {
        return writeln!(out, "No missing dependencies on generated files found.")
            .map(|()| 0)
            .map_err(MakeError::System);
    }
    writeln!(out, "{missing} missing dependencies on generated files found.")?;
    Ok(3)
}

fn is_generator(graph: &Graph, edge: EdgeId) -> bool {
    graph.has(edge, names::GENERATOR).unwrap_or(false)
}

/// Whether `edge` waits for `before` by the manifest.
fn is_before(graph: &Graph, before: EdgeId, edge: EdgeId) -> bool {
    let mut seen = BTreeSet::new();
    let mut open = vec![edge];
    while let Some(edge) = open.pop() {
        if edge == before {
            return true;
        }
        if seen.insert(edge) {
            open.extend(graph.inputs(edge).filter_map(|input| graph.maker(input)));
        }
    }
    false
}
