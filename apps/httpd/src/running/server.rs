//! [`Server`]: what all workers are made of, what changes while it runs, and what signals and
//! commands make of it.

use super::caches;
use super::limits;
use super::listening::{Listening, NewAddresses};
use super::lock::lock;
use super::logs::NewLogs;
use crate::configuration::{self, ConfigurationFiles, ProcessSettings};
use crate::control::Commands;
use crate::handlers::SharedParts;
use crate::options::Options;
use crate::startup_error::StartupError;
use crate::systemd;
use crate::takeover::{HandedFiles, HandedName, hand_over};
use rustix::process::{Pid, Signal as Kill, kill_process};
use selvedge_http::{
    Config, ConnectionGate, DocumentRoot, LogFile, Metrics, Reload, Routing, Severity, Stop, report,
};
use selvedge_io::blocking;
use selvedge_io::time::sleep;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// What all workers are made of.
#[derive(Clone)]
pub(super) struct Server {
    pub(super) site: SiteKind,
    pub(super) config: Config,
    pub(super) stop: Stop,
    pub(super) reload: Reload,
    /// Wakes each worker, so that it takes notice of an observer.
    pub(super) nudge: Reload,
    pub(super) shared: Arc<Changeable>,
}

#[derive(Clone)]
pub(super) enum SiteKind {
    Directory(DocumentRoot),
    Routes { source: ConfigurationFiles, metrics: Arc<Metrics> },
}

/// What changes while the server runs.
#[derive(Default)]
pub(super) struct Changeable {
    /// What a process that takes over gets; `None` once the server stops, so that no socket stays
    /// open that no worker accepts from, and while a process takes over.
    pub(super) handing: Mutex<Option<HandedFiles>>,
    /// Where the program was when the server started. An upgrade puts another file at the path, and
    /// the kernel tells no path of a file that is gone.
    pub(super) program: PathBuf,
    /// What the handlers of all workers share.
    pub(super) parts: Arc<SharedParts>,
    /// Held by the reload that is being made.
    pub(super) reloading: selvedge_sync::Mutex<()>,
    /// Thrown when another process has taken over.
    pub(super) handed_over: Stop,
    /// The routes of a site with routes.
    pub(super) routing: Mutex<Option<Arc<Routing>>>,
    /// What connections pass before their first request.
    pub(super) gate: Mutex<Option<Arc<ConnectionGate>>>,
    /// The access log.
    pub(super) log: Mutex<Option<Arc<LogFile>>>,
    /// Whether open connections may take as long as they like to end.
    pub(super) retires: AtomicBool,
    /// A count for each worker, which it raises as long as it runs, if systemd watches.
    pub(super) beats: Vec<AtomicU64>,
    /// The sizes of the caches of each worker.
    pub(super) caches: Mutex<Config>,
    /// Where the server listens.
    pub(super) listening: Mutex<Listening>,
    /// Whether its connections are in the process: no other process can take them over.
    pub(super) is_stacked: bool,
    /// The options and the process as they were at the start, but the addresses, the caches, the
    /// logs and the limits as they are now: a reload changes nothing else of them.
    pub(super) started: Mutex<Option<(Options, ProcessSettings)>>,
}

impl Server {
    pub(super) fn stop(&self) {
        self.shared.retires.store(false, Relaxed);
        lock(&self.shared.handing).take();
        self.stop.request();
    }

    pub(super) fn retire(&self) {
        self.shared.retires.store(true, Relaxed);
        lock(&self.shared.handing).take();
        self.stop.request();
    }

    /// Starts the program's file anew. When the new process serves, this one is to retire.
    ///
    /// # Errors
    /// Why this process goes on.
    pub(super) async fn upgrade(&self) -> Result<String, String> {
        if self.shared.is_stacked {
            return Err("a server with a stack of its own cannot hand over".to_owned());
        }
        let Some(mut files) = lock(&self.shared.handing).take() else {
            return Err("the server stops, or hands over already".to_owned());
        };
        let (program, log) = (self.shared.program.clone(), lock(&self.shared.log).clone());
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
    /// The mistake in it, the address that cannot be bound, or the log that cannot be opened. Then
    /// all stays as it was.
    pub(super) async fn reload(&self) -> Result<String, String> {
        let mut answer = String::new();
        let _one_at_a_time = self.shared.reloading.lock().await;
        if let SiteKind::Routes { source, metrics, .. } = &self.site {
            let (source, shared) = (source.clone(), self.shared.clone());
            let loaded = blocking(move || {
                let loaded = configuration::load(&source)?;
                let addresses = NewAddresses::bind(&shared.listening, &loaded)?;
                let caches = {
                    let (started, blocks) = (lock(&shared.started), lock(&shared.caches).blocks.clone());
                    let workers = lock(&shared.listening).workers();
                    let resized = |(before, _): &(Options, ProcessSettings)| {
                        caches::resized(before, &loaded.options, workers, blocks)
                    };
                    started.as_ref().map(resized).transpose()?.flatten()
                };
                let logs = NewLogs::open(&shared, &loaded)?;
                Ok::<_, StartupError>((loaded, addresses, caches, logs))
            });
            let loaded = loaded.await.map_err(|error| error.to_string())?;
            let begun =
                loaded.map_err(|error| error.message).and_then(|(loaded, addresses, caches, logs)| {
                    let Changeable { listening, handing, started, .. } = &*self.shared;
                    let told = addresses.begin(&mut lock(listening), lock(handing).as_mut(), &loaded)?;
                    if let (Some((options, _)), true) = (&mut *lock(started), told.is_some()) {
                        options.listen.clone_from(&loaded.options.listen);
                    }
                    Ok((loaded, told.unwrap_or_default(), caches, logs))
                });
            metrics.reloaded(begun.is_ok());
            let (loaded, told, caches, logs) = begun.inspect_err(|why| {
                report(Severity::Error, format_args!("{why}; the server goes on as it was"));
            })?;
            answer = format!("{} routes\n{told}", loaded.routing.table().routes().count());
            logs.begin(&self.shared, &loaded);
            limits::adopt(&self.shared, &loaded);
            if let (Some(config), Some((options, _))) = (caches, &mut *lock(&self.shared.started)) {
                caches::begin(&config, options, &loaded.options);
                *lock(&self.shared.caches) = config;
            }
            let started = lock(&self.shared.started);
            if let Some((options, process)) = &*started {
                if options.listen != loaded.options.listen {
                    answer +=
                        "`listen` takes an upgrade with several processes, a stack or systemd's sockets\n";
                }
                let later = &Options { listen: options.listen.clone(), ..loaded.options.clone() };
                if (options, process) != (later, &loaded.process) {
                    answer +=
                        "what concerns the process, or turns `cache.direct` on or off, takes an upgrade\n";
                }
            }
            drop(started);
            let told = answer.trim_end().replace('\n', "; ");
            report(Severity::Notice, format_args!("the configuration was read again: {told}"));
            self.shared.parts.renew(loaded.routing.table(), &loaded.archives);
            *lock(&self.shared.routing) = Some(loaded.routing);
        }
        self.reload.request();
        self.reopen_log().await;
        Ok(answer)
    }

    pub(super) async fn reopen_log(&self) {
        let Some(log) = lock(&self.shared.log).clone() else { return };
        if let Ok(Err(error)) = blocking(move || log.reopen()).await {
            report(Severity::Error, format_args!("{error}"));
        }
    }

    fn status(&self) -> String {
        let mut text = format!("process      {}\n", std::process::id());
        for url in lock(&self.shared.listening).urls() {
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
