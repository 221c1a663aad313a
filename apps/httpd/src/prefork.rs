//! Several processes that serve the same addresses: the parent starts them, starts a new one for
//! each that dies, and passes signals on.
//!
//! # Paper
//! \[Mighty\] "Scaling": pre-fork makes use of all cores, because processes share nothing.
//!
//! # Differences
//! 1. Each process is the program started anew, with sockets of its own (`SO_REUSEPORT`), which the
//!    parent has bound and hands over as in an upgrade (`takeover.rs`). So the kernel gives each
//!    connection to one process, no process waits at a socket that another one drains, and the
//!    connections that wait for a process that dies are those of the process that takes its place.
//! 2. In an upgrade a new parent gets all sockets, and starts processes of its own. The old
//!    processes retire.
//! 3. The parent obeys commands (`commanded.rs`). Each process answers the parent at a socket that
//!    has no path (`nameless.rs`).

use crate::background::PidFile;
use crate::commanded::{Family, supervise};
use crate::configuration::{ConfigurationFiles, ProcessSettings};
use crate::nameless::NamelessSocket;
use crate::options::Options;
use crate::startup_error::StartupError;
use crate::takeover::{HandedFiles, HandedName, Predecessor, Successor};
use crate::{listeners, reporting};
use rustix::process::{Pid, Signal as Kill, kill_process};
use selvedge_core::{Time, now, round_robin_over};
use selvedge_http::{Severity, report};
use selvedge_io::EventLoop;
use std::collections::BTreeMap;
use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// In the environment of each process: its number.
const MARK: &str = "SELVEDGE_HTTPD_PROCESS";

/// A process that dies sooner is not replaced at once; one of the first is not replaced at all.
const SHORT: Duration = Duration::from_secs(1);

/// Whether this process is one of several.
pub(crate) fn is_one_of_several() -> bool {
    env::var_os(MARK).is_some()
}

/// Runs the processes until a signal ends them. If there is a predecessor, its sockets are taken
/// over, and it is told and taken when all processes serve.
///
/// # Errors
/// An address cannot be bound, a process could not be started, or one ended with a failure at the
/// start.
pub(crate) fn run(
    source: ConfigurationFiles,
    options: &Options,
    process: &ProcessSettings,
    predecessor: &mut Option<Predecessor>,
) -> Result<(), StartupError> {
    // An upgrade may put another file at the path, and the kernel tells no path of a file that is
    // gone.
    let program = env::current_exe()?;
    let mut none = HandedFiles::default();
    let handed = predecessor.as_mut().map_or(&mut none, |predecessor| &mut predecessor.files);
    let sockets = process.processes * options.workers.unwrap_or(1);
    let bound = listeners::bind(&options.listen, options.unix_mode, sockets, handed);
    let mut bound = bound.map_err(StartupError::naming("--listen"))?;
    let pid_file = PidFile::open(process.pid_file.as_deref(), handed)?;
    let control = process.control.as_deref();
    let mut control = control.map(|path| listeners::bind_control(path, handed)).transpose()?;
    let commands = match &process.control {
        Some(path) => command_sockets(path, process.processes)?,
        None => Vec::new(),
    };
    let mut children = Children {
        program,
        count: process.processes,
        handing: std::mem::take(&mut bound.handing),
        commands,
        pid_file,
        running: BTreeMap::new(),
        absent: BTreeMap::new(),
        ending: false,
        result: Ok(()),
    };
    reporting::begin(process.level, false);
    // The parent accepts nothing.
    drop(bound);
    for number in 0..children.count {
        if !children.ending {
            children.start(number, false);
        }
    }
    if predecessor.is_some() && !children.ending {
        children.wait_until_they_serve();
    }
    if !children.ending {
        children.pid_file.write()?;
        if let Some(predecessor) = predecessor.take() {
            predecessor.relieve();
        }
    }
    let mut events = EventLoop::new()?;
    let socket = control.as_mut().and_then(|control| control.listeners[0].unix.pop());
    let handing = control.as_mut().map(|control| std::mem::take(&mut control.handing));
    let family = Family::new(source, children, handing.unwrap_or_default());
    let ended = round_robin_over(&mut events, supervise(family.clone(), socket));
    if let Some(control) = control.as_mut().filter(|_| family.is_handed_over()) {
        control.paths.leave();
    }
    ended.map_err(|error| StartupError { message: error.to_string(), status: 1 })?
}

