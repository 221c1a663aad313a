//! `Machine`: the code that was measured, the machine, and the other work on it. Every table of a
//! figure has one, and `table.rs` writes it. `tasks_cpu_ns` and `session_cpu_ns` give the CPU
//! time of a server to the figures about servers.
//!
//! `-dirty` behind the commit says that the tree had changes. The published pages show commit and
//! machine of each figure.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Which code was measured, and where.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// Processor, cores, memory and kernel.
    pub(crate) description: String,
    /// The load average of the minute before.
    pub(crate) load: String,
    /// The commit, with `-dirty` behind it if the tree had changes.
    pub(crate) commit: String,
}

impl Machine {
    /// This machine, now.
    pub(crate) fn now() -> Machine {
        let cpu = field("/proc/cpuinfo", "model name").unwrap_or_else(|| "unknown processor".into());
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let memory = memory_kib("MemTotal").unwrap_or(0) / (1 << 20);
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        Machine {
            description: format!("{cpu}, {cores} cores, {memory} GiB, Linux {}", kernel.trim()),
            load: load.split(' ').next().unwrap_or_default().to_owned(),
            commit: commit(),
        }
    }
}

/// The commit of the directory that the program was built in, by git.
fn commit() -> String {
    let directory = env!("CARGO_MANIFEST_DIR");
    let words = ["-c", "safe.directory=*", "-C", directory, "describe", "--always", "--dirty", "--exclude=*"];
    let said = Command::new("git").args(words).output();
    let said = said.ok().filter(|output| output.status.success());
    said.and_then(|output| String::from_utf8(output.stdout).ok())
        .map_or_else(|| "unknown".to_owned(), |text| text.trim().to_owned())
}

/// A field of `/proc/meminfo`, in KiB.
pub(crate) fn memory_kib(name: &str) -> Option<u64> {
    field("/proc/meminfo", name)?.strip_suffix(" kB")?.trim().parse().ok()
}

/// The value of the first `name : value` line of a file.
fn field(path: &str, name: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

/// The CPU time of all tasks of a process, in nanoseconds.
pub(crate) fn tasks_cpu_ns(process: &Path) -> u64 {
    let Ok(tasks) = fs::read_dir(process.join("task")) else { return 0 };
    tasks
        .filter_map(|task| fs::read_to_string(task.ok()?.path().join("schedstat")).ok())
        .filter_map(|text| text.split(' ').next()?.parse::<u64>().ok())
        .sum()
}

/// The directories in `/proc` of all processes of a session.
///
/// # Errors
/// `/proc` cannot be read.
pub(crate) fn processes_of(session: u64) -> io::Result<Vec<PathBuf>> {
    let session = session.to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc")? {
        let path = entry?.path();
        // A process may be gone by the time its files are read; then it is not one of ours.
        let Ok(stat) = fs::read_to_string(path.join("stat")) else { continue };
        // After the name in parentheses: state, parent, group, session.
        let fields = stat.rsplit_once(") ").map(|(_, fields)| fields).unwrap_or_default();
        if fields.split(' ').nth(3) == Some(session.as_str()) {
            found.push(path);
        }
    }
    Ok(found)
}

/// The CPU time that the living processes of a session have had so far, in nanoseconds.
///
/// # Errors
/// As for [`processes_of`].
pub(crate) fn session_cpu_ns(session: u64) -> io::Result<u64> {
    Ok(processes_of(session)?.iter().map(|path| tasks_cpu_ns(path)).sum())
}

/// The CPU time of the whole machine in nanoseconds, of user and kernel and of all interrupts.
///
/// # Errors
/// The kernel does not tell.
pub(crate) fn busy_ns() -> Result<u64, String> {
    let text = fs::read_to_string("/proc/stat").map_err(|error| format!("/proc/stat: {error}"))?;
    let line = text.lines().next().unwrap_or_default();
    let ticks: Vec<u64> = line.split_whitespace().skip(1).filter_map(|word| word.parse().ok()).collect();
    match ticks[..] {
        // A tick is a hundredth of a second for programs.
        [user, nice, system, _, _, irq, softirq, ..] => {
            Ok((user + nice + system + irq + softirq) * 10_000_000)
        }
        _ => Err(format!("/proc/stat has the line {line:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_says_which_code_it_measured() {
        let commit = Machine::now().commit;
        // An archive without history has no commit to name.
        let hash = commit.trim_end_matches("-dirty");
        assert!(commit == "unknown" || hash.chars().all(|c| c.is_ascii_hexdigit()), "{commit}");
    }
}
