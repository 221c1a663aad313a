//! A graph, what is on disk of it, and what the logs say: which edges must run, and why.
//!
//! # When an edge is dirty
//! 1. What its compiler read is not known: no deps in the log, no depfile.
//! 2. An input is dirty that is a reason to build.
//! 3. An output is missing, is older than the newest input, was made by another command, or by a
//!    command that began before the newest input was written.
//!
//! The rules are ninja's, so that both run the same commands. A phony edge is dirty if an input is,
//! or if it has no input and its output is missing.

use std::io;

use crate::disk;
use crate::evaluate::Paths;
use crate::graph::{EdgeId, Files, Graph, NodeId, names};
use crate::log::build_log::BuildLog;
use crate::log::deps_log::DepsLog;
use crate::{canonical, depfile, dyndep};

/// The mtime of a node at which nothing has looked yet.
const UNKNOWN: i64 = -1;

/// How far the visit of an edge has come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Mark {
    #[default]
    New,
    Within,
    Done,
}

/// What is known of an edge.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    mark: Mark,
    /// Whether neither it nor an edge before it has to run.
    ready: bool,
    /// Whether [`Project::plan`] has met it, and whether it must run as far as that is known.
    planned: bool,
    wanted: bool,
    deps_loaded: bool,
    deps_missing: bool,
    /// Where the inputs lie that its compiler has read.
    deps: (u32, u32),
}

/// What is known of a node.
#[derive(Clone, Copy, Debug)]
struct Disk {
    mtime: i64,
    dirty: bool,
    /// Whether its mtime is that of the inputs of a phony edge.
    borrowed: bool,
}

/// See the head of the module.
#[derive(Debug)]
pub struct Project {
    /// The graph.
    pub graph: Graph,
    /// Which command made a file.
    pub build_log: BuildLog,
    /// Which inputs a compiler read.
    pub deps_log: DepsLog,
    /// Each reason for which an edge is dirty, if they are wanted.
    pub explanations: Option<Vec<String>>,
    nodes: Vec<Disk>,
    edges: Vec<State>,
    /// The inputs that compilers have read, edge after edge.
    deps: Vec<NodeId>,
    /// All dyndep files, in the order of their numbers, and those that have been read.
    dyndeps: Vec<NodeId>,
    loaded: Vec<NodeId>,
    /// How many nodes the manifest has. The others were named by logs, depfiles or dyndep files.
    of_manifest: usize,
    scratch: Vec<u8>,
}

/// One edge whose inputs are being visited.
struct Frame {
    edge: EdgeId,
    /// The output through which the edge was reached.
    through: NodeId,
    /// Where its inputs begin in the list of all frames, and which is next.
    inputs: usize,
    next: usize,
    reasons: usize,
    opened: bool,
    dyndep_visited: bool,
    dirty: bool,
    ready: bool,
    newest: Option<NodeId>,
}

impl Project {
    /// A graph with its logs.
    pub fn new(graph: Graph, of_manifest: usize, build_log: BuildLog, deps_log: DepsLog) -> Project {
        let edges = vec![State::default(); graph.edges.len()];
        let mut dyndeps: Vec<_> = graph.edges.iter().filter_map(|edge| edge.dyndep).collect();
        dyndeps.sort();
        Project {
            graph,
            build_log,
            deps_log,
            explanations: None,
            nodes: Vec::new(),
            edges,
            deps: Vec::new(),
            dyndeps,
            loaded: Vec::new(),
            of_manifest,
            scratch: Vec::new(),
        }
    }

    fn explain(&mut self, reason: impl FnOnce(&Graph) -> String) {
        if let Some(explanations) = &mut self.explanations {
            explanations.push(reason(&self.graph));
        }
    }

    /// Nodes may have come since the last look.
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

    /// Looks at all files of the targets and of what is before them, many at a time.
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

