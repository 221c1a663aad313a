//! A server that runs: its workers, and the OS thread that hears signals and commands.
//!
//! `main.rs` calls [`serve`] once. Each worker has a site of its own. A reload puts new routes into
//! [`Changeable`] and rings the bell, and each worker takes them over between two requests.

use std::collections::HashMap;
use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rustix::process::{Pid, Signal as Kill, kill_process};
use selvedge_core::{JoinHandle, detach_local, round_robin_with, spawn_local};
use selvedge_http::request::Limits;
use selvedge_http::{
    BlockCache, Config, ConnectionGate, DocumentRoot, HandlerLimits, LogFile, Metrics, Reload, Routes,
    Routing, Severity, Site, Stop, report,
};
use selvedge_io::net::UnixListener;
use selvedge_io::signal::{Signal, Signals, signals};
use selvedge_io::time::{sleep, timeout};
use selvedge_io::{EventLoop, blocking};
use selvedge_sched::per_core;
use selvedge_site::Route;

use crate::background::{self, PidFile, Reports};
use crate::configuration::{self, ConfigurationFiles, OpenArchives, ProcessSettings};
use crate::control::{self, Commands};
use crate::handlers::{SharedParts, WorkerHandlers};
use crate::listeners::{self, Listeners};
use crate::options::{Address, Log, Options, StartupError};
use crate::stack_choice::StackChoice;
use crate::takeover::{HandedFiles, HandedName, Predecessor, hand_over};
use crate::{descriptors, prefork, privileges, reporting, systemd};

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

/// What all workers are made of.
#[derive(Clone)]
struct Server {
    site: SiteKind,
    config: Config,
    log: Option<Arc<LogFile>>,
    drain: Duration,
    stop: Stop,
    reload: Reload,
    /// Wakes each worker, so that it takes notice of an observer.
    nudge: Reload,
    shared: Arc<Changeable>,
}

#[derive(Clone)]
enum SiteKind {
    Directory(DocumentRoot),
    Routes { source: ConfigurationFiles, gate: Option<Arc<ConnectionGate>>, metrics: Arc<Metrics> },
}

/// What changes while the server runs.
#[derive(Default)]
struct Changeable {
    /// What a process that takes over gets; `None` once the server stops, so that no socket stays
    /// open that no worker accepts from, and while a process takes over.
    handing: Mutex<Option<HandedFiles>>,
    /// Where the program was when the server started. An upgrade puts another file at the path, and
    /// the kernel tells no path of a file that is gone.
    program: PathBuf,
    /// What the handlers of all workers share.
    parts: Arc<SharedParts>,
    /// Thrown when another process has taken over.
    handed_over: Stop,
    /// The routes of a site with routes.
    routing: Mutex<Option<Arc<Routing>>>,
    /// Whether open connections may take as long as they like to end.
    retires: AtomicBool,
    /// A count for each worker, which it raises as long as it runs, if systemd watches.
    beats: Vec<AtomicU64>,
    /// Where the server can be reached.
    urls: Vec<String>,
    /// Whether its connections are in the process: no other process can take them over.
    is_stacked: bool,
    /// The options and the process as they were at the start; a reload does not change them.
    started: Option<(Options, ProcessSettings)>,
}

/// How long what is logged may take to be written when the server ends.
const LOG_FLUSH: Duration = Duration::from_secs(5);

/// How often a worker that retires looks whether it is to stop.
const RETIRE_LOOK: Duration = Duration::from_millis(500);

