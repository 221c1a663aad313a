//! [`Reply`]: what the server says over the control connection (RFC 959 §4.2).

/// A code of three digits and one line of text, or several.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    code: u16,
    /// The first line; what stands between the first and the last; the last.
    first: Option<Vec<u8>>,
    between: Vec<Vec<u8>>,
    last: Vec<u8>,
}

impl Reply {
    /// A reply of one line.
    pub(crate) fn new(code: u16, text: impl Into<Vec<u8>>) -> Reply {
        Reply { code, first: None, between: Vec::new(), last: text.into() }
    }

    /// A reply of several lines. Each line between the first and the last begins with a space, so
    /// none of them looks like the last.
    pub(crate) fn of_lines(
        code: u16,
        first: impl Into<Vec<u8>>,
        between: Vec<Vec<u8>>,
        last: impl Into<Vec<u8>>,
    ) -> Reply {
        Reply { code, first: Some(first.into()), between, last: last.into() }
    }

    /// The code.
    #[cfg(test)]
    pub(crate) fn code(&self) -> u16 {
        self.code
    }

    /// The reply as it is sent. A byte 255 is doubled, as Telnet wants it, and a CR or LF within a
    /// line is sent as `?`, so that a name can end no line.
    pub(crate) fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let code = self.code.to_string();
        if let Some(first) = &self.first {
            put_line(&mut out, &[code.as_bytes(), b"-", first]);
        }
        for line in &self.between {
            put_line(&mut out, &[b" ", line]);
        }
        put_line(&mut out, &[code.as_bytes(), b" ", &self.last]);
        out
    }
}

fn put_line(out: &mut Vec<u8>, parts: &[&[u8]]) {
    for &byte in parts.iter().copied().flatten() {
        match byte {
            b'\r' | b'\n' => out.push(b'?'),
            255 => out.extend([255, 255]),
            byte => out.push(byte),
        }
    }
    out.extend(b"\r\n");
}

/// A name in quotes, in which each quote is doubled, as the reply 257 has it (RFC 959, Appendix
/// II).
pub(crate) fn quoted(name: &[u8]) -> Vec<u8> {
    let mut out = vec![b'"'];
    for &byte in name {
        out.push(byte);
        if byte == b'"' {
            out.push(byte);
        }
    }
    out.push(b'"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_and_several() {
        assert_eq!(Reply::new(200, "Fine.").to_bytes(), b"200 Fine.\r\n");
        let reply = Reply::of_lines(211, "Features", vec![b"UTF8".to_vec(), b"211 SIZE".to_vec()], "End");
        assert_eq!(reply.to_bytes(), b"211-Features\r\n UTF8\r\n 211 SIZE\r\n211 End\r\n");
    }

    #[test]
    fn a_name_ends_no_line() {
        assert_eq!(Reply::new(550, b"a\n226 \xff".to_vec()).to_bytes(), b"550 a?226 \xff\xff\r\n");
        assert_eq!(quoted(b"/a\"b"), b"\"/a\"\"b\"");
    }
}
