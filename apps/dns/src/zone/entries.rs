//! [`Entries`]: the entries of a zone file, each with its first line. `file.rs` gives them to the
//! library's scanner one by one, because the scanner does not tell where an entry begins.
//!
//! An entry ends with a line, but not within parentheses (RFC 1035 §5.1). Parentheses that are not
//! closed are told here, because the scanner does not bear them. A quoted string that does not end
//! with its line is an error of the scanner. An entry without words is an empty line, or a comment.

/// The entries of a text.
pub(super) struct Entries<'a> {
    rest: &'a [u8],
    line: usize,
}

/// A piece of a zone file: a record, a directive, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneEntry<'a> {
    /// The number of its first line, counted from 1.
    pub(super) line: usize,
    /// Its text, with the end of the last line if there is one.
    pub(super) text: &'a [u8],
    /// Whether the file ends within parentheses.
    pub(super) is_open: bool,
}

impl<'a> Entries<'a> {
    pub(super) fn new(text: &'a [u8]) -> Entries<'a> {
        Entries { rest: text, line: 1 }
    }
}

impl<'a> Iterator for Entries<'a> {
    type Item = ZoneEntry<'a>;

    fn next(&mut self) -> Option<ZoneEntry<'a>> {
        if self.rest.is_empty() {
            return None;
        }
        let (length, is_open) = extent(self.rest);
        let (text, rest) = self.rest.split_at(length);
        let entry = ZoneEntry { line: self.line, text, is_open };
        self.rest = rest;
        self.line += lines(text);
        Some(entry)
    }
}

/// How many lines end in a text.
pub(super) fn lines(text: &[u8]) -> usize {
    text.iter().filter(|&&byte| byte == b'\n').count()
}

/// The length of the first entry, and whether the text ends within its parentheses.
fn extent(text: &[u8]) -> (usize, bool) {
    let (mut depth, mut is_quoted, mut is_comment, mut is_escaped) = (0_usize, false, false, false);
    for (index, byte) in text.iter().enumerate() {
        if std::mem::take(&mut is_escaped) {
            continue;
        }
        match byte {
            b'\n' => {
                (is_comment, is_quoted) = (false, false);
                if depth == 0 {
                    return (index + 1, false);
                }
            }
            _ if is_comment => {}
            b'\\' => is_escaped = true,
            b'"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            b';' => is_comment = true,
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    (text.len(), depth > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(text: &str) -> Vec<(usize, &str)> {
        let entries = Entries::new(text.as_bytes());
        entries.map(|entry| (entry.line, str::from_utf8(entry.text).unwrap())).collect()
    }

    #[test]
    fn an_entry_is_a_line_or_several() {
        assert_eq!(entries("a\nb ; c (\n\nd"), [(1, "a\n"), (2, "b ; c (\n"), (3, "\n"), (4, "d")]);
        assert_eq!(entries("a ( b\n c ; )\n\n) d\ne\n"), [(1, "a ( b\n c ; )\n\n) d\n"), (5, "e\n")]);
        assert_eq!(entries("a \"( ;\"\nb"), [(1, "a \"( ;\"\n"), (2, "b")]);
        assert_eq!(entries("a \\( \\\" \\;\nb"), [(1, "a \\( \\\" \\;\n"), (2, "b")]);
        assert_eq!(entries("a ) b\nc"), [(1, "a ) b\n"), (2, "c")]);
        assert_eq!(entries("a \"(b\nc"), [(1, "a \"(b\n"), (2, "c")]);
        assert_eq!(entries(""), []);
    }

    #[test]
    fn parentheses_that_are_not_closed_are_told() {
        let is_open = |text: &str| Entries::new(text.as_bytes()).last().is_some_and(|entry| entry.is_open);
        assert!(is_open("a TXT \"b\" (\n c\n") && is_open("a (") && is_open("a\nb ( ; )\n"));
        assert!(!is_open("a ( b )") && !is_open("a \"(\"\n") && !is_open("a ; ("));
    }
}
