//! A graph, the times of its files, and what the logs say: which edges must run, and why.
//!
//! `load.rs` makes a [`Project`]. `app.rs` calls `look` to read the times of all files at once, and
//! calls `visit_all` to mark the dirty files. The runner of `build` then calls `plan` for the edges
//! that get a thread, `must_run` when everything before an edge has been made, and `dyndep_made`
//! when a command has written a dyndep file. `build/records.rs` calls `set_clean`.
//!
//! | file | what is in it |
//! |---|---|
//! | `visit.rs` | the search for dirty files, before anything runs |
//! | `outputs.rs` | rule 3 below, for one edge |
//! | `plan.rs` | the edges that get a thread, and the last decision about each |
//! | `deps.rs` | the inputs that logs, depfiles and dyndep files name |
//! | `error.rs` | what is wrong with a graph or its files |
//!
//! # When an edge is dirty
//! 1. What its compiler read is not known: no deps in the log, no depfile.
//! 2. An input is dirty that is a reason to build.
//! 3. An output is missing, is older than the newest input, was made by another command, by a
//!    command that began before the newest input was written, or by one that did not succeed.
//!
//! The rules are ninja's, so that both run the same commands. A phony edge is dirty if an input is,
//! or if it has no input and its output is missing.

mod deps;
mod error;
mod outputs;
mod plan;
mod visit;

pub use error::ProjectError;

use crate::disk;
use crate::graph::{EdgeId, Files, Graph, NodeId};
use crate::log::build_log::BuildLog;
use crate::log::deps_log::DepsLog;
use std::collections::{BTreeMap, BTreeSet};
use std::io;

/// The mtime of a node that no call of `stat` has read yet.
const UNKNOWN: i64 = -1;

/// How far the visit of an edge has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mark {
    #[default]
    New,
    /// The visit is at an input of this edge.
    Within,
    Done,
}

/// The state of an edge, from its visit on.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    mark: Mark,
    /// Whether no command has to run for its outputs: neither its own nor one before it.
    ready: bool,
    /// Whether [`Project::plan`] has met it, and whether it must run as far as that is known.
    planned: bool,
    wanted: bool,
    /// Whether a dyndep file has changed the edges before it since the plan has met it.
    changed: bool,
    deps_loaded: bool,
    deps_missing: bool,
    /// Where the inputs lie that its compiler has read.
    deps: (u32, u32),
}

/// The state of a node: its file, and whether the file must be made.
#[derive(Clone, Copy, Debug)]
struct Disk {
    mtime: i64,
    dirty: bool,
    /// Whether its mtime is that of the inputs of a phony edge.
    borrowed: bool,
}

/// A graph with its files and logs. See the head of the module.
#[derive(Debug)]
pub struct Project {
    /// The graph.
    pub graph: Graph,
    /// Which command made a file.
    pub build_log: BuildLog,
    /// Which inputs a compiler read.
    pub deps_log: DepsLog,
    /// Each reason for which an edge is dirty, by the edges, if they are wanted.
    explanations: Option<BTreeMap<EdgeId, Vec<Vec<u8>>>>,
    nodes: Vec<Disk>,
    edges: Vec<State>,
    /// The inputs that compilers have read, edge after edge.
    deps: Vec<NodeId>,
    /// The dyndep files that have been read, and the inputs that they have named.
    loaded: BTreeSet<NodeId>,
    named: BTreeSet<NodeId>,
    /// For each node, the edges that have it as an input, since a dyndep file was made.
    users: Option<Vec<Vec<EdgeId>>>,
    /// How many nodes the manifest has. The others were named by logs, depfiles or dyndep files.
    of_manifest: usize,
    scratch: Vec<u8>,
}

impl Project {
    /// A graph with its logs.
    pub fn new(graph: Graph, of_manifest: usize, build_log: BuildLog, deps_log: DepsLog) -> Project {
        let edges = vec![State::default(); graph.edges.len()];
        Project {
            graph,
            build_log,
            deps_log,
            explanations: None,
            nodes: Vec::new(),
            edges,
            deps: Vec::new(),
            loaded: BTreeSet::new(),
            named: BTreeSet::new(),
            users: None,
            of_manifest,
            scratch: Vec::new(),
        }
    }

