//! Requests and answers that stay bytes: [`PlainRequest`], [`PlainAnswer`].
//!
//! A handler that sends a request on to another server, or reads a few of its parts, needs no table
//! of its fields. [`Handler::call_plain`](crate::Handler::call_plain) is asked before an engine
//! makes an owned request.

use crate::{Caller, LazyCaller, Response};
use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, StatusCode};
use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::Deref;
use std::pin::Pin;

/// A longer target is taken apart by the long way alone, where `Uri` has its limit.
const TARGET_BYTES_MAX: usize = 16 << 10;

/// A request of HTTP/1.1 of which the content, if it has any, has come as a whole. An answer
/// to its method has content. An engine has checked its head, and has not taken
/// it apart.
///
/// The target is in origin form, or what a rule has made of it. The client asked for the
/// host, and the engine has found it valid.
///
/// # Examples
/// ```
/// use selvedge_handler::{LazyCaller, PlainRequest};
///
/// let caller = LazyCaller::new(None);
/// let lines = b"Host: example.org\r\nA:  b \r\n";
/// let request = PlainRequest::new(b"/a?b", b"example.org", lines, &caller);
/// let fields: Vec<_> = request.fields().collect();
/// assert_eq!(fields, [(&b"Host"[..], &b"example.org"[..]), (b"A", b"b")]);
/// assert_eq!(request.path_and_query(), Some(("/a", Some("b"))));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PlainRequest<'h> {
    method: &'h Method,
    target: &'h [u8],
    host: &'h [u8],
    lines: &'h [u8],
    content: &'h [u8],
    caller: &'h LazyCaller,
}

impl<'h> PlainRequest<'h> {
    /// The `GET` request with this target, this host and these field lines, without content.
    pub fn new(
        target: &'h [u8],
        host: &'h [u8],
        lines: &'h [u8],
        caller: &'h LazyCaller,
    ) -> PlainRequest<'h> {
        PlainRequest { method: &Method::GET, target, host, lines, content: b"", caller }
    }

    /// The same request with another method and with content.
    #[must_use]
    pub fn with_content(self, method: &'h Method, content: &'h [u8]) -> PlainRequest<'h> {
        PlainRequest { method, content, ..self }
    }

    /// The same request with another target.
    #[must_use]
    pub fn with_target<'t>(&self, target: &'t [u8]) -> PlainRequest<'t>
    where
        'h: 't,
    {
        PlainRequest { target, ..*self }
    }

    /// The method.
    pub fn method(&self) -> &'h Method {
        self.method
    }

    /// Whether it is `GET`, and has no content.
    pub fn is_bare_get(&self) -> bool {
        *self.method == Method::GET && self.content.is_empty()
    }

    /// The path, and the query behind a `?`.
    pub fn target(&self) -> &'h [u8] {
        self.target
    }

    /// The path and the query, if every reader takes each byte of the target for a part of a path
    /// or of a query (RFC 3986 §3.3, §3.4).
    ///
    /// # Complexity
    /// One pass over the target.
    pub fn path_and_query(&self) -> Option<(&'h str, Option<&'h str>)> {
        let mut mark = None;
        for (at, &byte) in self.target.iter().enumerate() {
            if !IS_USUAL[usize::from(byte)] {
                return None;
            }
            if byte == b'?' && mark.is_none() {
                mark = Some(at);
            }
        }
        if self.target.len() > TARGET_BYTES_MAX {
            return None;
        }
        let text = std::str::from_utf8(self.target).ok()?;
        Some(match mark {
            Some(mark) => (&text[..mark], Some(&text[mark + 1..])),
            None => (text, None),
        })
    }

    /// Host and port, without regard to the field `Host`.
    pub fn host(&self) -> &'h [u8] {
        self.host
    }

    /// The client.
    pub fn caller(&self) -> &'h Caller {
        self.caller.get()
    }

    /// The address of the client. Other than [`caller`](Self::caller) it costs nothing.
    pub fn peer(&self) -> Option<IpAddr> {
        self.caller.peer()
    }

    /// The content.
    pub fn content(&self) -> &'h [u8] {
        self.content
    }

    /// Names and values of the fields in their order, the values without white space around them.
    pub fn fields(&self) -> FieldLines<'h> {
        FieldLines::new(self.lines)
    }

    /// The first value of the field `name`, which is in lower case or not, as the client likes.
    pub fn value(&self, name: &str) -> Option<&'h [u8]> {
        let mut fields = self.fields();
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// The lines that have the fields, and the empty line behind them if the head had it.
    pub fn lines(&self) -> &'h [u8] {
        self.lines
    }
}

