//! Answered requests that are not logged for good yet, because their replies are on the way.
//!
//! `Exchange` [notes](Unlogged::note) each request that it answers, and the worker's log drafts the
//! line at once, while the parts of the request are at hand. In the usual case all replies leave
//! with the next call, and `Exchange` [keeps](Unlogged::keep) the drafts. Otherwise it
//! [takes them back](WorkerLog::take_back) before another connection can log. It has the requests
//! [logged](Unlogged::log) when the replies are gone or the connection is broken. For this the
//! requests are parsed a second time: until then they lie in the input of the exchange.

use super::call::Sent;
use super::client::ClientSide;
use crate::access_log::WorkerLog;
use crate::date::Clock;
use crate::log::Line;
use crate::request::{self, Limits, Request};
use crate::status::Status;
use std::net::IpAddr;
use std::rc::Rc;

/// The requests, in the order of their replies.
#[derive(Default)]
pub(super) struct Unlogged(Vec<Answered>);

/// An answered request.
pub(super) struct Answered {
    /// Where the request starts in the input.
    pub(super) start: usize,
    pub(super) status: Status,
    /// Content of the whole reply.
    pub(super) content_bytes: u64,
    /// Where the reply ends among the bytes that are gone or to go since the last log.
    pub(super) end: u64,
}

impl Answered {
    /// A request that starts at `start`, with a reply that is among the bytes to go, up to `end`.
    pub(super) fn of(start: usize, sent: &Sent, end: u64) -> Answered {
        Answered { start, status: sent.status, content_bytes: sent.content_bytes, end }
    }

    /// The line of this request, which `parsed` is; `first_line` if it could not be parsed.
    #[inline]
    fn line<'a>(&self, parsed: Option<&Request<'a>>, first_line: &'a [u8], peer: Option<IpAddr>) -> Line<'a> {
        Line {
            peer,
            request: parsed.map_or(first_line, |request| request.line),
            status: self.status,
            content_bytes: self.content_bytes,
            referer: parsed.and_then(|request| request.referer).unwrap_or_default(),
            user_agent: parsed.and_then(|request| request.user_agent).unwrap_or_default(),
            host: parsed.and_then(|request| request.host).unwrap_or_default(),
        }
    }
}

impl Unlogged {
    /// Notes a request and its reply, and drafts the line.
    ///
    /// It is not inlined, because the code around it is a large function in which few registers are
    /// left.
    #[inline(never)]
    pub(super) fn note(
        &mut self,
        answered: Answered,
        request: &Request<'_>,
        client: &ClientSide,
        log: &Rc<WorkerLog>,
        clock: &Clock,
    ) {
        log.draft(&answered.line(Some(request), b"", client.peer()), clock);
        self.0.push(answered);
    }

    /// Notes a request that could not be parsed, of which only the first line is known, and drafts
    /// the line.
    pub(super) fn note_line(
        &mut self,
        answered: Answered,
        first_line: &[u8],
        peer: Option<IpAddr>,
        log: &Rc<WorkerLog>,
        clock: &Clock,
    ) {
        draft_unusual(&answered.line(None, first_line, peer), log, clock);
        self.0.push(answered);
    }

    /// Keeps the drafts: all replies are gone.
    #[inline]
    pub(super) fn keep(&mut self, log: &Rc<WorkerLog>) {
        log.keep();
        self.0.clear();
    }

    /// Logs all of them, each with its content that is among the first `gone` bytes.
    #[cold]
    pub(super) fn log(
        &mut self,
        peer: Option<IpAddr>,
        input: &[u8],
        limits: &Limits,
        gone: u64,
        log: &Rc<WorkerLog>,
        clock: &Clock,
    ) {
        log.take_back();
        for answered in self.0.drain(..) {
            let unread = &input[answered.start..];
            let parsed = request::parse(unread, limits).ok().flatten();
            let line = answered.line(parsed.as_ref(), request::first_line(unread), peer);
            let kept = answered.end.saturating_sub(gone);
            let content_bytes = answered.content_bytes.saturating_sub(kept);
            draft_unusual(&Line { content_bytes, ..line }, log, clock);
        }
        log.keep();
    }

    /// Forgets all of them.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

/// Drafts a line outside the usual case, for which `draft` is compiled into [`Unlogged::note`].
#[cold]
#[inline(never)]
fn draft_unusual(line: &Line<'_>, log: &Rc<WorkerLog>, clock: &Clock) {
    log.draft(line, clock);
}