    /// Gathers reasons from now on.
    pub fn explain_all(&mut self) {
        self.explanations = Some(BTreeMap::new());
    }

    /// The reasons for which an edge is dirty, if they are gathered. [`must_run`](Self::must_run)
    /// has found them.
    pub fn take_reasons(&mut self, edge: EdgeId) -> Vec<Vec<u8>> {
        self.explanations.as_mut().and_then(|reasons| reasons.remove(&edge)).unwrap_or_default()
    }

    fn explain(&mut self, edge: EdgeId, reason: impl FnOnce(&Graph) -> Vec<u8>) {
        if let Some(explanations) = &mut self.explanations {
            explanations.entry(edge).or_default().push(reason(&self.graph));
        }
    }

    /// Forgets the times of all files and the marks of all visits, because commands have run since.
    /// The next visit looks at everything again. The inputs and outputs of dyndep files stay.
    pub fn forget(&mut self) {
        self.nodes.clear();
        self.deps.clear();
        self.edges.fill(State::default());
        self.users = None;
    }

    /// The state of a node. It makes the vector longer first, because the graph may have grown.
    fn disk(&mut self, node: NodeId) -> &mut Disk {
        if self.nodes.len() <= node.index() {
            let unknown = Disk { mtime: UNKNOWN, dirty: false, borrowed: false };
            self.nodes.resize(self.graph.nodes().max(node.index() + 1), unknown);
        }
        &mut self.nodes[node.index()]
    }

    /// The mtime of a node. The disk is asked once.
    ///
    /// # Errors
    /// As [`disk::mtime`].
    pub fn mtime(&mut self, node: NodeId) -> io::Result<i64> {
        if self.disk(node).mtime == UNKNOWN {
            self.disk(node).mtime = disk::mtime(self.graph.path(node))?;
        }
        Ok(self.disk(node).mtime)
    }

    /// Whether the node must be made, as far as is known.
    pub fn is_dirty(&mut self, node: NodeId) -> bool {
        self.disk(node).dirty
    }

    /// The command of an edge has left this output as it was.
    pub fn set_clean(&mut self, node: NodeId) {
        self.disk(node).dirty = false;
    }

    /// Reads the times of the targets and of all files before them, many at a time. A visit then
    /// finds them in `nodes`.
    pub fn look(&mut self, targets: &[NodeId]) {
        let mut seen = vec![false; self.graph.nodes()];
        let mut visited = vec![false; self.graph.edges.len()];
        let mut nodes = Vec::new();
        let mut open = Vec::new();
        let mut meet = |node: NodeId, open: &mut Vec<EdgeId>, graph: &Graph| {
            if !std::mem::replace(&mut seen[node.index()], true) {
                nodes.push(node);
                open.extend(graph.maker(node));
            }
        };
        targets.iter().for_each(|target| meet(*target, &mut open, &self.graph));
        while let Some(edge) = open.pop() {
            if std::mem::replace(&mut visited[edge.index()], true) {
                continue;
            }
            let validations = self.graph.files_of(edge, Files::Validations).iter().copied();
            let mut first = None;
            for output in self.graph.outputs(edge) {
                first = first.or(Some(output));
                meet(output, &mut open, &self.graph);
            }
            let deps = first.and_then(|output| self.deps_log.deps(output));
            let deps = deps.map_or(&[][..], |deps| &deps.inputs).iter().copied();
            for node in self.graph.inputs(edge).chain(validations).chain(deps) {
                meet(node, &mut open, &self.graph);
            }
        }
        let mtimes = disk::mtimes(&self.graph, &nodes);
        for (node, mtime) in nodes.into_iter().zip(mtimes) {
            self.disk(node).mtime = mtime.unwrap_or(UNKNOWN);
        }
    }
}

/// Bytes as a path of the standard library.
pub fn as_path(bytes: &[u8]) -> &std::path::Path {
    std::path::Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes))
}
