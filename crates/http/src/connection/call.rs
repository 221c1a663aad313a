//! [`HandlerCall`]: a request that a handler answers. The parsed head, which borrows the read buffer,
//! becomes an owned request; the terms on which it is answered stay beside it.

use super::client::ClientSide;
use crate::body::{Decoder, Framing};
use crate::request::{Method, Request, Version};
use crate::response::Persistence;
use crate::status::Status;
use crate::worker::WorkerContext;
use bytes::Bytes;
use http::header::{HOST, HeaderName, HeaderValue, TE, UPGRADE};
use http::{HeaderMap, Method as HttpMethod, StatusCode, Uri, Version as HttpVersion};
use memchr::memchr_iter;
use selvedge_core::Exception;
use selvedge_handler::{Body, Caller, DynHandler, Feeder, FieldLines, PlainCall, PlainOutcome, incoming};
use std::ops::{Deref, Range};
use std::rc::Rc;

/// A request on its way to a handler.
pub(super) struct HandlerCall {
    pub(super) handler: Rc<dyn DynHandler>,
    /// The handler takes it, unless it was given bytes.
    pub(super) request: Option<selvedge_handler::Request>,
    /// The handler's future, if it was given bytes and waits.
    pub(super) waiting: Option<PlainCall>,
    /// Whether the handler has been polled.
    pub(super) has_begun: bool,
    /// How the handler ended, if it did not wait.
    pub(super) answer: Option<Result<PlainOutcome, Exception>>,
    /// What was put of a response that the stream has not taken as a whole yet.
    pub(super) put: Option<Sent>,
    pub(super) caller: Caller,
    /// The body that is still to be read from the connection, and the handler's end of it.
    pub(super) body: Option<(Decoder, Feeder)>,
    pub(super) terms: CallTerms,
    pub(super) entry: LogEntry,
}

/// What the framing of the response depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct CallTerms {
    pub(super) version: Version,
    pub(super) persistence: Persistence,
    pub(super) method: Method,
    /// Whether the client takes trailers.
    pub(super) trailers: bool,
    /// Whether the client waits for `100 Continue`.
    pub(super) expects_continue: bool,
}

/// What was sent of a response, for the log.
pub(super) struct Sent {
    pub(super) status: Status,
    pub(super) content_bytes: u64,
}

impl Sent {
    pub(super) fn of(status: StatusCode, content_bytes: usize) -> Sent {
        Sent { status: Status::of_code(status.as_u16()), content_bytes: content_bytes as u64 }
    }
}

/// A copy of the head of a request.
pub(super) enum HeadCopy {
    /// It is shared with the fields of the owned request.
    Shared(Bytes),
    /// It is in room that the exchange uses again.
    Own(Vec<u8>),
}

impl Deref for HeadCopy {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            HeadCopy::Shared(head) => head,
            HeadCopy::Own(head) => head,
        }
    }
}

/// What the log says of the request.
pub(super) struct LogEntry {
    pub(super) head: HeadCopy,
    line: Range<usize>,
    referer: Range<usize>,
    user_agent: Range<usize>,
    host: Range<usize>,
}

impl LogEntry {
    /// The parts of `request`, of which `head` is a copy of the head.
    pub(super) fn of(request: &Request<'_>, head: HeadCopy) -> LogEntry {
        let place = |part: &[u8]| place_in(request.head, part);
        LogEntry {
            line: place(request.line).unwrap_or(0..0),
            referer: request.referer.and_then(place).unwrap_or(0..0),
            user_agent: request.user_agent.and_then(place).unwrap_or(0..0),
            host: request.host.and_then(place).unwrap_or(0..0),
            head,
        }
    }

    pub(super) fn line(&self) -> &[u8] {
        &self.head[self.line.clone()]
    }

    pub(super) fn referer(&self) -> &[u8] {
        &self.head[self.referer.clone()]
    }

    pub(super) fn user_agent(&self) -> &[u8] {
        &self.head[self.user_agent.clone()]
    }

    pub(super) fn host(&self) -> &[u8] {
        &self.head[self.host.clone()]
    }
}

impl HandlerCall {
    /// Puts the call of `handler` for `request` into `place`. `behind` are the bytes behind its
    /// head; the call uses some of them, and says how many. `spare` is an empty map, for the memory
    /// that it has.
    ///
    /// # Errors
    /// The status that refuses the request.
    #[inline(never)]
    pub(super) fn put<H>(
        place: &mut Option<HandlerCall>,
        handler: Rc<dyn DynHandler>,
        request: &Request<'_>,
        behind: &[u8],
        spare: HeaderMap,
        (client, worker): (&ClientSide, &WorkerContext<H>),
    ) -> Result<usize, Status> {
        let caller = Caller::new(client.peer());
        let decoder = Decoder::new(request.framing, worker.terms().handlers.body_bytes)?;
        let head = Bytes::copy_from_slice(request.head);
        let mut owned = selvedge_handler::Request::new(Body::empty());
        *owned.method_mut() = method(request)?;
        *owned.uri_mut() = target(request, &head)?;
        *owned.headers_mut() = fields(request, &head, spare)?;
        if request.version == Version::Http10 {
            *owned.version_mut() = HttpVersion::HTTP_10;
            // A server ignores it from such a client (RFC 9110 §7.8).
            owned.headers_mut().remove(UPGRADE);
        }
        let (body, feed, used) = body(decoder, request.framing, behind);
        let takes_trailers =
            owned.headers().get_all(TE).iter().any(|value| names(value.as_bytes(), b"trailers"));
        let mut terms = CallTerms::of(request, worker, takes_trailers);
        terms.expects_continue &= feed.is_some();
        *owned.body_mut() = body;
        owned.extensions_mut().insert(caller.clone());
        let entry = LogEntry::of(request, HeadCopy::Shared(head));
        *place = Some(HandlerCall {
            request: Some(owned),
            body: feed,
            ..HandlerCall::of(handler, caller, terms, entry)
        });
        Ok(used)
    }

