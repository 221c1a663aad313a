//! The tools that remove files: `-t clean` and `-t cleandead`.
//!
//! `tools::run` calls `clean` and `dead`. Both read dyndep files first, because these name further
//! outputs. Only outputs, depfiles and response files go: `dead` keeps a file that is an input now,
//! because it may be a source of the user.

use super::edges::{in_order, rule_name};
use super::output::line;
use super::{Arguments, ToolError, named};
use crate::dyndep;
use crate::error::MakeError;
use crate::graph::{EdgeId, Graph, names};
use crate::load::Loaded;
use crate::options::Options;
use crate::project::as_path;
use std::collections::BTreeSet;
use std::io::{ErrorKind, Write};

/// Whether a file was there and is removed, or would be.
fn remove(path: &[u8], dry_run: bool) -> Result<bool, ToolError> {
    if dry_run {
        return Ok(rustix::fs::lstat(path).is_ok());
    }
    match std::fs::remove_file(as_path(path)) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(ToolError::Remove { path: as_path(path).to_path_buf(), error }),
    }
}

/// Removes files, and says how many there were.
fn remove_all(paths: &BTreeSet<Vec<u8>>, options: &Options, out: &mut impl Write) -> Result<u8, MakeError> {
    let mut removed = 0;
    for path in paths {
        if remove(path, options.dry_run)? {
            removed += 1;
            if options.verbose || options.dry_run {
                line(out, &[b"Remove ", path])?;
            }
        }
    }
    writeln!(out, "Cleaning... {removed} files.").map(|()| 0).map_err(MakeError::System)
}

/// Reads the dyndep files that earlier builds have made, because they name further outputs. A file
/// that is not there is left out.
///
/// # Errors
/// Those of the first file that cannot be read.
fn read_dyndeps(graph: &mut Graph) -> Result<(), MakeError> {
    let files: BTreeSet<_> = graph.edge_ids().filter_map(|edge| graph.edge(edge).dyndep).collect();
    for file in files {
        match std::fs::read(as_path(graph.path(file))) {
            Ok(content) => _ = dyndep::load(graph, file, &content)?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(MakeError::of_file(as_path(graph.path(file)))(error)),
        }
    }
    Ok(())
}

pub(super) fn clean(
    graph: &mut Graph,
    options: &Options,
    arguments: &Arguments,
    out: &mut impl Write,
) -> Result<u8, MakeError> {
    // `read_dyndeps` stops at the first file that cannot be read. The outputs that this file and
    // the later ones name stay.
    let _ = read_dyndeps(graph);
    let (generators, rest) = (arguments.has('g'), &arguments.words);
    let edges: Vec<EdgeId> = match (arguments.has('r'), rest.is_empty()) {
        (true, true) => return Err(ToolError::NoRule.into()),
        (true, false) => {
            let named = |edge: &EdgeId| rest.iter().any(|rule| rule == rule_name(graph, *edge));
            graph.edge_ids().filter(named).collect()
        }
        (false, true) => graph.edge_ids().collect(),
        (false, false) => in_order(graph, &named(graph, arguments)?),
    };
    let mut paths = BTreeSet::new();
    for edge in edges {
        if graph.is_phony(edge) {
            continue;
        }
        // The outputs of generators stay if the user names no rules, no targets and no `-g`.
        let kept = rest.is_empty() && !generators && graph.has(edge, names::GENERATOR)?;
        if kept {
            continue;
        }
        paths.extend(graph.outputs(edge).map(|output| graph.path(output).to_vec()));
        for name in [names::DEPFILE, names::RSPFILE] {
            let path = graph.path_value(edge, name)?;
            paths.extend((!path.is_empty()).then_some(path));
        }
    }
    remove_all(&paths, options, out)
}

pub(super) fn dead(mut loaded: Loaded, options: &Options, out: &mut impl Write) -> Result<u8, MakeError> {
    read_dyndeps(&mut loaded.project.graph)?;
    let graph = &loaded.project.graph;
    let users = graph.users();
    // A file that is an input now may be a source of the user.
    let dead = |path: &Vec<u8>| match graph.find(path) {
        Some(node) => graph.maker(node).is_none() && users[node.index()].is_empty(),
        None => true,
    };
    let paths = loaded.project.build_log.outputs(graph).into_iter().filter(dead).collect();
    remove_all(&paths, options, out)
}