/// Serves until a signal or a command ends it, or another process takes over. If there is a
/// predecessor, its sockets are taken over, and it is told and taken when the server serves.
///
/// # Errors
/// It cannot start, or a listener fails.
pub(crate) fn serve(served: Served, predecessor: &mut Option<Predecessor>) -> Result<(), StartupError> {
    let Served { options, stack, process, content } = served;
    let workers = match options.workers {
        Some(workers) => workers,
        // Several processes share the processors.
        None if process.processes > 1 => 1,
        None => std::thread::available_parallelism()?.get(),
    };
    let program = std::env::current_exe()?;
    let mut none = HandedFiles::default();
    let handed = predecessor.as_mut().map_or(&mut none, |predecessor| &mut predecessor.files);
    let log = log(&options, &process, handed)?;
    let config = config(&options, stack.is_some(), workers)?;
    selvedge_see::name_panics();
    let several = prefork::is_one_of_several();
    let mut inherited = systemd::sockets()?;
    inherited.append(&mut handed.take(&HandedName::Inherited));
    let mut bound = match inherited.is_empty() {
        true => {
            let is_kernels = |address: &&Address| stack.is_none() || matches!(address, Address::Unix(_));
            let kernels: Vec<Address> = options.listen.iter().filter(is_kernels).cloned().collect();
            listeners::bind(&kernels, options.unix_mode, workers, handed)
        }
        false => listeners::inherited(inherited, workers),
    }
    .map_err(naming("--listen"))?;
    if let Some(stack) = &stack {
        bound.listen_by(stack, &options.listen).map_err(naming("--stack"))?;
    }
    let mut handing = std::mem::take(&mut bound.handing);
    let mut control = match &process.control {
        Some(path) if !several => Some(listeners::bind_control(path, handed)?),
        _ => None,
    };
    // Of several processes each answers its parent.
    let commands = handed.take(&HandedName::Commands).pop().map(UnixListener::from_fd).transpose()?;
    if let Some(control) = &mut control {
        handing.append(&mut control.handing);
    }
    let mut pid_file = PidFile::open(process.pid_file.as_deref().filter(|_| !several), handed)?;
    pid_file.hand(&mut handing)?;
    let takes_over = predecessor.is_some() && !several;
    let reports = match takes_over {
        false => Reports::open(process.report.as_deref())?,
        true => Reports::inherited(),
    };
    reporting::begin(process.level, process.report.is_some() || background::is_daemon());
    privileges::drop_to(process.user.as_deref(), process.group.as_deref())?;
    let _seeing = selvedge_see::from_environment().map_err(|error| startup_error(&error.to_string()))?;
    let signals =
        signals(&[Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::USR1, Signal::USR2])?;
    let parts = Arc::new(SharedParts::default());
    let (site, routing, what) = match content {
        ServedContent::Directory(tree) => {
            let what = tree.path().display().to_string();
            (SiteKind::Directory(tree), None, what)
        }
        ServedContent::Routes(source, routing, archives) => {
            parts.renew(routing.table(), &archives);
            let what = format!("{} routes", routing.table().routes().count());
            (SiteKind::Routes { source, gate: process.gate(), metrics: Metrics::new() }, Some(routing), what)
        }
    };
    pid_file.write()?;
    for url in &bound.urls {
        let line = format!("Serving {what} at {url}");
        // An error says that the stream has no reader. The server serves all the same.
        let _ = match options.log {
            Log::Stdout => writeln!(std::io::stderr(), "{line}"),
            Log::Off | Log::File(_) => writeln!(std::io::stdout(), "{line}"),
        };
    }
    reports.begin()?;
    if !takes_over {
        systemd::notify("READY=1");
    }
    // One that hands over tells systemd itself.
    if let Some(predecessor) = predecessor.take() {
        predecessor.relieve();
    }
    let watched = systemd::watchdog().map_or(0, |_| workers);
    let server = Server {
        site,
        config,
        log: log.clone(),
        drain: options.drain,
        stop: Stop::new(),
        reload: Reload::new(),
        nudge: Reload::new(),
        shared: Arc::new(Changeable {
            handing: Mutex::new(Some(handing).filter(|_| !several)),
            parts,
            program,
            routing: Mutex::new(routing),
            beats: (0..watched).map(|_| AtomicU64::new(0)).collect(),
            urls: bound.urls.clone(),
            is_stacked: stack.is_some(),
            started: Some((options, process)),
            ..Changeable::default()
        }),
    };
    // Signals and commands are heard on an OS thread of their own, to the end of the process,
    // whichever worker ends first.
    let heard = server.clone();
    let socket = control.as_mut().and_then(|control| control.listeners[0].unix.pop()).or(commands);
    let hearing = move || match EventLoop::new() {
        Ok(mut events) => {
            round_robin_with(&mut events, hear(signals, socket, heard)).map_err(|error| error.to_string())
        }
        Err(error) => Err(error.to_string()),
    };
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        if let Err(error) = hearing() {
            report(Severity::Error, format_args!("signals: {error}"));
        }
    })?;
    let listeners: Vec<_> = bound.listeners.drain(..).map(|one| Mutex::new(Some(one))).collect();
    let ended = per_core(
        workers,
        |_| EventLoop::new(),
        |index| {
            let listeners = lock(&listeners[index]).take().unwrap_or_default();
            worker(server.clone(), index, listeners)
        },
    );
    if let Some(lost) = log.map(|log| log.lost_lines()).filter(|&lost| lost > 0) {
        report(Severity::Error, format_args!("{lost} lines of the access log were lost in all"));
    }
    if server.shared.handed_over.is_requested() {
        bound.paths.leave();
        pid_file.leave();
        if let Some(control) = &mut control {
            control.paths.leave();
        }
    } else {
        systemd::notify("STOPPING=1");
    }
    match ended {
        Ok(results) => results.into_iter().collect(),
        Err(failure) => Err(startup_error(&failure.to_string())),
    }
}