    pub(super) fn of(
        handler: Rc<dyn DynHandler>,
        caller: Caller,
        terms: CallTerms,
        entry: LogEntry,
    ) -> HandlerCall {
        HandlerCall {
            handler,
            request: None,
            waiting: None,
            has_begun: false,
            answer: None,
            put: None,
            caller,
            body: None,
            terms,
            entry,
        }
    }
}

impl CallTerms {
    pub(super) fn of<H>(request: &Request<'_>, worker: &WorkerContext<H>, trailers: bool) -> CallTerms {
        CallTerms {
            version: request.version,
            persistence: Persistence::offered(request, !worker.is_draining()),
            method: request.method,
            trailers,
            expects_continue: request.expects_continue,
        }
    }
}

/// Whether the list `value` has the element `name`, with parameters or without.
pub(super) fn names(value: &[u8], name: &[u8]) -> bool {
    let mut elements = value.split(|&byte| byte == b',');
    elements.any(|element| {
        let element = element.split(|&byte| byte == b';').next().unwrap_or_default();
        element.trim_ascii().eq_ignore_ascii_case(name)
    })
}

/// Where `part` lies in `whole`.
pub(super) fn place_in(whole: &[u8], part: &[u8]) -> Option<Range<usize>> {
    let start = part.as_ptr().addr().checked_sub(whole.as_ptr().addr())?;
    let end = start + part.len();
    (end <= whole.len()).then_some(start..end)
}

pub(super) fn method(request: &Request<'_>) -> Result<HttpMethod, Status> {
    Ok(match request.method {
        Method::Get => HttpMethod::GET,
        Method::Head => HttpMethod::HEAD,
        Method::Post => HttpMethod::POST,
        Method::Put => HttpMethod::PUT,
        Method::Delete => HttpMethod::DELETE,
        Method::Options => HttpMethod::OPTIONS,
        Method::Trace => HttpMethod::TRACE,
        Method::Patch => HttpMethod::PATCH,
        Method::Other => {
            let end = request.line.iter().position(|&byte| byte == b' ').unwrap_or(0);
            HttpMethod::from_bytes(&request.line[..end]).map_err(|_| Status::BAD_REQUEST)?
        }
    })
}

/// The path and the query.
fn target(request: &Request<'_>, head: &Bytes) -> Result<Uri, Status> {
    let path = place_in(request.head, request.path);
    let query = request.query.map(|query| place_in(request.head, query));
    let span = match (path, query) {
        (Some(path), None) => Some(path),
        (Some(path), Some(Some(query))) if query.start == path.end + 1 => Some(path.start..query.end),
        _ => None,
    };
    let text = match span {
        Some(span) => head.slice(span),
        // The target had an authority and no path.
        None => {
            let query = request.query.map(|query| [b"?", query].concat()).unwrap_or_default();
            [request.path, &query].concat().into()
        }
    };
    Uri::from_maybe_shared(text).map_err(|_| Status::BAD_REQUEST)
}

/// The fields, in the memory of `fields`, which is empty.
fn fields(request: &Request<'_>, head: &Bytes, mut fields: HeaderMap) -> Result<HeaderMap, Status> {
    let lines = &head[request.line.len() + "\r\n".len()..];
    // The empty line counts too. A map that grows moves what it has.
    fields.reserve(memchr_iter(b'\n', lines).count());
    for (name, value) in FieldLines::new(lines) {
        let name = HeaderName::from_bytes(name).map_err(|_| Status::BAD_REQUEST)?;
        let span = place_in(head, value).ok_or(Status::BAD_REQUEST)?;
        let value = HeaderValue::from_maybe_shared(head.slice(span)).map_err(|_| Status::BAD_REQUEST)?;
        fields.append(name, value);
    }
    // The authority of a target in absolute form counts, whatever `Host` says.
    if let Some(host) = request.host
        && fields.get(HOST).is_none_or(|named| named.as_bytes() != host)
    {
        fields.insert(HOST, HeaderValue::from_bytes(host).map_err(|_| Status::BAD_REQUEST)?);
    }
    Ok(fields)
}

/// The body for the handler: bytes if all of it has come, otherwise a stream with its other end.
fn body(decoder: Decoder, framing: Framing, behind: &[u8]) -> (Body, Option<(Decoder, Feeder)>, usize) {
    if decoder.is_done() {
        return (Body::empty(), None, 0);
    }
    if let Some((bytes, used)) = whole(decoder.clone(), behind) {
        return (bytes.into(), None, used);
    }
    let length = match framing {
        Framing::Length(length) => Some(length),
        _ => None,
    };
    let (feeder, incoming) = incoming(length);
    (incoming.into(), Some((decoder, feeder)), 0)
}

/// The content of a body that has come as a whole, without trailers, and its length in `behind`.
fn whole(mut decoder: Decoder, behind: &[u8]) -> Option<(Bytes, usize)> {
    let first = decoder.decode(behind).ok()?;
    let mut used = first.consumed;
    if first.done {
        return Some((Bytes::copy_from_slice(first.content), used));
    }
    let mut content = first.content.to_vec();
    while used < behind.len() {
        let piece = decoder.decode(&behind[used..]).ok()?;
        used += piece.consumed;
        content.extend_from_slice(piece.content);
        if piece.done {
            let without_trailers = piece.trailers == b"\r\n" || piece.trailers.is_empty();
            return without_trailers.then(|| (content.into(), used));
        }
    }
    None
}
