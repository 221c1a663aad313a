//! Strings of JSON (RFC 8259, section 7).
//!
//! `tools/show.rs` calls `json` for `-t compdb` and for the labels of `-t graph`, and
//! `build/timeline.rs` calls it for the names of commands. Bytes that are no UTF-8 become U+FFFD.

use std::fmt::Write;

/// Text as a string of JSON.
pub(crate) fn json(text: &[u8]) -> String {
    let mut quoted = "\"".to_string();
    for character in String::from_utf8_lossy(text).chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            other if other.is_control() => {
                write!(quoted, "\\u{:04x}", u32::from(other)).expect("a string takes all");
            }
            other => quoted.push(other),
        }
    }
    quoted.push('"');
    quoted
}
