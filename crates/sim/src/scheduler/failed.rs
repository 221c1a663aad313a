//! [`SimulationError`] and [`Why`]: the report of a simulated run that failed, with the way to
//! repeat it: a seed, or a schedule.
//!
//! `Simulation`, `Explorer` and `World` return it. Its `Debug` is the same text as its `Display`,
//! because a test that unwraps prints the former.

use super::seeds::SEED_VARIABLE;
use selvedge_core::{Deadlock, RunError};
use std::fmt;

/// A simulated run that failed: the reason, and how to repeat the run.
#[derive(Clone)]
pub struct SimulationError {
    why: Why,
    steps: u64,
    seed: Option<u64>,
    choices: Vec<u32>,
}

/// The reason for which a simulated run failed.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum Why {
    /// A thread panicked: the main thread, or a thread that no thread joins.
    Panic {
        /// The type name of the thread's future.
        thread: String,
        /// The panic's message.
        message: String,
    },
    /// All threads that are left wait, and no event can wake them.
    Deadlock(Deadlock),
    /// The main thread exited, so it has no result.
    MainExited,
    /// The run took more steps than it was [allowed](crate::Simulation::steps_max).
    TooManySteps,
    /// The scheduler could not go on: see [`RunError`].
    Error(String),
}

impl SimulationError {
    /// A run in the order that a seed determined.
    pub(super) fn with_seed(why: Why, steps: u64, seed: u64) -> SimulationError {
        SimulationError { why, steps, seed: Some(seed), choices: Vec::new() }
    }

    /// A run with given choices. `made` has each choice that it made.
    pub(super) fn in_schedule(why: Why, steps: u64, made: &[(u32, u32)]) -> SimulationError {
        // A replay makes choice 0 where no choice is given, so the zeros at the end are left out.
        let len = made.iter().rposition(|made| made.0 > 0).map_or(0, |last| last + 1);
        let choices = made[..len].iter().map(|made| made.0).collect();
        SimulationError { why, steps, seed: None, choices }
    }

    /// The reason.
    pub fn why(&self) -> &Why {
        &self.why
    }

    /// How many steps the run made.
    pub fn steps(&self) -> u64 {
        self.steps
    }

    /// The choices of the run, for [`Simulation::replay`](crate::Simulation::replay); empty unless
    /// an [`Explorer`](crate::Explorer) made them.
    pub fn schedule(&self) -> String {
        let choices: Vec<String> = self.choices.iter().map(u32::to_string).collect();
        choices.join(".")
    }
}

impl fmt::Display for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seed {
            Some(seed) => write!(f, "seed {seed} fails")?,
            None => write!(f, "schedule \"{}\" fails", self.schedule())?,
        }
        write!(f, " after {} steps: ", self.steps)?;
        match &self.why {
            Why::Panic { thread, message } => write!(f, "{thread} panicked: {message}")?,
            Why::Deadlock(deadlock) => write!(f, "{deadlock}")?,
            Why::MainExited => write!(f, "{}", RunError::MainExited)?,
            Why::TooManySteps => f.write_str("it never ends, or was not given enough steps")?,
            Why::Error(error) => f.write_str(error)?,
        }
        match self.seed {
            Some(seed) => write!(f, "\nto see it again: {SEED_VARIABLE}={seed}"),
            None => write!(f, "\nto see it again: Simulation::replay(\"{}\")", self.schedule()),
        }
    }
}

/// The same text as `Display`, because a test that unwraps prints it.
impl fmt::Debug for SimulationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl std::error::Error for SimulationError {}

impl From<RunError> for Why {
    fn from(error: RunError) -> Why {
        match error {
            RunError::Deadlock(deadlock) => Why::Deadlock(deadlock),
            RunError::MainExited => Why::MainExited,
            error => Why::Error(error.to_string()),
        }
    }
}
