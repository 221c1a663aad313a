//! Several processes that serve the same addresses: the parent starts them, starts a new one for
//! each that dies, and passes signals on.
//!
//! # Paper
//! \[Mighty\] "Scaling": pre-fork makes use of all cores, because processes share nothing.
//!
//! # Differences
//! 1. Each process is the program started anew, and binds the addresses itself with `SO_REUSEPORT`.
//!    So the kernel gives each connection to one process, and no process waits at a socket that
//!    another one drains.

use std::collections::BTreeMap;
use std::env;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal as Kill, kill_process};
use selvedge_core::{Time, now, round_robin_with};
use selvedge_http::{Severity, report};
use selvedge_io::EventLoop;
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::timeout;

use crate::options::Refusal;

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

/// Runs `count` processes until a signal ends them.
///
/// # Errors
/// A process could not be started, or one ended with a failure at the start.
pub(crate) fn run(count: usize) -> Result<(), Refusal> {
    // An upgrade may put another file at the path, and the kernel tells no path of a file that is
    // gone.
    let program = env::current_exe()?;
    let mut events = EventLoop::new()?;
    let ended = round_robin_with(&mut events, supervise(program, count));
    ended.map_err(|error| Refusal { message: error.to_string(), status: 1 })?
}

/// The processes, by their numbers.
struct Children {
    program: PathBuf,
    running: BTreeMap<usize, PreforkedChild>,
    /// Numbers without a process, and when each is to have one again.
    absent: BTreeMap<usize, Time>,
    /// Whether no process is started any more.
    ending: bool,
    result: Result<(), Refusal>,
}

struct PreforkedChild {
    process: Child,
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
        match command.spawn() {
            Ok(process) => {
                self.running.insert(number, PreforkedChild { process, since: now(), is_later });
            }
            Err(error) => self.fail(format!("{}: {error}", self.program.display())),
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
            let _ = kill_process(Pid::from_child(&child.process), signal);
        }
    }

    /// Looks which processes have ended, and starts others in their places.
    fn look(&mut self) {
        let ended = self.running.extract_if(.., |_, child| matches!(child.process.try_wait(), Ok(Some(_))));
        let ended: Vec<(usize, PreforkedChild)> = ended.collect();
        for (number, mut child) in ended {
            let is_success = matches!(child.process.try_wait(), Ok(Some(status)) if status.success());
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

async fn supervise(program: PathBuf, count: usize) -> Result<(), Refusal> {
    let mut heard =
        signals(&[Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::USR1, Signal::USR2])?;
    let mut children = Children {
        program,
        running: BTreeMap::new(),
        absent: BTreeMap::new(),
        ending: false,
        result: Ok(()),
    };
    for number in 0..count {
        if !children.ending {
            children.start(number, false);
        }
    }
    while !children.running.is_empty() || !(children.ending || children.absent.is_empty()) {
        if let Ok(Ok(signal)) = timeout(LOOK, heard.next()).await {
            let passed = match signal {
                Signal::USR2 => {
                    report(
                        Severity::Error,
                        format_args!("several processes cannot hand over to a new program"),
                    );
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
