//! `-t`: the tools, which answer a question about a manifest and its logs without a build.
//!
//! `app.rs` calls `run`. The tools of `show.rs` need the graph alone, `logs.rs` has those that need
//! the logs, and `clean.rs` those that remove files. Names and output are ninja's, because CMake
//! and editors call the tools. Only `critical-path` is this program's own.

mod clean;
mod logs;
mod show;

use std::io::{self, Write};

use crate::app::{Loaded, graph, targets};
use crate::graph::{EdgeId, Graph, NodeId};
use crate::log::deps_log::DepsLog;
use crate::options::Options;

const LIST: &str = "\
selvedge-make subtools:
  clean          remove built files: -g those of generators too; -r the outputs of
                 rules; or those of targets
  cleandead      remove files that a build has made and the manifest has no more
  commands       the commands that make targets; -s the last one only
  compdb         the commands of rules, or of all, as JSON; -x with response files
  critical-path  the commands that took longest in a row
  deps           what the deps log has for targets, or for all
  graph          the graph for graphviz
  inputs         all files that targets are made of
  missingdeps    generated files that commands read and the manifest does not name
  query          the inputs and outputs of files
  recompact      write the logs anew
  restat         take the files' times into the build log, in the directory
                 --builddir if that is given; then no manifest is read
  rules          the rules; -d with their descriptions
  targets        rule [NAME] | depth [N] | all
";

/// Runs a tool. Returns the status of the process.
///
/// # Errors
/// For the user.
pub(crate) fn run(options: &Options, tool: &str, arguments: &[String]) -> Result<u8, String> {
    let mut out = io::BufWriter::new(Reader(io::stdout().lock()));
    let status = match tool {
        "list" => write!(out, "{LIST}").map(|()| 0).map_err(text),
        "commands" => show::commands(&graph(options)?.0, arguments, &mut out),
        "inputs" => show::inputs(&graph(options)?.0, arguments, &mut out),
        "query" => show::query(&graph(options)?.0, arguments, &mut out),
        "targets" => show::targets(&graph(options)?.0, arguments, &mut out),
        "graph" => show::graph(&graph(options)?.0, arguments, &mut out),
        "compdb" => show::compdb(&graph(options)?.0, arguments, &mut out),
        "critical-path" => logs::critical_path(Loaded::for_tools(options)?, arguments, &mut out),
        "clean" => clean::clean(&mut graph(options)?.0, options, arguments, &mut out),
        "cleandead" => clean::dead(Loaded::for_tools(options)?, options, &mut out),
        "deps" => logs::deps(Loaded::for_tools(options)?, arguments, &mut out),
        "recompact" => logs::recompact(Loaded::for_tools(options)?),
        "restat" => logs::restat(options, arguments),
        "rules" => show::rules(&graph(options)?.0, arguments, &mut out),
        "missingdeps" => logs::missing_deps(Loaded::for_tools(options)?, arguments, &mut out),
        other => Err(format!("unknown tool '{other}'; -t list names them")),
    };
    out.flush().map_err(text)?;
    status
}

/// The standard output of a tool. A reader that has closed the pipe misses the rest, and that is no
/// error.
struct Reader<W>(W);

impl<W: Write> Write for Reader<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self.0.write(bytes) {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(bytes.len()),
            written => written,
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self.0.flush() {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            flushed => flushed,
        }
    }
}

fn text(error: io::Error) -> String {
    error.to_string()
}

/// The edges that make the targets, each after the edges that make its inputs. O(size of the
/// graph).
fn in_order(graph: &Graph, targets: &[NodeId]) -> Vec<EdgeId> {
    let mut met = vec![false; graph.edges.len()];
    let mut placed = vec![false; graph.edges.len()];
    let mut order = Vec::new();
    let mut open: Vec<_> = targets.iter().rev().filter_map(|target| graph.maker(*target)).collect();
    while let Some(edge) = open.last().copied() {
        if std::mem::replace(&mut met[edge.index()], true) {
            open.pop();
            if !std::mem::replace(&mut placed[edge.index()], true) {
                order.push(edge);
            }
            continue;
        }
        let makers = graph.inputs(edge).filter_map(|input| graph.maker(input));
        let mut makers: Vec<_> = makers.filter(|maker| !met[maker.index()]).collect();
        makers.reverse();
        open.extend(makers);
    }
    order
}

/// The rest of the arguments without a flag, and whether the flag was there.
fn flag<'a>(arguments: &'a [String], flag: &str) -> (bool, Vec<&'a String>) {
    let rest: Vec<_> = arguments.iter().filter(|argument| *argument != flag).collect();
    (rest.len() < arguments.len(), rest)
}

/// The nodes that arguments name, or the default targets.
fn named(graph: &Graph, arguments: &[&String]) -> Result<Vec<NodeId>, String> {
    named_with(graph, None, arguments)
}

/// As [`named`], with the deps log for `FILE^`.
fn named_with(graph: &Graph, log: Option<&DepsLog>, arguments: &[&String]) -> Result<Vec<NodeId>, String> {
    let names: Vec<String> = arguments.iter().map(|name| (*name).clone()).collect();
    targets(graph, log, &names)
}
