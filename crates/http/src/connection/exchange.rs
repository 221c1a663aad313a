//! Requests in, replies out: the buffers of a connection, and the protocol's state.
//!
//! The connection's thread calls [`Exchange::proceed`] whenever bytes may have come. That function
//! reads, parses, has the handler answer, and sends, as long as none of it has to wait. It returns
//! a [`Pause`], which names the thing to wait for. A [`Pause::Slow`] is finished by
//! [`Exchange::finish`], which waits itself.

use super::at_once::{AskMemory, Asked, ask};
use super::call::HandlerCall;
use super::client::ClientSide;
use super::outgoing::{Outgoing, aside};
use super::unlogged::{Answered, Unlogged};
use crate::body::Decoder;
use crate::cache::CachedFile;
use crate::date::Clock;
use crate::error_page::{self, Extra};
use crate::metrics::{WaitCount, WaitKind};
use crate::range::{Parts, Span};
use crate::request::{self, Limits, Method};
use crate::responder::{Handled, Reply, Responder, Rest, Terms};
use crate::response::Persistence;
use crate::status::Status;
use crate::worker::{WorkerContext, WorkerState};
use selvedge_core::{Time, now};
use std::io;
use std::net::Shutdown;
use std::rc::Rc;
use std::task::Context;
use std::time::Duration;

/// Replies are sent when they have grown to this, also if more requests are there.
const OUT_BYTES: usize = 64 << 10;

/// Room behind the longest head, so that a longer head is refused before the buffer is full.
const INPUT_EXTRA_BYTES: usize = 512;

/// For how long, and for how many bytes, a refused client is listened to, so that it reads the
/// refusal.
const LINGER: (Duration, usize) = (Duration::from_secs(3), 4 << 20);

/// Requests and replies on the way.
pub(crate) struct Exchange<H: Responder> {
    /// The bytes that were read. Those from `start` on are not dealt with.
    pub(super) input: Vec<u8>,
    pub(super) start: usize,
    pub(super) out: Outgoing,
    /// Empty when nothing is logged.
    unlogged: Unlogged,
    /// The body of the last answered request, while it is still coming.
    pub(super) body: Option<Decoder>,
    /// When the message that is incomplete must be complete.
    due: Option<Time>,
    pub(super) memory: AskMemory,
    /// The request that a handler must answer. It lies here, because a box for each would cost more
    /// than the copies.
    pub(super) calling: Option<HandlerCall>,
    /// The result of a search for the next request.
    found: Option<Box<H::Found>>,
    /// Whether the next step is to read.
    reading: bool,
    /// Whether something has been read.
    touched: bool,
    /// Whether the reply at hand is the last.
    pub(super) closing: bool,
    /// Whether the client may be sending bytes that the server does not read.
    pub(super) refused: bool,
    /// What the connection counts as waiting for. It is set here and not by the thread, which is to
    /// have no room for it.
    pub(super) waits: Option<WaitCount>,
}

/// The drafts of one turn in the worker's log. It is dropped only by a panic, which the handler may
/// raise. Then it takes the drafts back, because their replies are not sent, and the next
/// connection would have them logged.
struct Drafts<'a, H>(&'a WorkerContext<H>);

impl<H> Drop for Drafts<'_, H> {
    #[cold]
    fn drop(&mut self) {
        if let Some(log) = &self.0.state.borrow().log {
            log.take_back();
        }
    }
}

/// The task that comes before the next request.
pub(super) enum NextTask<S> {
    /// All of the input has been dealt with, or its rest is incomplete: send the replies and read.
    Read,
    /// Send the replies.
    Flush,
    /// Send the replies and a span of a file.
    File(Rc<CachedFile>, Span),
    /// Send the replies and several spans of a file.
    Parts(Rc<CachedFile>, Box<Parts>),
    /// The handler must search, in a place where waiting for the disk disturbs no thread.
    Search(S),
    /// A handler must answer the request in `calling`.
    Run,
    /// Send the replies and close.
    Close,
}

/// What an exchange waits for.
pub(super) enum Pause<S> {
    /// Nothing: all that came has been dealt with.
    Idle,
    /// Nothing: no byte came.
    Untouched,
    /// The rest of a message.
    More,
    /// A turn of the other threads; there may be more to read already.
    Turn,
    /// The client or the disk, with this task still to be done.
    Slow(NextTask<S>),
    /// A handler.
    Run,
    /// The client's end, so that the client reads the last reply.
    Linger,
    /// Nothing: the connection is of no more use.
    Over,
}