    /// Finds out which of the files on the way to `target` are dirty. Returns the validations of the
    /// edges that were met.
    ///
    /// # Errors
    /// For the user: a circle, a depfile or dyndep file that cannot be read.
    pub fn visit(&mut self, target: NodeId) -> Result<Vec<NodeId>, String> {
        let mut validations = Vec::new();
        let mut frames = Vec::new();
        let mut inputs: Vec<NodeId> = Vec::new();
        self.enter(target, &mut frames)?;
        while let Some(frame) = frames.last_mut() {
            let edge = frame.edge;
            if !frame.opened {
                if let Some(file) = self.pending_dyndep(edge) {
                    if !frame.dyndep_visited {
                        frame.dyndep_visited = true;
                        self.enter(file, &mut frames)?;
                        continue;
                    }
                    if self.graph.maker(file).is_none_or(|maker| self.edges[maker.index()].ready) {
                        self.load_dyndep(file)?;
                    }
                }
                frame.opened = true;
                for output in self.graph.outputs(edge).collect::<Vec<_>>() {
                    self.mtime(output).map_err(|error| error.to_string())?;
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
                    self.explain(|graph| format!("{} is dirty", graph.path_text(input)));
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

    /// Whether a visit has neither met the node's edge nor, where there is none, the file.
    fn is_new(&mut self, node: NodeId) -> bool {
        match self.graph.maker(node) {
            Some(edge) => self.edges[edge.index()].mark == Mark::New,
            None => {
                self.disk(node).mtime == UNKNOWN || (self.disk(node).mtime == 0 && !self.disk(node).dirty)
            }
        }
    }

    /// Begins the visit of a node.
    fn enter(&mut self, node: NodeId, frames: &mut Vec<Frame>) -> Result<(), String> {
        let Some(edge) = self.graph.maker(node) else {
            let missing = self.mtime(node).map_err(|error| error.to_string())? == disk::MISSING;
            if missing {
                self.explain(|graph| format!("{} has no in-edge and is missing", graph.path_text(node)));
            }
            self.disk(node).dirty = missing;
            return Ok(());
        };
        match self.edges[edge.index()].mark {
            Mark::Done => {}
            Mark::Within => return Err(self.circle(frames, edge, node)),
            Mark::New => {
                self.edges[edge.index()].mark = Mark::Within;
                let (opened, dyndep_visited, dirty) = Default::default();
                let (inputs, next, reasons) = Default::default();
                let (through, ready, newest) = (node, true, None);
                frames.push(Frame {
                    edge,
                    through,
                    inputs,
                    next,
                    reasons,
                    opened,
                    dyndep_visited,
                    dirty,
                    ready,
                    newest,
                });
            }
        }
        Ok(())
    }

    fn circle(&self, frames: &[Frame], edge: EdgeId, node: NodeId) -> String {
        let start = frames.iter().position(|frame| frame.edge == edge).unwrap_or(0);
        let between = frames[start + 1..].iter().map(|frame| frame.through);
        let nodes = [node].into_iter().chain(between).chain([node]);
        let paths: Vec<_> = nodes.map(|node| self.graph.path_text(node)).collect();
        format!("dependency cycle: {}", paths.join(" -> "))
    }

    /// All inputs of an edge have been visited.
    fn close(&mut self, frame: &mut Frame) -> Result<(), String> {
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

    fn set_outputs_dirty(&mut self, edge: EdgeId, dirty: bool) {
        let last = self.graph.outputs(edge).max();
        last.map(|last| self.disk(last));
        for output in self.graph.outputs(edge) {
            self.nodes[output.index()].dirty = dirty;
        }
    }

    /// Whether an edge with clean inputs has to run all the same.
    fn outputs_dirty(&mut self, edge: EdgeId, newest: Option<NodeId>) -> Result<bool, String> {
        let newest = newest.map(|input| (input, self.nodes[input.index()].mtime));
        let first = self.graph.files_of(edge, Files::Outputs).len();
        let single = first == 1 && self.graph.outputs(edge).nth(1).is_none();
        let mut hash = None;
        if single {
            let output = self.graph.files_of(edge, Files::Outputs)[0];
            return self.output_dirty(edge, output, newest, &mut hash);
        }
        for output in self.graph.outputs(edge).collect::<Vec<_>>() {
            if self.output_dirty(edge, output, newest, &mut hash)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn output_dirty(
        &mut self,
        edge: EdgeId,
        output: NodeId,
        newest: Option<(NodeId, i64)>,
        hash: &mut Option<u64>,
    ) -> Result<bool, String> {
        let mtime = self.mtime(output).map_err(|error| error.to_string())?;
        if self.graph.is_phony(edge) {
            let borrowed = self.disk(output).borrowed;
            if mtime == disk::MISSING && !borrowed && self.graph.inputs(edge).next().is_none() {
                let reason = "output {} of phony edge with no inputs doesn't exist";
                self.explain(|graph| reason.replace("{}", &graph.path_text(output)));
                return Ok(true);
            }
            if let Some((_, newest)) = newest
                && (mtime == disk::MISSING || borrowed)
            {
                let disk = self.disk(output);
                (disk.mtime, disk.borrowed) = (mtime.max(newest), true);
            }
            return Ok(false);
        }
        if mtime == disk::MISSING {
            self.explain(|graph| format!("output {} doesn't exist", graph.path_text(output)));
            return Ok(true);
        }
        let entry = self.build_log.entry(output);
        let circle = |circle: crate::evaluate::Circle| circle.to_string();
        let restats = entry.is_some() && self.graph.restats(edge).map_err(circle)?;
        // A command that restats may have left the output as it was, so its own mtime says nothing.
        if let Some((input, newest)) = newest.filter(|(_, newest)| !restats && mtime < *newest) {
            self.explain(|graph| {
                let (output, input) = (graph.path_text(output), graph.path_text(input));
                format!("output {output} older than most recent input {input} ({mtime} vs {newest})")
            });
            return Ok(true);
        }
        let generator = self.graph.has(edge, names::GENERATOR).map_err(circle)?;
        let Some(entry) = entry else {
            if !generator {
                self.explain(|graph| {
                    format!("command line not found in log for {}", graph.path_text(output))
                });
            }
            return Ok(!generator);
        };
        if !generator && self.hash(edge, hash)? != entry.hash {
            self.explain(|graph| format!("command line changed for {}", graph.path_text(output)));
            return Ok(true);
        }
        if let Some((input, newest)) = newest.filter(|(_, newest)| entry.mtime < *newest) {
            self.explain(|graph| {
                let (output, input) = (graph.path_text(output), graph.path_text(input));
                let recorded = entry.mtime;
                format!(
                    "recorded mtime of {output} older than most recent input {input} ({recorded} vs {newest})"
                )
            });
            return Ok(true);
        }
        Ok(false)
    }

    /// The hash of an edge's command, computed once.
    fn hash(&mut self, edge: EdgeId, known: &mut Option<u64>) -> Result<u64, String> {
        if let Some(hash) = known {
            return Ok(*hash);
        }
        let hash = self.command_hash(edge)?;
        *known = Some(hash);
        Ok(hash)
    }

    /// The hash by which the build log knows an edge's command.
    ///
    /// # Errors
    /// If the command has a circle of variables.
    pub fn command_hash(&mut self, edge: EdgeId) -> Result<u64, String> {
        self.scratch.clear();
        let evaluated = self.graph.command_with_content(edge, &mut self.scratch);
        evaluated.map_err(|circle| circle.to_string())?;
        Ok(self.build_log.hash(&self.scratch))
    }

    /// The inputs that the edge's compiler has read.
    pub fn deps_of(&self, edge: EdgeId) -> impl Iterator<Item = NodeId> + '_ {
        let (start, end) = self.edges[edge.index()].deps;
        self.deps[start as usize..end as usize].iter().copied()
    }

    /// Learns what the edge's compiler has read. `false`: that is not known.
    fn load_deps(&mut self, edge: EdgeId) -> Result<bool, String> {
        self.edges[edge.index()].deps_loaded = true;
        let circle = |circle: crate::evaluate::Circle| circle.to_string();
        let start = self.deps.len();
        let known = if self.graph.has(edge, names::DEPS).map_err(circle)? {
            self.deps_from_log(edge)?
        } else {
            self.scratch.clear();
            let scratch = &mut self.scratch;
            self.graph.evaluate(edge, names::DEPFILE, Paths::Plain, scratch).map_err(circle)?;
            if self.scratch.is_empty() {
                return Ok(true);
            }
            let path = self.scratch.clone();
            self.deps_from_file(edge, &path)?
        };
        let range = (NodeId::at(start).0, NodeId::at(self.deps.len()).0);
        self.edges[edge.index()].deps = range;
        Ok(known)
    }

    fn deps_from_log(&mut self, edge: EdgeId) -> Result<bool, String> {
        let Some(output) = self.graph.outputs(edge).next() else { return Ok(true) };
        let mtime = self.mtime(output).map_err(|error| error.to_string())?;
        let Some(deps) = self.deps_log.deps(output) else {
            self.explain(|graph| format!("deps for '{}' are missing", graph.path_text(output)));
            return Ok(false);
        };
        let recorded = deps.mtime;
        if mtime > recorded {
            self.explain(|graph| {
                let output = graph.path_text(output);
                format!("stored deps info out of date for '{output}' ({recorded} vs {mtime})")
            });
            return Ok(false);
        }
        self.deps.extend_from_slice(&deps.inputs);
        Ok(true)
    }

    fn deps_from_file(&mut self, edge: EdgeId, path: &[u8]) -> Result<bool, String> {
        let shown = String::from_utf8_lossy(path).into_owned();
        let text = match std::fs::read(as_path(path)) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => return Err(format!("loading '{shown}': {error}")),
        };
        if text.is_empty() {
            self.explain(|_| format!("depfile '{shown}' is missing"));
            return Ok(false);
        }
        let mut depfile = depfile::parse(&text).map_err(|error| format!("{shown}: {error}"))?;
        depfile.outputs.iter_mut().for_each(canonical::canonicalize);
        let Some(first) = depfile.outputs.first() else {
            return Err(format!("{shown}: no outputs declared"));
        };
        let output = self.graph.outputs(edge).next().expect("an edge has an output");
        if first != self.graph.path(output) {
            let got = String::from_utf8_lossy(first).into_owned();
            self.explain(|graph| {
                let output = graph.path_text(output);
                format!("expected depfile '{shown}' to mention '{output}', got '{got}'")
            });
            return Ok(false);
        }
        for mentioned in &depfile.outputs {
            if !self.graph.outputs(edge).any(|output| self.graph.path(output) == mentioned) {
                let mentioned = String::from_utf8_lossy(mentioned);
                return Err(format!(
                    "{shown}: depfile mentions '{mentioned}' as an output, but no such output was declared"
                ));
            }
        }
        for mut input in depfile.inputs {
            canonical::canonicalize(&mut input);
            let node = self.graph.node(&input);
            self.deps.push(node);
        }
        Ok(true)
    }

    /// The dyndep file of an edge, if it has not been read yet.
    pub fn pending_dyndep(&self, edge: EdgeId) -> Option<NodeId> {
        self.graph.edge(edge).dyndep.filter(|file| !self.loaded.contains(file))
    }

    /// Whether some edge waits for this file to be read.
    pub fn is_pending_dyndep(&self, file: NodeId) -> bool {
        self.dyndeps.binary_search(&file).is_ok() && !self.loaded.contains(&file)
    }

    /// Reads a dyndep file. Returns the edges of which it speaks.
    fn load_dyndep(&mut self, file: NodeId) -> Result<Vec<EdgeId>, String> {
        let path = self.graph.path(file);
        let text = std::fs::read(as_path(path))
            .map_err(|error| format!("loading '{}': {error}", self.graph.path_text(file)))?;
        let edges = dyndep::load(&mut self.graph, file, &text)?;
        self.loaded.push(file);
        let outputs = edges.iter().flat_map(|edge| self.graph.outputs(*edge));
        self.build_log.meet(&self.graph, outputs);
        Ok(edges)
    }

    /// Reads a dyndep file that has just been made, and visits the edges of which it speaks again,
    /// and those behind them. [`plan`](Self::plan) tells then which edges have to run in addition.
    ///
    /// # Errors
    /// As [`visit`](Self::visit), and those of the file.
    pub fn dyndep_made(&mut self, file: NodeId, targets: &[NodeId]) -> Result<(), String> {
        let mut open = self.load_dyndep(file)?;
        let users = self.graph.users();
        let mut again = vec![false; self.graph.edges.len()];
        while let Some(edge) = open.pop() {
            if std::mem::replace(&mut again[edge.index()], true) {
                continue;
            }
            self.edges[edge.index()].mark = Mark::New;
            open.extend(self.graph.outputs(edge).flat_map(|output| users[output.index()].iter().copied()));
        }
        for target in targets {
            self.visit(*target)?;
        }
        Ok(())
    }

    /// The edges that have to be looked at before the targets are up to date, as far as an earlier
    /// plan has not had them, in the order of the manifest. An edge is wanted if its outputs are
    /// dirty. The others wait for an order-only input.
    ///
    /// # Errors
    /// If a file is missing that no edge makes.
    pub fn plan(&mut self, targets: &[NodeId]) -> Result<Vec<EdgeId>, String> {
        let mut edges = Vec::new();
        let mut seen = vec![false; self.graph.edges.len()];
        let mut open: Vec<_> = targets.iter().rev().map(|target| (*target, None::<NodeId>)).collect();
        while let Some((node, user)) = open.pop() {
            let Some(edge) = self.graph.maker(node) else {
                if self.disk(node).dirty && self.must_exist(node) {
                    let by = user.map(|user| format!(", needed by '{}',", self.graph.path_text(user)));
                    let (path, by) = (self.graph.path_text(node), by.unwrap_or_default());
                    return Err(format!("'{path}'{by} missing and no known rule to make it"));
                }
                continue;
            };
            let dirty = self.disk(node).dirty;
            let state = &mut self.edges[edge.index()];
            if state.ready {
                continue;
            }
            state.wanted |= dirty;
            if std::mem::replace(&mut seen[edge.index()], true) {
                continue;
            }
            if !std::mem::replace(&mut state.planned, true) {
                edges.push(edge);
            }
            let inputs = self.graph.inputs(edge).chain(self.deps_of(edge));
            open.extend(inputs.map(|input| (input, Some(node))));
        }
        edges.sort();
        Ok(edges)
    }

    /// Whether the manifest or a dyndep file names this file. A header that only a compiler has named
    /// may be gone.
    fn must_exist(&self, node: NodeId) -> bool {
        let named = || self.graph.found.values().any(|found| found.inputs.contains(&node));
        node.index() < self.of_manifest || named()
    }

    /// Whether the plan takes the edge as one that must run.
    pub fn is_wanted(&self, edge: EdgeId) -> bool {
        self.edges[edge.index()].wanted
    }

    /// Decides whether an edge must run, after everything before it has been made. A command before
    /// it may have left its outputs as they were; if this edge has no other reason, its outputs become
    /// clean too.
    ///
    /// # Errors
    /// As [`visit`](Self::visit).
    pub fn must_run(&mut self, edge: EdgeId) -> Result<bool, String> {
        if self.edges[edge.index()].deps_missing {
            return Ok(true);
        }
        let mut newest: Option<(i64, NodeId)> = None;
        for input in self.graph.reasons(edge).chain(self.deps_of(edge)).collect::<Vec<_>>() {
            if self.disk(input).dirty {
                return Ok(true);
            }
            let mtime = self.mtime(input).map_err(|error| error.to_string())?;
            if newest.is_none_or(|(newest, _)| mtime > newest) {
                newest = Some((mtime, input));
            }
        }
        let dirty = self.outputs_dirty(edge, newest.map(|(_, input)| input))?;
        self.set_outputs_dirty(edge, dirty);
        Ok(dirty)
    }

    /// Whether an input that is a reason to build the edge was written after `mtime`. Inputs that have
    /// just been made are looked at again.
    pub fn has_newer_input(&self, edge: EdgeId, mtime: i64) -> bool {
        let mut inputs = self.graph.reasons(edge).chain(self.deps_of(edge));
        inputs.any(|input| match self.nodes.get(input.index()) {
            Some(disk) if disk.dirty => disk::mtime(self.graph.path(input)).is_ok_and(|now| now > mtime),
            Some(disk) => disk.mtime > mtime,
            None => false,
        })
    }
}

/// Bytes as a path of the standard library.
pub fn as_path(bytes: &[u8]) -> &std::path::Path {
    std::path::Path::new(<std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes))
}
