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

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal as Kill, kill_process};
use selvedge_core::{Time, now, round_robin_with};
use selvedge_http::{Severity, report};
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::timeout;
use selvedge_io::{EventLoop, blocking};

use crate::background::PidFile;
use crate::configuration::ProcessSettings;
use crate::listeners;
use crate::options::{Options, Refusal};
use crate::running::naming;

use crate::takeover::{HandedFiles, Predecessor, Successor, hand_over};
use crate::{reporting, systemd};

/// In the environment of each process: its number.
const MARK: &str = "SELVEDGE_HTTPD_PROCESS";

/// How often the parent looks whether all processes are there.
const LOOK: Duration = Duration::from_millis(100);

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
    options: &Options,
    process: &ProcessSettings,
    predecessor: &mut Option<Predecessor>,
) -> Result<(), Refusal> {
    // An upgrade may put another file at the path, and the kernel tells no path of a file that is
    // gone.
    let program = env::current_exe()?;
    let mut none = HandedFiles::default();
    let handed = predecessor.as_mut().map_or(&mut none, |predecessor| &mut predecessor.files);
    let sockets = process.processes * options.workers.unwrap_or(1);
    let bound = listeners::bind(&options.listen, options.unix_mode, sockets, handed);
    let mut bound = bound.map_err(naming("--listen"))?;
    let pid_file = PidFile::open(process.pid_file.as_deref(), handed)?;
    let mut children = Children {
        program,
        count: process.processes,
        handing: std::mem::take(&mut bound.handing),
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
    let ended = round_robin_with(&mut events, supervise(children));
    ended.map_err(|error| Refusal { message: error.to_string(), status: 1 })?
}

/// The processes, by their numbers.
struct Children {
    program: PathBuf,
    count: usize,
    /// The sockets of all of them.
    handing: HandedFiles,
    pid_file: PidFile,
    running: BTreeMap<usize, PreforkedChild>,
    /// Numbers without a process, and when each is to have one again.
    absent: BTreeMap<usize, Time>,
    /// Whether no process is started any more.
    ending: bool,
    result: Result<(), Refusal>,
}

struct PreforkedChild {
    successor: Successor,
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
        let started = self.handing.share(number, self.count);
        match started.and_then(|sockets| Successor::start(&mut command, &sockets)) {
            Ok(successor) => {
                self.running.insert(number, PreforkedChild { successor, since: Time::now(), is_later });
            }
            Err(error) => self.fail(format!("{}: {error}", self.program.display())),
        }
    }

    /// Waits until each process has said that it serves.
    fn wait_until_they_serve(&mut self) {
        let failed = self.running.values_mut().find_map(|child| child.successor.wait_until_it_serves().err());
        if let Some(why) = failed {
            self.fail(why);
        }
    }

    /// Notes the failure, and asks all processes to end.
    fn fail(&mut self, message: String) {
        if !self.ending {
            self.ending = true;
            self.result = Err(Refusal { message, status: 1 });
        }
        self.pass_on(Kill::TERM);
    }

    fn pass_on(&self, signal: Kill) {
        for child in self.running.values() {
            // A process that has ended is no reason to stop.
            let _ = kill_process(Pid::from_child(&child.successor.process), signal);
        }
    }

    /// Looks which processes have ended, and starts others in their places.
    fn look(&mut self) {
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

    /// A new parent takes all sockets over. Then the processes retire.
    async fn upgrade(&mut self) {
        let mut files = std::mem::take(&mut self.handing);
        if let Err(error) = self.pid_file.hand(&mut files) {
            report(Severity::Error, format_args!("{error}; these processes go on"));
            self.handing = files;
            return;
        }
        let program = self.program.clone();
        let handed = blocking(move || (hand_over(&program, &files), files)).await;
        match handed {
            Ok((Ok(process), _)) => {
                systemd::notify(&format!("MAINPID={process}"));
                let own = std::process::id();
                report(
                    Severity::Notice,
                    format_args!("process {process} serves; process {own} ends with its last connection"),
                );
                self.pid_file.leave();
                self.ending = true;
                self.pass_on(Kill::USR2);
            }
            Ok((Err(why), files)) => {
                report(Severity::Error, format_args!("{why}; these processes go on"));
                self.handing = files;
                self.handing.forget_pid_file();
            }
            Err(error) => self.fail(error.to_string()),
        }
    }
}

async fn supervise(mut children: Children) -> Result<(), Refusal> {
    let mut heard =
        signals(&[Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::USR1, Signal::USR2])?;
    while !children.running.is_empty() || !(children.ending || children.absent.is_empty()) {
        if let Ok(Ok(signal)) = timeout(LOOK, heard.next()).await {
            let passed = match signal {
                Signal::USR2 if children.ending => continue,
                Signal::USR2 => {
                    children.upgrade().await;
                    continue;
                }
                Signal::HUP => Kill::HUP,
                Signal::USR1 => Kill::USR1,
                Signal::QUIT => Kill::QUIT,
                _ => Kill::TERM,
            };
            children.ending |= passed == Kill::TERM || passed == Kill::QUIT;
            children.pass_on(passed);
        }
        children.look();
    }
    children.result
}
