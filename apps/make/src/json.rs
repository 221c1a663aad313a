//! Strings of JSON (RFC 8259, section 7).
//!
//! `tools/compdb.rs` calls `json` for `-t compdb`, `tools/show.rs` for the labels of `-t graph`,
//! and `build/timeline.rs` for the names of commands. Bytes that are no UTF-8 stay as they are, as
//! in ninja's files, so that a reader finds the file by the name.

/// Text as a string of JSON.
pub(crate) fn json(text: &[u8]) -> Vec<u8> {
    let mut quoted = vec![b'"'];
    for byte in text {
        match byte {
            b'"' => quoted.extend(b"\\\""),
            b'\\' => quoted.extend(b"\\\\"),
            b'\n' => quoted.extend(b"\\n"),
            b'\t' => quoted.extend(b"\\t"),
            0..0x20 => quoted.extend(format!("\\u{byte:04x}").bytes()),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'"');
    quoted
}
