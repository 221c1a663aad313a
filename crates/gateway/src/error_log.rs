//! [`ErrorLog`]: where programs' error output and failures go.

use selvedge_handler::{Severity, report};
use std::fmt;
use std::sync::Arc;

/// Takes the lines that programs write to their error output, and what went wrong with a program.
/// A clone writes to the same place.
///
/// # Examples
/// ```
/// use selvedge::gateway::ErrorLog;
///
/// let log = ErrorLog::new(|program, line| eprintln!("{program}: {line}"));
/// # let _ = log;
/// ```
#[derive(Clone)]
pub struct ErrorLog(Arc<WriteLine>);

/// Writes a line of the program that is named first.
type WriteLine = dyn Fn(&str, &str) + Send + Sync;

impl ErrorLog {
    /// Calls `write` with the program's name and a line, without its line end. The call must not
    /// block, because a worker makes it.
    pub fn new(write: impl Fn(&str, &str) + Send + Sync + 'static) -> ErrorLog {
        ErrorLog(Arc::new(write))
    }

    pub(crate) fn say(&self, program: &str, line: &str) {
        (self.0)(program, line);
    }
}

impl Default for ErrorLog {
    /// [Reports](selvedge_handler::report) each line as an error.
    fn default() -> ErrorLog {
        ErrorLog::new(|program, line| report(Severity::Error, format_args!("{program}: {line}")))
    }
}

impl fmt::Debug for ErrorLog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ErrorLog").finish_non_exhaustive()
    }
}

/// The longest line that goes to the log. A longer one is cut into several.
const LINE_BYTES_MAX: usize = 4 << 10;

/// Cuts error output into lines for the log.
#[derive(Debug)]
pub(crate) struct ErrorLines {
    log: ErrorLog,
    program: String,
    line: Vec<u8>,
}

impl ErrorLines {
    pub(crate) fn new(log: ErrorLog, program: String) -> ErrorLines {
        ErrorLines { log, program, line: Vec::new() }
    }

    pub(crate) fn put(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|&byte| byte == b'\n') {
            let (text, ends) = match piece.split_last() {
                Some((b'\n', text)) => (text, true),
                _ => (piece, false),
            };
            for part in text.chunks(LINE_BYTES_MAX) {
                if self.line.len() + part.len() > LINE_BYTES_MAX {
                    self.flush();
                }
                self.line.extend_from_slice(part);
            }
            if ends {
                self.flush();
            }
        }
    }

    fn flush(&mut self) {
        let line = self.line.trim_ascii_end();
        if !line.is_empty() {
            self.log.say(&self.program, &line.escape_ascii().to_string());
        }
        self.line.clear();
    }
}

impl Drop for ErrorLines {
    fn drop(&mut self) {
        self.flush();
    }
}
