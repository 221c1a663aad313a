//! One connection: a thread that reads requests and sends replies.
//!
//! ```text
//!              readable                      head incomplete, or body to come
//!   idle ────────────────▶ exchange: recv ◀──────────────────────────────────┐
//!    ▲  no buffers held        │                                             │
//!    │                         ▼                                             │
//!    │                      advance: parse, answer into `out` ───────▶ send ─┤
//!    │                         │  a large file: send head, sendfile          │
//!    │                         │  a cold file: look it up on the pool        │
//!    └─────────────────────────┴──────────────────────── nothing is pending ─┘
//! ```
//!
//! [`Exchange`] is the buffers and the protocol's state. It is borrowed from the worker's pool when bytes come in, and
//! given back when all of them are dealt with, so an idle connection is its [`Link`] and its thread. Whatever has been
//! read is answered in one `send`. Where a call cannot go on at once, a boxed future takes over: that keeps the thread small
//! and the usual request free of allocation.

use std::cell::Cell;
use std::io;
use std::net::{IpAddr, Shutdown};
use std::os::fd::AsFd;
use std::rc::Rc;
use std::time::Duration;

use rustix::io::Errno;
use selvedge_core::{Deadline, Time, now, spawn, yield_now};
use selvedge_io::net::Stream;
use selvedge_io::sys::Fd;
use selvedge_io::{blocking, sys};

use crate::body::Decoder;
use crate::cache::CachedFile;
use crate::entry::{Answer, Content};
use crate::log::Line;
use crate::page::{self, Extra};
use crate::range::{Parts, Span};
use crate::request::{self, Request};
use crate::response::Persistence;
use crate::site::{Config, Site, Target, Worker, deadline, missing_root};
use crate::status::Status;
use crate::target;
use crate::tree::{Body, Found, Missed, Patience, warm};

/// Replies are sent when they have grown to this, though more requests are there to be answered.
const OUT_BYTES: usize = 64 << 10;

/// Room for replies in a new buffer.
const OUT_START_BYTES: usize = 16 << 10;

/// Buffers that have grown beyond this are not kept.
const OUT_KEPT_BYTES: usize = 160 << 10;

/// Room behind the longest head, so that one is refused before the buffer is full.
const INPUT_EXTRA_BYTES: usize = 512;

/// How much of a file is sent between two looks at the disk and at the other threads.
const PIECE_BYTES: u64 = 256 << 10;

/// How long the pages of a file that were found in memory are taken to stay there.
const RESIDENCE: Duration = Duration::from_secs(1);

/// How long, and how many bytes, a refused client is listened to, so that it reads the refusal.
const LINGER: (Duration, usize) = (Duration::from_secs(3), 4 << 20);

/// A connection as the site knows it.
pub(crate) struct Link {
    stream: Stream,
    /// The peer as the log is to have it, if not by the stream's own address.
    named: Option<Box<Option<IpAddr>>>,
    /// Until when it may wait for a request of which no byte has come; never, if it does not.
    idle: Cell<Deadline>,
    /// Its place in the site's list.
    place: Cell<u32>,
}

/// Requests and replies on the way.
pub(crate) struct Exchange {
    /// What was read and, from `start` on, not yet dealt with.
    input: Vec<u8>,
    start: usize,
    /// Replies, of which the first `sent` bytes are gone.
    out: Vec<u8>,
    sent: usize,
    /// Requests whose replies are on their way, for the log; they lie in the input still. Empty when nothing is logged.
    answered: Vec<Answered>,
    /// Bytes that are gone since `answered` was empty.
    gone: u64,
    /// The body of the request answered last, while it is still coming.
    body: Option<Decoder>,
    /// When the message that is incomplete must be complete.
    due: Option<Time>,
    /// A name that was looked up for the next request, and what was found.
    found: Option<Box<LookedUp>>,
    /// The next step is to read.
    reading: bool,
    /// Something has been read.
    touched: bool,
    /// The reply at hand is the last.
    closing: bool,
    /// The client may be sending what nobody will read.
    refused: bool,
}

/// A request that is answered, as far as the log is to tell of it once the reply is gone.
struct Answered {
    line: Place,
    referer: Place,
    user_agent: Place,
    status: Status,
    /// Content of the whole reply.
    content_bytes: u64,
    /// Where the reply ends among the bytes that are gone or to go since there was no such request.
    end: u64,
}

