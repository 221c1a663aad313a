//! What a call of the program reads before it does anything: the manifest ([`graph`]), and the logs
//! of earlier builds ([`Loaded`]).
//!
//! `app.rs` loads both for a build, and the tools under `tools/` load what they need.
//!
//! `Loaded::with_logs` counts the nodes of the manifest before it reads the deps log, because that
//! log adds nodes. `Project::must_exist` needs this count: a file of the manifest must be there,
//! and a header that only a log names may be gone.

use crate::canonical::canonicalize;
use crate::error::MakeError;
use crate::graph::{Graph, ScopeId};
use crate::log::build_log::BuildLog;
use crate::log::deps_log::DepsLog;
use crate::manifest;
use crate::options::Options;
use crate::project::{Project, as_path};
use crate::say::complain;
use crate::stats::Stats;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// A manifest with its logs.
pub(crate) struct Loaded {
    pub(crate) project: Project,
    /// The canonical path of the manifest.
    pub(crate) manifest: Vec<u8>,
    /// The directory of the logs.
    pub(crate) directory: PathBuf,
}

/// Tells the user what a build or a tool goes on without.
pub(crate) fn warn(warning: &String) {
    complain(format_args!("selvedge-make: warning: {warning}"));
}

fn read(path: &[u8]) -> io::Result<Vec<u8>> {
    fs::read(as_path(path))
}

/// The graph of the manifest that the options name, and the manifest's path.
pub(crate) fn graph(options: &Options) -> Result<(Graph, Vec<u8>), MakeError> {
    let file = options.file.as_ref();
    let file = file.map_or(&b"build.ninja"[..], |file| file.as_bytes());
    let text =
        read(file).map_err(|error| MakeError::NoManifest { path: as_path(file).to_path_buf(), error })?;
    let graph = manifest::parse(file, &text, &mut read)?;
    for target in &graph.phony_cycles {
        let target = graph.path_text(*target);
        if options.phony_cycle_fails && options.tool.is_none() {
            return Err(MakeError::PhonyCircle(target));
        }
        let said = "names itself as an input; ignoring [-w phonycycle=warn]";
        warn(&format!("phony target '{target}' {said}"));
    }
    Ok((graph, file.to_vec()))
}

impl Loaded {
    /// Loads the manifest and its logs. The logs are not open for records: the runner opens them
    /// before its first command.
    pub(crate) fn new(options: &Options, stats: &mut Stats) -> Result<Loaded, MakeError> {
        let (graph, manifest) = stats.time("read the manifest", || graph(options))?;
        Loaded::with_logs(graph, manifest, stats)
    }

    /// The manifest and its logs for a tool.
    pub(crate) fn for_tools(options: &Options) -> Result<Loaded, MakeError> {
        Loaded::new(options, &mut Stats::default())
    }

    fn with_logs(mut graph: Graph, mut manifest: Vec<u8>, stats: &mut Stats) -> Result<Loaded, MakeError> {
        let of_manifest = graph.nodes();
        let builddir = graph.find_name(b"builddir").and_then(|name| graph.variable(ScopeId(0), name));
        let directory = as_path(builddir.unwrap_or_default()).to_path_buf();
        let in_directory = |name: &str| directory.join(name);
        let path = in_directory(".ninja_deps");
        let deps_log = stats.time("read the deps log", || DepsLog::load(path.clone(), &mut graph));
        let (deps_log, warning) = deps_log.map_err(MakeError::of_file(&path))?;
        warning.iter().for_each(warn);
        let path = in_directory(".ninja_log");
        let build_log = stats.time("read the build log", || BuildLog::load(path.clone(), &graph));
        let (build_log, warning) = build_log.map_err(MakeError::of_file(&path))?;
        warning.iter().for_each(warn);
        canonicalize(&mut manifest);
        let project = Project::new(graph, of_manifest, build_log, deps_log);
        Ok(Loaded { project, manifest, directory })
    }
}
