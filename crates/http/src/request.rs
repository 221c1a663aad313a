//! The request head: parsed in place, without allocation, strictly.
//!
//! A connection calls [`parse`] with the bytes that it has read. The result is one of three:
//!
//! - A [`Request`], if the head is complete. Its slices borrow the buffer. [`Request::len`] says
//!   where the head ends, so the connection can parse the next pipelined request behind it.
//! - `None`, if the head is not complete.
//! - The [`Status`] that refuses the head. The connection must then be closed, because the start of
//!   the next message is unknown.
//!
//! `httparse` refuses control bytes, white space before a colon, folded lines, and a wrong number
//! of spaces. [`parse`] also refuses
//!
//! - a line that ends in a bare LF;
//! - in HTTP/1.1, no `Host` or more than one; a `Host` that is no authority;
//! - a `Content-Length` that is no plain number or comes twice;
//! - `Transfer-Encoding` together with `Content-Length`, or in HTTP/1.0, or not ending in exactly
//!   one `chunked`.

mod request_target;

use self::request_target::{Target, is_authority};
use crate::body::{Framing, is_tchar};
use crate::framing_fields::FramingFields;
use crate::status::Status;
use selvedge_handler::FieldLines;
use std::mem::MaybeUninit;

/// The most header fields one request may carry; one more is answered 431.
pub const FIELDS_MAX: usize = 100;

/// The longest method name that is looked at; a longer one is answered 501.
const METHOD_BYTES_MAX: usize = 24;

/// The most empty lines (CRLF) that are skipped before a request line (RFC 9112 §2.2 asks for at
/// least one).
const EMPTY_LINES_MAX: usize = 4;

/// What a request may cost before it is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest head in bytes, request line and fields and empty line; beyond it 431.
    pub head_bytes: usize,
    /// Longest request target in bytes; beyond it 414. Leave room for it in `head_bytes`.
    pub target_bytes: usize,
    /// Longest body content in bytes; beyond it 413.
    pub body_bytes: u64,
}

impl Default for Limits {
    /// 16 KiB of head, 8 KiB of target, 1 MiB of body.
    fn default() -> Limits {
        Limits { head_bytes: 16 << 10, target_bytes: 8 << 10, body_bytes: 1 << 20 }
    }
}

/// A request method (RFC 9110 §9).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Method {
    /// `GET`
    Get,
    /// `HEAD`
    Head,
    /// `POST`
    Post,
    /// `PUT`
    Put,
    /// `DELETE`
    Delete,
    /// `OPTIONS`
    Options,
    /// `TRACE`
    Trace,
    /// `PATCH` (RFC 5789)
    Patch,
    /// Any other token. (`CONNECT` never gets this far: its target is an authority, which [`parse`]
    /// refuses with 501.)
    Other,
}

impl Method {
    fn from_token(token: &[u8]) -> Method {
        match token {
            b"GET" => Method::Get,
            b"HEAD" => Method::Head,
            b"POST" => Method::Post,
            b"PUT" => Method::Put,
            b"DELETE" => Method::Delete,
            b"OPTIONS" => Method::Options,
            b"TRACE" => Method::Trace,
            b"PATCH" => Method::Patch,
            _ => Method::Other,
        }
    }
}

/// The version of a request. A later minor version of HTTP/1 counts as 1.1 (RFC 9110 §2.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

/// A parsed request head. Every slice lies in the buffer it was parsed from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request<'b> {
    /// The method.
    pub method: Method,
    /// The path, still percent-encoded: it starts with `/`, or is `*` (only with `OPTIONS`). An
    /// absolute-form target is reduced to its path.
    pub path: &'b [u8],
    /// What follows the first `?` of the target.
    pub query: Option<&'b [u8]>,
    /// The version.
    pub version: Version,
    /// Host and port asked for: from an absolute-form target, else from `Host`. Valid as `uri-host
    /// [":" port]`, or empty.
    pub host: Option<&'b [u8]>,
    /// How the body is framed.
    pub framing: Framing,
    /// Whether the connection stays open after the reply, as far as the client is concerned.
    pub keep_alive: bool,
    /// Whether the client waits for `100 Continue` before it sends the body.
    pub expects_continue: bool,
    /// Whether `If-Match`, `If-None-Match`, `If-Modified-Since`, `If-Unmodified-Since` or `Range`
    /// is present; without them a found file is answered 200 whole.
    pub conditional: bool,
    /// `If-Match` is present; [`Request::values`] gives its lines.
    pub if_match: bool,
    /// `If-None-Match` is present; [`Request::values`] gives its lines.
    pub if_none_match: bool,
    /// `If-Modified-Since`; empty, which is no date, when it came more than once.
    pub if_modified_since: Option<&'b [u8]>,
    /// `If-Unmodified-Since`; empty when it came more than once.
    pub if_unmodified_since: Option<&'b [u8]>,
    /// `If-Range`; empty when it came more than once.
    pub if_range: Option<&'b [u8]>,
    /// `Range`; empty when it came more than once.
    pub range: Option<&'b [u8]>,
    /// `Referer`, the first if several.
    pub referer: Option<&'b [u8]>,
    /// `User-Agent`, the first if several.
    pub user_agent: Option<&'b [u8]>,
    /// The request line without its CRLF, for the log.
    pub line: &'b [u8],
    /// The head from its request line to the empty line.
    pub head: &'b [u8],
    /// Bytes of the buffer this head takes, including empty lines before it.
    pub len: usize,
}

