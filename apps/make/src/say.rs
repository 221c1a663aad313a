//! Lines for the user.
//!
//! `println!` ends the program with a panic if the reader of the pipe has gone. A build goes on
//! here: the reader misses the lines, and nothing else.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to the standard output.
pub fn say(line: impl Display) {
    let mut out = io::stdout().lock();
    let _ = writeln!(out, "{line}").and_then(|()| out.flush());
}

/// Writes a line to the standard error.
pub fn complain(line: impl Display) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}
