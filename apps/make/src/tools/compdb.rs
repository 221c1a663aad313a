//! The tools that write a compilation database: `compdb` and `compdb-targets`.
//!
//! `tools::run` calls one function for each. The format is that of Clang's compilation database. As
//! with ninja, an edge without any input has no entry, because an entry names a file.

use super::ToolError;
use super::arguments::{Arguments, Tool};
use super::edges::{command, in_order, rule_name};
use super::output::json;
use crate::canonical::canonicalize;
use crate::error::MakeError;
use crate::evaluate::RuleError;
use crate::graph::{EdgeId, Graph, names};
use crate::say::complain;
use crate::spelling::unknown;
use std::io::Write;

/// The commands of the rules that are named, or of all. A phony edge has an empty command.
pub(super) fn of_rules(graph: &Graph, arguments: &Arguments, out: &mut impl Write) -> Result<u8, MakeError> {
    let rules = &arguments.words;
    let is_named =
        |edge: &EdgeId| rules.is_empty() || rules.iter().any(|rule| rule == rule_name(graph, *edge));
    write(graph, graph.edge_ids().filter(is_named), arguments, out)
}

/// Writes the commands that make the targets. A command comes after the commands that make its
/// inputs.
pub(super) fn of_targets(
    graph: &Graph,
    tool: &Tool,
    arguments: &Arguments,
    out: &mut impl Write,
) -> Result<u8, MakeError> {
    if arguments.words.is_empty() {
        return Err(ToolError::NoTarget(tool.usage()).into());
    }
    let mut targets = Vec::new();
    for name in &arguments.words {
        let mut path = name.clone();
        canonicalize(&mut path);
        let node = graph.find(&path);
        let Some(node) = node.filter(|node| graph.maker(*node).is_some()) else {
            let name = String::from_utf8_lossy(name);
            let what = "is not a target (i.e. it is not an output of any `build` statement)";
            let error =
                node.map_or_else(|| unknown(graph, &path).to_string(), |_| format!("'{name}' {what}"));
            complain(format_args!("selvedge-make: fatal: {error}"));
            return Ok(1);
        };
        targets.push(node);
    }
    let edges = in_order(graph, &targets).into_iter().filter(|edge| !graph.is_phony(*edge));
    write(graph, edges, arguments, out)
}

fn write(
    graph: &Graph,
    edges: impl Iterator<Item = EdgeId>,
    arguments: &Arguments,
    out: &mut impl Write,
) -> Result<u8, MakeError> {
    let directory = std::env::current_dir()?;
    let directory = json(directory.as_os_str().as_encoded_bytes());
    let mut before: &[u8] = b"[\n";
    for edge in edges {
        let (Some(input), Some(output)) = (graph.inputs(edge).next(), graph.outputs(edge).next()) else {
            continue;
        };
        let mut command = command(graph, edge)?;
        if arguments.has('x') {
            expand_rspfile(graph, edge, &mut command)?;
        }
        let entry = [
            before,
            b"  {\n    \"directory\": ",
            &directory,
            b",\n    \"command\": ",
            &json(&command),
            b",\n    \"file\": ",
            &json(graph.path(input)),
            b",\n    \"output\": ",
            &json(graph.path(output)),
            b"\n  }",
        ];
        out.write_all(&entry.concat())?;
        before = b",\n";
    }
    let end: &[u8] = if before == b"[\n" { b"[\n]\n" } else { b"\n]\n" };
    out.write_all(end).map(|()| 0).map_err(MakeError::System)
}

/// What may stand before the name of a response file, by which a program reads it.
const RSPFILE_MARKS: [&[u8]; 3] = [b"@", b"--option-file=", b"-f "];

/// Puts the content of the response file where the command names the file.
fn expand_rspfile(graph: &Graph, edge: EdgeId, command: &mut Vec<u8>) -> Result<(), RuleError> {
    let rspfile = graph.path_value(edge, names::RSPFILE)?;
    if rspfile.is_empty() {
        return Ok(());
    }
    let place = |mark: &&[u8]| {
        let named = [mark, &rspfile[..]].concat();
        Some((memchr::memmem::find(command, &named)?, named.len()))
    };
    let Some((at, length)) = RSPFILE_MARKS.iter().filter_map(place).min() else { return Ok(()) };
    let content = graph.value(edge, names::RSPFILE_CONTENT)?;
    let content = content.into_iter().map(|byte| if byte == b'\n' { b' ' } else { byte });
    command.splice(at..at + length, content);
    Ok(())
}
