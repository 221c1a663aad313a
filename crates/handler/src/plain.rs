//! Requests and answers that pass through a server as bytes: [`PlainGet`], [`PlainAnswer`].
//!
//! A handler that sends a request on to another server needs no table of its fields: it reads each
//! line once and writes it again. [`Handler::forward`](crate::Handler::forward) is asked before an
//! engine makes an owned request.

use std::pin::Pin;

use bytes::Bytes;
use http::StatusCode;

use crate::{Caller, Response};

/// A `GET` request of HTTP/1.1 without a body. An engine has checked its head, and has not taken it
/// apart.
///
/// The target is in origin form, or what a rule has made of it. The client asked for the
/// host, and the engine has found it valid.
///
/// # Examples
/// ```
/// use selvedge_handler::{Caller, PlainGet};
///
/// let caller = Caller::new(None);
/// let request = PlainGet::new(b"/a", b"example.org", b"Host: example.org\r\nA:  b \r\n", &caller);
/// let fields: Vec<_> = request.fields().collect();
/// assert_eq!(fields, [(&b"Host"[..], &b"example.org"[..]), (b"A", b"b")]);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PlainGet<'h> {
    target: &'h [u8],
    host: &'h [u8],
    lines: &'h [u8],
    caller: &'h Caller,
}

impl<'h> PlainGet<'h> {
    /// The request with this target, this host and these field lines.
    pub fn new(target: &'h [u8], host: &'h [u8], lines: &'h [u8], caller: &'h Caller) -> PlainGet<'h> {
        PlainGet { target, host, lines, caller }
    }

    /// The same request with another target.
    #[must_use]
    pub fn with_target<'t>(&self, target: &'t [u8]) -> PlainGet<'t>
    where
        'h: 't,
    {
        PlainGet { target, ..*self }
    }

    /// The path, and the query behind a `?`.
    pub fn target(&self) -> &'h [u8] {
        self.target
    }

    /// Host and port, without regard to the field `Host`.
    pub fn host(&self) -> &'h [u8] {
        self.host
    }

    /// The client.
    pub fn caller(&self) -> &'h Caller {
        self.caller
    }

    /// Names and values of the fields in their order, the values without white space around them.
    pub fn fields(&self) -> FieldLines<'h> {
        FieldLines::new(self.lines)
    }

    /// The lines that have the fields, and the empty line behind them if the head had it.
    pub fn lines(&self) -> &'h [u8] {
        self.lines
    }
}

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

/// What became of a request that was forwarded.
#[derive(Debug)]
pub enum Forwarded {
    /// The answer as bytes.
    Plain(PlainAnswer),
    /// Any other response.
    Response(Response),
}

/// A final answer with all of its content, of which the engine writes the head.
#[derive(Clone, Debug)]
pub struct PlainAnswer {
    /// The status. Its answers have content, even if it is empty.
    pub status: StatusCode,
    /// The field lines, each with CRLF. None of them frames the message or is about the connection.
    pub lines: Vec<u8>,
    /// Whether `lines` has the field `Server`. If not, the engine adds it.
    pub names_server: bool,
    /// Whether `lines` has the field `Date`. If not, the engine adds it.
    pub names_date: bool,
    /// The content.
    pub content: Bytes,
}

/// A request on its way to another server.
pub type Forwarding = Pin<Box<dyn Future<Output = Forwarded>>>;
