//! The head of an answer: parsed without I/O, strictly.
//!
//! `exchange.rs` calls [`parse`] with the bytes that it has read. What two readers could frame
//! differently is an error, because a proxy that passes such an answer on would let an upstream put
//! a second answer into the first: a line that ends in a bare LF, two lengths, a length beside
//! `Transfer-Encoding`, a coding besides `chunked`, a length where there is no body.

use crate::field_line::{FieldLine, TakeFields, text_len};
use bytes::Bytes;
use http::header::{CONNECTION, HeaderMap, HeaderName, HeaderValue};
use http::{StatusCode, Version};
use selvedge_http::body::Framing;
use selvedge_http::framing_fields::FramingFields;
use selvedge_http::request;
use std::mem::MaybeUninit;

/// The most fields that an answer may have.
pub(crate) const FIELDS_MAX: usize = 128;

/// The head of one answer.
#[derive(Debug)]
pub(crate) struct AnswerHead {
    pub(crate) status: StatusCode,
    pub(crate) version: Version,
    pub(crate) fields: HeaderMap,
    pub(crate) extent: Extent,
    /// Whether the server keeps the connection open behind the answer.
    pub(crate) keeps: bool,
}

/// How far the body of an answer goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Extent {
    Framed(Framing),
    /// To the end of the connection.
    UntilClose,
}

/// What the request was, as far as the framing of its answer depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Asked {
    /// The method was `HEAD`: the answer has no body, whatever its fields say.
    pub(crate) head: bool,
    /// The request had the field `Upgrade`, so that 101 may be the answer.
    pub(crate) upgrade: bool,
}

/// Why the bytes are no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Malformed {
    /// No status line, or a line that is no field.
    Head,
    /// More bytes or fields than the limits allow.
    TooLarge,
    /// A version that is neither 1.0 nor 1.1.
    Version,
    /// The length of the body is not certain.
    Framing,
    /// 101 to a request that asked for no upgrade.
    Unasked,
}

impl Malformed {
    pub(crate) fn text(self) -> &'static str {
        match self {
            Malformed::Head => "the answer is no HTTP",
            Malformed::TooLarge => "the head of the answer is too large",
            Malformed::Version => "the answer has an unknown version of HTTP",
            Malformed::Framing => "the length of the answer is ambiguous",
            Malformed::Unasked => "the server switches protocols unasked",
        }
    }
}

/// The length of the head at the front of `read`, with the empty line at its end, or `None` if the
/// head is not complete.
///
/// # Errors
/// As for [`parse`].
pub(crate) fn length(read: &[u8], bytes_max: usize) -> Result<Option<usize>, Malformed> {
    // `httparse` skips empty lines in front of the status line. They belong to no answer.
    if matches!(read.first(), Some(b'\r' | b'\n')) {
        return Err(Malformed::Head);
    }
    let mut slots = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut answer = httparse::Response::new(&mut []);
    match split(read, &mut answer, &mut slots)? {
        httparse::Status::Complete(length) if length <= bytes_max => Ok(Some(length)),
        httparse::Status::Partial if read.len() < bytes_max => Ok(None),
        _ => Err(Malformed::TooLarge),
    }
}

/// Splits a head into its parts, as far as it goes.
fn split<'s, 'b>(
    head: &'b [u8],
    answer: &mut httparse::Response<'s, 'b>,
    slots: &'s mut [MaybeUninit<httparse::Header<'b>>],
) -> Result<httparse::Status<usize>, Malformed> {
    let config = httparse::ParserConfig::default();
    config.parse_response_with_uninit_headers(answer, head, slots).map_err(|error| match error {
        httparse::Error::TooManyHeaders => Malformed::TooLarge,
        httparse::Error::Version => Malformed::Version,
        _ => Malformed::Head,
    })
}

/// An answer of the plainest kind that is all of what was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WholeExtent {
    pub(crate) status: StatusCode,
    /// The length of the head, with the empty line at its end.
    pub(crate) head_bytes: usize,
}