impl<'b> Request<'b> {
    /// The values of every field line called `name` (lower or upper case alike), in order, trimmed.
    ///
    /// # Complexity
    /// One pass over the head.
    pub fn values<'n>(&self, name: &'n str) -> impl Iterator<Item = &'b [u8]> + Clone + use<'b, 'n> {
        let fields = FieldLines::new(self.lines());
        fields.filter(move |(found, _)| found.eq_ignore_ascii_case(name.as_bytes())).map(|(_, value)| value)
    }

    /// The field lines of the head, and the empty line behind them.
    pub(crate) fn lines(&self) -> &'b [u8] {
        &self.head[self.line.len() + "\r\n".len()..]
    }

    /// Whether the target is `*`: the server as a whole.
    pub fn is_asterisk(&self) -> bool {
        self.path == b"*"
    }
}

/// Parses the request head at the front of `buf`.
///
/// `Ok(None)` asks for more bytes; call again with the same bytes and more behind them.
///
/// # Errors
/// The status to answer before closing: 400, 413 (a `Content-Length` beyond 64 bits), 414, 417,
/// 431, 501 or 505.
///
/// # Complexity
/// One pass, no allocation. A partial head is parsed from its start at each call.
///
/// # Examples
/// ```
/// use selvedge::http::request::{self, Limits, Method};
/// let read = b"GET /a?b HTTP/1.1\r\nHost: example.org\r\n\r\nGET /next HTT";
/// let request = request::parse(read, &Limits::default())?.expect("a whole head");
/// assert_eq!((request.method, request.path), (Method::Get, &b"/a"[..]));
/// assert_eq!(request.query, Some(&b"b"[..]));
/// assert!(request.keep_alive);
/// assert_eq!(request::parse(&read[request.len..], &Limits::default()), Ok(None));
/// # Ok::<(), selvedge::http::status::Status>(())
/// ```
pub fn parse<'b>(buf: &'b [u8], limits: &Limits) -> Result<Option<Request<'b>>, Status> {
    let skipped = empty_lines(buf)?;
    let head = &buf[skipped..];
    let mut fields = [const { MaybeUninit::uninit() }; FIELDS_MAX];
    let mut parts = httparse::Request::new(&mut []);
    match parts.parse_with_uninit_headers(head, &mut fields) {
        Ok(httparse::Status::Complete(len)) => {
            let (Some(method), Some(target), Some(minor)) = (parts.method, parts.path, parts.version) else {
                return Err(Status::BAD_REQUEST);
            };
            if method.len() > METHOD_BYTES_MAX
                || target.len() > limits.target_bytes
                || len > limits.head_bytes
            {
                return Err(overlong(head, limits).unwrap_or(Status::FIELDS_TOO_LARGE));
            }
            let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
            let line = method.len() + target.len() + " HTTP/1.1 ".len();
            let mut request =
                assemble(&head[..len], method.as_bytes(), target.as_bytes(), version, line, parts.headers)?;
            request.len += skipped;
            Ok(Some(request))
        }
        Ok(httparse::Status::Partial) => incomplete(head, limits),
        Err(httparse::Error::TooManyHeaders) => {
            Err(overlong(head, limits).unwrap_or(Status::FIELDS_TOO_LARGE))
        }
        Err(httparse::Error::Version) => {
            let request = other_version(head, limits)?;
            Ok(request.map(|request| Request { len: request.len + skipped, ..request }))
        }
        Err(_) => Err(overlong(head, limits).unwrap_or(Status::BAD_REQUEST)),
    }
}

