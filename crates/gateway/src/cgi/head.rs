//! The head of a program's answer (RFC 3875 §6): parsed without I/O.
//!
//! `cgi.rs` and `fastcgi` collect bytes until [`length`] says that the head is there, and call
//! [`parse`]. What it gives is what the program means: a document, a redirect that the server
//! follows itself, or one that the client follows.

use crate::forwarding::{LineFate, cleaned, fate_of_line, put_line};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, LOCATION};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use selvedge_client::FieldLine;
use selvedge_handler::has_content;
use selvedge_http::framing_fields::content_length;

/// The longest head that is read.
pub(crate) const HEAD_BYTES_MAX: usize = 64 << 10;

/// What a program answers, but for its body.
#[derive(Debug, PartialEq)]
pub(crate) enum ProgramHead {
    /// An answer for the client, with the length that the program claims for its body.
    Document { status: StatusCode, fields: HeaderMap, length: Option<u64> },
    /// The server is to answer as if this path and query had been asked for.
    LocalRedirect(String),
}

/// The head breaks a rule; the text says which.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BadHead(pub(crate) &'static str);

/// The length of the head at the front of `read`, with the empty line at its end.
///
/// # Errors
/// If the head is too long.
pub(crate) fn length(read: &[u8]) -> Result<Option<usize>, BadHead> {
    let mut line = 0;
    for (at, _) in read.iter().enumerate().filter(|(_, byte)| **byte == b'\n') {
        if matches!(&read[line..at], b"" | b"\r") {
            return if at < HEAD_BYTES_MAX { Ok(Some(at + 1)) } else { Err(TOO_LONG) };
        }
        line = at + 1;
    }
    if read.len() < HEAD_BYTES_MAX { Ok(None) } else { Err(TOO_LONG) }
}

const TOO_LONG: BadHead = BadHead("its head is too long");

/// Parses a complete head. With `is_raw` the program speaks HTTP itself (`nph-`): its first line is
/// a status line.
///
/// # Errors
/// If the head breaks a rule of the standard.
pub(crate) fn parse(head: &[u8], is_raw: bool) -> Result<ProgramHead, BadHead> {
    let mut lines = head.split(|&byte| byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line));
    let mut fields = HeaderMap::new();
    let mut status = None;
    if is_raw {
        let line = lines.next().unwrap_or_default();
        let behind = line.strip_prefix(b"HTTP/").and_then(|rest| {
            let space = rest.iter().position(|&byte| byte == b' ')?;
            Some(&rest[space + 1..])
        });
        status = Some(status_of(behind.ok_or(BadHead("it begins with no status line"))?)?);
    }
    for line in lines {
        if line.is_empty() {
            break;
        }
        let colon = line.iter().position(|&byte| byte == b':').ok_or(BadHead("a line is no field"))?;
        let name =
            HeaderName::from_bytes(&line[..colon]).map_err(|_| BadHead("a field has no valid name"))?;
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        let value = value.map_err(|_| BadHead("a field has no valid value"))?;
        if name == "status" && !is_raw {
            if status.replace(status_of(value.as_bytes())?).is_some() {
                return Err(BadHead("it has two fields Status"));
            }
        } else if !name.as_str().starts_with("x-cgi-") {
            if (name == CONTENT_TYPE || name == LOCATION || name == CONTENT_LENGTH)
                && fields.contains_key(&name)
            {
                return Err(BadHead("a field that may come once comes twice"));
            }
            fields.append(name, value);
        }
    }
    if is_raw && fields.contains_key(http::header::TRANSFER_ENCODING) {
        return Err(BadHead("it encodes its body, which is the server's part"));
    }
    let location = fields.get(LOCATION);
    if status.is_none() && location.is_none() && !fields.contains_key(CONTENT_TYPE) {
        return Err(BadHead("it has none of Content-Type, Location and Status"));
    }
    if let Some(path) = location.filter(|location| location.as_bytes().starts_with(b"/"))
        && status.is_none()
        && fields.len() == 1
    {
        let path = path.to_str().map_err(|_| BadHead("its Location is no path"))?;
        return Ok(ProgramHead::LocalRedirect(path.to_owned()));
    }
    let assumed = if location.is_some() { StatusCode::FOUND } else { StatusCode::OK };
    let status = status.unwrap_or(assumed);
    let length = match fields.get(CONTENT_LENGTH) {
        None => None,
        Some(value) => {
            let length = content_length(value.as_bytes());
            Some(length.map_err(|_| BadHead("its Content-Length is no number"))?)
        }
    };
    Ok(ProgramHead::Document { status, fields: cleaned(fields), length })
}