/// The extent of `read` as the answer to a `GET` request, if `read` is one answer from its first
/// byte to its last: of HTTP/1.1, with a status that has content, framed by
/// `Content-Length`, on a connection that stays open. `taker` gets each of its fields, and may have
/// got some if there is no extent. `None` says nothing about `read`: [`length`] and [`parse`] say
/// what is wrong, if anything is.
///
/// It reads by itself, because one pass over lines of the usual form takes half of the instructions
/// of a parser for all of them. A fuzz target holds it against the parser.
pub(crate) fn whole(read: &[u8], bytes_max: usize, taker: &mut impl TakeFields) -> Option<WholeExtent> {
    taker.begin();
    let (code, mut rest) = read.strip_prefix(b"HTTP/1.1 ")?.split_first_chunk::<3>()?;
    let status = StatusCode::from_bytes(code).ok()?;
    let has_content = status.as_u16() >= 200 && ![204, 304].contains(&status.as_u16());
    if !has_content || rest.first() != Some(&b' ') {
        return None;
    }
    rest = rest[text_len(rest)..].strip_prefix(b"\r\n")?;
    let mut framing = FramingFields::default();
    let mut fields = 0;
    while !rest.starts_with(b"\r\n") {
        let field = FieldLine::first(rest)?;
        let is = |known: &[u8]| field.name.eq_ignore_ascii_case(known);
        match field.name.len() {
            7 if is(b"upgrade") => return None,
            10 if is(b"connection") => {
                let mut options = options(field.value);
                if !options.all(|option| option.eq_ignore_ascii_case(b"keep-alive")) {
                    return None;
                }
            }
            14 if is(b"content-length") => framing.content_length(field.value).ok()?,
            17 if is(b"transfer-encoding") => return None,
            _ => {}
        }
        taker.take(&field);
        fields += 1;
        rest = &rest[field.line.len()..];
    }
    let content_bytes = rest.len() - "\r\n".len();
    let head_bytes = read.len() - content_bytes;
    match framing.framing(request::Version::Http11) {
        Ok(Some(Framing::Length(length)))
            if length == content_bytes as u64 && head_bytes <= bytes_max && fields <= FIELDS_MAX =>
        {
            Some(WholeExtent { status, head_bytes })
        }
        _ => None,
    }
}