fn lock<T>(slot: &Mutex<T>) -> MutexGuard<'_, T> {
    slot.lock().unwrap_or_else(PoisonError::into_inner)
}

fn log(
    options: &Options,
    process: &ProcessSettings,
    handed: &mut HandedFiles,
) -> Result<Option<Arc<LogFile>>, StartupError> {
    let log = match &options.log {
        Log::Off => return Ok(None),
        Log::Stdout => LogFile::stdout()?,
        Log::File(path) => match handed.take_file(&HandedName::Log(path.clone())) {
            Some(file) => LogFile::opened(path, file),
            None => LogFile::open(path).map_err(naming("--log"))?,
        },
    };
    Ok(Some(Arc::new(log.with_format(process.format.clone()).with_rotation(process.rotation))))
}

/// One worker, to its end.
async fn worker(server: Server, index: usize, listeners: Listeners) -> Result<(), StartupError> {
    let Server { site, config, log, drain, stop, reload, nudge, shared } = server;
    let site = match site {
        SiteKind::Directory(tree) => Site::new(tree, config, log),
        SiteKind::Routes { gate, metrics, .. } => {
            let routing = lock(&shared.routing).clone().expect("a site with routes has them");
            let handlers = WorkerHandlers::new(shared.parts.clone());
            let handlers = Box::new(move |route: &Route| handlers.make(route));
            Site::with_routes(Routes { routing, metrics, gate, handlers }, config, log)
        }
    };
    detach_local({
        let (site, shared) = (site.clone(), shared.clone());
        async move {
            let mut heard = 0;
            loop {
                reload.requested(&mut heard).await;
                let routing = lock(&shared.routing).clone();
                match routing {
                    Some(routing) => site.set_routing(routing),
                    None => site.forget(),
                }
            }
        }
    });
    detach_local(async move {
        let mut heard = 0;
        loop {
            nudge.requested(&mut heard).await;
        }
    });
    if let (Some(period), Some(_)) = (systemd::watchdog(), shared.beats.get(index)) {
        let shared = shared.clone();
        detach_local(async move {
            loop {
                shared.beats[index].fetch_add(1, Relaxed);
                sleep(period / 2).await;
            }
        });
    }
    let mut acceptors = Vec::new();
    for listener in listeners.tcp {
        let (site, stop) = (site.clone(), stop.clone());
        acceptors.push(spawn_local(async move { site.serve_tcp(listener, &stop).await }));
    }
    for listener in listeners.unix {
        let (site, stop) = (site.clone(), stop.clone());
        acceptors.push(spawn_local(async move { site.serve_unix(listener, &stop).await }));
    }
    let stack = match listeners.stack.map(|stack| stack.start(&site, &stop)).transpose()? {
        Some((stack, more)) => {
            acceptors.extend(more);
            Some(stack)
        }
        None => None,
    };
    let mut result = Ok(());
    for acceptor in acceptors {
        let accepted = acceptor.await.map_err(|error| startup_error(&error.to_string()));
        let accepted = accepted.and_then(|accepted| accepted.map_err(StartupError::from));
        if accepted.is_err() {
            // A listener that has failed is no reason to serve by halves.
            stop.request();
        }
        result = result.and(accepted);
    }
    while shared.retires.load(Relaxed) {
        if timeout(RETIRE_LOOK, site.retire()).await.is_ok() {
            break;
        }
    }
    if timeout(drain, site.drain()).await.is_err() {
        report(Severity::Warning, format_args!("{} connections were cut off", site.connections()));
        site.break_off().await;
    }
    if let Some(stack) = stack {
        stack.finish(drain).await;
    }
    if timeout(LOG_FLUSH, site.flush_log()).await.is_err() {
        report(
            Severity::Error,
            format_args!("the log takes too long to be written: its last lines are lost"),
        );
    }
    result
}

