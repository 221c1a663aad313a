//! A step of `cargo xtask test`, `ci` or `prove`: its run ([`one`]), its [`Outcome`], and the lines
//! with which a command ends ([`close`]). `ci.rs` and `prove.rs` call them.
//!
//! Every step runs, also after one has failed. The last line of the output is the number of tests
//! that passed and failed.

use crate::command::Tally;
use std::process::ExitCode;
use std::time::Instant;

/// What became of a step.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) name: String,
    pub(crate) seconds: f64,
    pub(crate) tally: Tally,
    pub(crate) result: Result<(), String>,
}

impl Outcome {
    /// The step's name and its error, if it failed.
    fn failure(&self) -> Option<String> {
        self.result.as_ref().err().map(|error| format!("{}: {error}", self.name))
    }
}

/// Runs one step. If the step fails without a failed test, it counts as a test, so that the closing
/// line never hides it.
pub(crate) fn one(mut tally: Tally, check: impl FnOnce(&mut Tally) -> Result<(), String>) -> Outcome {
    let name = tally.step.clone();
    println!("\nci: {name} ..");
    let started = Instant::now();
    let result = check(&mut tally);
    let seconds = started.elapsed().as_secs_f64();
    match &result {
        Ok(()) => println!("ci: {name}: ok after {seconds:.1} s"),
        Err(error) => {
            println!("ci: {name} FAILED after {seconds:.1} s: {error}");
            tally.failed = tally.failed.max(1);
        }
    }
    Outcome { name, seconds, tally, result }
}

/// Prints a table of the steps, the test runner's summaries, the reports of what failed, and the
/// closing line.
pub(crate) fn close(command: &str, seconds: f64, outcomes: Vec<Outcome>) -> ExitCode {
    let failed: Vec<_> = outcomes.iter().filter_map(Outcome::failure).collect();
    println!("\n{command}: took {seconds:.0} s");
    println!("{:<24} {:>7} {:>7} {:>7}", "step", "seconds", "passed", "failed");
    let mut tally = Tally::default();
    for Outcome { name, seconds, tally: of_step, .. } in outcomes {
        println!("{name:<24} {seconds:>7.0} {:>7} {:>7}", of_step.passed, of_step.failed);
        tally.add(of_step);
    }
    println!("\n{command}: the test runner said:");
    for summary in &tally.summaries {
        println!("{summary}");
    }
    // Behind all summaries, because the last lines of a long output are kept.
    for report in &tally.reports {
        println!("\n{command}: a failure:\n{report}");
    }
    println!("{}", closing(command, &failed, &tally));
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn closing(command: &str, failed: &[String], tally: &Tally) -> String {
    let counts = format!("{} passed, {} failed", tally.passed, tally.failed);
    if failed.is_empty() { counts } else { format!("{command} failed in:\n{}\n{counts}", failed.join("\n")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_line_is_last_and_the_failed_steps_are_named() {
        let mut tally = Tally::default();
        tally.read_line("test result: FAILED. 7 passed; 2 failed; 0 ignored");
        assert_eq!(closing("ci", &[], &tally), "7 passed, 2 failed");
        let failed = ["lints: a warning".to_string(), "miri: a race".to_string()];
        assert_eq!(
            closing("ci", &failed, &tally),
            "ci failed in:\nlints: a warning\nmiri: a race\n7 passed, 2 failed"
        );
    }

    #[test]
    fn a_failed_step_counts_even_if_it_has_no_tests() {
        let outcome = one(Tally::of("lints", false), |_| Err("a warning".to_string()));
        assert_eq!(outcome.tally.failed, 1);
        assert_eq!(outcome.failure().as_deref(), Some("lints: a warning"));
    }
}