/// Whether every line of a head ends in CRLF. `httparse` takes a bare LF for a line end too. Every
/// line starts right behind one, so it is enough to see that a CR comes before it.
fn ends_in_crlf(head: &[u8], fields: &[httparse::Header<'_>]) -> bool {
    let follows_cr = |field| head.get(place_of(field, head).wrapping_sub(2)) == Some(&b'\r');
    head.ends_with(b"\r\n\r\n") && fields.iter().all(follows_cr)
}

/// Where the line of a field begins in its head.
fn place_of(field: &httparse::Header<'_>, head: &[u8]) -> usize {
    field.name.as_ptr().addr() - head.as_ptr().addr()
}

/// Parses a complete head. The values of the fields share its bytes.
///
/// # Errors
/// What is wrong with it. The connection must then be closed, because the start of the next answer
/// is unknown.
pub(crate) fn parse(head: &Bytes, asked: Asked) -> Result<AnswerHead, Malformed> {
    let mut slots = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut answer = httparse::Response::new(&mut []);
    // `length` has found that it is complete.
    if split(head, &mut answer, &mut slots)? != httparse::Status::Complete(head.len()) {
        return Err(Malformed::Head);
    }
    let (Some(code), Some(minor)) = (answer.code, answer.version) else { return Err(Malformed::Head) };
    let status = StatusCode::from_u16(code).map_err(|_| Malformed::Head)?;
    if !ends_in_crlf(head, answer.headers) {
        return Err(Malformed::Head);
    }
    let mut fields = HeaderMap::with_capacity(answer.headers.len());
    let mut framing = FramingFields::default();
    let (mut close, mut keep_alive) = (false, false);
    for field in answer.headers.iter() {
        let name = field.name.as_bytes();
        let known = if name.eq_ignore_ascii_case(b"content-length") {
            framing.content_length(field.value)
        } else if name.eq_ignore_ascii_case(b"transfer-encoding") {
            framing.transfer_encoding(field.value)
        } else {
            Ok(())
        };
        known.map_err(|_| Malformed::Framing)?;
        let name = HeaderName::from_bytes(name).map_err(|_| Malformed::Head)?;
        let value = HeaderValue::from_maybe_shared(head.slice_ref(field.value));
        let value = value.map_err(|_| Malformed::Head)?;
        if name == CONNECTION {
            for option in options(value.as_bytes()) {
                close |= option.eq_ignore_ascii_case(b"close");
                keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        fields.append(name, value);
    }
    let (version, known) = match minor {
        0 => (Version::HTTP_10, request::Version::Http10),
        _ => (Version::HTTP_11, request::Version::Http11),
    };
    let named = framing.framing(known).map_err(|_| Malformed::Framing)?;
    let extent = extent(status, asked, named)?;
    let keeps = !close && (minor == 1 || keep_alive) && extent != Extent::UntilClose;
    Ok(AnswerHead { status, version, fields, extent, keeps })
}

/// RFC 9112 §6.3 for answers.
fn extent(status: StatusCode, asked: Asked, named: Option<Framing>) -> Result<Extent, Malformed> {
    let none = Ok(Extent::Framed(Framing::None));
    if status == StatusCode::SWITCHING_PROTOCOLS && !asked.upgrade {
        return Err(Malformed::Unasked);
    }
    if status.is_informational() || status == StatusCode::NO_CONTENT {
        // Such an answer must have neither field. A length of 0 says nothing that is wrong.
        return if matches!(named, None | Some(Framing::Length(0))) { none } else { Err(Malformed::Framing) };
    }
    if asked.head || status == StatusCode::NOT_MODIFIED {
        return none;
    }
    Ok(named.map_or(Extent::UntilClose, Extent::Framed))
}

/// The members of a list such as the value of `Connection`, without white space around them.
pub(crate) fn options(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|&byte| byte == b',').map(<[u8]>::trim_ascii).filter(|option| !option.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str, asked: Asked) -> Result<AnswerHead, Malformed> {
        let bytes = Bytes::copy_from_slice(text.as_bytes());
        let length = length(&bytes, 1000)?.expect("a whole head");
        parse(&bytes.slice(..length), asked)
    }

    fn extent_of(text: &str) -> Result<Extent, Malformed> {
        parsed(text, Asked::default()).map(|head| head.extent)
    }

    #[test]
    fn a_head_has_its_fields_and_its_framing() {
        let text = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nA: b\r\nA: c\r\n\r\nhello";
        let head = parsed(text, Asked::default()).unwrap();
        assert_eq!((head.status, head.version), (StatusCode::OK, Version::HTTP_11));
        assert_eq!(head.extent, Extent::Framed(Framing::Length(5)));
        assert!(head.keeps);
        assert_eq!(head.fields.get_all("a").iter().collect::<Vec<_>>(), ["b", "c"]);
    }

    #[test]
    fn framing() {
        let none = Ok(Extent::Framed(Framing::None));
        assert_eq!(extent_of("HTTP/1.1 200 OK\r\n\r\n"), Ok(Extent::UntilClose));
        assert_eq!(extent_of("HTTP/1.1 204 x\r\n\r\n"), none);
        assert_eq!(extent_of("HTTP/1.1 204 x\r\nContent-Length: 0\r\n\r\n"), none);
        assert_eq!(extent_of("HTTP/1.1 304 x\r\nContent-Length: 7\r\n\r\n"), none);
        assert_eq!(extent_of("HTTP/1.1 103 x\r\nLink: <a>\r\n\r\n"), none);
        let chunked = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(extent_of(chunked), Ok(Extent::Framed(Framing::Chunked)));
        let head = Asked { head: true, upgrade: false };
        assert_eq!(parsed(chunked, head).unwrap().extent, Extent::Framed(Framing::None));
        let upgrade = Asked { head: false, upgrade: true };
        let switch = "HTTP/1.1 101 x\r\nUpgrade: a\r\nConnection: upgrade\r\n\r\n";
        assert_eq!(parsed(switch, upgrade).unwrap().extent, Extent::Framed(Framing::None));
    }

    #[test]
    fn persistence() {
        let keeps = |text: &str| parsed(text, Asked::default()).unwrap().keeps;
        assert!(keeps("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(!keeps("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: a, Close\r\n\r\n"));
        assert!(!keeps("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(keeps("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"));
        assert!(!keeps("HTTP/1.1 200 OK\r\n\r\n"));
    }

    #[test]
    fn no_line_comes_before_the_status_line() {
        for before in ["\r\n", "\n", "\n\r\n"] {
            let answer = format!("{before}HTTP/1.1 200 OK\r\n\r\n");
            assert_eq!(length(answer.as_bytes(), 100), Err(Malformed::Head), "{before:?}");
        }
    }

    #[test]
    fn what_readers_frame_differently_is_refused() {
        for (text, why) in [
            ("HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 1\r\n\r\n", Malformed::Framing),
            ("HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\n\r\n", Malformed::Framing),
            ("HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", Malformed::Framing),
            ("HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Malformed::Framing),
            (
                "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                Malformed::Framing,
            ),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n", Malformed::Framing),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", Malformed::Framing),
            ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, chunked\r\n\r\n", Malformed::Framing),
            ("HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Malformed::Framing),
            ("HTTP/1.1 204 No\r\nContent-Length: 1\r\n\r\n", Malformed::Framing),
            ("HTTP/1.1 100 Go\r\nTransfer-Encoding: chunked\r\n\r\n", Malformed::Framing),
            ("HTTP/1.1 101 Go\r\nUpgrade: a\r\n\r\n", Malformed::Unasked),
            ("HTTP/1.1 200 OK\nA: b\r\n\r\n", Malformed::Head),
            ("HTTP/1.1 200 OK\r\nA: b\nB: c\r\n\r\n", Malformed::Head),
            ("HTTP/1.1 200 OK\r\nA: b\r\n\n", Malformed::Head),
            ("HTTP/1.1 200 OK\r\nA : b\r\n\r\n", Malformed::Head),
            ("HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n", Malformed::Head),
            ("HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n", Malformed::Head),
            ("HTTP/1.1 20 OK\r\n\r\n", Malformed::Head),
            ("HTTP/2.0 200 OK\r\n\r\n", Malformed::Version),
            ("SSH-2.0-x\r\n\r\n", Malformed::Version),
        ] {
            assert_eq!(parsed(text, Asked::default()).map(|_| ()), Err(why), "{text:?}");
        }
    }

    #[test]
    fn a_head_beyond_its_limit_is_refused() {
        assert_eq!(
            length(&[b"HTTP/1.1 200 OK\r\nA: ", &[b'x'; 1000][..]].concat(), 1000),
            Err(Malformed::TooLarge)
        );
        let fields = "A: b\r\n".repeat(FIELDS_MAX + 1);
        let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
        assert_eq!(length(head.as_bytes(), 10_000), Err(Malformed::TooLarge));
    }

    #[test]
    fn a_whole_answer_is_one_for_the_parser_too() {
        let answer = "HTTP/1.1 200 OK\r\nServer: a b \r\nContent-Length:  4\r\nConnection: keep-alive\r\nX:\r\n\r\nweft";
        let extent = WholeExtent { status: StatusCode::OK, head_bytes: answer.len() - 4 };
        assert_eq!(whole(answer.as_bytes(), 1000, &mut Vec::new()), Some(extent));
        assert_eq!(whole(answer.as_bytes(), answer.len() - 5, &mut Vec::new()), None);
        // Each byte at each place, in place of the byte there and beside it.
        for place in 0..answer.len() {
            for byte in 0..=255 {
                for replaced in 0..2 {
                    let (front, rest) = answer.as_bytes().split_at(place);
                    crate::fuzz::answers(&[front, &[byte], &rest[replaced..]].concat());
                }
            }
        }
    }

    proptest! {
        #[test]
        fn a_head_is_complete_at_its_end_and_not_before(
            fields in prop::collection::vec("[A-Za-z-]{1,8}: [ -~]{0,8}", 0..5),
            rest in "[ -~\r\n]{0,9}",
        ) {
            let fields: String = fields.iter().map(|field| format!("{field}\r\n")).collect();
            let head = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
            let text = format!("{head}{rest}");
            for cut in 0..head.len() {
                prop_assert_eq!(length(&text.as_bytes()[..cut], 1000), Ok(None));
            }
            for end in head.len()..=text.len() {
                prop_assert_eq!(length(&text.as_bytes()[..end], 1000), Ok(Some(head.len())));
            }
        }
    }
}