impl<H: Responder> Exchange<H> {
    pub(super) fn new(limits: &Limits) -> Exchange<H> {
        Exchange {
            input: Vec::with_capacity(limits.head_bytes + INPUT_EXTRA_BYTES),
            start: 0,
            out: Outgoing::new(),
            unlogged: Unlogged::default(),
            body: None,
            due: None,
            memory: AskMemory::new(),
            calling: None,
            found: None,
            reading: true,
            touched: false,
            closing: false,
            refused: false,
            waits: None,
        }
    }

    /// Makes it as good as new; false if it is not worth keeping.
    #[inline]
    pub(super) fn reset(&mut self) -> bool {
        self.input.clear();
        self.start = 0;
        self.unlogged.clear();
        (self.body, self.due, self.found) = (None, None, None);
        if self.calling.is_some() {
            self.calling = None;
        }
        self.memory.reset();
        (self.reading, self.touched, self.closing, self.refused) = (true, false, false, false);
        self.waits = None;
        self.out.reset()
    }

    /// Reads and answers for as long as that goes without waiting.
    pub(super) fn proceed(
        &mut self,
        client: &ClientSide,
        worker: &WorkerContext<H>,
        cx: &mut Context<'_>,
    ) -> Pause<H::Search> {
        // Whatever the connection has waited for has come.
        self.waits = None;
        if self.reading {
            self.make_room();
            match client.stream.try_read_to_spare(&mut self.input) {
                // The client sends no more. All that it asked for has been answered.
                Ok(0) => return Pause::Over,
                Ok(_) => self.touched = true,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::Interrupted => return Pause::Turn,
                Err(_) => return Pause::Over,
            }
            self.reading = false;
        }
        loop {
            let drafts = Drafts(worker);
            let next = self.advance(client, worker, cx);
            let (read, close) = (matches!(next, NextTask::Read), matches!(next, NextTask::Close));
            let performed = self.perform(client, next);
            std::mem::forget(drafts);
            match performed {
                Ok(None) => self.keep_drafts(&worker.state.borrow()),
                Ok(Some(next)) => {
                    if let Some(log) = &worker.state.borrow().log {
                        log.take_back();
                    }
                    return match next {
                        NextTask::Run => Pause::Run,
                        next => Pause::Slow(next),
                    };
                }
                Err(_) => {
                    self.log_broken(client, worker);
                    return Pause::Over;
                }
            }
            if close {
                let unread = self.refused || self.start < self.input.len() || self.body.is_some();
                return if unread { Pause::Linger } else { Pause::Over };
            }
            if read {
                break;
            }
        }
        self.reading = true;
        if self.input.len() == self.input.capacity() {
            return Pause::Turn;
        }
        if self.start == self.input.len() && self.body.is_none() {
            return if self.touched { Pause::Idle } else { Pause::Untouched };
        }
        let limit = if self.body.is_some() {
            worker.terms().body
        } else {
            self.shed_room();
            worker.terms().head
        };
        let due = *self.due.get_or_insert_with(|| now() + limit);
        client.stream.set_read_deadline(Some(due));
        self.waits = worker.count_wait(WaitKind::Message);
        Pause::More
    }

    /// Ends a connection on which the rest of a message has taken too long.
    #[cold]
    pub(super) fn give_up(&mut self, client: &ClientSide, worker: &WorkerContext<H>) {
        if self.body.is_none() {
            self.refuse(Status::REQUEST_TIMEOUT, client, &worker.state.borrow());
        }
        // A client that is slow in both directions loses the bytes that do not fit.
        let _ = self.out.send_now(client, false);
        self.log(client, worker);
        let _ = client.stream.shutdown(Shutdown::Write);
    }

    /// Gives back the memory that has nothing in it, because thousands of clients may take their
    /// time with a head.
    #[cold]
    fn shed_room(&mut self) {
        self.input.shrink_to(self.input.len() + INPUT_EXTRA_BYTES);
        self.out.shed_room();
    }

    #[inline]
    fn make_room(&mut self) {
        if self.start == self.input.len() {
            self.input.clear();
        } else if self.start > 0 {
            self.input.drain(..self.start);
        }
        self.start = 0;
        if self.input.len() == self.input.capacity() {
            self.input.reserve(INPUT_EXTRA_BYTES);
        }
    }

