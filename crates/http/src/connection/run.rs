//! The run of a handler in the connection's thread, from its request to the end of its response.
//!
//! ```text
//!   replies before it: sent, logged
//!        │
//!        ▼                 panic: 500, too slow: 503
//!     handler ──▶ response ──▶ head ──▶ body, piece by piece ──▶ log ──▶ the unread request body
//!        │ waits                            │ waits
//!        ▼                                  ▼
//!     attendant: the request's body in, interim responses out
//! ```

use super::Link;
use super::at_once::{is_whole, put_interims, put_whole};
use super::attendant::Attendant;
use super::call::{CallTerms, HandlerCall, LogEntry, Sent};
use super::client::ClientSide;
use super::exchange::Exchange;
use super::outgoing::Outgoing;
use super::response_head::{self, Delimiter, KnownFields};
use crate::date::Clock;
use crate::error_page::{self, Extra};
use crate::log::Line;
use crate::metrics::WaitKind;
use crate::range::Span;
use crate::request::Version;
use crate::responder::Responder;
use crate::response::Persistence;
use crate::status::Status;
use crate::worker::WorkerContext;
use bytes::Bytes;
use http::response::Parts;
use http::{HeaderMap, StatusCode};
use selvedge_core::{Catch, Exception, catch, now};
use selvedge_handler::{
    Body, BodyError, BoxResponse, Duplex, FileSpan, OnUpgrade, PlainCall, PlainOutcome, Response, Severity,
    Source, Upgraded, report,
};
use selvedge_io::nonblocking::PollState;
use selvedge_io::time::timeout;
use std::future::poll_fn;
use std::io::{self, Write};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

/// Pieces of a body gather to this size before they are sent, if they come without a wait.
const GATHER_BYTES: usize = 64 << 10;

/// How a response ended.
struct ResponseEnd {
    persistence: Persistence,
    /// The code that gets the connection, and whether the connection is in order.
    outcome: io::Result<Option<OnUpgrade>>,
}

/// A handler's future.
enum Answering<'h> {
    Calling(Catch<BoxResponse<'h>>),
    Waiting(Catch<PlainCall>),
}

impl Future for Answering<'_> {
    type Output = Result<PlainOutcome, Exception>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Answering::Calling(call) => Pin::new(call).poll(cx).map(|answer| answer.map(PlainOutcome::from)),
            Answering::Waiting(call) => Pin::new(call).poll(cx),
        }
    }
}

