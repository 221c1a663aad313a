//! Text within JSON.

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
