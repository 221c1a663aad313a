//! [`FieldLine`]: a field line of a usual form, found and checked in one pass. [`TakeFields`]: what
//! takes such lines.
//!
//! `answer_head.rs` reads an answer that may be whole with it, and any other with its parser. What
//! [`FieldLine::first`] takes, the parser takes for the same field; it need not take all that the
//! parser takes. A fuzz target holds the two against each other.

/// A line of a head that has a field, with the line end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FieldLine<'h> {
    /// The name, as the server wrote it.
    pub name: &'h [u8],
    /// The value, without white space around it.
    pub value: &'h [u8],
    /// All of the line.
    pub line: &'h [u8],
}

/// Code that takes the fields of an answer, one after the other, while its head is read.
pub trait TakeFields {
    /// An answer begins. What came before belongs to another one, and counts for nothing.
    fn begin(&mut self);

    /// Takes a field of the answer.
    fn take(&mut self, field: &FieldLine<'_>);
}

impl<'h> FieldLine<'h> {
    /// The field at the front of `head`, if its line is a usual one: a name of token characters, a
    /// value without control bytes, and CRLF.
    #[inline]
    pub(crate) fn first(head: &'h [u8]) -> Option<FieldLine<'h>> {
        FieldLine::first_of_program(head).filter(|field| field.line.ends_with(b"\r\n"))
    }

    /// The field at the front of a head that a CGI program or its like has written, if its line is
    /// a usual one: a name of token characters, a value without control bytes, and CRLF or LF.
    #[inline]
    pub fn first_of_program(head: &'h [u8]) -> Option<FieldLine<'h>> {
        let name_len = head.iter().position(|&byte| !IS_TOKEN[usize::from(byte)])?;
        if name_len == 0 || head[name_len] != b':' {
            return None;
        }
        let mut start = name_len + 1;
        while *head.get(start)? == b' ' {
            start += 1;
        }
        let mut end = start + text_len(&head[start..]);
        let line = match head[end..] {
            [b'\r', b'\n', ..] => &head[..end + "\r\n".len()],
            [b'\n', ..] => &head[..end + "\n".len()],
            _ => return None,
        };
        while end > start && head[end - 1] == b' ' {
            end -= 1;
        }
        Some(FieldLine { name: &head[..name_len], value: &head[start..end], line })
    }
}

/// How many bytes in front of `bytes` are no control bytes. Eight at a time.
#[inline]
pub(crate) fn text_len(bytes: &[u8]) -> usize {
    const EACH: u64 = u64::from_ne_bytes([1; 8]);
    let (eights, rest) = bytes.as_chunks::<8>();
    for (place, eight) in eights.iter().enumerate() {
        let eight = u64::from_le_bytes(*eight);
        let delete = eight ^ (0x7f * EACH);
        // The highest bit of a byte says that it is below a space, or that it is a DEL. A borrow
        // goes to later bytes only, so it is right for the first such byte.
        let controls = eight.wrapping_sub(0x20 * EACH) & !eight | delete.wrapping_sub(EACH) & !delete;
        let controls = controls & (0x80 * EACH);
        if controls != 0 {
            return place * 8 + controls.trailing_zeros() as usize / 8;
        }
    }
    let is_text = |byte: &u8| *byte >= b' ' && *byte != 0x7f;
    eights.len() * 8 + rest.iter().take_while(|byte| is_text(byte)).count()
}

/// For each byte, whether names may have it (RFC 9110 §5.6.2).
const IS_TOKEN: [bool; 256] = {
    let mut token = [false; 256];
    let marks = b"!#$%&'*+-.^_`|~";
    let mut byte = 0;
    while byte < 128 {
        token[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut mark = 0;
    while mark < marks.len() {
        token[marks[mark] as usize] = true;
        mark += 1;
    }
    token
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_a_usual_form_and_others() {
        for (head, name, value, line) in [
            ("A: b\r\nC: d\r\n", "A", "b", "A: b\r\n"),
            ("a-b!:c  \r\n\r\n", "a-b!", "c", "a-b!:c  \r\n"),
            ("A:   b c \u{e9} d\r\n", "A", "b c \u{e9} d", "A:   b c \u{e9} d\r\n"),
            ("A:\r\n", "A", "", "A:\r\n"),
            ("A:  \r\n", "A", "", "A:  \r\n"),
        ] {
            let found = FieldLine::first(head.as_bytes()).unwrap_or_else(|| panic!("{head:?}"));
            let parts = [found.name, found.value, found.line].map(|part| str::from_utf8(part).unwrap());
            assert_eq!(parts, [name, value, line], "{head:?}");
        }
        for head in ["", "A", "A:", "A: b", "A: b\r", "A : b\r\n", ": b\r\n", " A: b\r\n", "\r\n"] {
            assert_eq!(FieldLine::first_of_program(head.as_bytes()), None, "{head:?}");
            assert_eq!(FieldLine::first(head.as_bytes()), None, "{head:?}");
        }
        let head = b"A: b \nC: d\n";
        let field = FieldLine { name: b"A", value: b"b", line: b"A: b \n" };
        assert_eq!(FieldLine::first_of_program(head), Some(field));
        assert_eq!(FieldLine::first(head), None);
    }

    #[test]
    fn every_control_byte_ends_a_text_at_every_place() {
        for byte in 0..=255 {
            for place in 0..20 {
                let mut bytes = [b'x'; 20];
                bytes[place] = byte;
                let is_control = byte < b' ' || byte == 0x7f;
                let expected = if is_control { place } else { 20 };
                assert_eq!(text_len(&bytes), expected, "{byte} at {place}");
                // What comes behind the first does not matter.
                bytes[place..].fill(byte);
                assert_eq!(text_len(&bytes), expected, "{byte} from {place} on");
            }
        }
    }
}