/// The head of a document as lines.
#[derive(Debug, PartialEq)]
pub(crate) struct PlainHead {
    pub(crate) status: StatusCode,
    pub(crate) lines: Vec<u8>,
    pub(crate) names_server: bool,
    pub(crate) names_date: bool,
    /// The length that the program claims for the body.
    pub(crate) length: Option<u64>,
    /// The length of the head, with the empty line at its end.
    pub(crate) head_bytes: usize,
}

/// Room for the lines of most heads.
const LINES_BYTES: usize = 256;

/// The complete head at the front of `output` as lines, if it is that of a document with content
/// and has nothing unusual. Otherwise [`length`] and [`parse`] say what it is.
pub(crate) fn lines(output: &[u8]) -> Option<PlainHead> {
    let mut plain = PlainHead {
        status: StatusCode::OK,
        lines: Vec::with_capacity(LINES_BYTES),
        names_server: false,
        names_date: false,
        length: None,
        head_bytes: 0,
    };
    let (mut has_status, mut has_type) = (false, false);
    let mut rest = output;
    let content = loop {
        match rest {
            [b'\n', content @ ..] | [b'\r', b'\n', content @ ..] => break content,
            _ => {}
        }
        let field = FieldLine::first_of_program(rest)?;
        rest = &rest[field.line.len()..];
        let FieldLine { name, value, line } = field;
        let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
        if name.get(..6).is_some_and(|front| front.eq_ignore_ascii_case(b"x-cgi-")) {
            return None;
        }
        match name.len() {
            4 => plain.names_date |= is(b"date"),
            6 if is(b"status") => {
                plain.status = status_of(value).ok().filter(|_| !std::mem::replace(&mut has_status, true))?;
                continue;
            }
            6 => plain.names_server |= is(b"server"),
            8 if is(b"location") => return None,
            12 if is(b"content-type") && std::mem::replace(&mut has_type, true) => return None,
            14 if is(b"content-length") => {
                // The engine writes it.
                if plain.length.replace(content_length(value).ok()?).is_some() {
                    return None;
                }
                continue;
            }
            _ => {}
        }
        match fate_of_line(name, value) {
            LineFate::Unclear => return None,
            LineFate::StaysBehind => {}
            LineFate::GoesOn => put_line(line, name, value, &mut plain.lines),
        }
    };
    plain.head_bytes = output.len() - content.len();
    let is_document = (has_status || has_type) && has_content(plain.status);
    (is_document && plain.head_bytes <= HEAD_BYTES_MAX).then_some(plain)
}

