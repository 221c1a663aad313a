//! [`complain`]: a line for the operator. The server writes errors only, and to standard error.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to the standard error. A line that cannot be written is lost.
pub fn complain(line: impl Display) {
    let _ = io::stderr().lock().write_all(format!("{line}\n").as_bytes());
}
