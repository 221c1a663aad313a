//! `result` and `at`: the answer of an operation or a call, as the `io::Result` that a program
//! gets, with the path in the message.

use super::operation::RawOutcome;
use crate::error::doing;
use std::io;
use std::path::Path;

/// The outcome of an operation, as a result.
pub(super) fn result(outcome: RawOutcome) -> io::Result<usize> {
    usize::try_from(outcome).map_err(|_| io::Error::from_raw_os_error(-outcome))
}

/// Adds to an error what was done, and to which file.
pub(super) fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| doing(format_args!("{what} {}", path.display()))(error)
}
