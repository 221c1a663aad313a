//! A server that runs: its workers, and the OS thread that hears signals and commands.
//!
//! `main.rs` calls [`serve`] once. Each worker (`running/worker.rs`) has a site of its own. A
//! reload (`running/server.rs`) puts new routes into `Changeable` and rings the bell, and each
//! worker takes them over between two requests. `running/hearing.rs` hears the signals and the
//! commands.

mod caches;
mod hearing;
mod limits;
mod listening;
mod lock;
mod logs;
mod server;
mod worker;

use crate::background::{self, PidFile, Reports};
use crate::configuration::{ConfigurationFiles, OpenArchives, ProcessSettings};
use crate::handlers::SharedParts;
use crate::listeners;
use crate::options::{Address, Log, Options};
use crate::stack_choice::StackChoice;
use crate::startup_error::StartupError;
use crate::takeover::{HandedFiles, HandedName, Predecessor};
use crate::{prefork, privileges, reporting, systemd};
use hearing::hear;
use limits::limited;
use listening::Listening;
use lock::lock;
use logs::open_log;
use selvedge_core::round_robin_over;
use selvedge_http::{DocumentRoot, Metrics, Reload, Routing, Severity, Stop, report};
use selvedge_io::EventLoop;
use selvedge_io::net::UnixListener;
use selvedge_io::signal::{Signal, Signals, signals};
use selvedge_sched::per_core;
use server::{Changeable, Server, SiteKind};
use std::io::{self, Write};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex};
use worker::worker;

/// What is served, and how.
pub(crate) struct Served {
    pub(crate) options: Options,
    /// The stack at which the server listens instead of at the kernel's.
    pub(crate) stack: Option<StackChoice>,
    pub(crate) process: ProcessSettings,
    pub(crate) content: ServedContent,
}

/// What is served.
pub(crate) enum ServedContent {
    /// The files of a directory.
    Directory(DocumentRoot),
    /// A site by its configuration.
    Routes(ConfigurationFiles, Arc<Routing>, OpenArchives),
}

/// Serves until a signal or a command ends it, or another process takes over. If there is a
/// predecessor, its sockets are taken over, and it is told and taken when the server serves.
///
/// # Errors
/// It cannot start, or a listener fails.
pub(crate) fn serve(served: Served, predecessor: &mut Option<Predecessor>) -> Result<(), StartupError> {
    let Served { options, stack, process, content } = served;
    let workers = workers(&options, &process)?;
    let program = std::env::current_exe()?;
    let mut none = HandedFiles::default();
    let handed = predecessor.as_mut().map_or(&mut none, |predecessor| &mut predecessor.files);
    let log = open_log(&options, &process, handed)?.map(Arc::new);
    let config = limited(caches::sized(&options, workers, None)?, &options);
    selvedge_see::name_panics();
    let several = prefork::is_one_of_several();
    let mut listening = listening(&options, stack.as_ref(), workers, handed)?;
    let mut handing = listening.handing();
    let mut control = match &process.control {
        Some(path) if !several => Some(listeners::bind_control(path, handed)?),
        _ => None,
    };
    // Of several processes each answers its parent.
    let commands = handed.take(&HandedName::Commands).pop().map(UnixListener::from_fd).transpose()?;
    control.iter_mut().for_each(|control| handing.append(&mut control.handing));
    let mut pid_file = PidFile::open(process.pid_file.as_deref().filter(|_| !several), handed)?;
    pid_file.hand(&mut handing)?;
    let takes_over = predecessor.is_some() && !several;
    let reports = if takes_over { Reports::inherited() } else { Reports::open(process.report.as_deref())? };
    reporting::begin(process.level, process.report.is_some() || background::is_daemon());
    privileges::drop_to(process.user.as_deref(), process.group.as_deref())?;
    let _seeing = selvedge_see::from_environment().map_err(StartupError::other)?;
    let signals =
        signals(&[Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::USR1, Signal::USR2])?;
    let parts = Arc::new(SharedParts::default());
    let (site, routing, what) = site(content, &parts);
    pid_file.write()?;
    announce(&what, &listening.urls(), &options.log);
    reports.begin()?;
    relieve(predecessor.take(), takes_over);
    let watched = systemd::watchdog().map_or(0, |_| workers);
    let server = Server {
        site,
        config: config.clone(),
        stop: Stop::new(),
        reload: Reload::new(),
        nudge: Reload::new(),
        shared: Arc::new(Changeable {
            handing: Mutex::new(Some(handing).filter(|_| !several)),
            parts,
            program,
            routing: Mutex::new(routing),
            beats: (0..watched).map(|_| AtomicU64::new(0)).collect(),
            listening: Mutex::new(listening),
            caches: Mutex::new(config),
            is_stacked: stack.is_some(),
            log: Mutex::new(log),
            gate: Mutex::new(process.gate()),
            started: Mutex::new(Some((options, process))),
            ..Changeable::default()
        }),
    };
    let socket = control.as_mut().and_then(|control| control.listeners[0].unix.pop()).or(commands);
    let heard = hear_to_the_end(signals, socket, server.clone()).map_err(StartupError::from);
    let ended = heard.and_then(|()| run_workers(&server, workers));
    // The OS thread that hears has the rest of the server for ever.
    let mut listening = std::mem::take(&mut *lock(&server.shared.listening));
    if server.shared.handed_over.is_requested() {
        listening.leave();
        pid_file.leave();
        control.iter_mut().for_each(|control| control.paths.leave());
    } else {
        systemd::notify("STOPPING=1");
    }
    ended
}

