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

use std::collections::HashMap;
use std::env;
use std::process::{Child, Command};
use std::time::Duration;

use rustix::process::{Pid, Signal as Kill, kill_process};
use selvedge_core::{now, round_robin_with};
use selvedge_io::EventLoop;
use selvedge_io::signal::{Signal, signals};
use selvedge_io::time::timeout;

use crate::options::Refusal;

/// In the environment of each process: its number.
const MARK: &str = "SELVEDGE_HTTPD_PROCESS";

/// How often the parent looks whether all processes are there.
const LOOK: Duration = Duration::from_millis(100);

/// A process that dies sooner is not replaced at once.
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
    let mut events = EventLoop::new()?;
    let ended = round_robin_with(&mut events, supervise(count));
    ended.map_err(|error| Refusal { message: error.to_string(), status: 1 })?
}

fn start(number: usize) -> std::io::Result<Child> {
    let mut command = Command::new(env::current_exe()?);
    command.args(env::args_os().skip(1)).env(MARK, number.to_string());
    if number > 0 {
        // The first says where it serves.
        command.stdout(std::process::Stdio::null());
    }
    command.spawn()
}

async fn supervise(count: usize) -> Result<(), Refusal> {
    let mut heard = signals(&[Signal::TERM, Signal::INT, Signal::QUIT, Signal::HUP, Signal::USR1])?;
    let mut children = HashMap::new();
    for number in 0..count {
        children.insert(number, (start(number)?, now()));
    }
    let mut ending = false;
    let mut result = Ok(());
    while !children.is_empty() {
        if let Ok(Ok(signal)) = timeout(LOOK, heard.next()).await {
            let passed = match signal {
                Signal::HUP => Kill::HUP,
                Signal::USR1 => Kill::USR1,
                Signal::QUIT => Kill::QUIT,
                _ => Kill::TERM,
            };
            ending |= passed == Kill::TERM || passed == Kill::QUIT;
            for (child, _) in children.values() {
                // A process that has ended is no reason to stop.
                let _ = kill_process(Pid::from_child(child), passed);
            }
        }
        let ended: Vec<(usize, bool, bool)> = children
            .iter_mut()
            .filter_map(|(number, (child, since))| {
                let status = child.try_wait().ok()??;
                Some((*number, status.success(), now().since(*since) < SHORT))
            })
            .collect();
        for (number, is_success, is_short) in ended {
            children.remove(&number);
            if ending {
                continue;
            }
            if is_short {
                // A mistake that the next process would make too.
                ending = true;
                result = Err(Refusal { message: format!("process {number} ended at once"), status: 1 });
                for (child, _) in children.values() {
                    let _ = kill_process(Pid::from_child(child), Kill::TERM);
                }
                continue;
            }
            if !is_success {
                eprintln!("selvedge-httpd: process {number} has died; a new one takes its place");
            }
            children.insert(number, (start(number)?, now()));
        }
    }
    result
}