/// For each byte, whether every reader takes it for a part of a path or of a query.
const IS_USUAL: [bool; 256] = {
    let mut usual = [false; 256];
    let marks = b"/-._~!$&'()*+,;=:@%?";
    let mut byte = 0;
    while byte < 128 {
        usual[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut mark = 0;
    while mark < marks.len() {
        usual[marks[mark] as usize] = true;
        mark += 1;
    }
    usual
};

/// The names and the values of field lines that a parser has checked: each ends in CRLF, and has a
/// colon. It ends at an empty line, if there is one.
#[derive(Clone, Debug)]
pub struct FieldLines<'h>(&'h [u8]);

impl<'h> FieldLines<'h> {
    /// The fields of `lines`.
    pub fn new(lines: &'h [u8]) -> FieldLines<'h> {
        FieldLines(lines)
    }
}

impl<'h> Iterator for FieldLines<'h> {
    type Item = (&'h [u8], &'h [u8]);

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let end = memchr::memchr(b'\n', self.0)?;
        let (line, rest) = self.0.split_at(end);
        let colon = memchr::memchr(b':', line)?;
        self.0 = &rest[1..];
        Some((&line[..colon], line[colon + 1..].trim_ascii()))
    }
}

/// What a handler made of a [`PlainRequest`].
#[derive(Debug)]
pub enum PlainOutcome {
    /// An answer as bytes.
    Plain(PlainAnswer),
    /// Any other response. In a box, because most outcomes are bytes, and an outcome is moved
    /// often.
    Response(Box<Response>),
}

/// A final answer with all of its content, of which the engine writes the head.
#[derive(Clone, Debug)]
pub struct PlainAnswer {
    /// The status. Its answers [have content](has_content), even if it is empty.
    pub status: StatusCode,
    /// The field lines, each with CRLF. None of them frames the message or is about the connection.
    pub lines: Cow<'static, [u8]>,
    /// Whether `lines` has the field `Server`. If not, the engine adds it.
    pub names_server: bool,
    /// Whether `lines` has the field `Date`. If not, the engine adds it.
    pub names_date: bool,
    /// The content.
    pub content: PlainContent,
}

/// Content in memory, as the code that made it had it.
#[derive(Clone, Debug)]
pub enum PlainContent {
    /// Bytes that may be shared.
    Shared(Bytes),
    /// Bytes of its own.
    Owned(Vec<u8>),
}

/// The future of [`Handler::call_plain`](crate::Handler::call_plain).
pub type PlainCall = Pin<Box<dyn Future<Output = PlainOutcome>>>;

/// Whether an answer with this status has content, even if it is empty (RFC 9110 §6.4.1).
pub fn has_content(status: StatusCode) -> bool {
    !status.is_informational() && status != StatusCode::NO_CONTENT && status != StatusCode::NOT_MODIFIED
}

impl Deref for PlainContent {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            PlainContent::Shared(bytes) => bytes,
            PlainContent::Owned(bytes) => bytes,
        }
    }
}

impl From<Bytes> for PlainContent {
    fn from(bytes: Bytes) -> PlainContent {
        PlainContent::Shared(bytes)
    }
}

impl From<&'static str> for PlainContent {
    fn from(text: &'static str) -> PlainContent {
        Bytes::from_static(text.as_bytes()).into()
    }
}

impl From<Vec<u8>> for PlainContent {
    fn from(bytes: Vec<u8>) -> PlainContent {
        PlainContent::Owned(bytes)
    }
}

impl From<String> for PlainContent {
    fn from(text: String) -> PlainContent {
        text.into_bytes().into()
    }
}

impl From<PlainContent> for Bytes {
    fn from(content: PlainContent) -> Bytes {
        match content {
            PlainContent::Shared(bytes) => bytes,
            PlainContent::Owned(bytes) => bytes.into(),
        }
    }
}

impl PlainOutcome {
    /// The status.
    pub fn status(&self) -> StatusCode {
        match self {
            PlainOutcome::Plain(answer) => answer.status,
            PlainOutcome::Response(response) => response.status(),
        }
    }
}

impl From<Response> for PlainOutcome {
    fn from(response: Response) -> PlainOutcome {
        PlainOutcome::Response(Box::new(response))
    }
}

impl From<PlainOutcome> for Response {
    fn from(outcome: PlainOutcome) -> Response {
        let answer = match outcome {
            PlainOutcome::Plain(answer) => answer,
            PlainOutcome::Response(response) => return *response,
        };
        let mut response = Response::new(Bytes::from(answer.content).into());
        *response.status_mut() = answer.status;
        for (name, value) in FieldLines::new(&answer.lines) {
            if let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), HeaderValue::from_bytes(value)) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}