/// A status that a client can get: three digits, and a reason that is dropped.
fn status_of(text: &[u8]) -> Result<StatusCode, BadHead> {
    let bad = BadHead("its status is none");
    let (code, rest) = text.split_at_checked(3).ok_or(bad)?;
    if !(rest.is_empty() || rest.starts_with(b" ")) {
        return Err(bad);
    }
    let status = StatusCode::from_bytes(code).map_err(|_| bad)?;
    if (200..600).contains(&status.as_u16()) { Ok(status) } else { Err(bad) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn document(text: &str) -> (u16, Vec<String>, Option<u64>) {
        match parse(text.as_bytes(), false) {
            Ok(ProgramHead::Document { status, fields, length }) => {
                let line = |(name, value): (&HeaderName, &HeaderValue)| {
                    format!("{name}: {}", value.to_str().unwrap())
                };
                (status.as_u16(), fields.iter().map(line).collect(), length)
            }
            other => panic!("{text:?}: {other:?}"),
        }
    }

    #[test]
    fn documents() {
        let html = vec!["content-type: text/html".to_owned()];
        assert_eq!(document("Content-Type: text/html\n\n"), (200, html.clone(), None));
        assert_eq!(document("content-type:text/html\r\n\r\n"), (200, html.clone(), None));
        assert_eq!(document("Status: 404 Not Found\nContent-Type: text/html\n\n"), (404, html.clone(), None));
        assert_eq!(document("Status: 204\n\n"), (204, vec![], None));
        let (status, fields, length) =
            document("Content-Type: text/html\nContent-Length: 7\nX-CGI-Own: a\n\n");
        assert_eq!((status, length, fields.len()), (200, Some(7), 2));
        let cleaned =
            document("Content-Type: text/html\nConnection: close, x\nX: y\nTransfer-Encoding: chunked\n\n");
        assert_eq!(cleaned, (200, html, None));
    }

    #[test]
    fn redirects() {
        let local = parse(b"Location: /a/b?c\n\n", false);
        assert_eq!(local, Ok(ProgramHead::LocalRedirect("/a/b?c".into())));
        let location = |to: &str| vec![format!("location: {to}")];
        assert_eq!(document("Location: http://a/b\n\n"), (302, location("http://a/b"), None));
        assert_eq!(
            document("Status: 301 Moved\nLocation: http://a/b\n\n"),
            (301, location("http://a/b"), None)
        );
        assert_eq!(document("Status: 302 Found\nLocation: /b\n\n"), (302, location("/b"), None));
        // A field such as Set-Cookie would be lost with the answer, so the client follows.
        let (status, fields, _) = document("Location: /b\nSet-Cookie: c\n\n");
        assert_eq!((status, fields.len()), (302, 2));
    }

    #[test]
    fn raw_answers() {
        let parsed = parse(b"HTTP/1.0 418 Teapot\r\nX: y\r\n\r\n", true).unwrap();
        let ProgramHead::Document { status, fields, .. } = parsed else { panic!("{parsed:?}") };
        assert_eq!((status.as_u16(), fields["x"].as_bytes()), (418, &b"y"[..]));
        assert!(parse(b"Content-Type: text/html\n\n", true).is_err());
        assert!(parse(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", true).is_err());
    }

    #[test]
    fn what_breaks_a_rule() {
        for text in [
            "\n",
            "X: y\n\n",
            "Content-Type : text/html\n\n",
            "Content-Type: a\n b\n\n",
            "no field\n\n",
            ": a\n\n",
            "Content-Type: a\nContent-Type: b\n\n",
            "Status: 200\nStatus: 200\n\n",
            "Location: http://a/\nLocation: http://b/\n\n",
            "Status: 99\n\n",
            "Status: 100 Continue\n\n",
            "Status: 2000\n\n",
            "Status: ok\n\n",
            "Content-Type: a\nContent-Length: x\n\n",
            "Content-Type: a\nContent-Length: +1\n\n",
            "Content-Type: a\nContent-Length:\n\n",
            "Content-Type: a\nContent-Length: 18446744073709551616\n\n",
            "Content-Type: a\0b\n\n",
        ] {
            assert!(parse(text.as_bytes(), false).is_err(), "{text:?}");
        }
    }

    /// Whether the head is usual. Then it is the same by both readers.
    fn both_ways(text: &str) -> bool {
        crate::fuzz::program_heads(text.as_bytes());
        lines(text.as_bytes()).is_some()
    }

    #[test]
    fn heads_as_lines() {
        for text in [
            "Content-Type: text/html\n\n",
            "content-type:text/html\r\nServer: a\r\nDate: b\r\n\r\n",
            "Status: 404 Not Found\nContent-Type: text/html\nX:   y \nX: z\n\nX: content",
            "Content-Type: caf\u{e9}\n\n",
            "Content-Type: text/html\nContent-Length: 7\nConnection: close\nKeep-Alive: 5\n\n",
        ] {
            assert!(both_ways(text), "{text:?}");
        }
        for text in [
            "Status: 204\n\n",
            "Location: /a\n\n",
            "X-CGI-Own: a\nStatus: 200\n\n",
            "X: y\n\n",
            "Content-Type: a\nX: \ty\n\n",
            "Content-Type: a\n",
        ] {
            assert!(!both_ways(text), "{text:?}");
        }
    }

    #[test]
    fn a_head_has_a_limit() {
        assert_eq!(length(&vec![b'x'; HEAD_BYTES_MAX]), Err(TOO_LONG));
        assert_eq!(length(&vec![b'x'; HEAD_BYTES_MAX - 1]), Ok(None));
    }

    proptest! {
        #[test]
        fn what_is_read_as_lines_is_a_document(
            picked in prop::collection::vec(0_usize..16, 0..6),
            end in prop_oneof![Just("\n"), Just("\r\n")],
        ) {
            const LINES: [&str; 16] = [
                "Content-Type: a", "content-type:b", "Status: 200 OK", "Status: 204", "Status: 99", "X: y",
                "X_Y: z", "X-CGI-A: b", "Location: /a", "Location: http://b/", "Content-Length: 3",
                "Content-Length: x", "Connection: close", "Connection: x", "Transfer-Encoding: chunked", "Y: \u{e9}",
            ];
            let text: String = picked.iter().map(|&at| format!("{}{end}", LINES[at])).collect();
            both_ways(&(text + end));
        }

        #[test]
        fn a_head_is_complete_at_its_end_and_not_before(
            lines in prop::collection::vec(("[a-z:]{1,9}", any::<bool>()), 0..5),
            end in prop_oneof![Just("\n"), Just("\r\n")],
            rest in "[ -~\r\n]{0,9}",
        ) {
            let lines: String =
                lines.iter().map(|(line, cr)| format!("{line}{}", if *cr { "\r\n" } else { "\n" })).collect();
            let head = format!("{lines}{end}");
            let text = format!("{head}{rest}");
            for cut in 0..head.len() {
                prop_assert_eq!(length(&text.as_bytes()[..cut]), Ok(None));
            }
            for cut in head.len()..=text.len() {
                prop_assert_eq!(length(&text.as_bytes()[..cut]), Ok(Some(head.len())));
            }
        }
    }
}
