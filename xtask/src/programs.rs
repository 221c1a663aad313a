//! `cargo xtask programs RUNS [NAMES]`: runs the programs of `programs/`, RUNS times under each
//! runner. `main.rs` calls `run`, and `proofs.rs` takes `invocation` with `RUNS` runs.
//!
//! The test `every_program` does the work: the head of a program says how the program must end.
//! This file only starts the test, with room for the build.

use crate::command::{Invocation, Tally};
use crate::workspace;
use std::time::Duration;

/// The number of runs of each program under each runner in the proof `programs`.
pub(crate) const RUNS: u32 = 20;

/// Room for building, and for the runs.
const LIMIT: Duration = Duration::from_secs(15 * 60);

/// How the programs are run: all of them, or those with one of `names`, between commas, in their
/// names.
pub(crate) fn invocation(runs: u32, names: &str) -> Invocation {
    // The whole workspace, because its features differ from those of the package alone, and all
    // crates would be built again.
    let words = ["cargo", "test", "--locked", "--workspace", "--test", "every_program", "--", "--nocapture"];
    Invocation::new(LIMIT, &words).env("PROGRAM_RUNS", &runs.to_string()).env("PROGRAMS", names)
}

/// Runs them.
///
/// # Errors
/// When `runs` is no number, and when a program does not do as its head says.
pub(crate) fn run(runs: &str, names: &str) -> Result<(), String> {
    let runs = runs.parse().map_err(|_| format!("{runs:?} is no number of runs"))?;
    let invocation = invocation(runs, names);
    println!("programs: {}", invocation.display());
    invocation.run(&workspace::root(), &mut Tally::default())
}