/// Where a part of a request lies in the input; empty if the request has no such part.
#[derive(Clone, Copy, Default)]
struct Place {
    start: u32,
    len: u32,
}

impl Place {
    /// Of `part`, which lies in `input`.
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

/// A name, and what was found when it was looked up on the blocking pool.
type LookedUp = (Vec<u8>, Result<Found, Missed>);

/// What is to be done before the next request can be looked at.
enum Next {
    /// All of the input has been dealt with, or its rest is incomplete: send the replies and read.
    Read,
    /// Send the replies.
    Flush,
    /// Send the replies and a span of a file.
    File(Rc<CachedFile>, Span),
    /// Send the replies and several spans of a file.
    Parts(Rc<CachedFile>, Box<Parts>),
    /// Look up a name where waiting for the disk disturbs nobody.
    Find(Vec<u8>),
    /// Send the replies and close.
    Close,
}

/// What an exchange waits for.
enum Pause {
    /// Nothing: what came has been dealt with.
    Idle,
    /// Nothing: nothing came.
    Untouched,
    /// The rest of a message.
    More,
    /// A turn of the others; there may be more to read already.
    Turn,
    /// The client or the disk, with this still to be done.
    Slow(Next),
    /// The client's end, so that it reads the last reply.
    Linger,
    /// Nothing: the connection is of no more use.
    Over,
}

impl Link {
    pub(crate) fn new(stream: Stream, peer: Option<IpAddr>, place: usize) -> Link {
        let named = (peer != stream.peer_ip()).then(|| Box::new(peer));
        let link = Link { stream, named, idle: Cell::new(Deadline::NEVER), place: Cell::new(0) };
        link.set_place(place);
        link
    }

    /// Its place in the site's list.
    pub(crate) fn place(&self) -> usize {
        self.place.get() as usize
    }

    pub(crate) fn set_place(&self, place: usize) {
        self.place.set(place.try_into().expect("there are fewer connections than descriptors"));
    }

    /// The peer's address, for the log.
    fn peer(&self) -> Option<IpAddr> {
        self.named.as_deref().copied().unwrap_or_else(|| self.stream.peer_ip())
    }

    /// Makes an idle connection read the end of its input.
    pub(crate) fn end_if_idle(&self) {
        if !self.idle.replace(Deadline::NEVER).is_never() {
            // An error says that it is broken, which its thread will find out.
            let _ = self.stream.shutdown(Shutdown::Read);
        }
    }

    /// Until when it may be idle, if it is at `now`.
    pub(crate) fn idle_until(&self, now: Time) -> Option<Time> {
        self.idle.get().time(now)
    }

    /// Makes the connection's thread find it broken, whatever it waits for.
    pub(crate) fn break_off(&self) {
        // As above.
        let _ = self.stream.shutdown(Shutdown::Both);
    }

    /// The connection thread. All of its waiting is here, and what it keeps meanwhile is a pointer or two: a connection
    /// that waits costs little memory.
    pub(crate) async fn converse(&self, site: &Site) {
        let mut due = Deadline::after(now(), site.config.idle);
        loop {
            self.idle.set(due);
            if site.is_draining() {
                self.end_if_idle();
            }
            self.stream.set_read_deadline(due.time(now()));
            let readable = self.stream.readable().await;
            self.idle.set(Deadline::NEVER);
            if readable.is_err() {
                return;
            }
            let mut exchange = site.take_exchange();
            let end = loop {
                match exchange.proceed(self, site) {
                    Pause::More => {
                        if self.stream.readable().await.is_err() {
                            exchange.give_up(self, site);
                            break Pause::Over;
                        }
                    }
                    // There may be more already, of which no event tells.
                    Pause::Turn => yield_now().await,
                    Pause::Slow(next) => {
                        if Box::pin(exchange.finish(self, site, next)).await.is_err() {
                            break Pause::Over;
                        }
                    }
                    Pause::Linger => {
                        Box::pin(exchange.linger(self)).await;
                        break Pause::Over;
                    }
                    end => break end,
                }
            };
            site.give_back(exchange);
            match end {
                Pause::Idle if !site.is_draining() => due = Deadline::after(now(), site.config.idle),
                // It was a hint without substance, or the time is up, which the next wait will say.
                Pause::Untouched => {}
                _ => return,
            }
        }
    }
}

impl Exchange {
    pub(crate) fn new(config: &Config) -> Exchange {
        Exchange {
            input: Vec::with_capacity(config.limits.head_bytes + INPUT_EXTRA_BYTES),
            start: 0,
            out: Vec::with_capacity(OUT_START_BYTES),
            sent: 0,
            answered: Vec::new(),
            gone: 0,
            body: None,
            due: None,
            found: None,
            reading: true,
            touched: false,
            closing: false,
            refused: false,
        }
    }

