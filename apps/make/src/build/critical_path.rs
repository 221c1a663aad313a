//! The chain of commands that took longest: a build with any number of jobs takes that long at
//! least.
//!
//! `tools/logs.rs` calls both functions for `-t critical-path`. The times are those of the build
//! log, so a command that has never succeeded counts as 0.

use crate::graph::{EdgeId, Files, Graph, NodeId};
use crate::log::build_log::BuildLog;

/// The commands of the longest chain to `targets`, in their order, each with the milliseconds that
/// it took when it succeeded last. O(size of the graph).
pub fn critical_path(graph: &Graph, log: &BuildLog, targets: &[NodeId]) -> Vec<(EdgeId, u32)> {
    // By edges: the milliseconds of the longest chain that ends with the edge, and the edge before.
    let mut chains: Vec<Option<(u64, Option<EdgeId>)>> = vec![None; graph.edges.len()];
    let mut within = vec![false; graph.edges.len()];
    let mut open: Vec<_> = targets.iter().filter_map(|target| graph.maker(*target)).collect();
    while let Some(edge) = open.last().copied() {
        if chains[edge.index()].is_some() {
            open.pop();
            continue;
        }
        let makers = || graph.inputs(edge).filter_map(|input| graph.maker(input));
        // `visit.rs` reports circles. Here an edge that is still open is left out.
        if !std::mem::replace(&mut within[edge.index()], true) {
            open.extend(makers().filter(|maker| chains[maker.index()].is_none() && !within[maker.index()]));
            continue;
        }
        let before = makers().filter_map(|maker| Some((chains[maker.index()]?.0, maker))).max();
        let length = before.map_or(0, |(length, _)| length) + u64::from(took(graph, log, edge));
        chains[edge.index()] = Some((length, before.map(|(_, maker)| maker)));
        open.pop();
    }
    let ends = targets.iter().filter_map(|target| graph.maker(*target));
    let mut last = ends.max_by_key(|edge| chains[edge.index()].map(|(length, _)| length));
    let mut path = Vec::new();
    while let Some(edge) = last {
        if !graph.is_phony(edge) {
            path.push((edge, took(graph, log, edge)));
        }
        last = chains[edge.index()].and_then(|(_, before)| before);
    }
    path.reverse();
    path
}

/// The milliseconds that an edge's command took when it succeeded last; 0 if the log does not know
/// it.
pub fn took(graph: &Graph, log: &BuildLog, edge: EdgeId) -> u32 {
    let outputs = graph.files_of(edge, Files::Outputs).iter();
    let entry =
        outputs.chain(graph.files_of(edge, Files::ImplicitOutputs)).find_map(|output| log.entry(*output));
    entry.map_or(0, |entry| entry.end.saturating_sub(entry.start))
}
