//! Lines for the user: [`say`] on the standard output, [`complain`] on the standard error. Lines
//! with names that may be no UTF-8 go through [`say_bytes`] and [`complain_bytes`].
//!
//! `main.rs`, `app.rs` and `build/status.rs` call them. The lines of a running build go through
//! `build/status.rs` instead.
//!
//! `println!` ends the program with a panic if the reader of the pipe has gone. These ignore
//! the error: the reader misses the lines, and the work alone decides the exit status.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to the standard output.
pub fn say(line: impl Display) {
    say_bytes(line.to_string().as_bytes());
}

/// Writes a line to the standard output, which may have names that are no UTF-8.
pub fn say_bytes(line: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(&[line, b"\n"].concat()).and_then(|()| out.flush());
}

/// Writes a line to the standard error, which may have names that are no UTF-8.
pub fn complain_bytes(line: &[u8]) {
    let _ = io::stderr().lock().write_all(&[line, b"\n"].concat());
}

/// Writes a line to the standard error.
pub fn complain(line: impl Display) {
    complain_bytes(line.to_string().as_bytes());
}
