//! One call of the program, from its options to its exit status.
//!
//! `main.rs` calls [`run`]. The tools under `tools/` call `graph`, `targets` and
//! `Loaded::for_tools`, which load the same files without a build.
//!
//! [`run`] treats the manifest as the first target. If a command has changed the manifest, then
//! `Loaded::build` returns `None`, and [`run`] loads everything anew.
//!
//! `Loaded::with_logs` counts the nodes of the manifest before it reads the deps log, because that
//! log adds nodes. `Project::must_exist` needs this count: a file of the manifest must be there,
//! and a header that only a log names may be gone.

use std::cell::RefCell;
use std::ffi::OsString;
use std::fs;
use std::io::{self, IsTerminal};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::build::jobserver::Jobserver;
use crate::build::{self, INTERRUPTED, Outcome, Style};
use crate::canonical::canonicalize;
use crate::graph::{Graph, NodeId, ScopeId};
use crate::log::build_log::BuildLog;
use crate::log::deps_log::DepsLog;
use crate::manifest;
use crate::options::Options;
use crate::project::{Project, as_path};
use crate::say::{complain, say, say_bytes};
use crate::spelling::unknown;
use crate::tools;

/// The program gives up after this number of rebuilds of the manifest, because a manifest that
/// needs more is never up to date.
const REBUILDS_MAX: u32 = 100;
/// The exit status when the reader of the build's output has gone. A shell reports a program that
/// SIGPIPE ended by the same number.
const UNREAD: u8 = 141;

/// How long the parts of a build took, for `-d stats`.
#[derive(Debug, Default)]
struct Stats {
    parts: Vec<(&'static str, Duration)>,
}

impl Stats {
    fn time<T>(&mut self, part: &'static str, work: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let result = work();
        self.parts.push((part, began.elapsed()));
        result
    }

    fn print(&self, project: &Project) {
        say(format_args!("{:<24} {:>10}", "part", "ms"));
        for (part, took) in &self.parts {
            say(format_args!("{part:<24} {:>10.3}", took.as_secs_f64() * 1000.0));
        }
        say(format_args!("nodes {}, edges {}", project.graph.nodes(), project.graph.edges.len()));
    }
}

/// Runs a tool or a build. Returns the exit status.
///
/// # Errors
/// For the user.
pub fn run(options: &Options) -> Result<u8, String> {
    if let Some(directory) = &options.directory {
        // Editors search for this line of ninja, because errors name files from the directory in
        // it.
        if options.tool.is_none() && !options.quiet {
            say_bytes(&[b"ninja: Entering directory `", directory.as_os_str().as_bytes(), b"'"].concat());
        }
        std::env::set_current_dir(directory).map_err(|error| format!("{}: {error}", directory.display()))?;
    }
    for flag in &options.deprecated {
        warn(&format!("deprecated warning '{flag}'"));
    }
    if let Some((tool, arguments)) = &options.tool {
        return tools::run(options, tool, arguments);
    }
    for _ in 0..REBUILDS_MAX {
        let mut stats = Stats::default();
        let mut loaded = Loaded::new(options, &mut stats)?;
        if options.explain {
            loaded.project.explain_all();
        }
        match loaded.build(options, &mut stats)? {
            Some(status) => return Ok(status),
            None => continue,
        }
    }
    Err(format!(
        "the manifest is still dirty after {REBUILDS_MAX} tries; perhaps the system's time is not set"
    ))
}

/// A manifest with its logs.
pub(crate) struct Loaded {
    pub(crate) project: Project,
    manifest: Vec<u8>,
    directory: PathBuf,
}

pub(crate) fn warn(warning: &String) {
    complain(format_args!("selvedge-make: warning: {warning}"));
}

fn read(path: &[u8]) -> Result<Vec<u8>, String> {
    fs::read(as_path(path)).map_err(|error| error.to_string())
}

/// The graph of the manifest that the options name, and the manifest's path.
pub(crate) fn graph(options: &Options) -> Result<(Graph, Vec<u8>), String> {
    let file = options.file.as_ref();
    let file = file.map_or(&b"build.ninja"[..], |file| file.as_bytes());
    let text = read(file).map_err(|error| format!("loading '{}': {error}", String::from_utf8_lossy(file)))?;
    let graph = manifest::parse(file, &text, &mut read).map_err(|misread| misread.to_string())?;
    for target in &graph.phony_cycles {
        let target = graph.path_text(*target);
        if options.phony_cycle_fails && options.tool.is_none() {
            return Err(format!("dependency cycle: {target} -> {target} [-w phonycycle=err]"));
        }
        let said = "names itself as an input; ignoring [-w phonycycle=warn]";
        warn(&format!("phony target '{target}' {said}"));
    }
    Ok((graph, file.to_vec()))
}

impl Loaded {
    /// Loads the manifest and its logs. The logs are not open for records: the runner opens them
    /// before its first command.
    fn new(options: &Options, stats: &mut Stats) -> Result<Loaded, String> {
        let (graph, manifest) = stats.time("read the manifest", || graph(options))?;
        Loaded::with_logs(graph, manifest, stats)
    }

