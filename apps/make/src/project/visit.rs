//! The visit of a target: it finds the files before the target, and marks the dirty ones.
//!
//! `app.rs` calls `visit_all` before a build, and `dyndep_made` calls it for the edges that a
//! dyndep file has changed. A visit sets `Disk::dirty` of each file on its way, and `ready` of each
//! edge.
//!
//! An edge is `Within` from `enter` until `close`, and `Done` after that. An input of which the
//! edge is `Within` closes a circle, which is an error.
//!
//! The visit goes down the inputs with a stack of its own, because a chain of edges may be as long
//! as the graph.

use super::{Mark, Project, ProjectError, UNKNOWN};
use crate::disk;
use crate::graph::{EdgeId, Files, NodeId};
use std::collections::HashSet;

/// One edge with inputs that are being visited.
struct Frame {
    edge: EdgeId,
    /// The output through which the edge was reached.
    through: NodeId,
    /// Where its inputs begin in the list that all frames share.
    inputs: usize,
    /// Which of its inputs is next.
    next: usize,
    /// How many of its inputs are reasons to build. These come first.
    reasons: usize,
    opened: bool,
    /// How many of its inputs are no dyndep files that are to be read before.
    checked: usize,
    dyndep_visited: bool,
    dirty: bool,
    ready: bool,
    newest: Option<NodeId>,
}

impl Project {
    /// Visits the targets, and the validations of the edges before them. Returns them all, each
    /// once.
    ///
    /// # Errors
    /// As [`visit`](Self::visit).
    pub fn visit_all(&mut self, targets: &[NodeId]) -> Result<Vec<NodeId>, ProjectError> {
        let mut known = HashSet::new();
        let mut all = Vec::new();
        let mut found = targets.to_vec();
        while !found.is_empty() {
            let new: Vec<_> = found.into_iter().filter(|node| known.insert(*node)).collect();
            found = Vec::new();
            for target in &new {
                found.extend(self.visit(*target)?);
            }
            all.extend(new);
        }
        Ok(all)
    }

    /// Finds out which of the files on the way to `target` are dirty. Returns the validations of
    /// the edges that were met.
    ///
    /// # Errors
    /// A circle, a depfile or dyndep file that cannot be read or is not understood.
    pub fn visit(&mut self, target: NodeId) -> Result<Vec<NodeId>, ProjectError> {
        let mut validations = Vec::new();
        let mut frames = Vec::new();
        let mut inputs: Vec<NodeId> = Vec::new();
        self.enter(target, &mut frames)?;
        while let Some(frame) = frames.last_mut() {
            let edge = frame.edge;
            if !frame.opened {
                if let Some(file) = self.next_dyndep(edge, &mut frame.checked) {
                    if !frame.dyndep_visited {
                        frame.dyndep_visited = true;
                        self.enter(file, &mut frames)?;
                        continue;
                    }
                    if self.graph.maker(file).is_none_or(|maker| self.edges[maker.index()].ready) {
                        self.load_dyndep(file)?;
                    }
                    frame.checked += 1;
                    frame.dyndep_visited = false;
                    continue;
                }
                frame.opened = true;
                let mut place = 0;
                while let Some(output) = self.graph.output(edge, place) {
                    self.mtime(output)?;
                    place += 1;
                }
                if !self.edges[edge.index()].deps_loaded {
                    frame.dirty |= !self.load_deps(edge)?;
                    self.edges[edge.index()].deps_missing = frame.dirty;
                }
                frame.dirty |= self.edges[edge.index()].deps_missing;
                frame.inputs = inputs.len();
                inputs.extend(self.graph.reasons(edge));
                inputs.extend(self.deps_of(edge));
                frame.reasons = inputs.len() - frame.inputs;
                inputs.extend(self.graph.files_of(edge, Files::OrderOnly));
                validations.extend(self.graph.files_of(edge, Files::Validations));
            }
            let Some(input) = inputs.get(frame.inputs + frame.next).copied() else {
                self.close(frame)?;
                inputs.truncate(frame.inputs);
                frames.pop();
                continue;
            };
            if self.is_new(input) {
                self.enter(input, &mut frames)?;
                continue;
            }
            if let Some(maker) = self.graph.maker(input) {
                if self.edges[maker.index()].mark == Mark::Within {
                    return Err(self.circle(&frames, maker, input));
                }
                frame.ready &= self.edges[maker.index()].ready;
            }
            if frame.next < frame.reasons {
                if self.disk(input).dirty {
                    frame.dirty = true;
                } else {
                    let newer = |newest: usize| self.nodes[input.index()].mtime > self.nodes[newest].mtime;
                    if frame.newest.is_none_or(|newest: NodeId| newer(newest.index())) {
                        frame.newest = Some(input);
                    }
                }
            }
            frame.next += 1;
        }
        Ok(validations)
    }

    /// Whether no visit has met the node: its edge, or its file if no edge makes it.
    fn is_new(&mut self, node: NodeId) -> bool {
        match self.graph.maker(node) {
            Some(edge) => self.edges[edge.index()].mark == Mark::New,
            None => {
                self.disk(node).mtime == UNKNOWN || (self.disk(node).mtime == 0 && !self.disk(node).dirty)
            }
        }
    }

    /// Begins the visit of a node.
    fn enter(&mut self, node: NodeId, frames: &mut Vec<Frame>) -> Result<(), ProjectError> {
        let Some(edge) = self.graph.maker(node) else {
            let missing = self.mtime(node)? == disk::MISSING;
            self.disk(node).dirty = missing;
            return Ok(());
        };
        match self.edges[edge.index()].mark {
            Mark::Done => {}
            Mark::Within => return Err(self.circle(frames, edge, node)),
            Mark::New => {
                self.edges[edge.index()].mark = Mark::Within;
                let (opened, checked, dyndep_visited, dirty) = Default::default();
                let (inputs, next, reasons) = Default::default();
                let (through, ready, newest) = (node, true, None);
                frames.push(Frame {
                    edge,
                    through,
                    inputs,
                    next,
                    reasons,
                    opened,
                    checked,
                    dyndep_visited,
                    dirty,
                    ready,
                    newest,
                });
            }
        }
        Ok(())
    }

    fn circle(&self, frames: &[Frame], edge: EdgeId, node: NodeId) -> ProjectError {
        let start = frames.iter().position(|frame| frame.edge == edge).unwrap_or(0);
        let between = frames[start + 1..].iter().map(|frame| frame.through);
        let nodes = [node].into_iter().chain(between).chain([node]);
        ProjectError::Circle(nodes.map(|node| self.graph.path_text(node)).collect())
    }

    /// All inputs of an edge have been visited.
    fn close(&mut self, frame: &mut Frame) -> Result<(), ProjectError> {
        let edge = frame.edge;
        if !frame.dirty {
            frame.dirty = self.outputs_dirty(edge, frame.newest)?;
        }
        if frame.dirty {
            self.set_outputs_dirty(edge, true);
            let nothing_to_do = self.graph.is_phony(edge) && self.graph.inputs(edge).next().is_none();
            frame.ready &= nothing_to_do;
        }
        let state = &mut self.edges[edge.index()];
        state.mark = Mark::Done;
        state.ready = frame.ready;
        Ok(())
    }
}