    /// Makes it as good as new; false if it is not worth keeping.
    #[inline]
    pub(crate) fn reset(&mut self) -> bool {
        self.input.clear();
        self.out.clear();
        (self.start, self.sent) = (0, 0);
        self.answered.clear();
        self.gone = 0;
        (self.body, self.due, self.found) = (None, None, None);
        (self.reading, self.touched, self.closing, self.refused) = (true, false, false, false);
        self.out.capacity() <= OUT_KEPT_BYTES
    }

    /// Reads and answers for as long as that goes without waiting.
    fn proceed(&mut self, link: &Link, site: &Site) -> Pause {
        if self.reading {
            self.make_room();
            match link.stream.try_read_to_spare(&mut self.input) {
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
            let next = self.advance(site);
            let (read, close) = (matches!(next, Next::Read), matches!(next, Next::Close));
            match self.perform(link, next) {
                Ok(None) => self.log(link, &site.worker.borrow()),
                Ok(Some(next)) => return Pause::Slow(next),
                Err(_) => {
                    self.log_broken(link, site);
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
        let limit = if self.body.is_some() { site.config.body } else { site.config.head };
        let due = *self.due.get_or_insert_with(|| now() + limit);
        link.stream.set_read_deadline(Some(due));
        Pause::More
    }

    /// The rest of a message has taken too long.
    #[cold]
    fn give_up(&mut self, link: &Link, site: &Site) {
        if self.body.is_none() {
            let worker = &mut *site.worker.borrow_mut();
            self.refuse(Status::REQUEST_TIMEOUT, worker);
        }
        // A client that is slow in both directions loses what does not fit.
        let _ = self.send_now(link, false);
        self.log(link, &site.worker.borrow());
        let _ = link.stream.shutdown(Shutdown::Write);
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
    fn advance(&mut self, site: &Site) -> Next {
        let worker = &mut *site.worker.borrow_mut();
        let now = now();
        worker.tell_time(now);
        loop {
            if self.closing {
                return Next::Close;
            }
            if let Some(body) = &mut self.body {
                match body.decode(&self.input[self.start..]) {
                    Ok(piece) => {
                        self.start += piece.consumed;
                        if piece.done {
                            self.body = None;
                            self.due = None;
                        } else if self.start == self.input.len() {
                            return Next::Read;
                        }
                    }
                    // Its request has been answered; where the next one would start is unknown.
                    Err(_) => self.closing = true,
                }
                continue;
            }
            if self.start == self.input.len() {
                return Next::Read;
            }
            if self.out.len() >= OUT_BYTES {
                return Next::Flush;
            }
            match request::parse(&self.input[self.start..], &site.config.limits) {
                Ok(None) => return Next::Read,
                Ok(Some(request)) => {
                    let mut reply = Reply {
                        input: &self.input,
                        answered: &mut self.answered,
                        out: &mut self.out,
                        found: &mut self.found,
                        body: &mut self.body,
                        closing: &mut self.closing,
                        refused: &mut self.refused,
                    };
                    let next = reply.answer(&request, site, worker, now);
                    if !matches!(next, Some(Next::Find(_))) {
                        self.start += request.len;
                        self.due = None;
                    }
                    if let Some(next) = next {
                        return next;
                    }
                }
                Err(status) => {
                    self.refuse(status, worker);
                    (self.closing, self.refused) = (true, true);
                }
            }
        }
    }

    /// Answers a request that could not be understood or did not come.
    #[cold]
    fn refuse(&mut self, status: Status, worker: &mut Worker) {
        let clock = &worker.clock;
        let unread = &self.input[self.start..];
        let method = request::first_method(unread);
        let content_bytes = page::put(status, Extra::None, method, Persistence::Close, clock, &mut self.out);
        if worker.log.is_some() {
            self.answered.push(Answered {
                line: Place::of(request::first_line(unread), &self.input),
                referer: Place::default(),
                user_agent: Place::default(),
                status,
                content_bytes,
                end: self.out.len() as u64,
            });
        }
    }

    /// Logs what has been answered, each request with the content that is gone.
    #[inline]
    fn log(&mut self, link: &Link, worker: &Worker) {
        if let Some(log) = &worker.log {
            for answered in &self.answered {
                let kept = answered.end.saturating_sub(self.gone);
                let part = |place: Place| place.part(&self.input);
                let line = Line {
                    peer: link.peer(),
                    request: part(answered.line),
                    status: answered.status,
                    content_bytes: answered.content_bytes.saturating_sub(kept),
                    referer: part(answered.referer),
                    user_agent: part(answered.user_agent),
                };
                log.put(&line, &worker.clock);
            }
            self.answered.clear();
        }
        self.gone = 0;
    }

    /// As [`log`](Self::log), when the connection is broken or given up: what the client has not acknowledged is not gone.
    #[cold]
    fn log_broken(&mut self, link: &Link, site: &Site) {
        let kept = sys::unacknowledged(&link.stream).unwrap_or(0);
        self.gone = self.gone.saturating_sub(kept as u64);
        self.log(link, &site.worker.borrow());
    }

    /// Does as much of `next` as goes at once; what is left is for [`finish`](Self::finish).
    #[inline]
    fn perform(&mut self, link: &Link, next: Next) -> io::Result<Option<Next>> {
        let more = matches!(next, Next::File(..));
        let left = match next {
            Next::Find(_) | Next::Parts(..) => Some(next),
            next if !self.send_now(link, more)? => Some(next),
            Next::File(file, span) => match &file.body {
                Body::Open(fd) if span.len() <= PIECE_BYTES && is_resident(&file, fd, span) => {
                    self.send_piece(link, &file, fd, span)?.map(|left| Next::File(file, left))
                }
                _ => Some(Next::File(file, span)),
            },
            Next::Read | Next::Flush | Next::Close => None,
        };
        Ok(left)
    }

    /// Sends what there is room for; whether that was all.
    #[inline]
    fn send_now(&mut self, link: &Link, more: bool) -> io::Result<bool> {
        while self.sent < self.out.len() {
            match sys::send(&link.stream, &self.out[self.sent..], more) {
                Ok(sent) => {
                    self.sent += sent;
                    self.gone += sent as u64;
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(false),
                Err(errno) => return Err(errno.into()),
            }
        }
        self.out.clear();
        self.sent = 0;
        Ok(true)
    }

    /// Sends what there is room for of a piece of a file; gives what is left.
    #[inline]
    fn send_piece(
        &mut self,
        link: &Link,
        file: &CachedFile,
        fd: &Fd,
        piece: Span,
    ) -> io::Result<Option<Span>> {
        let mut at = piece.start;
        while at < piece.end {
            let left = (piece.end - at) as usize;
            match sys::send_file(&link.stream, fd, &mut at, left) {
                Ok(0) => return Err(got_shorter(file, at)),
                Ok(sent) => self.gone += sent as u64,
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => return Ok(Some(Span { start: at, end: piece.end })),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(None)
    }

    /// Does `next` with all the waiting it takes, and logs it.
    async fn finish(&mut self, link: &Link, site: &Site, next: Next) -> io::Result<()> {
        let done = self.finish_next(link, site, next).await;
        site.worker.borrow_mut().tell_time(now());
        match &done {
            Ok(()) => self.log(link, &site.worker.borrow()),
            Err(_) => self.log_broken(link, site),
        }
        done
    }

    async fn finish_next(&mut self, link: &Link, site: &Site, next: Next) -> io::Result<()> {
        match next {
            Next::Read | Next::Flush | Next::Close => self.send(link, site, false).await,
            Next::File(file, span) => {
                self.send(link, site, true).await?;
                self.send_file(link, site, &file, span).await
            }
            Next::Parts(file, parts) => {
                for (index, &span) in parts.spans().iter().enumerate() {
                    parts.put_part_head(index, &mut self.out);
                    match &file.body {
                        Body::Memory(content) => {
                            self.out.extend_from_slice(&content[span.start as usize..span.end as usize]);
                        }
                        Body::Open(_) => {
                            self.send(link, site, true).await?;
                            self.send_file(link, site, &file, span).await?;
                        }
                    }
                }
                parts.put_end(&mut self.out);
                self.send(link, site, false).await
            }
            Next::Find(name) => {
                // Replies that are ready do not wait for the disk.
                self.send(link, site, false).await?;
                let (tree, memory_max) = (site.tree.clone(), site.config.memory_bytes);
                let found = aside(move || {
                    let root = tree.root(Patience::Disk).map_err(missing_root);
                    let found =
                        root.and_then(|root| tree.find(root.as_fd(), &name, memory_max, Patience::Disk));
                    let found = match found {
                        // Something below the root is renamed faster than it can be looked up.
                        Err(Missed::Cold) => Err(Missed::Refused(Status::SERVICE_UNAVAILABLE)),
                        found => found,
                    };
                    Box::new((name, found))
                });
                self.found = Some(found.await?);
                Ok(())
            }
        }
    }

    async fn send(&mut self, link: &Link, site: &Site, more: bool) -> io::Result<()> {
        while !self.send_now(link, more)? {
            room(link, site).await?;
        }
        Ok(())
    }

    /// Sends a span of a file, with all the waiting it takes: for the client, and for the disk on the blocking pool.
    ///
    /// The head describes the file as it was, and as many bytes as the head says are sent, whatever is written to the file
    /// meanwhile. Only a file that gets shorter cuts the reply.
    async fn send_file(&mut self, link: &Link, site: &Site, file: &CachedFile, span: Span) -> io::Result<()> {
        let Body::Open(fd) = &file.body else { return Err(io::ErrorKind::InvalidInput.into()) };
        let mut start = span.start;
        while start < span.end {
            let mut piece = Span { start, end: span.end.min(start + PIECE_BYTES) };
            start = piece.end;
            if !is_resident(file, fd, piece) {
                let file = sys::duplicate(fd)?;
                aside(move || warm(&file, piece.start, piece.len() as usize)).await?;
            }
            while let Some(left) = self.send_piece(link, file, fd, piece)? {
                piece = left;
                room(link, site).await?;
            }
            // A client that is as fast as the worker does not keep it to itself.
            yield_now().await;
        }
        Ok(())
    }

    /// Closes so that the client reads the last reply: had it sent what nobody reads, closing would reset the
    /// connection, and the reply might be lost.
    async fn linger(&mut self, link: &Link) {
        if link.stream.shutdown(Shutdown::Write).is_err() {
            return;
        }
        link.stream.set_read_deadline(deadline(LINGER.0));
        let mut left = LINGER.1;
        loop {
            self.input.clear();
            match link.stream.read_to_spare(&mut self.input).await {
                Ok(1..) if left > self.input.len() => left -= self.input.len(),
                _ => return,
            }
        }
    }
}

/// The parts of an exchange that an answer changes, while the request lies in its input.
struct Reply<'e> {
    input: &'e [u8],
    answered: &'e mut Vec<Answered>,
    out: &'e mut Vec<u8>,
    found: &'e mut Option<Box<LookedUp>>,
    body: &'e mut Option<Decoder>,
    closing: &'e mut bool,
    refused: &'e mut bool,
}

impl Reply<'_> {
    /// Answers one request; gives what has to be done before the next one is looked at.
    #[inline]
    fn answer(&mut self, request: &Request<'_>, site: &Site, worker: &mut Worker, now: Time) -> Option<Next> {
        let body = Decoder::new(request.framing, site.config.limits.body_bytes);
        let mut file = None;
        let mut status = body.as_ref().err().copied().or_else(|| page::instead_of_file(request));
        let mut is_directory = false;
        if status.is_none() {
            match self.find(request, site, worker, now) {
                Ok(Target::File(found)) => file = Some(found),
                Ok(Target::Directory) => is_directory = true,
                Err(Missed::Refused(refused)) => status = Some(refused),
                Err(Missed::Cold) => return Some(Next::Find(std::mem::take(&mut worker.name))),
            }
        }
        let persistence = Persistence::of(request, body.is_ok() && !site.is_draining());
        *self.closing = !persistence.keeps();
        *self.refused = body.is_err();
        *self.body = body.ok().filter(|body| !body.is_done());
        let clock = &worker.clock;
        let mut next = None;
        let mut to_follow = 0;
        let (status, content_bytes) = match file {
            Some(file) => {
                let Answer { status, content, content_bytes } =
                    file.entry.answer(request, persistence, clock, self.out);
                match (content, &file.body) {
                    (Content::Nothing, _) => {}
                    (Content::Span(span), Body::Memory(content)) => {
                        self.out.extend_from_slice(&content[span.start as usize..span.end as usize]);
                    }
                    (Content::Span(span), Body::Open(_)) => {
                        to_follow = content_bytes;
                        next = Some(Next::File(file, span));
                    }
                    (Content::Parts(parts), _) => {
                        to_follow = content_bytes;
                        next = Some(Next::Parts(file, Box::new(parts)));
                    }
                }
                (status, content_bytes)
            }
            None if is_directory => {
                let mut location = Vec::new();
                target::directory_location(&worker.name, request.query, &mut location);
                let (status, extra) = (Status::MOVED_PERMANENTLY, Extra::Location(&location));
                (status, page::put(status, extra, request.method, persistence, clock, self.out))
            }
            None => {
                let status = status.unwrap_or(Status::NOT_FOUND);
                (status, page::put(status, Extra::None, request.method, persistence, clock, self.out))
            }
        };
        if worker.log.is_some() {
            let place = |part| Place::of(part, self.input);
            self.answered.push(Answered {
                line: place(request.line),
                referer: request.referer.map_or(Place::default(), place),
                user_agent: request.user_agent.map_or(Place::default(), place),
                status,
                content_bytes,
                end: self.out.len() as u64 + to_follow,
            });
        }
        next
    }

    /// The file that the request names. When it is not in the cache, its name is left in `worker.name`.
    #[inline]
    fn find(
        &mut self,
        request: &Request<'_>,
        site: &Site,
        worker: &mut Worker,
        now: Time,
    ) -> Result<Target, Missed> {
        // The usual path is the name of a cached file, which tells that there is nothing to resolve in it.
        if let Some((_, name)) = request.path.split_first()
            && let Some(file) = worker.cache.fresh(name, now)
            && file.is_plain()
            && file.is_unchanged()
        {
            return Ok(Target::File(file.clone()));
        }
        target::resolve(request.path, &mut worker.name).map_err(Missed::Refused)?;
        if let Some(file) = worker.cache.fresh(&worker.name, now)
            && file.is_unchanged()
        {
            return Ok(Target::File(file.clone()));
        }
        let name = std::mem::take(&mut worker.name);
        let found = self.found.take().filter(|found| found.0 == name).map(|found| found.1);
        let target = worker.look_up(site, &name, now, found);
        worker.name = name;
        target
    }
}

/// Runs a call that may block on the pool, on behalf of a thread of its own: the connection's thread then waits for that
/// thread only, and no waker of its own stays behind that would make its later waits dearer.
async fn aside<T: Send + 'static>(call: impl FnOnce() -> T + Send + 'static) -> io::Result<T> {
    match spawn(blocking(call)).await {
        Ok(result) => result.map_err(io::Error::from),
        Err(ended) => Err(io::Error::other(ended)),
    }
}

/// Waits until the client's side takes more. A client that has acknowledged nothing within the time for writing is given
/// up; the kernel has buffers so large that a client may read steadily and no room come for longer than that.
async fn room(link: &Link, site: &Site) -> io::Result<()> {
    let before = sys::unacknowledged(&link.stream).unwrap_or(0);
    let due = now() + site.config.write;
    link.stream.set_write_deadline(Some(due));
    // It ends when there is room, and when the time is up.
    link.stream.writable().await?;
    let progress = || sys::unacknowledged(&link.stream).is_ok_and(|after| after < before);
    if now() < due || progress() { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
}

/// Whether a span of at most [`PIECE_BYTES`] seems to be in memory: its first and its last byte are, or were lately.
fn is_resident(file: &CachedFile, fd: &Fd, span: Span) -> bool {
    let now = now();
    if now < file.resident_until.get() {
        return true;
    }
    let resident = [span.start, span.end - 1].iter().all(|&at| {
        // Other errors than this one are met again where they are reported.
        sys::pread_cached(fd, &mut [0], at) != Err(Errno::AGAIN)
    });
    if resident && file.identity.len <= PIECE_BYTES {
        file.resident_until.set(now + RESIDENCE);
    }
    resident
}

/// A file ends at byte `end`, before what its reply was to bring: the reply must not become complete.
#[cold]
fn got_shorter(file: &CachedFile, end: u64) -> io::Error {
    let name = file.name.escape_ascii();
    let len = file.identity.len;
    eprintln!("selvedge: /{name} got shorter while it was sent: a reply of {len} bytes was cut at {end}");
    io::ErrorKind::UnexpectedEof.into()
}