impl<H: Responder> Exchange<H> {
    /// Sends the response of the handler that the call at hand names.
    ///
    /// # Errors
    /// If the connection is of no more use.
    pub(super) fn call<'a>(
        &'a mut self,
        link: &'a Rc<Link>,
        worker: &'a WorkerContext<H>,
    ) -> Pin<Box<dyn Future<Output = io::Result<()>> + 'a>> {
        self.waits = worker.count_wait(WaitKind::Handler);
        match self.calling.as_mut().and_then(|call| call.waiting.take()) {
            Some(waiting) => {
                let mut answering = Some(Answering::Waiting(catch(waiting)));
                Box::pin(async move { self.run(link, worker, &mut answering).await })
            }
            None => Box::pin(self.begin(link, worker)),
        }
    }

    /// Calls a handler that has not been polled, and sends its response.
    ///
    /// Most handlers do not wait, and the kernel takes their responses at once. Such a call gets
    /// along with this small future; [`run`](Self::run) has a large one.
    ///
    /// # Errors
    /// If the connection is of no more use.
    async fn begin(&mut self, link: &Rc<Link>, worker: &WorkerContext<H>) -> io::Result<()> {
        let Some(call) = &mut self.calling else { return Ok(()) };
        let handler = call.handler.clone();
        let request = call.request.take();
        let mut answering = request.map(|request| Answering::Calling(catch(handler.call_boxed(request))));
        // Replies that are ready do not wait for the handler.
        if self.out.bytes.is_empty() && !call.has_begun {
            poll_fn(|cx| {
                call.has_begun = true;
                if let Some(handler) = &mut answering
                    && let Poll::Ready(answer) = Pin::new(handler).poll(cx)
                {
                    call.answer = Some(answer);
                    answering = None;
                }
                Poll::Ready(())
            })
            .await;
        }
        if self.reply_at_once(&link.client, worker)? {
            return Ok(());
        }
        Box::pin(self.run(link, worker, &mut answering)).await
    }

    /// Sends the response of a handler that has not waited, if its content is in memory. Returns
    /// whether all is done; [`run`](Self::run) does the rest.
    ///
    /// # Errors
    /// If the connection is of no more use.
    fn reply_at_once(&mut self, client: &ClientSide, worker: &WorkerContext<H>) -> io::Result<bool> {
        let Some(call) = &mut self.calling else { return Ok(false) };
        let has_body = call.body.is_some();
        let answer = call.answer.take_if(|answer| !has_body && answer.as_ref().is_ok_and(is_whole));
        let Some(Ok(outcome)) = answer else { return Ok(false) };
        if worker.is_draining() {
            call.terms.persistence = Persistence::Close;
        }
        let out = &mut self.out.bytes;
        put_interims(&call.caller, &call.terms, out);
        let state = worker.state.borrow();
        let (sent, persistence) =
            put_whole(outcome, &call.terms, &state.clock, (&mut self.memory.fields, out));
        drop(state);
        self.closing = !persistence.keeps();
        let gone = self.out.send_now(client, false);
        if let Ok(false) = gone {
            call.put = Some(sent);
            return Ok(false);
        }
        log_call(&sent, &call.entry, client, worker);
        self.out.gone = 0;
        self.calling = None;
        gone
    }

    /// Runs a handler to its end, and sends its response.
    ///
    /// # Errors
    /// If the connection is of no more use.
    async fn run(
        &mut self,
        link: &Rc<Link>,
        worker: &WorkerContext<H>,
        answering: &mut Option<Answering<'_>>,
    ) -> io::Result<()> {
        let client = &link.client;
        // The input has the requests of the replies before this one, for the log.
        if !self.out.bytes.is_empty() {
            let sent = self.out.send(client, worker.terms().write, false).await;
            if let Some(call) = self.calling.take_if(|call| call.put.is_some())
                && let Some(put) = call.put
            {
                log_call(&put, &call.entry, client, worker);
                self.out.gone = 0;
                return sent;
            }
            if let Err(error) = sent {
                self.log_broken(client, worker);
                return Err(error);
            }
            self.log(client, worker);
            // Its event may have come meanwhile.
            self.calling.iter_mut().for_each(|call| call.has_begun = false);
        }
        let Some(call) = &mut self.calling else { return Ok(()) };
        let (decoder, feeder) = call.body.take().unzip();
        // These stay where they are. The whole future is copied when it is made.
        let HandlerCall { answer, has_begun, caller, terms, entry, .. } = call;
        let mut attendant = Attendant {
            client,
            input: &mut self.input,
            start: &mut self.start,
            caller,
            decoder,
            feeder,
            trailers: Vec::new(),
            patience: worker.terms().handlers.body,
            write: worker.terms().write,
            cut: false,
            expects_continue: terms.expects_continue,
            informs: terms.version == Version::Http11,
            broken: false,
        };
        let answer = match answering {
            Some(handler) => {
                let answer = pin!(attendant.beside(handler, *has_begun));
                match worker.terms().handlers.time {
                    Some(limit) => timeout(limit, answer).await.ok(),
                    None => Some(answer.await),
                }
            }
            None => answer.take(),
        };
        // The handler is dropped, if it was too slow.
        *answering = None;
        let answer = match answer {
            Some(Ok(PlainOutcome::Response(response))) => {
                check(response, terms.version).map(PlainOutcome::Response)
            }
            Some(Ok(plain)) => Ok(plain),
            Some(Err(exception)) => {
                report_exception(entry, &exception);
                Err(Status::INTERNAL_SERVER_ERROR)
            }
            None => Err(Status::SERVICE_UNAVAILABLE),
        };
        if attendant.settle(worker.terms().handlers.unread_bytes).await || worker.is_draining() {
            terms.persistence = Persistence::Close;
        }
        worker.state.borrow_mut().tell_time(now());
        if attendant.cut {
            let status = match &answer {
                Ok(outcome) => Status::of_code(outcome.status().as_u16()),
                Err(status) => *status,
            };
            log_call(&Sent { status, content_bytes: 0 }, entry, client, worker);
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        put_interims(caller, terms, &mut self.out.bytes);
        let mut sent = Sent { status: Status::INTERNAL_SERVER_ERROR, content_bytes: 0 };
        let patience = worker.terms().write;
        let ended = match answer {
            Ok(plain @ PlainOutcome::Plain(_)) => {
                let memory = (&mut self.memory.fields, &mut self.out.bytes);
                let persistence;
                (sent, persistence) = put_whole(plain, terms, &worker.state.borrow().clock, memory);
                let outcome = self.out.send(client, patience, false).await.map(|()| None);
                ResponseEnd { persistence, outcome }
            }
            Ok(PlainOutcome::Response(response)) => {
                let clock = worker.state.borrow().clock.clone();
                let mut sending = ResponseSending {
                    out: &mut self.out,
                    client,
                    patience,
                    attendant: &mut attendant,
                    sent: &mut sent,
                };
                // In a box, because the answers of gateways are whole, and the whole future is
                // copied when it is made.
                Box::pin(sending.send(*response, terms, &clock)).await
            }
            Err(status) => {
                let clock = &worker.state.borrow().clock.clone();
                let (method, persistence) = (terms.method, terms.persistence);
                let bytes =
                    error_page::put(status, Extra::None, method, persistence, clock, &mut self.out.bytes);
                sent = Sent { status, content_bytes: bytes };
                let outcome = self.out.send(client, patience, false).await.map(|()| None);
                ResponseEnd { persistence, outcome }
            }
        };
        log_call(&sent, entry, client, worker);
        self.out.gone = 0;
        let mut unread = attendant.decoder.take().filter(|decoder| !decoder.is_done());
        let broken = attendant.broken;
        if let Some(decoder) = &mut unread {
            // The handler dropped the body with its response, if not before.
            self.refused = !decoder.restrict(worker.terms().handlers.unread_bytes);
        }
        self.refused |= broken || !ended.persistence.keeps() && unread.is_some();
        self.closing = self.refused || !ended.persistence.keeps();
        self.body = unread.filter(|_| !self.closing);
        let Some(handler) = ended.outcome? else {
            self.memory.take_back(&mut entry.head);
            self.calling = None;
            return Ok(());
        };
        let early = Bytes::copy_from_slice(&self.input[self.start..]);
        let upgraded = Upgraded::new(early, Carried::new(link.clone()));
        client.stream.set_read_deadline(None);
        client.stream.set_write_deadline(None);
        if let Err(exception) = catch(handler(upgraded)).await {
            report_exception(entry, &exception);
        }
        // The connection has been used up.
        Err(io::ErrorKind::NotConnected.into())
    }
}

