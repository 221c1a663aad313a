//! What several tools ask of the edges of a graph.

use crate::evaluate::RuleError;
use crate::graph::{EdgeId, Graph, NodeId, names};

/// The name of the edge's rule.
pub(super) fn rule_name(graph: &Graph, edge: EdgeId) -> &[u8] {
    graph.name(graph.rules[graph.edge(edge).rule.index()].name)
}

/// The command of the edge, with its variables replaced.
pub(super) fn command(graph: &Graph, edge: EdgeId) -> Result<Vec<u8>, RuleError> {
    graph.value(edge, names::COMMAND)
}

/// The edges that make the targets, each after the edges that make its inputs. O(size of the
/// graph).
pub(super) fn in_order(graph: &Graph, targets: &[NodeId]) -> Vec<EdgeId> {
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
