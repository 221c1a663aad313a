//! Inputs that the manifest does not name: a compiler has read them, or a dyndep file names them.
//!
//! `visit.rs` calls `load_deps` and `load_dyndep` when it opens an edge. The runner of `build`
//! calls `dyndep_made` after the command that has written a dyndep file.
//!
//! A new input of an edge that has been visited may change the edges behind it. So `dyndep_made`
//! opens the visited edges behind the file's edges again, and visits and plans them anew.

use super::{Mark, Project, ProjectError, as_path};
use crate::evaluate::Paths;
use crate::graph::{EdgeId, Graph, NodeId, names};
use crate::{canonical, depfile, dyndep};
use std::io;

impl Project {
    /// The inputs that the edge's compiler has read.
    pub fn deps_of(&self, edge: EdgeId) -> impl Iterator<Item = NodeId> + '_ {
        let (start, end) = self.edges[edge.index()].deps;
        self.deps[start as usize..end as usize].iter().copied()
    }

    /// Reads the inputs that the edge's compiler has named, from the log or from a depfile. `false`
    /// if there is no valid record of them, so that the edge must run.
    pub(super) fn load_deps(&mut self, edge: EdgeId) -> Result<bool, ProjectError> {
        self.edges[edge.index()].deps_loaded = true;
        let start = self.deps.len();
        let known = if self.graph.has(edge, names::DEPS)? {
            self.deps_from_log(edge)?
        } else {
            self.scratch.clear();
            let scratch = &mut self.scratch;
            self.graph.evaluate(edge, names::DEPFILE, Paths::Plain, scratch)?;
            if self.scratch.is_empty() {
                return Ok(true);
            }
            let path = self.scratch.clone();
            self.deps_from_file(edge, &path)?
        };
        let range = (NodeId::at(start).0, NodeId::at(self.deps.len()).0);
        self.edges[edge.index()].deps = range;
        if let Some(users) = &mut self.users {
            note_users(users, self.graph.nodes(), edge, &self.deps[start..]);
        }
        Ok(known)
    }

    fn deps_from_log(&mut self, edge: EdgeId) -> Result<bool, ProjectError> {
        let Some(output) = self.graph.outputs(edge).next() else { return Ok(true) };
        let mtime = self.mtime(output)?;
        let Some(deps) = self.deps_log.deps(output) else {
            self.explain(edge, |graph| [b"deps for '", graph.path(output), b"' are missing"].concat());
            return Ok(false);
        };
        let recorded = deps.mtime;
        if mtime > recorded {
            self.explain(edge, |graph| {
                let times = format!("' ({recorded} vs {mtime})");
                [b"stored deps info out of date for '", graph.path(output), times.as_bytes()].concat()
            });
            return Ok(false);
        }
        self.deps.extend_from_slice(&deps.inputs);
        Ok(true)
    }

    fn deps_from_file(&mut self, edge: EdgeId, path: &[u8]) -> Result<bool, ProjectError> {
        let own_path = || as_path(path).to_path_buf();
        let text = match std::fs::read(as_path(path)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(ProjectError::Load { path: own_path(), error }),
        };
        if text.is_empty() {
            self.explain(edge, |_| [b"depfile '", path, b"' is missing"].concat());
            return Ok(false);
        }
        let mut depfile =
            depfile::parse(&text).map_err(|error| ProjectError::Depfile { path: own_path(), error })?;
        depfile.outputs.iter_mut().for_each(canonical::canonicalize);
        let Some(first) = depfile.outputs.first() else {
            return Err(ProjectError::NoOutput(own_path()));
        };
        let output = self.graph.outputs(edge).next().expect("an edge has an output");
        if first != self.graph.path(output) {
            self.explain(edge, |graph| {
                let output = graph.path(output);
                [b"expected depfile '", path, b"' to mention '", output, b"', got '", first, b"'"].concat()
            });
            return Ok(false);
        }
        for mentioned in &depfile.outputs {
            if !self.graph.outputs(edge).any(|output| self.graph.path(output) == mentioned) {
                let mentioned = String::from_utf8_lossy(mentioned).into_owned();
                return Err(ProjectError::NotAnOutput { path: own_path(), mentioned });
            }
        }
        for mut input in depfile.inputs {
            canonical::canonicalize(&mut input);
            let node = self.graph.node(&input);
            self.deps.push(node);
        }
        Ok(true)
    }

    /// The next input of an edge that is a dyndep file and has not been read yet, behind as many
    /// inputs as are `checked`. The file of the edge itself is one of its inputs. The file of
    /// another edge may name an input of this edge as an output.
    pub(super) fn next_dyndep(&self, edge: EdgeId, checked: &mut usize) -> Option<NodeId> {
        if self.graph.dyndeps.is_empty() {
            return None;
        }
        let mut inputs = self.graph.inputs(edge).enumerate().skip(*checked);
        let (place, file) = inputs.find(|(_, input)| self.is_pending_dyndep(*input))?;
        *checked = place;
        Some(file)
    }

    /// Whether some edge waits for this file to be read.
    pub fn is_pending_dyndep(&self, file: NodeId) -> bool {
        self.graph.dyndeps.contains_key(&file) && !self.loaded.contains(&file)
    }

    /// Reads a dyndep file. Returns the edges that it names.
    pub(super) fn load_dyndep(&mut self, file: NodeId) -> Result<Vec<EdgeId>, ProjectError> {
        let path = self.graph.path(file);
        let text = std::fs::read(as_path(path))
            .map_err(|error| ProjectError::Load { path: as_path(path).to_path_buf(), error })?;
        let edges = dyndep::load(&mut self.graph, file, &text)?;
        self.loaded.insert(file);
        for edge in &edges {
            let inputs = self.graph.found.get(edge).map_or(&[][..], |found| &found.inputs);
            self.named.extend(inputs);
            if let Some(users) = &mut self.users {
                note_users(users, self.graph.nodes(), *edge, inputs);
            }
        }
        let outputs = edges.iter().flat_map(|edge| self.graph.outputs(*edge));
        self.build_log.meet(&self.graph, outputs);
        Ok(edges)
    }

    /// Reads a dyndep file that has just been made. Visits again the edges that it names, and the
    /// visited edges behind them. Returns the edges that need a thread in addition, as
    /// [`plan`](Self::plan) does: those before the edges of the file, and the validations of all.
    ///
    /// # Errors
    /// As [`visit_all`](Self::visit_all) and [`plan`](Self::plan), and those of the file.
    pub fn dyndep_made(&mut self, file: NodeId) -> Result<Vec<EdgeId>, ProjectError> {
        let edges = self.load_dyndep(file)?;
        let users = self.users.take().unwrap_or_else(|| self.all_users());
        let users_of = |graph: &Graph, edge| -> Vec<EdgeId> {
            let outputs = graph.outputs(edge);
            outputs.filter_map(|output| users.get(output.index())).flatten().copied().collect()
        };
        // An edge of the file may be one that no target has needed so far, while an edge behind it
        // has been visited: its new output was a file that no edge made.
        let behind = edges.iter().flat_map(|edge| users_of(&self.graph, *edge));
        let mut open: Vec<_> = behind.chain(edges.iter().copied()).collect();
        let mut again = Vec::new();
        while let Some(edge) = open.pop() {
            let state = &mut self.edges[edge.index()];
            if state.mark != Mark::Done {
                continue;
            }
            (state.mark, state.changed) = (Mark::New, true);
            again.extend(self.graph.outputs(edge).next());
            open.extend(users_of(&self.graph, edge));
        }
        self.users = Some(users);
        let all = self.visit_all(&again)?;
        self.plan(&all)
    }

    /// For each node, the edges that have it as an input, by the manifest, by dyndep files or by
    /// what their compilers have read.
    fn all_users(&self) -> Vec<Vec<EdgeId>> {
        let mut users = self.graph.users();
        for edge in self.graph.edge_ids() {
            self.deps_of(edge).for_each(|input| users[input.index()].push(edge));
        }
        users
    }
}

/// The edge has become a user of more inputs. There are `nodes` nodes now.
fn note_users(users: &mut Vec<Vec<EdgeId>>, nodes: usize, edge: EdgeId, inputs: &[NodeId]) {
    users.resize(nodes, Vec::new());
    inputs.iter().for_each(|input| users[input.index()].push(edge));
}
