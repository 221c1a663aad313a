//! Which edges get a thread of the build, and whether such an edge runs when its turn comes.
//!
//! The runner of `build` calls `plan` before it starts threads, and `must_run` in the thread of an
//! edge. `plan` relies on the marks of a visit: `app.rs` and `dyndep_made` visit the targets first.
//!
//! `plan` returns each edge once, because the runner makes one thread and one `MVar` for each.

use super::{Project, ProjectError};
use crate::graph::{EdgeId, Files, NodeId};

impl Project {
    /// The edges that need a thread before the targets are up to date, in the order of the
    /// manifest, without the edges that an earlier plan has returned. An edge is wanted if its
    /// outputs are dirty. The others only wait for an order-only input. The search does not go
    /// beyond an edge of an earlier plan, unless a dyndep file has changed the edges before it.
    ///
    /// # Errors
    /// If a file is missing that no edge makes, or an edge has an unknown type of `deps`.
    pub fn plan(&mut self, targets: &[NodeId]) -> Result<Vec<EdgeId>, ProjectError> {
        let mut edges = Vec::new();
        let mut open: Vec<_> = targets.iter().rev().map(|target| (*target, None::<NodeId>)).collect();
        while let Some((node, user)) = open.pop() {
            let Some(edge) = self.graph.maker(node) else {
                if self.disk(node).dirty && self.must_exist(node) {
                    let user = user.map(|user| self.graph.path_text(user));
                    return Err(ProjectError::Missing { path: self.graph.path_text(node), user });
                }
                continue;
            };
            let dirty = self.disk(node).dirty;
            let state = &mut self.edges[edge.index()];
            if state.ready {
                continue;
            }
            state.wanted |= dirty;
            let (is_planned, is_changed) = (state.planned, state.changed);
            (state.planned, state.changed) = (true, false);
            if !is_planned {
                edges.push(edge);
            } else if !is_changed {
                continue;
            }
            // The first input is looked at first, so that the first one that is missing is told.
            let before = open.len();
            let order_only = self.graph.files_of(edge, Files::OrderOnly).iter().copied();
            let inputs = self.graph.reasons(edge).chain(self.deps_of(edge)).chain(order_only);
            open.extend(inputs.map(|input| (input, Some(node))));
            open[before..].reverse();
        }
        edges.sort();
        for edge in edges.iter().filter(|edge| !self.graph.is_phony(**edge)) {
            self.graph.deps_format(*edge)?;
        }
        Ok(edges)
    }

    /// Whether the manifest or a dyndep file names this file. A header that only a compiler has
    /// named may be gone.
    fn must_exist(&self, node: NodeId) -> bool {
        node.index() < self.of_manifest || self.named.contains(&node)
    }

    /// Whether the edge must run by the plan.
    pub fn is_wanted(&self, edge: EdgeId) -> bool {
        self.edges[edge.index()].wanted
    }

    /// Decides whether an edge must run, after everything before it has been made. A command before
    /// it may have left its outputs as they were; if this edge has no other reason, its outputs
    /// become clean too.
    ///
    /// # Errors
    /// As [`visit`](Self::visit).
    pub fn must_run(&mut self, edge: EdgeId) -> Result<bool, ProjectError> {
        let explains = self.explanations.is_some();
        let mut dirty = self.edges[edge.index()].deps_missing;
        if !dirty {
            // The visit may have found reasons that do not hold any more.
            self.take_reasons(edge);
        } else if !explains {
            return Ok(true);
        }
        let mut newest: Option<(i64, NodeId)> = None;
        for input in self.graph.reasons(edge).chain(self.deps_of(edge)).collect::<Vec<_>>() {
            if self.disk(input).dirty {
                if !explains {
                    return Ok(true);
                }
                self.explain(edge, |graph| [graph.path(input), b" is dirty"].concat());
                dirty = true;
                continue;
            }
            let mtime = self.mtime(input)?;
            if newest.is_none_or(|(newest, _)| mtime > newest) {
                newest = Some((mtime, input));
            }
        }
        if dirty {
            return Ok(true);
        }
        let dirty = self.outputs_dirty(edge, newest.map(|(_, input)| input))?;
        self.set_outputs_dirty(edge, dirty);
        Ok(dirty)
    }
}