#[cold]
fn report_exception(entry: &LogEntry, exception: &Exception) {
    let line = entry.line().escape_ascii();
    report(Severity::Error, format_args!("\"{line}\": the handler ended with an exception: {exception}"));
}

/// A response that can be sent. An interim status is none, unless it is 101 with the code that gets
/// the connection, and the client knows upgrades (RFC 9110 §7.8).
fn check(response: Box<Response>, version: Version) -> Result<Box<Response>, Status> {
    if !response.status().is_informational() {
        return Ok(response);
    }
    let (parts, body) = response.into_parts();
    let may_upgrade = parts.status == StatusCode::SWITCHING_PROTOCOLS && version == Version::Http11;
    match body.into_source() {
        source @ Source::Upgrade(_) if may_upgrade => {
            Ok(Box::new(Response::from_parts(parts, source.into())))
        }
        _ => {
            report(Severity::Error, format_args!("a handler gave {} for a response", parts.status));
            Err(Status::INTERNAL_SERVER_ERROR)
        }
    }
}

fn log_call<H>(sent: &Sent, entry: &LogEntry, client: &ClientSide, worker: &WorkerContext<H>) {
    let state = worker.state.borrow();
    if let Some(log) = &state.log {
        let line = Line {
            peer: client.peer(),
            request: entry.line(),
            status: sent.status,
            content_bytes: sent.content_bytes,
            referer: entry.referer(),
            user_agent: entry.user_agent(),
            host: entry.host(),
        };
        log.draft(&line, &state.clock);
        log.keep();
    }
}

/// A response on its way to the client.
struct ResponseSending<'s, 'a> {
    out: &'s mut Outgoing,
    client: &'s ClientSide,
    patience: Duration,
    attendant: &'s mut Attendant<'a>,
    sent: &'s mut Sent,
}

impl ResponseSending<'_, '_> {
    async fn send(&mut self, response: Response, terms: &CallTerms, clock: &Clock) -> ResponseEnd {
        let (parts, body) = response.into_parts();
        self.sent.status = Status::of_code(parts.status.as_u16());
        let len = body.len();
        let known = KnownFields::of(&parts);
        let (delimiter, persistence) = response_head::frame(&parts, known, len, terms);
        let body_end = (delimiter, len);
        response_head::put((&parts, known), body_end, persistence, clock, &mut self.out.bytes);
        let outcome = self.send_body(&parts, body, delimiter, terms).await;
        ResponseEnd { persistence, outcome }
    }

