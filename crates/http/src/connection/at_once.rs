//! Handlers that answer at once: [`ask`] gives a handler a request that stays bytes, and puts the
//! answer behind the replies that are ready.
//!
//! A handler that does not wait costs one future, and neither a table of fields nor a turn of the
//! connection's thread. Its reply leaves with those of the other requests that were read with it.
//! Whatever is not that simple becomes a [`HandlerCall`], and `run.rs` does the rest.

use super::call::{CallTerms, HandlerCall, HeadCopy, LogEntry, Sent, method, names, place_in};
use super::client::ClientSide;
use super::response_head::{self, Delimiter, KnownFields};
use crate::body::Framing;
use crate::date::Clock;
use crate::request::{Method, Request, Version};
use crate::response::Persistence;
use crate::worker::WorkerContext;
use http::{HeaderMap, Method as HttpMethod};
use selvedge_core::{Exception, catch};
use selvedge_handler::{Caller, DynHandler, Interim, LazyCaller, PlainCall, PlainOutcome, PlainRequest};
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// A map with room for more fields than this is not kept.
const SPARE_FIELDS_MAX: usize = 64;

/// The room of a head is kept up to this.
const HEAD_BYTES_MAX: usize = 4 << 10;

/// Memory that one request after the other uses.
pub(super) struct AskMemory {
    /// An empty map with the memory of the last response's fields, for those of a request.
    pub(super) fields: HeaderMap,
    /// The client of a request that stays bytes.
    caller: LazyCaller,
    /// Room for the head of such a request.
    head: Vec<u8>,
}

impl AskMemory {
    pub(super) fn new() -> AskMemory {
        AskMemory { fields: HeaderMap::new(), caller: LazyCaller::new(None), head: Vec::new() }
    }

    /// Takes back the room that [`ask`] gave to a call.
    pub(super) fn take_back(&mut self, head: &mut HeadCopy) {
        if let HeadCopy::Own(head) = head
            && head.capacity() <= HEAD_BYTES_MAX
        {
            self.head = std::mem::take(head);
        }
    }

    /// Lets go of what a handler has left with the client: the wakers of threads.
    #[inline]
    pub(super) fn reset(&mut self) {
        if self.caller.made().is_some() {
            self.caller.renew(None);
        }
    }
}

/// What became of a request that was given to a handler. The numbers are those of the bytes of
/// content behind the request's head.
pub(super) enum Asked {
    /// The reply has been put.
    Replied(Sent, Persistence, usize),
    /// The handler waits, or there is more to do for its answer. The call lies in its place.
    Begun(usize),
    /// The handler wants an owned request.
    Refused,
}

/// How far a handler came.
enum Beginning {
    Refused,
    Waits(PlainCall),
    Answered(PlainOutcome),
}

