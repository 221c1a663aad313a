//! `doing`: adds the failed operation and its object to an I/O error, as in `bind 127.0.0.1:80:
//! Permission denied`.
//!
//! The modules `net`, `fs`, `pipe`, `process` and `stdio` pass it to `map_err`. The kind of the
//! error is unchanged, and its number stays reachable through `Error::source`.

use std::error::Error;
use std::fmt::{self, Display};
use std::io;

/// An I/O error with the operation that failed: `bind 127.0.0.1:80: Permission denied`.
#[derive(Debug)]
struct OperationError {
    what: String,
    error: io::Error,
}

impl Display for OperationError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let error = self.error.to_string();
        // The text leaves the error's number out, because the number adds nothing to the text and
        // `source` has it.
        let text = error.split_once(" (os error").map_or(error.as_str(), |(text, _)| text);
        write!(f, "{}: {text}", self.what)
    }
}

impl Error for OperationError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.error)
    }
}

/// Adds the operation that failed to an error. The kind of the error stays; its number is with the
/// [source](Error::source).
pub(crate) fn doing(what: impl Display) -> impl FnOnce(io::Error) -> io::Error {
    move |error| io::Error::new(error.kind(), OperationError { what: what.to_string(), error })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_says_what_was_done_and_the_number_is_kept() {
        let error = doing("bind 127.0.0.1:80")(io::Error::from_raw_os_error(libc::EACCES));
        assert_eq!(error.to_string(), "bind 127.0.0.1:80: Permission denied");
        assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
        let source = error.get_ref().and_then(|e| e.source()).and_then(|e| e.downcast_ref::<io::Error>());
        assert_eq!(source.and_then(io::Error::raw_os_error), Some(libc::EACCES));
    }
}
