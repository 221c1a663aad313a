//! Strings of JSON (RFC 8259, section 7).

/// What stands for the control characters.
#[rustfmt::skip]
const CONTROLS: [&str; 32] = [
    "\\u0000", "\\u0001", "\\u0002", "\\u0003",
    "\\u0004", "\\u0005", "\\u0006", "\\u0007",
    "\\b", "\\t", "\\n", "\\u000b",
    "\\f", "\\r", "\\u000e", "\\u000f",
    "\\u0010", "\\u0011", "\\u0012", "\\u0013",
    "\\u0014", "\\u0015", "\\u0016", "\\u0017",
    "\\u0018", "\\u0019", "\\u001a", "\\u001b",
    "\\u001c", "\\u001d", "\\u001e", "\\u001f",
];

/// What stands for a byte of a string, if it may not stand there itself.
fn escape(byte: u8) -> Option<&'static str> {
    match byte {
        b'"' => Some("\\\""),
        b'\\' => Some("\\\\"),
        _ => CONTROLS.get(usize::from(byte)).copied(),
    }
}

/// Appends `text` as a string of JSON, with its quotes.
///
/// # Examples
/// ```
/// let mut out = "{\"name\":".to_owned();
/// selvedge_json::put_string("a \"b\"\n", &mut out);
/// assert_eq!(out, r#"{"name":"a \"b\"\n""#);
/// ```
pub fn put_string(text: &str, out: &mut String) {
    out.push('"');
    let mut plain = 0;
    for (at, byte) in text.bytes().enumerate() {
        // Only characters of one byte are escaped, so the text is cut between characters.
        if let Some(escape) = escape(byte) {
            out.push_str(&text[plain..at]);
            out.push_str(escape);
            plain = at + 1;
        }
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

/// As [`put_string`], for bytes. What is no UTF-8 stays as it is, and so the text is JSON only if
/// `text` is UTF-8.
pub fn put_bytes(text: &[u8], out: &mut Vec<u8>) {
    out.push(b'"');
    for &byte in text {
        match escape(byte) {
            Some(escape) => out.extend_from_slice(escape.as_bytes()),
            None => out.push(byte),
        }
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_character_is_read_again() {
        let all: String = (0..0x300).filter_map(char::from_u32).collect();
        let (mut string, mut bytes) = (String::new(), Vec::new());
        put_string(&all, &mut string);
        put_bytes(all.as_bytes(), &mut bytes);
        assert_eq!(string.as_bytes(), bytes);
        assert_eq!(serde_json::from_str::<String>(&string).unwrap(), all);
        assert_eq!(string, serde_json::to_string(&all).unwrap());
    }

    #[test]
    fn bytes_that_are_no_utf_8_stay() {
        let mut out = Vec::new();
        put_bytes(b"\xff\"", &mut out);
        assert_eq!(out, b"\"\xff\\\"\"");
    }
}