    async fn send_body(
        &mut self,
        parts: &Parts,
        body: Body,
        delimiter: Delimiter,
        terms: &CallTerms,
    ) -> io::Result<Option<OnUpgrade>> {
        let mut upgrade = None;
        match body.into_source() {
            Source::Upgrade(handler) if parts.status == StatusCode::SWITCHING_PROTOCOLS => {
                upgrade = Some(handler);
            }
            _ if delimiter == Delimiter::Nothing => {}
            Source::Empty => self.end(delimiter, 0, None)?,
            Source::Bytes(bytes) => {
                self.put(&bytes, delimiter);
                self.end(delimiter, bytes.len() as u64, None)?;
            }
            Source::File(FileSpan { file, span }) if matches!(delimiter, Delimiter::Length(len) if len == span.end - span.start) =>
            {
                let (start, before) = (span.start, self.out.gone);
                let head = self.out.bytes.len() as u64;
                let span = Span { start, end: span.end };
                let sent = self.out.send_span(self.client, self.patience, &file, span).await;
                // What is gone beyond the head is content.
                self.sent.content_bytes += (self.out.gone - before).saturating_sub(head);
                sent?;
            }
            Source::Incoming(incoming) => self.send_stream(Box::pin(incoming), delimiter, terms).await?,
            Source::Stream(stream) => self.send_stream(stream, delimiter, terms).await?,
            source => {
                let body: Body = source.into();
                self.send_stream(Box::pin(body), delimiter, terms).await?;
            }
        }
        self.flush().await.map(|()| upgrade)
    }

    /// Sends pieces as they come. What has gathered is sent when the next piece is not there yet.
    async fn send_stream<S>(
        &mut self,
        mut stream: Pin<Box<S>>,
        delimiter: Delimiter,
        terms: &CallTerms,
    ) -> io::Result<()>
    where
        S: http_body::Body<Data = Bytes, Error = BodyError> + ?Sized,
    {
        let mut content = 0;
        let mut trailers = None;
        loop {
            let frame = match poll_fn(|cx| Poll::Ready(stream.as_mut().poll_frame(cx))).await {
                Poll::Ready(frame) => frame,
                Poll::Pending => {
                    self.flush().await?;
                    self.attendant.beside(poll_fn(|cx| stream.as_mut().poll_frame(cx)), false).await
                }
            };
            let Some(frame) = frame else { break };
            let frame = match frame {
                Ok(frame) => frame,
                Err(error) => {
                    report_cut(&error);
                    // The client gets the part that there was.
                    self.flush().await?;
                    return Err(error.into());
                }
            };
            match frame.into_data() {
                Ok(piece) => {
                    content += piece.len() as u64;
                    if matches!(delimiter, Delimiter::Length(len) if content > len) {
                        return Err(wrong_length());
                    }
                    self.put(&piece, delimiter);
                }
                Err(frame) => trailers = frame.into_trailers().ok(),
            }
            if self.out.bytes.len() >= GATHER_BYTES {
                self.flush().await?;
            }
        }
        self.end(delimiter, content, trailers.filter(|_| terms.trailers))
    }

    /// Appends a piece of the content.
    fn put(&mut self, piece: &[u8], delimiter: Delimiter) {
        let out = &mut self.out.bytes;
        if delimiter == Delimiter::Chunks {
            if piece.is_empty() {
                return;
            }
            write!(out, "{:x}\r\n", piece.len()).expect("a vector takes all bytes");
        }
        out.extend_from_slice(piece);
        if delimiter == Delimiter::Chunks {
            out.extend_from_slice(b"\r\n");
        }
        self.sent.content_bytes += piece.len() as u64;
    }

    /// Appends the end of the content, of which there were `content` bytes.
    fn end(&mut self, delimiter: Delimiter, content: u64, trailers: Option<HeaderMap>) -> io::Result<()> {
        match delimiter {
            Delimiter::Length(len) if len != content => return Err(wrong_length()),
            Delimiter::Chunks => {
                self.out.bytes.extend_from_slice(b"0\r\n");
                if let Some(trailers) = trailers {
                    response_head::put_fields(&trailers, &mut self.out.bytes);
                }
                self.out.bytes.extend_from_slice(b"\r\n");
            }
            _ => {}
        }
        Ok(())
    }

    async fn flush(&mut self) -> io::Result<()> {
        self.out.send(self.client, self.patience, false).await
    }
}

#[cold]
fn report_cut(error: &BodyError) {
    report(Severity::Warning, format_args!("a response was cut: {error}"));
}

/// The error for a body that has another length than its head has said.
#[cold]
fn wrong_length() -> io::Error {
    report(
        Severity::Error,
        format_args!("a response was cut: its body has another length than its head says"),
    );
    io::ErrorKind::InvalidData.into()
}

/// The stream of a connection, for the handler that got it.
struct Carried {
    link: Rc<Link>,
    read: std::cell::RefCell<PollState>,
    write: std::cell::RefCell<PollState>,
}

impl Carried {
    fn new(link: Rc<Link>) -> Carried {
        Carried { link, read: Default::default(), write: Default::default() }
    }
}

impl Duplex for Carried {
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let state = &mut self.read.borrow_mut();
        self.link.client.stream.poll_read_with(state, cx, |stream| stream.try_read(buffer))
    }

    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let state = &mut self.write.borrow_mut();
        self.link.client.stream.poll_write_with(state, cx, |stream| stream.try_write(bytes))
    }

    fn poll_finish(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.link.client.stream.shutdown(std::net::Shutdown::Write))
    }
}