    /// The manifest and its logs for a tool.
    pub(crate) fn for_tools(options: &Options) -> Result<Loaded, String> {
        Loaded::new(options, &mut Stats::default())
    }

    fn with_logs(mut graph: Graph, mut manifest: Vec<u8>, stats: &mut Stats) -> Result<Loaded, String> {
        let of_manifest = graph.nodes();
        let builddir = graph.find_name(b"builddir").and_then(|name| graph.variable(ScopeId(0), name));
        let directory = as_path(builddir.unwrap_or_default()).to_path_buf();
        let in_directory = |name: &str| directory.join(name);
        let text = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
        let path = in_directory(".ninja_deps");
        let deps_log = stats.time("read the deps log", || DepsLog::load(path.clone(), &mut graph));
        let (deps_log, warning) = deps_log.map_err(|error| text(&path, error))?;
        warning.iter().for_each(warn);
        let path = in_directory(".ninja_log");
        let build_log = stats.time("read the build log", || BuildLog::load(path.clone(), &graph));
        let (build_log, warning) = build_log.map_err(|error| text(&path, error))?;
        warning.iter().for_each(warn);
        canonicalize(&mut manifest);
        let project = Project::new(graph, of_manifest, build_log, deps_log);
        Ok(Loaded { project, manifest, directory })
    }