/// The number of workers of a process.
///
/// # Errors
/// The system does not tell how many processors there are.
fn workers(options: &Options, process: &ProcessSettings) -> io::Result<usize> {
    Ok(match options.workers {
        Some(workers) => workers,
        // Several processes share the processors.
        None if process.processes > 1 => 1,
        None => std::thread::available_parallelism()?.get(),
    })
}

/// Tells systemd and the predecessor that the server serves.
fn relieve(predecessor: Option<Predecessor>, takes_over: bool) {
    if !takes_over {
        systemd::notify("READY=1");
    }
    // A predecessor that hands over tells systemd itself.
    if let Some(predecessor) = predecessor {
        predecessor.relieve();
    }
}

/// Runs the workers to the end of all.
fn run_workers(server: &Server, workers: usize) -> Result<(), StartupError> {
    let ended = per_core(workers, |_| EventLoop::new(), |index| worker(server.clone(), index));
    let log = lock(&server.shared.log).clone();
    if let Some(lost) = log.map(|log| log.lost_lines()).filter(|&lost| lost > 0) {
        report(Severity::Error, format_args!("{lost} lines of the access log were lost in all"));
    }
    ended.map_err(StartupError::other)?.into_iter().collect()
}

/// Where the server listens: by the sockets of a predecessor or of systemd, or by new ones. The
/// kernel has all of them, or with a stack only the sockets of the file system.
fn listening(
    options: &Options,
    stack: Option<&StackChoice>,
    workers: usize,
    handed: &mut HandedFiles,
) -> Result<Listening, StartupError> {
    let mut inherited = systemd::sockets()?;
    inherited.append(&mut handed.take(&HandedName::Inherited));
    if !inherited.is_empty() {
        let mut listening = Listening::new(workers, false);
        let bound = listeners::inherited(inherited, workers);
        let mut bound = bound.map_err(StartupError::naming("--listen"))?;
        if let Some(stack) = stack {
            bound.listen_by(stack, &options.listen).map_err(StartupError::naming("--stack"))?;
        }
        listening.add(None, bound);
        return Ok(listening);
    }
    let is_changeable = stack.is_none() && !prefork::is_one_of_several();
    let mut listening = Listening::new(workers, is_changeable);
    let is_kernels = |address: &&Address| stack.is_none() || matches!(address, Address::Unix(_));
    for address in options.listen.iter().filter(is_kernels) {
        let bound = listeners::bind(std::slice::from_ref(address), options.unix_mode, workers, handed);
        listening.add(Some(address.clone()), bound.map_err(StartupError::naming("--listen"))?);
    }
    if let Some(stack) = stack {
        let mut bound = listeners::bind(&[], None, workers, handed)?;
        bound.listen_by(stack, &options.listen).map_err(StartupError::naming("--stack"))?;
        listening.add(None, bound);
    }
    Ok(listening)
}

/// The site of all workers, its routes if it has some, and what a line for the user calls it.
fn site(content: ServedContent, parts: &Arc<SharedParts>) -> (SiteKind, Option<Arc<Routing>>, String) {
    match content {
        ServedContent::Directory(tree) => {
            let what = tree.path().display().to_string();
            (SiteKind::Directory(tree), None, what)
        }
        ServedContent::Routes(source, routing, archives) => {
            parts.renew(routing.table(), &archives);
            let what = format!("{} routes", routing.table().routes().count());
            let (metrics, told) = (Metrics::new(), parts.clone());
            metrics.also(move || told.told());
            (SiteKind::Routes { source, metrics }, Some(routing), what)
        }
    }
}

/// Tells the user where the server is, in the stream that has no access log.
fn announce(what: &str, urls: &[String], log: &Log) {
    for url in urls {
        let line = format!("Serving {what} at {url}");
        // An error says that the stream has no reader. The server serves all the same.
        let _ = match log {
            Log::Stdout => writeln!(std::io::stderr(), "{line}"),
            Log::Off | Log::File(_) => writeln!(std::io::stdout(), "{line}"),
        };
    }
}

/// Hears signals and commands on an OS thread of their own, to the end of the process, whichever
/// worker ends first.
fn hear_to_the_end(signals: Signals, socket: Option<UnixListener>, server: Server) -> io::Result<()> {
    let hearing = move || match EventLoop::new() {
        Ok(mut events) => {
            round_robin_over(&mut events, hear(signals, socket, server)).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Err(error) = hearing() {
            report(Severity::Error, format_args!("signals: {error}"));
        }
    })?;
    Ok(())
}
