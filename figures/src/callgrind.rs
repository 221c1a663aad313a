//! User instructions, which callgrind counts. The figures `instructions` and `web-instructions`
//! call `each`.
//!
//! A program runs under callgrind twice, once for longer. The difference between the two counts
//! belongs to the additional operations, so the start of the program does not count. The answers of
//! both runs are checked. A machine without valgrind gives `MeasureError::Absent`.

use crate::measure::{Contender, MeasureError, checked, output, parse};
use crate::peers::program_path;
use crate::pinned;
use std::process::Command;
use std::time::Duration;

/// How long one run may take: a program is some fifty times slower under callgrind.
pub(crate) const LIMIT: Duration = Duration::from_secs(120);

/// The words before a program that make callgrind count it. Its log goes to where the program's
/// output goes.
///
/// # Errors
///
/// The text that the table shows instead of a number: the package to install.
pub(crate) fn words() -> Result<Vec<String>, String> {
    let words = ["--tool=callgrind", "--callgrind-out-file=/dev/null", "--log-fd=1"];
    Ok([program_path("valgrind")?].into_iter().chain(words.map(str::to_owned)).collect())
}

/// How many instructions callgrind's log says were executed, by all processes that wrote to it.
pub(crate) fn collected(log: &str) -> Option<u64> {
    let mut counts = log.lines().filter_map(|line| line.split_once("Collected : "));
    let first = counts.next()?.1.trim().parse::<u64>().ok()?;
    counts.try_fold(first, |sum, (_, count)| Some(sum + count.trim().parse::<u64>().ok()?))
}

/// The instructions of each operation by which the second length exceeds the first. `contender`
/// gives the program that makes a number of operations.
///
/// # Errors
///
/// [`MeasureError::Absent`] when the program or callgrind is not there, [`MeasureError::Failed`]
/// when it does not run to its end, [`MeasureError::Wrong`] when an answer is wrong.
pub(crate) fn each(
    contender: &dyn Fn(u64) -> Contender,
    [short, long]: [u64; 2],
) -> Result<f64, MeasureError> {
    let (few, many) = (all(&contender(short))?, all(&contender(long))?);
    Ok((many as f64 - few as f64) / (long - short) as f64)
}

/// All instructions of one run. Its answers are checked.
fn all(contender: &Contender) -> Result<u64, MeasureError> {
    let text = output(command(contender).map_err(MeasureError::Absent)?, LIMIT)?;
    checked(parse(&text), &contender.answers, &[])?;
    collected(&text).ok_or_else(|| MeasureError::Failed("callgrind counted nothing".to_owned()))
}

fn command(contender: &Contender) -> Result<Command, String> {
    let words = [words()?, contender.command.clone()?].concat();
    let mut command = pinned::command_on(contender.cpus, &words);
    command.envs(contender.environment.iter().copied());
    Ok(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counts_of_all_processes_are_added() {
        let log = "live 1000\n==7== Events    : Ir\n==7== Collected : 1200\n==8== Collected : 34\n";
        assert_eq!(collected(log), Some(1234));
        assert_eq!(collected("==7== Events    : Ir\n"), None);
        assert_eq!(collected("==7== Collected : 12 34\n"), None);
    }
}