/// Hears signals and commands, and tells systemd that the workers run.
async fn hear(signals: Signals, socket: Option<UnixListener>, server: Server) {
    if let Some(socket) = socket {
        let server = server.clone();
        detach_local(async move {
            // The process that takes over answers from then on.
            let handed_over = server.shared.handed_over.clone();
            control::answer(socket, &server, &handed_over).await
        });
    }
    if let Some(period) = systemd::watchdog() {
        let shared = server.shared.clone();
        detach_local(async move {
            let mut last: Vec<u64> = vec![0; shared.beats.len()];
            loop {
                sleep(period).await;
                let beats = shared.beats.iter().map(|beat| beat.load(Relaxed));
                if beats.clone().zip(&last).all(|(beat, last)| beat != *last) {
                    systemd::notify("WATCHDOG=1");
                }
                last = beats.collect();
            }
        });
    }
    let watching = server.clone();
    detach_local(async move { watch_servers(&watching).await });
    obey(signals, server).await;
}

/// Asks each server behind a proxy whether it is in order, as the configuration says.
async fn watch_servers(server: &Server) {
    let mut watched: HashMap<String, JoinHandle<()>> = HashMap::new();
    let mut heard = 0;
    loop {
        let wanted = server.shared.parts.watched();
        for (_, thread) in watched.extract_if(|key, _| !wanted.contains_key(key)) {
            thread.cancel();
        }
        for (key, servers) in wanted {
            watched.entry(key).or_insert_with(|| spawn_local(servers.watch()));
        }
        server.reload.requested(&mut heard).await;
    }
}

/// Does what signals ask for.
async fn obey(mut signals: Signals, server: Server) {
    while let Ok(signal) = signals.next().await {
        match signal {
            Signal::HUP => {
                // It reports a mistake itself.
                let _ = server.reload().await;
            }
            Signal::USR1 => server.reopen_log().await,
            // Its parent has handed over.
            Signal::USR2 if prefork::is_one_of_several() => server.retire(),
            Signal::USR2 => {
                // A failure is reported.
                if server.upgrade().await.is_ok() {
                    server.retire();
                }
            }
            _ if server.stop.is_requested() && !server.shared.retires.load(Relaxed) => std::process::exit(1),
            _ => server.stop(),
        }
    }
}

impl Server {
    fn stop(&self) {
        self.shared.retires.store(false, Relaxed);
        lock(&self.shared.handing).take();
        self.stop.request();
    }

    fn retire(&self) {
        self.shared.retires.store(true, Relaxed);
        lock(&self.shared.handing).take();
        self.stop.request();
    }

    /// Starts the program's file anew. When the new process serves, this one is to retire.
    ///
    /// # Errors
    /// Why this process goes on.
    async fn upgrade(&self) -> Result<String, String> {
        if self.shared.is_stacked {
            return Err("a server with a stack of its own cannot hand over".to_owned());
        }
        let Some(mut files) = lock(&self.shared.handing).take() else {
            return Err("the server stops, or hands over already".to_owned());
        };
        let (program, log) = (self.shared.program.clone(), self.log.clone());
        let handed = blocking(move || {
            if let Some(Ok(Some((path, file)))) = log.map(|log| log.file()) {
                // The file of an earlier try may be closed by now.
                drop(files.take_file(&HandedName::Log(path.clone())));
                files.push(HandedName::Log(path), file);
            }
            (hand_over(&program, &files), files)
        });
        let (handed, files) = handed.await.map_err(|error| error.to_string())?;
        let is_stopped = self.stop.is_requested();
        match handed {
            Ok(process) if is_stopped => {
                if let Some(process) = Pid::from_raw(process) {
                    // A process that has ended by itself is stopped too.
                    let _ = kill_process(process, Kill::TERM);
                }
                Err("the server was stopped meanwhile".to_owned())
            }
            Ok(process) => {
                systemd::notify(&format!("MAINPID={process}"));
                self.shared.handed_over.request();
                let own = std::process::id();
                let said = format!("process {process} serves; process {own} ends with its last connection");
                report(Severity::Notice, format_args!("{said}"));
                Ok(said + "\n")
            }
            Err(why) => {
                report(Severity::Error, format_args!("{why}; this process goes on"));
                *lock(&self.shared.handing) = Some(files).filter(|_| !is_stopped);
                Err(why)
            }
        }
    }

