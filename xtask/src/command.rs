//! `Invocation` runs one command and shows its output as it comes; `Tally` adds up the tests that
//! the command reports. Every command of xtask runs other programs through them.
//!
//! With several steps at the same time each line begins with the name of its step. The jobs of
//! `side_by_side.rs` hold their lines and print them together. `timeout` ends the whole process
//! group, so that no test outlives its limit.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{BufRead, BufReader, Write, pipe};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The sum of the `test result:` lines seen so far.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub(crate) passed: u64,
    pub(crate) failed: u64,
    /// The test runner's summaries, each followed by the name of the binary that it tested. A
    /// summary of no tests is left out.
    pub(crate) summaries: Vec<String>,
    /// The last lines of each command that failed. Of a test binary they begin with the runner's
    /// line `failures:`, if that is one of them.
    pub(crate) reports: Vec<String>,
    /// The step for which the tests are run.
    pub(crate) step: String,
    /// Whether other steps print at the same time. Then each line begins with the step's name.
    pub(crate) beside_others: bool,
    /// The lines that wait for [`release`](Tally::release), if lines wait.
    held: Option<String>,
    /// The file that takes every line too, if there is one.
    pub(crate) log: Option<File>,
    testing: String,
    last_lines: VecDeque<String>,
    /// Whether the runner has begun to list the failures of the binary that runs now.
    lists_failures: bool,
}

/// The lines of a report. A test that fails prints fewer.
const REPORT: usize = 60;

impl Tally {
    /// Nothing yet, of this step.
    pub(crate) fn of(step: &str, beside_others: bool) -> Tally {
        Tally { step: step.to_string(), beside_others, ..Tally::default() }
    }

    /// Nothing yet, of a job beside others of this step. Its lines are printed together.
    pub(crate) fn held(step: &str) -> Tally {
        Tally { step: step.to_string(), held: Some(String::new()), ..Tally::default() }
    }

    /// Prints a line of a command's output, or holds it.
    pub(crate) fn say(&mut self, line: &str) {
        if let Some(log) = &mut self.log {
            // A log that cannot be written changes no outcome.
            let _ = writeln!(log, "{line}");
        }
        match (&mut self.held, self.beside_others) {
            (Some(held), _) => held.extend([line, "\n"]),
            (None, true) => println!("{}: {line}", self.step),
            (None, false) => println!("{line}"),
        }
    }

    /// Prints the lines that were held. No line of another job comes between them.
    pub(crate) fn release(&mut self) {
        if let Some(held) = self.held.take() {
            print!("{held}");
        }
    }

    /// Takes another one's tests into account.
    pub(crate) fn add(&mut self, other: Tally) {
        self.passed += other.passed;
        self.failed += other.failed;
        self.summaries.extend(other.summaries);
        self.reports.extend(other.reports);
    }

    /// Takes one line of a test run into account.
    pub(crate) fn read_line(&mut self, line: &str) {
        let trimmed = line.trim();
        if let Some(what) = trimmed.strip_prefix("Running ").or_else(|| trimmed.strip_prefix("Doc-tests ")) {
            let kind = if trimmed.starts_with("Doc-tests") { "doc tests of " } else { "" };
            // `Running tests/loom_gate.rs (target/debug/deps/loom_gate-0a1b)`: the hash is left
            // out.
            let name = match what.split_once(" (") {
                Some((source, binary)) => {
                    let binary = binary.trim_end_matches(')').rsplit('/').next().unwrap_or("");
                    format!("{} {source}", binary.rsplit_once('-').map_or(binary, |(name, _)| name))
                }
                None => what.to_string(),
            };
            self.testing = format!("{kind}{name}");
            self.lists_failures = false;
            self.last_lines.clear();
        }
        if trimmed == "failures:" && !self.lists_failures {
            self.lists_failures = true;
            self.last_lines.clear();
        }
        if self.last_lines.len() == REPORT {
            self.last_lines.pop_front();
        }
        self.last_lines.push_back(line.trim_end().to_string());
        let Some(at) = line.find("test result: ") else { return };
        let summary = &line[at..];
        let count = |label: &str| -> Option<u64> {
            let end = summary.find(label)?;
            summary[..end].trim_end().rsplit(|c: char| !c.is_ascii_digit()).next()?.parse().ok()
        };
        if let (Some(passed), Some(failed)) = (count(" passed;"), count(" failed;")) {
            self.passed += passed;
            self.failed += failed;
            let summary = format!("{}  [{}: {}]", summary.trim_end(), self.step, self.testing);
            if failed > 0 {
                self.last_lines.pop_back();
                self.last_lines.push_back(summary.clone());
                self.report();
            }
            if passed + failed > 0 {
                self.summaries.push(summary);
            }
        }
    }

