//! Writes JSON (RFC 8259), for crates that have nothing to read in it and stay without serde:
//! [`put_string`] and [`put_bytes`] write a string, and [`text`] a whole text.
//!
//! Crates and programs that have `serde_json` for reading write with it too.

// # For readers of the source
//
// `string.rs` has the one table of what is escaped, and `writer.rs` the commas and brackets.

#![doc(test(attr(deny(warnings), allow(dead_code))))]
#![forbid(unsafe_code)]

mod string;
mod writer;

pub use string::{put_bytes, put_string};
pub use writer::{Json, text};
