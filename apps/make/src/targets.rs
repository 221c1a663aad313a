//! The nodes that a build or a tool is about: [`targets`]. `app.rs` and the tools call it.

use crate::canonical::canonicalize;
use crate::error::MakeError;
use crate::graph::{Graph, NodeId};
use crate::log::deps_log::DepsLog;
use crate::spelling::unknown;

/// The nodes that the user names, or the default ones. `FILE^` is looked up in the deps log too, if
/// there is one, because compilers name headers there that the manifest does not have.
///
/// # Errors
/// A name is unknown, or every node is an input of another one.
pub(crate) fn targets(
    graph: &Graph,
    deps_log: Option<&DepsLog>,
    names: &[Vec<u8>],
) -> Result<Vec<NodeId>, MakeError> {
    if names.is_empty() {
        let targets = graph.default_targets();
        if targets.is_empty() && !graph.edges.is_empty() {
            return Err(MakeError::NoRoot);
        }
        return Ok(targets);
    }
    names.iter().map(|name| target(graph, deps_log, name)).collect()
}

fn target(graph: &Graph, deps_log: Option<&DepsLog>, name: &[u8]) -> Result<NodeId, MakeError> {
    let mut path = name.to_vec();
    let first_use = path.last() == Some(&b'^');
    if first_use {
        path.pop();
    }
    canonicalize(&mut path);
    let node = graph.find(&path).ok_or_else(|| unknown(graph, name))?;
    if !first_use {
        return Ok(node);
    }
    let uses = graph.edge_ids().filter(|edge| graph.inputs(*edge).any(|input| input == node));
    let output = uses.map(|edge| graph.outputs(edge).next()).next().flatten();
    let output = output.or_else(|| deps_log?.first_use(node));
    output.ok_or_else(|| MakeError::NoUse(String::from_utf8_lossy(name).into_owned()))
}