    /// Answers requests from the input until something else has to be done first.
    fn advance(
        &mut self,
        client: &ClientSide,
        worker: &WorkerContext<H>,
        cx: &mut Context<'_>,
    ) -> NextTask<H::Search> {
        let mut borrowed = worker.state.borrow_mut();
        let now = now();
        borrowed.tell_time(now);
        loop {
            let state = &mut *borrowed;
            if self.closing {
                return NextTask::Close;
            }
            if let Some(body) = &mut self.body {
                match body.decode(&self.input[self.start..]) {
                    Ok(piece) => {
                        self.start += piece.consumed;
                        if piece.done {
                            self.body = None;
                            self.due = None;
                        } else if self.start == self.input.len() {
                            return NextTask::Read;
                        }
                    }
                    // Its request has been answered; where the next one would start is unknown.
                    Err(_) => self.closing = true,
                }
                continue;
            }
            if self.start == self.input.len() {
                return NextTask::Read;
            }
            if self.out.bytes.len() >= OUT_BYTES {
                return NextTask::Flush;
            }
            match request::parse(&self.input[self.start..], &worker.terms().limits) {
                Ok(None) => return NextTask::Read,
                Ok(Some(request)) => {
                    if let Some(run) = state.handler.route(&request) {
                        drop(borrowed);
                        let behind = &self.input[self.start + request.len..];
                        let places = (&mut self.out.bytes, &mut self.calling);
                        let memory = &mut self.memory;
                        let asked = ask(&run, (&request, behind), (client, worker), memory, places, cx);
                        borrowed = worker.state.borrow_mut();
                        let state = &mut *borrowed;
                        match asked {
                            Asked::Replied(sent, persistence, used) => {
                                self.closing = !persistence.keeps();
                                if let Some(log) = &state.log {
                                    let end = self.out.bytes.len() as u64;
                                    let answered = Answered::of(self.start, &sent, end);
                                    self.unlogged.note(answered, &request, client, log, &state.clock);
                                }
                                self.start += request.len + used;
                                self.due = None;
                                continue;
                            }
                            Asked::Begun(used) => {
                                self.start += request.len + used;
                                self.due = None;
                                return NextTask::Run;
                            }
                            Asked::Refused => {}
                        }
                        let spare = std::mem::take(&mut self.memory.fields);
                        let place = &mut self.calling;
                        match HandlerCall::put(place, run, &request, behind, spare, (client, worker)) {
                            Ok(used) => {
                                self.start += request.len + used;
                                self.due = None;
                                return NextTask::Run;
                            }
                            Err(status) => {
                                self.refuse(status, client, state);
                                (self.closing, self.refused) = (true, true);
                                continue;
                            }
                        }
                    }
                    let body = Decoder::new(request.framing, worker.terms().limits.body_bytes);
                    let willing = body.is_ok() && !worker.is_draining();
                    let persistence = Persistence::of(&request, willing);
                    let WorkerState { clock, handler, .. } = state;
                    let out = &mut self.out.bytes;
                    let handled = match &body {
                        Ok(_) => {
                            let terms = Terms { now, clock, persistence, client: Some(client) };
                            handler.answer(&request, &terms, &mut self.found, out)
                        }
                        Err(status) => {
                            Handled::Reply(refusal(*status, request.method, persistence, clock, out))
                        }
                    };
                    let Reply { status, content_bytes, rest } = match handled {
                        Handled::Reply(reply) => reply,
                        Handled::Search(search) => return NextTask::Search(search),
                    };
                    self.closing = !persistence.keeps();
                    self.refused = body.is_err();
                    self.body = body.ok().filter(|body| !body.is_done());
                    if let Some(log) = &state.log {
                        let to_follow = if matches!(rest, Rest::Nothing) { 0 } else { content_bytes };
                        let end = self.out.bytes.len() as u64 + to_follow;
                        let answered = Answered { start: self.start, status, content_bytes, end };
                        self.unlogged.note(answered, &request, client, log, clock);
                    }
                    self.start += request.len;
                    self.due = None;
                    match rest {
                        Rest::Nothing => {}
                        Rest::Span(file, span) => return NextTask::File(file, span),
                        Rest::Parts(file, parts) => return NextTask::Parts(file, parts),
                    }
                }
                Err(status) => {
                    self.refuse(status, client, state);
                    (self.closing, self.refused) = (true, true);
                }
            }
        }
    }

    /// Answers a request that could not be parsed or did not come.
    #[cold]
    fn refuse(&mut self, status: Status, client: &ClientSide, state: &WorkerState<H>) {
        let unread = &self.input[self.start..];
        let method = request::first_method(unread);
        let reply = refusal(status, method, Persistence::Close, &state.clock, &mut self.out.bytes);
        if let Some(log) = &state.log {
            let (content_bytes, end) = (reply.content_bytes, self.out.bytes.len() as u64);
            let answered = Answered { start: self.start, status, content_bytes, end };
            let line = request::first_line(unread);
            self.unlogged.note_line(answered, line, client.peer(), log, &state.clock);
        }
    }

