//! [`report`]: what a web server has to tell its operator. All crates of the web call it, and the
//! program says by [`report_to`] where the words go.

use std::fmt;
use std::sync::OnceLock;

/// How much a report matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// A request or a part of the server has failed, and the operator has something to mend.
    Error,
    /// Something is at its limit or was cut, and the server goes on.
    Warning,
    /// The server has done what it was asked to do.
    Notice,
}

impl Severity {
    /// All severities with their names, the gravest first.
    pub const ALL: [(&str, Severity); 3] =
        [("error", Severity::Error), ("warning", Severity::Warning), ("notice", Severity::Notice)];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Notice => "notice",
        }
    }
}

/// Where reports go.
type ReportSink = dyn Fn(Severity, fmt::Arguments<'_>) + Send + Sync;

static SINK: OnceLock<Box<ReportSink>> = OnceLock::new();

/// Tells the operator something. Without [`report_to`] it is a line on the standard error stream.
///
/// # Examples
/// ```
/// use selvedge_handler::{Severity, report};
///
/// report(Severity::Warning, format_args!("{} of {} connections are in use", 990, 1000));
/// ```
pub fn report(severity: Severity, message: fmt::Arguments<'_>) {
    match SINK.get() {
        Some(sink) => sink(severity, message),
        None => eprintln!("selvedge: {message}"),
    }
}

/// Sends all reports of the process to `sink` from now on. The sink must not block for long,
/// because a worker may call it. Returns whether it is the first sink; a second one is not taken.
///
/// # Examples
/// ```
/// use selvedge_handler::{Severity, report_to};
///
/// // Errors and warnings only, in the way of this program.
/// let is_first = report_to(|severity, message| {
///     if severity <= Severity::Warning {
///         eprintln!("[{}] {message}", severity.name());
///     }
/// });
/// assert!(is_first && !report_to(|_, _| {}));
/// ```
pub fn report_to(sink: impl Fn(Severity, fmt::Arguments<'_>) + Send + Sync + 'static) -> bool {
    SINK.set(Box::new(sink)).is_ok()
}