/// The sockets for the commands of `count` processes. They are beside `control` for a moment.
fn command_sockets(control: &Path, count: usize) -> Result<Vec<NamelessSocket>, StartupError> {
    let directory = control.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    (0..count).map(|_| NamelessSocket::bind(directory).map_err(StartupError::naming("control"))).collect()
}

/// The processes, by their numbers.
pub(crate) struct Children {
    pub(crate) program: PathBuf,
    pub(crate) count: usize,
    /// The sockets of all of them.
    pub(crate) handing: HandedFiles,
    /// Where each obeys commands, if there is a control socket.
    pub(crate) commands: Vec<NamelessSocket>,
    pub(crate) pid_file: PidFile,
    pub(crate) running: BTreeMap<usize, PreforkedChild>,
    /// Numbers without a process, and when each is to have one again.
    absent: BTreeMap<usize, Time>,
    /// Whether no process is started any more.
    pub(crate) ending: bool,
    pub(crate) result: Result<(), StartupError>,
}

pub(crate) struct PreforkedChild {
    pub(crate) successor: Successor,
    since: Time,
    /// Whether it has taken the place of another one.
    is_later: bool,
}

impl Children {
    fn start(&mut self, number: usize, is_later: bool) {
        let mut command = Command::new(&self.program);
        command.args(env::args_os().skip(1)).env(MARK, number.to_string());
        if number > 0 {
            // The first says where it serves.
            command.stdout(Stdio::null());
        }
        let started = self.sockets_of(number);
        match started.and_then(|sockets| Successor::start(&mut command, &sockets)) {
            Ok(successor) => {
                self.running.insert(number, PreforkedChild { successor, since: Time::now(), is_later });
            }
            Err(error) => self.fail(format!("{}: {error}", self.program.display())),
        }
    }

    /// What the process with this number gets.
    fn sockets_of(&self, number: usize) -> io::Result<HandedFiles> {
        let mut sockets = self.handing.share(number, self.count)?;
        if let Some(socket) = self.commands.get(number) {
            sockets.push(HandedName::Commands, socket.listener()?);
        }
        Ok(sockets)
    }

    /// Whether no process runs, and none is to be started.
    pub(crate) fn is_over(&self) -> bool {
        self.running.is_empty() && (self.ending || self.absent.is_empty())
    }

    /// Waits until each process has said that it serves.
    fn wait_until_they_serve(&mut self) {
        let failed = self.running.values_mut().find_map(|child| child.successor.wait_until_it_serves().err());
        if let Some(why) = failed {
            self.fail(why);
        }
    }

    /// No process is started any more. The sockets close with the processes, so that no connection
    /// waits in one from which no process accepts.
    pub(crate) fn end(&mut self) {
        self.ending = true;
        self.handing = HandedFiles::default();
    }

    /// Notes the failure, and asks all processes to end.
    pub(crate) fn fail(&mut self, message: String) {
        if !self.ending {
            self.end();
            self.result = Err(StartupError { message, status: 1 });
        }
        self.pass_on(Kill::TERM);
    }

    pub(crate) fn pass_on(&self, signal: Kill) {
        for child in self.running.values() {
            // A process that has ended is no reason to stop.
            let _ = kill_process(Pid::from_child(&child.successor.process), signal);
        }
    }

    /// Looks which processes have ended, and starts others in their places.
    pub(crate) fn look(&mut self) {
        let has_ended =
            |child: &mut PreforkedChild| matches!(child.successor.process.try_wait(), Ok(Some(_)));
        let ended = self.running.extract_if(.., |_, child| has_ended(child));
        let ended: Vec<(usize, PreforkedChild)> = ended.collect();
        for (number, mut child) in ended {
            let status = child.successor.process.try_wait();
            let is_success = matches!(status, Ok(Some(status)) if status.success());
            let is_short = now().since(child.since) < SHORT;
            if self.ending {
                continue;
            }
            if is_short && !child.is_later {
                // A mistake that the next process would make too.
                self.fail(format!("process {number} ended at once"));
                continue;
            }
            if !is_success {
                report(Severity::Error, format_args!("process {number} has died; a new one takes its place"));
            }
            self.absent.insert(number, if is_short { now() + SHORT } else { now() });
        }
        let due: Vec<usize> =
            self.absent.iter().filter(|(_, due)| **due <= now()).map(|(number, _)| *number).collect();
        for number in due {
            self.absent.remove(&number);
            if !self.ending {
                self.start(number, true);
            }
        }
    }
}