/// Asks `handler` for the answer to `request`; `behind` are the bytes after its head. The worker's
/// state is not borrowed meanwhile, so the handler may use the site.
#[inline(never)]
pub(super) fn ask<H>(
    handler: &Rc<dyn DynHandler>,
    (request, behind): (&Request<'_>, &[u8]),
    (client, worker): (&ClientSide, &WorkerContext<H>),
    memory: &mut AskMemory,
    (out, calling): (&mut Vec<u8>, &mut Option<HandlerCall>),
    cx: &mut Context<'_>,
) -> Asked {
    let AskMemory { fields: spare, caller, head } = memory;
    caller.renew(client.peer());
    let Ok(method) = method(request) else { return Asked::Refused };
    let bytes_max = worker.terms().handlers.body_bytes;
    let Some(plain) = plain(request, behind, (&method, bytes_max), caller) else { return Asked::Refused };
    let used = plain.content().len();
    let (answer, waiting) = match begin(&**handler, &plain, cx) {
        Ok(Beginning::Refused) => return Asked::Refused,
        Ok(Beginning::Answered(outcome)) if is_whole(&outcome) => {
            let state = worker.state.borrow();
            let terms = CallTerms::of(request, worker, false);
            if let Some(caller) = caller.made() {
                put_interims(caller, &terms, out);
            }
            let (sent, persistence) = put_whole(outcome, &terms, &state.clock, (spare, out));
            return Asked::Replied(sent, persistence, used);
        }
        Ok(Beginning::Answered(outcome)) => (Some(Ok(outcome)), None),
        Ok(Beginning::Waits(call)) => (None, Some(call)),
        Err(exception) => (Some(Err(exception)), None),
    };
    let trailers = request.values("TE").any(|value| names(value, b"trailers"));
    let terms = CallTerms::of(request, worker, trailers);
    let mut head = std::mem::take(head);
    head.clear();
    head.extend_from_slice(request.head);
    let entry = LogEntry::of(request, HeadCopy::Own(head));
    *calling = Some(HandlerCall {
        waiting,
        has_begun: true,
        answer,
        ..HandlerCall::of(handler.clone(), caller.get().clone(), terms, entry)
    });
    Asked::Begun(used)
}

/// Calls the handler, and lets it run until it waits.
fn begin(
    handler: &dyn DynHandler,
    plain: &PlainRequest<'_>,
    cx: &mut Context<'_>,
) -> Result<Beginning, Exception> {
    let mut beginning = catch(poll_fn(|cx| {
        Poll::Ready(match handler.call_plain_boxed(plain) {
            None => Beginning::Refused,
            Some(mut call) => match call.as_mut().poll(cx) {
                Poll::Ready(outcome) => Beginning::Answered(outcome),
                Poll::Pending => Beginning::Waits(call),
            },
        })
    }));
    match Pin::new(&mut beginning).poll(cx) {
        Poll::Ready(beginning) => beginning,
        Poll::Pending => unreachable!("the future in it does not wait"),
    }
}

/// The request as one that stays bytes, if it is for one host and its content has come.
fn plain<'r>(
    request: &'r Request<'_>,
    behind: &'r [u8],
    (method, bytes_max): (&'r HttpMethod, u64),
    caller: &'r LazyCaller,
) -> Option<PlainRequest<'r>> {
    let has_answers_with_content =
        !matches!(request.method, Method::Head | Method::Options | Method::Trace | Method::Other);
    let is_plain =
        has_answers_with_content && request.version == Version::Http11 && !request.expects_continue;
    let host = request.host.filter(|host| is_plain && !host.is_empty())?;
    let content = match request.framing {
        Framing::None => &[],
        Framing::Length(length) if length <= bytes_max => behind.get(..usize::try_from(length).ok()?)?,
        _ => return None,
    };
    let target = match request.query {
        None => request.path,
        Some(query) => {
            let path = place_in(request.line, request.path)?;
            let query = place_in(request.line, query)?;
            (query.start == path.end + 1).then(|| &request.line[path.start..query.end])?
        }
    };
    Some(PlainRequest::new(target, host, request.lines(), caller).with_content(method, content))
}

/// Whether the outcome is a final response with all of its content.
pub(super) fn is_whole(outcome: &PlainOutcome) -> bool {
    match outcome {
        PlainOutcome::Plain(_) => true,
        PlainOutcome::Response(response) => {
            !response.status().is_informational() && response.body().in_memory().is_some()
        }
    }
}

/// Puts head and content of an outcome that [is whole](is_whole). `spare` gets the memory of its
/// fields.
pub(super) fn put_whole(
    outcome: PlainOutcome,
    terms: &CallTerms,
    clock: &Clock,
    (spare, out): (&mut HeaderMap, &mut Vec<u8>),
) -> (Sent, Persistence) {
    match outcome {
        PlainOutcome::Plain(answer) => {
            response_head::put_plain(&answer, terms.persistence, clock, out);
            out.extend_from_slice(&answer.content);
            (Sent::of(answer.status, answer.content.len()), terms.persistence)
        }
        PlainOutcome::Response(response) => {
            let (mut parts, body) = (*response).into_parts();
            let content = body.in_memory().unwrap_or_default();
            let len = Some(content.len() as u64);
            let known = KnownFields::of(&parts);
            let (delimiter, persistence) = response_head::frame(&parts, known, len, terms);
            response_head::put((&parts, known), (delimiter, len), persistence, clock, out);
            let content = if delimiter == Delimiter::Nothing { &[] } else { content };
            out.extend_from_slice(content);
            if parts.headers.capacity() <= SPARE_FIELDS_MAX {
                parts.headers.clear();
                *spare = parts.headers;
            }
            (Sent::of(parts.status, content.len()), persistence)
        }
    }
}

/// Puts the interim responses that the handler has given and that were not sent meanwhile.
pub(super) fn put_interims(caller: &Caller, terms: &CallTerms, out: &mut Vec<u8>) {
    let interims: Vec<Interim> = caller.take_interims();
    if terms.version == Version::Http11 {
        interims.iter().for_each(|interim| response_head::put_interim(interim, out));
    }
}