    /// Logs the requests that have been answered, when all their replies are gone. The
    /// drafts are the lines.
    #[inline]
    fn keep_drafts(&mut self, state: &WorkerState<H>) {
        if let Some(log) = &state.log {
            self.unlogged.keep(log);
        }
        self.out.gone = 0;
    }

    /// Logs the requests that have been answered, each with its content that is gone.
    #[cold]
    pub(super) fn log(&mut self, client: &ClientSide, worker: &WorkerContext<H>) {
        let state = worker.state.borrow();
        if let Some(log) = &state.log {
            let limits = &worker.terms().limits;
            self.unlogged.log(client.peer(), &self.input, limits, self.out.gone, log, &state.clock);
        } else {
            // The log may have been taken away since the requests were noted.
            self.unlogged.clear();
        }
        self.out.gone = 0;
    }

    /// As [`log`](Self::log), when the connection is broken or given up. Bytes that the client has
    /// not acknowledged are not gone.
    #[cold]
    pub(super) fn log_broken(&mut self, client: &ClientSide, worker: &WorkerContext<H>) {
        let kept = client.stream.unacknowledged().unwrap_or(0);
        self.out.gone = self.out.gone.saturating_sub(kept as u64);
        self.log(client, worker);
    }

    /// Does the part of `next` that goes at once. Returns the part that is left, for
    /// [`finish`](Self::finish).
    #[inline]
    fn perform(
        &mut self,
        client: &ClientSide,
        next: NextTask<H::Search>,
    ) -> io::Result<Option<NextTask<H::Search>>> {
        let more = matches!(next, NextTask::File(..));
        let left = match next {
            NextTask::Search(_) | NextTask::Parts(..) | NextTask::Run => Some(next),
            next if !self.out.send_now(client, more)? => Some(next),
            NextTask::File(file, span) => {
                self.out.send_file_now(client, &file, span)?.map(|left| NextTask::File(file, left))
            }
            NextTask::Read | NextTask::Flush | NextTask::Close => None,
        };
        Ok(left)
    }

    /// Does `next` with all the waiting it takes, and logs it.
    ///
    /// # Errors
    /// If the connection is of no more use.
    pub(super) async fn finish(
        &mut self,
        client: &ClientSide,
        worker: &WorkerContext<H>,
        next: NextTask<H::Search>,
    ) -> io::Result<()> {
        self.waits = worker.count_wait(WaitKind::Transfer);
        let done = self.finish_next(client, worker, next).await;
        worker.state.borrow_mut().tell_time(now());
        match &done {
            Ok(()) => self.log(client, worker),
            Err(_) => self.log_broken(client, worker),
        }
        done
    }

    async fn finish_next(
        &mut self,
        client: &ClientSide,
        worker: &WorkerContext<H>,
        next: NextTask<H::Search>,
    ) -> io::Result<()> {
        let patience = worker.terms().write;
        match next {
            // `run` runs a handler.
            NextTask::Read | NextTask::Flush | NextTask::Close | NextTask::Run => {
                self.out.send(client, patience, false).await
            }
            NextTask::File(file, span) => {
                self.out.send(client, patience, true).await?;
                self.out.send_file(client, patience, &file, span).await
            }
            NextTask::Parts(file, parts) => self.out.send_parts(client, patience, &file, &parts).await,
            NextTask::Search(search) => {
                // Replies that are ready do not wait for the disk.
                self.out.send(client, patience, false).await?;
                let (pool, call) = {
                    let handler = &worker.state.borrow().handler;
                    (handler.pool(&search), handler.search(search))
                };
                self.found = Some(aside(pool, call).await?);
                Ok(())
            }
        }
    }

    /// Ends a connection so that the client reads the last reply. If the client has sent bytes that
    /// the server did not read, closing would reset the connection, and the reply might be lost.
    pub(super) async fn linger(&mut self, client: &ClientSide, worker: &WorkerContext<H>) {
        self.waits = worker.count_wait(WaitKind::Transfer);
        if client.stream.shutdown(Shutdown::Write).is_err() {
            return;
        }
        client.stream.set_read_deadline(Some(now() + LINGER.0));
        let mut left = LINGER.1;
        loop {
            self.input.clear();
            match client.stream.read_to_spare(&mut self.input).await {
                Ok(1..) if left > self.input.len() => left -= self.input.len(),
                _ => return,
            }
        }
    }
}

/// The reply to a request that the protocol refuses.
#[cold]
fn refusal(
    status: Status,
    method: Method,
    persistence: Persistence,
    clock: &Clock,
    out: &mut Vec<u8>,
) -> Reply {
    let content_bytes = error_page::put(status, Extra::None, method, persistence, clock, out);
    Reply { status, content_bytes, rest: Rest::Nothing }
}