/// The first line in `buf` as far as it goes, without its line end: what to log of a refused
/// request.
pub fn first_line(buf: &[u8]) -> &[u8] {
    let start = buf.iter().position(|&byte| byte != b'\r' && byte != b'\n').unwrap_or(buf.len());
    let line = &buf[start..];
    let end = line.iter().position(|&byte| byte == b'\n').unwrap_or(line.len());
    line[..end].strip_suffix(b"\r").unwrap_or(&line[..end])
}

/// The method with which the first line in `buf` begins, complete or not: what a request that
/// [`parse`] refuses is to be answered by. [`Method::Other`] where the line has no method that a
/// space follows.
pub fn first_method(buf: &[u8]) -> Method {
    let line = first_line(buf);
    let end = line.iter().position(|&byte| byte == b' ').unwrap_or(0);
    Method::from_token(&line[..end])
}

fn empty_lines(buf: &[u8]) -> Result<usize, Status> {
    let mut skipped = 0;
    while buf[skipped..].starts_with(b"\r\n") {
        skipped += 2;
    }
    if skipped > 2 * EMPTY_LINES_MAX || buf[skipped..].starts_with(b"\n") {
        return Err(Status::BAD_REQUEST);
    }
    Ok(skipped)
}

fn incomplete<'b>(head: &[u8], limits: &Limits) -> Result<Option<Request<'b>>, Status> {
    match overlong(head, limits) {
        Some(status) => Err(status),
        None if head.len() >= limits.head_bytes => Err(Status::FIELDS_TOO_LARGE),
        None => Ok(None),
    }
}

/// Whether the request line, complete or not, already begins with no method or is too long to be
/// accepted, and the status that says so.
fn overlong(head: &[u8], limits: &Limits) -> Option<Status> {
    let line = first_line(head);
    let method = line.iter().position(|&byte| byte == b' ').unwrap_or(line.len());
    if !line[..method].iter().all(|&byte| is_tchar(byte)) {
        // Another protocol, such as TLS.
        return Some(Status::BAD_REQUEST);
    }
    if method > METHOD_BYTES_MAX {
        return Some(Status::NOT_IMPLEMENTED);
    }
    let target = line.get(method + 1..)?;
    let target = target.iter().position(|&byte| byte == b' ').unwrap_or(target.len());
    (target > limits.target_bytes).then_some(Status::URI_TOO_LONG)
}

/// A request line with a version that is neither 1.0 nor 1.1: a later minor version of HTTP/1 is
/// served as 1.1, a different major version is 505, anything else 400.
fn other_version<'b>(head: &'b [u8], limits: &Limits) -> Result<Option<Request<'b>>, Status> {
    if let Some(status) = overlong(head, limits) {
        return Err(status);
    }
    let line = first_line(head);
    let mut words = line.splitn(3, |&byte| byte == b' ');
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
        return Err(Status::BAD_REQUEST);
    };
    let Some(fields_at) = head.iter().position(|&byte| byte == b'\n').map(|lf| lf + 1) else {
        let (name, digits) = version.split_at(version.len().min(5));
        let plausible = b"HTTP/".starts_with(name) && digits.len() <= 3;
        return if plausible { incomplete(head, limits) } else { Err(Status::BAD_REQUEST) };
    };
    match version {
        [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'2'..=b'9'] => {}
        [b'H', b'T', b'T', b'P', b'/', b'0' | b'2'..=b'9', b'.', b'0'..=b'9'] => {
            return Err(Status::VERSION_NOT_SUPPORTED);
        }
        _ => return Err(Status::BAD_REQUEST),
    }
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    match httparse::parse_headers(&head[fields_at..], &mut fields) {
        Ok(httparse::Status::Complete((len, fields))) => {
            let len = fields_at + len;
            if len > limits.head_bytes {
                return Err(Status::FIELDS_TOO_LARGE);
            }
            assemble(&head[..len], method, target, Version::Http11, line.len(), fields).map(Some)
        }
        Ok(httparse::Status::Partial) => incomplete(head, limits),
        Err(httparse::Error::TooManyHeaders) => Err(Status::FIELDS_TOO_LARGE),
        Err(_) => Err(Status::BAD_REQUEST),
    }
}

/// What the fields say about framing and persistence, gathered over one pass.
#[derive(Default)]
struct Gathered {
    host_lines: u32,
    framing: FramingFields,
    close: bool,
    keep_alive: bool,
    unknown_expectation: bool,
}