    /// Builds the manifest, then the targets. `None` if a command has changed the manifest.
    fn build(self, options: &Options, stats: &mut Stats) -> Result<Option<u8>, String> {
        let Loaded { mut project, manifest, directory } = self;
        let settings = settings(options, &directory)?;
        let targets = targets(&project.graph, Some(&project.deps_log), &options.targets)?;
        let own = project.graph.find(&manifest).filter(|node| project.graph.maker(*node).is_some());
        let all: Vec<_> = own.iter().chain(&targets).copied().collect();
        stats.time("look at files", || project.look(&all));
        let project = Rc::new(RefCell::new(project));
        if let Some(own) = own {
            let before = project.borrow_mut().mtime(own).ok();
            project.borrow_mut().visit_all(&[own])?;
            match build::build(&project, &[own], &settings)? {
                Outcome::Done(0) => {}
                // The commands behind it are those of a manifest that is not made yet.
                Outcome::Done(_) if options.dry_run => return Ok(Some(0)),
                Outcome::Done(_) => {
                    let now = crate::disk::mtime(&manifest).ok();
                    if now != before || project.borrow_mut().is_dirty(own) {
                        return Ok(None);
                    }
                    // The manifest is as it was, but its command may have written other files.
                    project.borrow_mut().forget();
                    stats.time("look at files again", || project.borrow_mut().look(&all));
                }
                failed @ Outcome::Stopped(..) => {
                    stopped(failed);
                    return Err("rebuilding the manifest: subcommand failed".into());
                }
                other => return Ok(Some(stopped(other))),
            }
        }
        let targets = stats.time("find what is dirty", || project.borrow_mut().visit_all(&targets))?;
        let outcome = stats.time("build", || build::build(&project, &targets, &settings));
        let outcome = outcome?;
        if options.stats {
            stats.print(&project.borrow());
        }
        if outcome == Outcome::Done(0) && !options.quiet {
            say("selvedge-make: no work to do.");
        }
        Ok(Some(stopped(outcome)))
    }
}

/// Tells the user why a build has stopped. Returns the exit status.
fn stopped(outcome: Outcome) -> u8 {
    match outcome {
        Outcome::Done(_) => 0,
        Outcome::Stopped(reason, status) => {
            say(format_args!("selvedge-make: build stopped: {reason}."));
            status
        }
        Outcome::Interrupted => {
            say("selvedge-make: build stopped: interrupted by user.");
            INTERRUPTED
        }
        Outcome::Unread => UNREAD,
    }
}

fn settings(options: &Options, directory: &Path) -> Result<build::Settings, String> {
    let makeflags = std::env::var("MAKEFLAGS").unwrap_or_default();
    let cpus = std::thread::available_parallelism().map_or(1, |cpus| cpus.get() as u32);
    // As ninja: two more than there are, because some wait for the disk.
    let usual = if cpus <= 2 { cpus + 1 } else { cpus + 2 };
    let mut jobs = match options.jobs {
        Some(0) => None,
        Some(jobs) => Some(jobs),
        None => Some(usual),
    };
    let jobserver = if let Some(form) = options.jobserver {
        let server = Jobserver::new(jobs.unwrap_or(usual), form);
        Some(Arc::new(server.map_err(|error| format!("--jobserver: {error}"))?))
    } else if options.jobs.is_none() && !options.dry_run {
        Jobserver::from_makeflags(&makeflags).map(Arc::new)
    } else {
        None
    };
    if jobserver.is_some() {
        jobs = None;
    }
    let format = std::env::var_os("NINJA_STATUS").map(OsString::into_vec);
    let format = format.unwrap_or_else(|| b"[%f/%t] ".to_vec());
    build::check_format(&format)?;
    let understands = std::env::var_os("TERM").is_some_and(|term| term != "dumb");
    let terminal = std::io::stdout().is_terminal() && understands;
    Ok(build::Settings {
        jobs,
        failures: match options.failures.unwrap_or(1) {
            0 => None,
            failures => Some(failures),
        },
        load: options.load.filter(|load| *load > 0.0),
        dry_run: options.dry_run,
        keep_depfile: options.keep_depfile,
        keep_rspfile: options.keep_rspfile,
        style: Style {
            verbose: options.verbose,
            quiet: options.quiet,
            format,
            terminal: terminal && !options.verbose,
            colours: terminal || std::env::var_os("CLICOLOR_FORCE").is_some_and(|force| force != "0"),
        },
        timeline: options.timeline.clone(),
        jobserver,
        working_directory: working_directory().map_err(|error| error.to_string())?,
        log_directory: directory.to_path_buf(),
    })
}

/// The directory of the build, if `PWD` names another one: after `-C`, or if the caller has changed
/// its directory and not the variable, as `cmake --build` does.
fn working_directory() -> io::Result<Option<PathBuf>> {
    let here = fs::metadata(".")?;
    let named = std::env::var_os("PWD").map(PathBuf::from).filter(|path| path.is_absolute());
    let named = named.and_then(|path| fs::metadata(path).ok());
    let fits = named.is_some_and(|named| (named.dev(), named.ino()) == (here.dev(), here.ino()));
    if fits { Ok(None) } else { std::env::current_dir().map(Some) }
}

/// The nodes that the user names, or the default ones. `FILE^` is looked up in the deps log too, if
/// there is one, because compilers name headers there that the manifest does not have.
pub(crate) fn targets(
    graph: &Graph,
    deps_log: Option<&DepsLog>,
    names: &[Vec<u8>],
) -> Result<Vec<NodeId>, String> {
    if names.is_empty() {
        let targets = graph.default_targets();
        if targets.is_empty() && !graph.edges.is_empty() {
            return Err("could not determine root nodes of build graph".into());
        }
        return Ok(targets);
    }
    names.iter().map(|name| target(graph, deps_log, name)).collect()
}

fn target(graph: &Graph, deps_log: Option<&DepsLog>, name: &[u8]) -> Result<NodeId, String> {
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
    output.ok_or_else(|| format!("'{}' has no out edge", String::from_utf8_lossy(name)))
}