    /// Keeps the last lines as a report.
    fn report(&mut self) {
        let lines: Vec<String> = self.last_lines.drain(..).collect();
        self.reports.push(lines.join("\n"));
    }
}

/// The compiler writes nothing for a later build that changes little. A build from nothing takes a
/// seventh to a third less CPU time so; a run of all checks after a small change takes longer.
pub(crate) const NOT_INCREMENTAL: (&str, &str) = ("CARGO_INCREMENTAL", "0");

/// A limit of time, in minutes.
pub(crate) const fn minutes(count: u64) -> Duration {
    Duration::from_secs(count * 60)
}

/// A command with its surroundings, ready to run.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    program: String,
    args: Vec<String>,
    env: Vec<(String, String)>,
    limit: Duration,
}

impl Invocation {
    /// `words[0]` is the program, the rest its arguments. It may run for `limit`.
    pub(crate) fn new(limit: Duration, words: &[&str]) -> Invocation {
        let (program, args) = words.split_first().expect("a command has a first word");
        Invocation {
            program: program.to_string(),
            args: args.iter().map(ToString::to_string).collect(),
            env: Vec::new(),
            limit,
        }
    }

    /// Sets a variable in the command's environment.
    pub(crate) fn env(mut self, key: &str, value: &str) -> Invocation {
        self.env.push((key.to_string(), value.to_string()));
        self
    }

    /// The command as a shell would take it.
    pub(crate) fn display(&self) -> String {
        let env = self.env.iter().map(|(key, value)| format!("{key}={}", quoted(value)));
        let words = std::iter::once(&self.program).chain(&self.args).map(|word| quoted(word));
        env.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// Runs it in `dir`, copying both of its output streams to ours line by line and counting tests
    /// in `tally`.
    ///
    /// # Errors
    /// When it cannot be started, ends with a status other than zero, or outlives its limit.
    pub(crate) fn run(&self, dir: &Path, tally: &mut Tally) -> Result<(), String> {
        let (reader, writer) = pipe().map_err(|e| format!("cannot make a pipe: {e}"))?;
        let other_writer = writer.try_clone().map_err(|e| format!("cannot copy a pipe: {e}"))?;
        // coreutils' `timeout` ends the whole process group, so that no test binary outlives its
        // runner.
        let mut command = Command::new("timeout");
        command
            .args(["--kill-after=10", &self.limit.as_secs().to_string(), &self.program])
            .args(&self.args)
            .env(NOT_INCREMENTAL.0, NOT_INCREMENTAL.1)
            // Many tests expect panics, and a backtrace takes 10 ms or more.
            .env("RUST_BACKTRACE", "0")
            .envs(self.env.iter().map(|(key, value)| (key, value)))
            .current_dir(dir)
            .stdout(writer)
            .stderr(other_writer);
        let reported = tally.reports.len();
        let mut child = command.spawn().map_err(|e| format!("cannot run {}: {e}", self.program))?;
        drop(command); // with it go our copies of the pipe's writing end
        for line in BufReader::new(reader).split(b'\n') {
            let line = line.map_err(|e| format!("cannot read from {}: {e}", self.program))?;
            let line = String::from_utf8_lossy(&line);
            tally.say(&line);
            tally.read_line(&line);
        }
        let _ = std::io::stdout().flush();
        let status = child.wait().map_err(|e| format!("cannot wait for {}: {e}", self.program))?;
        if !status.success() && tally.reports.len() == reported {
            tally.report();
        }
        match status.code() {
            Some(0) => Ok(()),
            Some(124 | 137) => {
                Err(format!("`{}` ran longer than {} s", self.display(), self.limit.as_secs()))
            }
            _ => Err(format!("`{}`: {status}", self.display())),
        }
    }
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=+:,%@".contains(c);
    if !word.is_empty() && word.chars().all(plain) { word.to_string() } else { format!("'{word}'") }
}

/// Whether `program` is found on the search path.
pub(crate) fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|dir| dir.join(program).is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(limit_seconds: u64, script: &str) -> (Result<(), String>, Tally) {
        let mut tally = Tally::default();
        let invocation = Invocation::new(Duration::from_secs(limit_seconds), &["sh", "-c", script]);
        let outcome = invocation.run(Path::new("."), &mut tally);
        (outcome, tally)
    }