/// Puts the parts of a complete `head` together and applies the rules that concern several of them.
#[inline]
fn assemble<'b>(
    head: &'b [u8],
    method: &'b [u8],
    target: &'b [u8],
    version: Version,
    line_len: usize,
    fields: &[httparse::Header<'b>],
) -> Result<Request<'b>, Status> {
    // `httparse` takes a bare LF for a line end. Every line starts right behind one, so it is
    // enough to see that a CR comes before it; the last two line ends of the head are behind the
    // last field.
    if !head.ends_with(b"\r\n\r\n") {
        return Err(Status::BAD_REQUEST);
    }
    let target = Target::parse(method, target)?;
    let mut request = Request {
        method: Method::from_token(method),
        path: target.path,
        query: target.query,
        version,
        host: None,
        framing: Framing::None,
        keep_alive: false,
        expects_continue: false,
        conditional: false,
        if_match: false,
        if_none_match: false,
        if_modified_since: None,
        if_unmodified_since: None,
        if_range: None,
        range: None,
        referer: None,
        user_agent: None,
        line: &head[..line_len],
        head,
        len: head.len(),
    };
    let mut gathered = Gathered::default();
    for field in fields {
        let at = field.name.as_ptr().addr() - head.as_ptr().addr();
        if head[at - 2] != b'\r' {
            return Err(Status::BAD_REQUEST);
        }
        pick(&mut request, &mut gathered, field.name.as_bytes(), field.value)?;
    }
    if gathered.host_lines > 1 || gathered.host_lines == 0 && version == Version::Http11 {
        return Err(Status::BAD_REQUEST);
    }
    if let Some(host) = request.host
        && !host.is_empty()
        && !is_authority(host)
    {
        return Err(Status::BAD_REQUEST);
    }
    if target.authority.is_some() {
        request.host = target.authority;
    }
    request.framing = gathered.framing.framing(version)?.unwrap_or(Framing::None);
    if gathered.unknown_expectation && version == Version::Http11 {
        return Err(Status::EXPECTATION_FAILED);
    }
    request.expects_continue &= version == Version::Http11;
    request.keep_alive = !gathered.close && (version == Version::Http11 || gathered.keep_alive);
    Ok(request)
}

/// Takes one field line into the request, if the server knows the field.
#[inline]
fn pick<'b>(
    request: &mut Request<'b>,
    gathered: &mut Gathered,
    name: &'b [u8],
    value: &'b [u8],
) -> Result<(), Status> {
    let is = |known: &[u8]| name.eq_ignore_ascii_case(known);
    match name.len() {
        4 if is(b"host") => {
            gathered.host_lines += 1;
            request.host = Some(value);
        }
        5 if is(b"range") => {
            only_once(&mut request.range, value);
            request.conditional = true;
        }
        6 if is(b"expect") => {
            request.expects_continue = value.eq_ignore_ascii_case(b"100-continue");
            gathered.unknown_expectation |= !request.expects_continue;
        }
        7 if is(b"referer") => {
            request.referer.get_or_insert(value);
        }
        8 if is(b"if-match") => {
            request.if_match = true;
            request.conditional = true;
        }
        8 if is(b"if-range") => only_once(&mut request.if_range, value),
        10 if is(b"connection") => {
            for option in value.split(|&byte| byte == b',') {
                let option = option.trim_ascii();
                gathered.close |= option.eq_ignore_ascii_case(b"close");
                gathered.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
            }
        }
        10 if is(b"user-agent") => {
            request.user_agent.get_or_insert(value);
        }
        13 if is(b"if-none-match") => {
            request.if_none_match = true;
            request.conditional = true;
        }
        14 if is(b"content-length") => gathered.framing.content_length(value)?,
        17 if is(b"transfer-encoding") => gathered.framing.transfer_encoding(value)?,
        17 if is(b"if-modified-since") => {
            only_once(&mut request.if_modified_since, value);
            request.conditional = true;
        }
        19 if is(b"if-unmodified-since") => {
            only_once(&mut request.if_unmodified_since, value);
            request.conditional = true;
        }
        _ => {}
    }
    Ok(())
}

/// Stores the value of a field that must not come twice; the second time it becomes empty, which is
/// never valid.
fn only_once<'b>(slot: &mut Option<&'b [u8]>, value: &'b [u8]) {
    *slot = Some(if slot.is_some() { b"" } else { value });
}

#[cfg(test)]
mod tests;
