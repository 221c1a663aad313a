//! `cargo xtask soak SECONDS` and `cargo xtask stress SECONDS`: the checks that find more the
//! longer they run, which the ordinary tests leave out. `main.rs` calls `night` and `Long::run`;
//! `proofs.rs` takes a minute of `STRESS`.
//!
//! `night` is the list of a night. A part runs also after another one has failed, and all errors
//! come at the end. Each `Long` is a test of the tree that reads its seconds from the environment.

use crate::command::{Invocation, Tally};
use crate::{fuzz, projects, workspace};
use std::time::Duration;

/// Room for building, and for the last to end.
const BESIDES: Duration = Duration::from_secs(15 * 60);

/// The web server under everything that clients do.
pub(crate) const SOAK: Long = Long { test: "soak", variable: "SOAK_SECONDS" };
/// The runtime under everything that threads do.
pub(crate) const STRESS: Long = Long { test: "stress", variable: "STRESS_SECONDS" };

/// What attempts of transactions see, also attempts that do not commit: at least 10^8 of each
/// engine.
const OPACITY: Long = Long { test: "opacity", variable: "PROBE_SECONDS" };

/// The profile of programs that have to be fast but are not measured.
pub(crate) const CHECKED: &str = "checked";

/// Runs the list of a night, each part for this number of seconds: the web server, the runtime,
/// transactions, graphs, messages between ranks, builds that are killed, the fuzz targets, and real
/// projects beside ninja. A part runs also after another has failed.
///
/// # Errors
/// The parts that failed, with their errors.
pub(crate) fn night(seconds: &str) -> Result<(), String> {
    // The array makes the parts run in this order.
    let parts = [
        ("server", SOAK.run(seconds)),
        ("stress", STRESS.run(seconds)),
        ("opacity", OPACITY.run(seconds)),
        ("graphs", graphs(seconds)),
        ("graphs over ranks", graphs_over_ranks(seconds)),
        ("messages", messages(seconds)),
        ("kills", kills(seconds)),
        ("fuzz", fuzz::run(seconds, None)),
        ("projects", projects::run(seconds, &[])),
    ];
    let failed = parts.into_iter().filter_map(|(part, outcome)| Some(format!("{part}: {}", outcome.err()?)));
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

/// The graphs of `cnc`'s tests under 1,000 seeds of the scheduler that takes steps in any order.
/// They take as long as they take: a few minutes.
fn graphs(seconds: &str) -> Result<(), String> {
    suite("graphs", "selvedge-cnc", &[], ("CNC_SEEDS", "1000"), seconds)
}

/// The graphs over ranks, each under 1,000 seeds, with messages that take time: some minutes too.
fn graphs_over_ranks(seconds: &str) -> Result<(), String> {
    suite("graphs over ranks", "selvedge-distributed", &[], ("DISTRIBUTED_SEEDS", "1000"), seconds)
}

/// Memory over 10^7 messages between ranks: a minute.
fn messages(seconds: &str) -> Result<(), String> {
    let words = ["--", "--nocapture", "memory_is_constant_over_many_messages"];
    suite("messages", "selvedge-mpi", &words, ("MPI_MESSAGES", "10000000"), seconds)
}

/// Builds that are killed at random moments.
fn kills(seconds: &str) -> Result<(), String> {
    let words = ["--", "--ignored", "--nocapture", "kills_for_long"];
    suite("kills", "selvedge-make", &words, ("KILLS_SECONDS", seconds), seconds)
}

/// Runs the tests `suite` of one package with a variable that makes them long. Only that package
/// is built.
fn suite(
    name: &str,
    package: &str,
    words: &[&str],
    (variable, value): (&str, &str),
    seconds: &str,
) -> Result<(), String> {
    let limit: u64 = seconds.parse().map_err(|_| format!("{seconds:?} is no number of seconds"))?;
    let cargo = ["cargo", "test", "--profile", CHECKED, "--locked", "--package", package];
    let words = [&cargo[..], &["--test", "suite"], words].concat();
    let limit = Duration::from_secs(limit) + BESIDES;
    let invocation = Invocation::new(limit, &words).env(variable, value);
    println!("{name}: {}", invocation.display());
    invocation.run(&workspace::root(), &mut Tally::default())
}

/// A test that runs for as long as it is told to by an environment variable.
#[derive(Debug)]
pub(crate) struct Long {
    test: &'static str,
    variable: &'static str,
}

impl Long {
    /// How it is run.
    pub(crate) fn invocation(&self, seconds: u64) -> Invocation {
        // The whole workspace, so that all long runs and the models share what they build.
        let cargo = ["cargo", "test", "--profile", CHECKED, "--locked", "--workspace"];
        let words = [&cargo[..], &["--test", self.test, "--", "--ignored", "--nocapture"]].concat();
        Invocation::new(Duration::from_secs(seconds) + BESIDES, &words)
            .env(self.variable, &seconds.to_string())
    }

    /// Runs it.
    ///
    /// # Errors
    /// When `seconds` is no number, and when memory or descriptors grow, or an answer is wrong.
    pub(crate) fn run(&self, seconds: &str) -> Result<(), String> {
        let seconds = seconds.parse().map_err(|_| format!("{seconds:?} is no number of seconds"))?;
        let invocation = self.invocation(seconds);
        println!("{}: {}", self.test, invocation.display());
        invocation.run(&workspace::root(), &mut Tally::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_of_a_night_runs_and_reports() {
        let error = night("soon").unwrap_err();
        for part in [
            "server: \"soon\"",
            "stress: \"soon\"",
            "opacity: \"soon\"",
            "graphs: \"soon\"",
            "kills: \"soon\"",
            "fuzz: fuzz: not a number",
            "projects: \"soon\"",
        ] {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}