    #[test]
    fn sums_the_runner_s_own_lines() {
        let mut tally = Tally::of("tests", false);
        for line in [
            "     Running unittests src/lib.rs (target/debug/deps/selvedge_core-1f)",
            "test result: ok. 12 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "   Doc-tests selvedge_core",
            "test result: FAILED. 3 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.1s",
            "test result: ok. 0 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s",
            "the test result: is not a summary",
        ] {
            tally.read_line(line);
        }
        assert_eq!((tally.passed, tally.failed), (15, 2));
        assert!(tally.summaries[0].starts_with("test result: ok. 12 passed;"));
        assert!(tally.summaries[0].ends_with("[tests: selvedge_core unittests src/lib.rs]"));
        assert!(tally.summaries[1].ends_with("[tests: doc tests of selvedge_core]"));
        assert_eq!(tally.summaries.len(), 2);
    }

    #[test]
    fn what_a_failed_test_printed_is_kept() {
        let mut tally = Tally::of("tests", false);
        for line in [
            "     Running tests/a.rs (target/debug/deps/a-1f)",
            "test one ... FAILED",
            "failures:",
            "---- one stdout ----",
            "left is not right",
            "failures:",
            "    one",
            "test result: FAILED. 0 passed; 1 failed; 0 ignored",
            "     Running tests/b.rs (target/debug/deps/b-1f)",
            "test result: ok. 1 passed; 0 failed; 0 ignored",
        ] {
            tally.read_line(line);
        }
        let [report] = &tally.reports[..] else { panic!("{:?}", tally.reports) };
        assert!(report.starts_with("failures:\n---- one stdout ----\nleft is not right\n"), "{report}");
        assert!(
            report.ends_with("test result: FAILED. 0 passed; 1 failed; 0 ignored  [tests: a tests/a.rs]")
        );
    }

    #[test]
    fn a_long_report_keeps_its_end() {
        let mut tally = Tally::default();
        tally.read_line("failures:");
        (0..1000).for_each(|line| tally.read_line(&line.to_string()));
        tally.read_line("test result: FAILED. 0 passed; 1 failed; 0 ignored");
        assert_eq!(tally.reports[0].lines().count(), REPORT);
        assert!(!tally.reports[0].contains("failures:") && tally.reports[0].contains("\n999\n"));
    }

    #[test]
    fn a_held_line_waits() {
        let mut tally = Tally::held("tests");
        tally.say("one");
        assert_eq!(tally.held.as_deref(), Some("one\n"));
        tally.release();
        assert_eq!(tally.held, None);
    }

    #[test]
    fn reads_both_streams_of_a_command() {
        let (outcome, tally) = run(
            10,
            "echo '  Running x (a/b-1)' >&2; echo 'test result: ok. 4 passed; 0 failed; 0 ignored'; exit 0",
        );
        assert_eq!(outcome, Ok(()));
        assert_eq!(tally.passed, 4);
        assert!(tally.summaries[0].ends_with("[: b x]"), "{:?}", tally.summaries);
    }

    #[test]
    fn a_failing_command_is_named() {
        let (outcome, tally) = run(10, "echo its last line; exit 3");
        assert_eq!(tally.reports, ["its last line"]);
        let message = outcome.unwrap_err();
        assert!(message.contains("sh -c 'echo its last line; exit 3'") && message.contains('3'), "{message}");
    }

    #[test]
    fn a_command_that_outlives_its_limit_fails() {
        let (outcome, _) = run(1, "sleep 30");
        assert!(outcome.unwrap_err().contains("longer than 1 s"));
    }

    #[test]
    fn a_missing_program_fails() {
        let invocation = Invocation::new(Duration::from_secs(5), &["selvedge-no-such-program"]);
        assert!(invocation.run(Path::new("."), &mut Tally::default()).is_err());
    }
}
