//! `-t`: the tools, which answer a question about a manifest and its logs without a build.
//!
//! `app.rs` calls `run`. The tools of `show.rs` and `compdb.rs` need the graph alone. The tools of
//! `logs.rs` read the logs too, and the tools of `clean.rs` remove files. All of them write through
//! `output.rs`. `arguments.rs` has the list of the tools. Names and output are ninja's, because
//! CMake and editors call the tools.

mod arguments;
mod clean;
mod compdb;
mod edges;
mod error;
mod logs;
mod output;
mod show;

use arguments::{Arguments, TOOLS, write_list};
use output::ToolOutput;
use std::ffi::{OsStr, OsString};
use std::io::{self, Write};

pub use error::ToolError;

use crate::error::MakeError;
use crate::graph::{Graph, NodeId};
use crate::load::{Loaded, graph};
use crate::options::Options;
use crate::spelling::did_you_mean;
use crate::targets::targets;

/// Runs a tool. Returns the status of the process.
///
/// # Errors
/// There is no such tool, or it cannot do what it was asked for.
pub(crate) fn run(options: &Options, name: &OsStr, words: &[OsString]) -> Result<u8, MakeError> {
    let mut out = io::BufWriter::new(ToolOutput(io::stdout().lock()));
    if name == "list" {
        write_list(&mut out)?;
        return out.flush().map(|()| 0).map_err(MakeError::System);
    }
    let tool = TOOLS.iter().find(|tool| name == tool.name).ok_or_else(|| unknown(name))?;
    let Some(arguments) = tool.parse(words)? else {
        write!(out, "{}", tool.usage()).and_then(|()| out.flush())?;
        // The status is ninja's.
        return Ok(1);
    };
    let status = match tool.name {
        "commands" => show::commands(&graph(options)?.0, &arguments, &mut out),
        "inputs" => show::inputs(&graph(options)?.0, &arguments, &mut out),
        "multi-inputs" => show::multi_inputs(&graph(options)?.0, &arguments, &mut out),
        "query" => show::query(&graph(options)?.0, &arguments, &mut out),
        "targets" => show::targets(&graph(options)?.0, &arguments, &mut out),
        "graph" => show::graph(&graph(options)?.0, &arguments, &mut out),
        "compdb" => compdb::of_rules(&graph(options)?.0, &arguments, &mut out),
        "compdb-targets" => compdb::of_targets(&graph(options)?.0, tool, &arguments, &mut out),
        "critical-path" => logs::critical_path(Loaded::for_tools(options)?, &arguments, &mut out),
        "clean" => clean::clean(&mut graph(options)?.0, options, &arguments, &mut out),
        "cleandead" => clean::dead(Loaded::for_tools(options)?, options, &mut out),
        "deps" => logs::deps(Loaded::for_tools(options)?, &arguments, &mut out),
        "recompact" => logs::recompact(Loaded::for_tools(options)?),
        "restat" => logs::restat(options, &arguments),
        "rules" => show::rules(&graph(options)?.0, &arguments, &mut out),
        "missingdeps" => logs::missing_deps(Loaded::for_tools(options)?, &arguments, &mut out),
        other => unreachable!("{other} is in the list of tools and nowhere else"),
    };
    out.flush()?;
    status
}

fn unknown(name: &OsStr) -> ToolError {
    let name = name.to_string_lossy().into_owned();
    let hint = did_you_mean(TOOLS.iter().map(|tool| tool.name.as_bytes()), name.as_bytes());
    ToolError::Unknown { name, hint }
}

/// The nodes that arguments name, or the default targets.
fn named(graph: &Graph, arguments: &Arguments) -> Result<Vec<NodeId>, MakeError> {
    targets(graph, None, &arguments.words)
}
