//! Requests that are answered and not logged yet, because their replies are on the way.
//!
//! `Exchange` [notes](Unlogged::note) each request that it answers, and has all of them
//! [logged](Unlogged::log) when the replies are gone or the connection is broken. Until then the
//! requests lie in the input of the exchange.

use std::rc::Rc;

use super::client::Client;
use crate::access_log::WorkerLog;
use crate::date::Clock;
use crate::log::Line;
use crate::request::Request;
use crate::status::Status;

/// The requests, in the order of their replies.
#[derive(Default)]
pub(super) struct Unlogged(Vec<Answered>);

/// An answered request.
struct Answered {
    line: Place,
    referer: Place,
    user_agent: Place,
    status: Status,
    /// Content of the whole reply.
    content_bytes: u64,
    /// Where the reply ends among the bytes that are gone or to go since the last log.
    end: u64,
}

/// Where a part of a request lies in the input; empty if the request has no such part.
#[derive(Clone, Copy, Default)]
struct Place {
    start: u32,
    len: u32,
}

impl Place {
    /// The place of `part`, which lies in `input`.
    #[inline]
    fn of(part: &[u8], input: &[u8]) -> Place {
        let start = part.as_ptr().addr() - input.as_ptr().addr();
        Place { start: start as u32, len: part.len() as u32 }
    }

    #[inline]
    fn part(self, input: &[u8]) -> &[u8] {
        &input[self.start as usize..][..self.len as usize]
    }
}

impl Unlogged {
    /// Notes a request of `input` and its reply, which ends at `end`.
    #[inline]
    pub(super) fn note(
        &mut self,
        request: &Request<'_>,
        input: &[u8],
        status: Status,
        content_bytes: u64,
        end: u64,
    ) {
        let place = |part| Place::of(part, input);
        self.0.push(Answered {
            line: place(request.line),
            referer: request.referer.map_or(Place::default(), place),
            user_agent: request.user_agent.map_or(Place::default(), place),
            status,
            content_bytes,
            end,
        });
    }

    /// Notes a request that could not be parsed, of which only the first `line` of `input` is
    /// known.
    pub(super) fn note_line(
        &mut self,
        line: &[u8],
        input: &[u8],
        status: Status,
        content_bytes: u64,
        end: u64,
    ) {
        let (line, none) = (Place::of(line, input), Place::default());
        self.0.push(Answered { line, referer: none, user_agent: none, status, content_bytes, end });
    }

    /// Logs all of them, each with its content that is among the first `gone` bytes.
    #[inline]
    pub(super) fn log(
        &mut self,
        client: &Client,
        input: &[u8],
        gone: u64,
        log: &Rc<WorkerLog>,
        clock: &Clock,
    ) {
        for answered in &self.0 {
            let kept = answered.end.saturating_sub(gone);
            let line = Line {
                peer: client.peer(),
                request: answered.line.part(input),
                status: answered.status,
                content_bytes: answered.content_bytes.saturating_sub(kept),
                referer: answered.referer.part(input),
                user_agent: answered.user_agent.part(input),
            };
            log.put(&line, clock);
        }
        self.0.clear();
    }

    /// Forgets all of them.
    #[inline]
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
