//! The command line: [`parse`].

use selvedge_options::{UsageError, number};
use std::ffi::OsString;

pub(crate) const HELP: &str = "\
selvedge-mpirun -n RANKS [OPTIONS] PROGRAM [ARGUMENTS]

Starts PROGRAM as RANKS processes of this machine, which selvedge::mpi::run makes the ranks of one job.
They share memory; no MPI has to be installed. Each line that a rank writes is written with the rank's
number before it. Rank 0 reads the standard input.

  -n, --ranks RANKS   the number of ranks
      --plain         lines without numbers
  -h, --help          this text

SIGTERM, SIGHUP, SIGUSR1 and SIGUSR2 are passed on to all ranks; so are SIGINT and SIGQUIT where no
terminal sends them to the ranks itself.

The exit status is 0 if all ranks have succeeded, else that of the first rank that has not, and 128
and the signal's number if a signal has ended it. 2: the command line is wrong. 127: PROGRAM cannot
be started.

Between several machines: the mpirun or srun of an MPI starts the same program.
";

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Help,
    Run(Options),
}

/// A job.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Options {
    pub(crate) ranks: usize,
    pub(crate) is_plain: bool,
    pub(crate) program: OsString,
    pub(crate) arguments: Vec<OsString>,
}

/// # Errors
/// For the user.
pub(crate) fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Request, UsageError> {
    use lexopt::prelude::*;
    let mut parser = lexopt::Parser::from_args(arguments);
    let mut ranks = None;
    let mut is_plain = false;
    while let Some(argument) = parser.next()? {
        match argument {
            Short('n') | Long("ranks") => {
                ranks = Some(number(&mut parser, "--ranks", 1..=usize::MAX)?);
            }
            Long("plain") => is_plain = true,
            Short('h') | Long("help") => return Ok(Request::Help),
            Value(program) => {
                let ranks =
                    ranks.ok_or_else(|| UsageError::together("the number of ranks is missing: -n 4"))?;
                let rest = parser.raw_args()?;
                let arguments = rest.collect();
                return Ok(Request::Run(Options { ranks, is_plain, program, arguments }));
            }
            other => return Err(other.unexpected().into()),
        }
    }
    Err(UsageError::together("the program is missing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(words: &[&str]) -> Result<Request, UsageError> {
        parse(words.iter().map(OsString::from))
    }

    #[test]
    fn what_stands_behind_the_program_is_its_own() {
        let request = parsed(&["-n", "4", "program", "-n", "--help"]).unwrap();
        let Request::Run(options) = request else { panic!("it is a job") };
        assert_eq!((options.ranks, options.is_plain), (4, false));
        assert_eq!(options.program, "program");
        assert_eq!(options.arguments, ["-n", "--help"]);
        let Request::Run(options) = parsed(&["--plain", "--ranks=2", "x"]).unwrap() else { panic!("a job") };
        assert_eq!((options.ranks, options.is_plain), (2, true));
        assert_eq!(parsed(&["-h"]), Ok(Request::Help));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let said = |words: &[&str]| parsed(words).unwrap_err().to_string();
        assert_eq!(said(&["program"]), "the number of ranks is missing: -n 4");
        assert_eq!(said(&["-n", "2"]), "the program is missing");
        assert!(said(&["-n", "0", "program"]).starts_with("--ranks \"0\": not a number from 1 to "));
        assert!(said(&["--np", "2"]).contains("--np"));
    }
}
