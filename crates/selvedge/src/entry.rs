//! What runs the functions under [`main`](macro@crate::main) and [`test`](macro@crate::test). Only
//! the code that these attributes write calls it (`crates/macros`).
//!
//! A future that is `Send` runs as a main that moves ([`Moves`]), any other as one that stays
//! ([`Stays`]). No generic function can tell the two apart, so the method call in the written code
//! does: `(&main).way()` finds [`MayMove`] first, which is for `main` itself. If `main` is not
//! `Send`, the compiler goes on to [`MustStay`], which is for a reference to it.

use crate::{Runner, WorkersError};
use selvedge_sched::SchedulerError;
use selvedge_sim::{World, each_seed};
use std::ops::Range;
use std::process::{ExitCode, Termination};

/// A main that may move from worker to worker.
#[derive(Debug)]
pub struct Moves;

/// A main that stays on the calling OS thread.
#[derive(Debug)]
pub struct Stays;

/// A future that is `Send`.
pub trait MayMove {
    #[allow(missing_docs, reason = "only written code calls it")]
    fn way(&self) -> Moves {
        Moves
    }
}

impl<F: Future + Send + 'static> MayMove for F {}

/// Any future.
pub trait MustStay {
    #[allow(missing_docs, reason = "only written code calls it")]
    fn way(&self) -> Stays {
        Stays
    }
}

impl<F: Future + 'static> MustStay for &F {}

impl Moves {
    /// Runs the future, and reports its output.
    ///
    /// # Errors
    /// The runner's, in words.
    pub fn run<F>(self, runner: Result<Runner, WorkersError>, main: F) -> Result<ExitCode, String>
    where
        F: Future<Output: Termination> + Send + 'static,
    {
        told(runner, |runner| runner.run(async { main.await.report() }))
    }
}

impl Stays {
    /// Runs the future, and reports its output.
    ///
    /// # Errors
    /// The runner's, in words.
    pub fn run<F>(self, runner: Result<Runner, WorkersError>, main: F) -> Result<ExitCode, String>
    where
        F: Future<Output: Termination> + 'static,
    {
        told(runner, |runner| runner.run_pinned(async { main.await.report() }))
    }
}

fn told(
    runner: Result<Runner, WorkersError>,
    run: impl FnOnce(Runner) -> Result<ExitCode, SchedulerError>,
) -> Result<ExitCode, String> {
    let runner = runner.map_err(|error| error.to_string())?;
    run(runner).map_err(|failure| failure.to_string())
}

/// How the process ends.
pub fn report(ended: Result<ExitCode, String>) -> ExitCode {
    ended.unwrap_or_else(|message| {
        eprintln!("Error: {message}");
        ExitCode::FAILURE
    })
}

/// How a test ends.
///
/// # Panics
/// If the runner failed.
pub fn tested(ended: Result<ExitCode, String>) -> ExitCode {
    ended.unwrap_or_else(|message| panic!("{message}"))
}

/// Runs a test in a simulated world for each seed.
///
/// # Panics
/// If the test panics, returns what is no success, or leaves descriptors open.
pub fn simulate<F>(seeds: Range<u64>, mut test: impl FnMut() -> F)
where
    F: Future<Output: Termination> + 'static,
{
    each_seed(seeds, |seed| {
        let ended = World::new(seed).run(test()).unwrap_or_else(|failed| panic!("{failed}"));
        assert_eq!(ended.descriptors, 0, "descriptors are left open");
        assert!(ended.output.report() == ExitCode::SUCCESS, "the test has failed: its error is above");
    });
}