    /// Reads the configuration again, if there is one, and has all workers take it over.
    ///
    /// # Errors
    /// The mistake in it. Then all stays as it was.
    async fn reload(&self) -> Result<String, String> {
        let mut answer = String::new();
        if let SiteKind::Routes { source, metrics, .. } = &self.site {
            let source = source.clone();
            let loaded =
                blocking(move || configuration::load(&source)).await.map_err(|error| error.to_string())?;
            metrics.reloaded(loaded.is_ok());
            let loaded = loaded.map_err(|error| {
                let why = error.message;
                report(Severity::Error, format_args!("{why}; the server goes on as it was"));
                why
            })?;
            answer = format!("{} routes\n", loaded.routing.table().routes().count());
            if self
                .shared
                .started
                .as_ref()
                .is_some_and(|(options, process)| (options, process) != (&loaded.options, &loaded.process))
            {
                answer += "what concerns listening, limits, logs and the process takes a restart\n";
            }
            report(Severity::Notice, format_args!("the configuration was read again: {}", answer.trim_end()));
            self.shared.parts.renew(loaded.routing.table(), &loaded.archives);
            *lock(&self.shared.routing) = Some(loaded.routing);
        }
        self.reload.request();
        self.reopen_log().await;
        Ok(answer)
    }

    async fn reopen_log(&self) {
        let Some(log) = self.log.clone() else { return };
        if let Ok(Err(error)) = blocking(move || log.reopen()).await {
            report(Severity::Error, format_args!("{error}"));
        }
    }

    fn status(&self) -> String {
        let mut text = format!("process      {}\n", std::process::id());
        for url in &self.shared.urls {
            text += &format!("address      {url}\n");
        }
        if let SiteKind::Routes { metrics, .. } = &self.site {
            text += &metrics.text();
        }
        if let Some(routing) = &*lock(&self.shared.routing) {
            for (host, route) in routing.table().routes() {
                let names = if host.names.is_empty() { "any".to_owned() } else { host.names.join(" ") };
                text += &format!("route        {names} {} {}\n", route.pattern, route.action);
            }
        }
        text
    }
}

impl Commands for Server {
    async fn obey(&self, command: &str) -> Result<String, String> {
        match command {
            "status" => Ok(self.status()),
            "reload" => self.reload().await,
            "retire" | "stop" => Ok(String::new()),
            "upgrade" => self.upgrade().await,
            "threads" => {
                selvedge_see::on();
                // The CPUs take notice with their next turn.
                self.nudge.request();
                sleep(Duration::from_millis(20)).await;
                let dump = blocking(|| format!("{}\n", selvedge_see::dump())).await;
                selvedge_see::off();
                dump.map_err(|error| error.to_string())
            }
            "counters" => match &self.site {
                SiteKind::Routes { metrics, .. } => Ok(metrics.prometheus()),
                SiteKind::Directory(_) => Err("a directory alone is not counted".to_owned()),
            },
            other => Err(format!("{other:?} is no command")),
        }
    }

    fn answered(&self, command: &str) {
        match command {
            "retire" | "upgrade" => self.retire(),
            "stop" => self.stop(),
            _ => {}
        }
    }
}

fn startup_error(message: &str) -> StartupError {
    StartupError { message: message.to_owned(), status: 1 }
}

/// Makes a `StartupError` of an error, with the name of the option in front.
pub(crate) fn naming(option: &str) -> impl FnOnce(std::io::Error) -> StartupError {
    move |error| startup_error(&format!("{option}: {error}"))
}

/// The configuration of each of `workers` workers, with the process's descriptors shared out among
/// them.
fn config(options: &Options, is_stacked: bool, workers: usize) -> Result<Config, StartupError> {
    let is_direct = options.cache_direct > 0;
    // A file that is read past the page cache has a second descriptor.
    let for_each = if is_direct { 2 } else { 1 };
    let cached = options.cache_files.saturating_mul(for_each);
    let mut shares = descriptors::shares(options.listen.len(), workers, cached)?;
    if is_stacked {
        // A connection is a pair of sockets.
        shares.connections = shares.connections.div_ceil(2);
    }
    Ok(Config {
        limits: Limits {
            head_bytes: options.head_bytes,
            target_bytes: options.head_bytes / 2,
            body_bytes: options.body_bytes,
        },
        validity: options.validity,
        idle: options.idle,
        head: options.head,
        body: options.body,
        write: options.write,
        cache_files: shares.cache_files / for_each,
        cache_bytes: options.cache_bytes,
        blocks: is_direct.then(|| BlockCache::new(options.cache_direct)),
        connections: shares.connections,
        handlers: HandlerLimits { body_bytes: options.body_bytes, ..HandlerLimits::default() },
        ..Config::default()
    })
}
