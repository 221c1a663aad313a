//! Processes that run on one CPU, or on two, away from the rest of the machine as far as this user
//! may.
//!
//! A measured process is started through this program's own `pinned` subcommand, which binds itself
//! to its CPUs, opens a session of its own (a scheduler autogroup of its own, where the kernel has
//! them), raises that group's priority if it may, and then becomes the program. It dies with its
//! parent.
//!
//! `measure.rs` and the figures about servers call `command` and `command_on`.

use rustix::process::Signal;
use rustix::thread::CpuSet;
use std::env;
use std::fs;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Where servers and single-threaded programs run.
pub(crate) const SERVER_CPU: usize = 0;
/// Where load generators run.
pub(crate) const CLIENT_CPU: usize = 1;

/// Where programs with two workers run.
pub(crate) const BOTH_CPUS: [usize; 2] = [SERVER_CPU, CLIENT_CPU];

/// A command that runs `words` on `cpu`.
///
/// # Panics
///
/// When this program's own executable cannot be named, or `words` is empty.
pub(crate) fn command(cpu: usize, words: &[String]) -> Command {
    command_on(&[cpu], words)
}

/// A command that runs `words` on any of `cpus`.
///
/// # Panics
///
/// When this program's own executable cannot be named, or `words` is empty.
pub(crate) fn command_on(cpus: &[usize], words: &[String]) -> Command {
    assert!(!words.is_empty(), "a command has a program");
    let cpus: Vec<String> = cpus.iter().map(usize::to_string).collect();
    let mut command = Command::new(env::current_exe().expect("the running executable has a path"));
    command.arg("pinned").arg(cpus.join(",")).args(words);
    command
}

/// The CPUs of a list such as `0` or `0,1`.
pub(crate) fn list(cpus: &str) -> Option<Vec<usize>> {
    cpus.split(',').map(|cpu| cpu.parse().ok()).collect()
}

/// Becomes `program` on `cpus`; returns only if that fails.
pub(crate) fn exec(cpus: &[usize], program: &str, arguments: &[String]) -> String {
    let mut set = CpuSet::new();
    for &cpu in cpus {
        set.set(cpu);
    }
    if let Err(error) = rustix::thread::sched_setaffinity(None, &set) {
        return format!("cannot run on the CPUs {cpus:?}: {error}");
    }
    // Without a session of its own the process shares its priority group with the shell that
    // started the figure; without the right to raise it, the figure is measured at the ordinary
    // priority. Both are only less quiet.
    let _ = rustix::process::setsid();
    let _ = fs::write("/proc/self/autogroup", "-20");
    let _ = rustix::process::set_parent_process_death_signal(Some(Signal::KILL));
    let error = Command::new(program).args(arguments).exec();
    format!("{program}: {error}")
}
