//! [`Attendant`]: the connection's work while a handler, or the body of its response, waits. It
//! reads the request's body when the handler wants a piece, and sends interim responses.
//!
//! [`Attendant::beside`] polls the handler first. A handler that never waits costs no more than its
//! own poll.

use super::client::ClientSide;
use super::response_head;
use crate::body::Decoder;
use crate::status::Status;
use crate::trailers;
use bytes::Bytes;
use http::HeaderMap;
use selvedge_core::now;
use selvedge_handler::{BodyError, Caller, Cause, Feeder, Interim, Wanted};
use std::cell::Cell;
use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Room for a read of a body.
const READ_BYTES: usize = 16 << 10;

/// The request's side of a connection while a handler answers.
pub(super) struct Attendant<'a> {
    pub(super) client: &'a ClientSide,
    pub(super) input: &'a mut Vec<u8>,
    pub(super) start: &'a mut usize,
    pub(super) caller: &'a Caller,
    /// The body that is still to be read, and its handler's end until it has ended.
    pub(super) decoder: Option<Decoder>,
    pub(super) feeder: Option<Feeder>,
    pub(super) trailers: Vec<u8>,
    /// How long the client may send nothing of a body.
    pub(super) patience: Duration,
    /// How long an interim response may take to go out.
    pub(super) write: Duration,
    /// Whether an interim response went out in part, or may have. Nothing may follow it: the client
    /// would read what follows as its rest.
    pub(super) cut: bool,
    /// Whether the client waits for `100 Continue`.
    pub(super) expects_continue: bool,
    /// Whether interim responses may still be sent.
    pub(super) informs: bool,
    /// Whether the place where the next request begins is unknown.
    pub(super) broken: bool,
}

/// What the attendant finds to do.
enum AttendantTask {
    Inform(Vec<Interim>),
    Feed,
    /// The handler has dropped the body.
    Leave,
    /// The handler wants to know when the client leaves.
    Watch,
}

impl Attendant<'_> {
    /// Runs `work`, and attends to the connection whenever `work` waits. If the caller has polled
    /// `work` in this step (`is_waiting`), it is polled again when there is an event.
    pub(super) async fn beside<T>(&mut self, work: impl Future<Output = T>, mut is_waiting: bool) -> T {
        let fed = Cell::new(false);
        let (mut work, mut attending) = (pin!(work), pin!(self.attend(&fed)));
        poll_fn(|cx| {
            loop {
                if !std::mem::take(&mut is_waiting)
                    && let Poll::Ready(output) = work.as_mut().poll(cx)
                {
                    return Poll::Ready(output);
                }
                let Poll::Pending = attending.as_mut().poll(cx);
                // The feeder does not wake the handler, because this task polls the handler.
                if !fed.take() {
                    return Poll::Pending;
                }
            }
        })
        .await
    }

    async fn attend(&mut self, fed: &Cell<bool>) -> Infallible {
        loop {
            let task = poll_fn(|cx| {
                if self.informs
                    && let Poll::Ready(interims) = self.caller.poll_interims(cx)
                {
                    return Poll::Ready(AttendantTask::Inform(interims));
                }
                match self.feeder.as_ref().map(|feeder| feeder.poll_wanted(cx)) {
                    Some(Poll::Ready(Wanted::Piece)) => Poll::Ready(AttendantTask::Feed),
                    Some(Poll::Ready(Wanted::Nothing)) => Poll::Ready(AttendantTask::Leave),
                    Some(Poll::Pending) => Poll::Pending,
                    None if self.can_watch() => self.caller.poll_watched(cx).map(|()| AttendantTask::Watch),
                    None => Poll::Pending,
                }
            });
            match task.await {
                // In boxes, because for most handlers there is nothing to do, and the whole future
                // is copied when it is made.
                AttendantTask::Inform(interims) => Box::pin(self.inform(&interims)).await,
                AttendantTask::Leave => self.feeder = None,
                AttendantTask::Watch => Box::pin(self.watch()).await,
                AttendantTask::Feed => {
                    Box::pin(self.feed()).await;
                    fed.set(true);
                    // The handler is polled before the attendant looks again.
                    let mut looked = false;
                    poll_fn(|_| match std::mem::replace(&mut looked, true) {
                        true => Poll::Ready(()),
                        false => Poll::Pending,
                    })
                    .await;
                }
            }
        }
    }

    /// Whether what the client sends now belongs to later requests, and there is room for it.
    fn can_watch(&self) -> bool {
        let is_read = self.decoder.as_ref().is_none_or(Decoder::is_done);
        is_read && !self.broken && self.input.len() - *self.start < self.input.capacity()
    }

    /// Reads later requests in advance until there is something else to do, there is no more room,
    /// or the client has left, which the handler is told then.
    async fn watch(&mut self) {
        if *self.start > 0 {
            self.input.drain(..*self.start);
            *self.start = 0;
        }
        self.client.stream.set_read_deadline(None);
        while self.input.len() < self.input.capacity() {
            let event = {
                let Attendant { client, input, caller, informs, .. } = self;
                let mut read = pin!(client.stream.read_to_spare(input));
                poll_fn(|cx| {
                    if *informs && let Poll::Ready(interims) = caller.poll_interims(cx) {
                        return Poll::Ready(Err(interims));
                    }
                    read.as_mut().poll(cx).map(Ok)
                })
                .await
            };
            match event {
                Err(interims) => self.inform(&interims).await,
                Ok(Ok(1..)) => {}
                Ok(Ok(0) | Err(_)) => return self.caller.tell_left(),
            }
        }
    }

    /// Prepares the connection for the head of the response, behind which no interim response may
    /// come. Whether the connection must be closed behind the response, because too much of a body
    /// would be left unread, or none of a body that the client has held back.
    pub(super) async fn settle(&mut self, unread_max: u64) -> bool {
        let is_read = self.feeder.as_ref().is_some_and(|feeder| !feeder.is_dropped());
        if is_read && self.expects_continue {
            // The body of the response reads it.
            self.go_on().await;
        }
        self.informs = false;
        let is_short = |decoder: &mut Decoder| is_read || decoder.restrict(unread_max);
        self.broken || self.expects_continue || !self.decoder.as_mut().is_none_or(is_short)
    }

    /// Asks a client for the body that it holds back.
    async fn go_on(&mut self) {
        self.expects_continue = false;
        self.write_interim(b"HTTP/1.1 100 Continue\r\n\r\n").await;
    }

    async fn inform(&mut self, interims: &[Interim]) {
        let mut bytes = Vec::new();
        for interim in interims {
            response_head::put_interim(interim, &mut bytes);
        }
        self.write_interim(&bytes).await;
    }

    /// The wait in it may be given up, when the handler becomes ready.
    async fn write_interim(&mut self, bytes: &[u8]) {
        if self.cut {
            return;
        }
        self.cut = true;
        self.client.stream.set_write_deadline(Some(now() + self.write));
        self.cut = self.client.stream.write_all(bytes).await.is_err();
    }

    /// Gives the handler the next piece of the body, or its end.
    async fn feed(&mut self) {
        loop {
            match self.decode() {
                Ok(Some(piece)) => {
                    poll_fn(|cx| {
                        self.feeder.iter().for_each(|feeder| feeder.put(piece.clone(), cx));
                        Poll::Ready(())
                    })
                    .await;
                    return;
                }
                Ok(None) if self.decoder.as_ref().is_none_or(Decoder::is_done) => {
                    self.decoder = None;
                    let trailers = trailers::parse(&self.trailers);
                    self.broken |= trailers.is_err();
                    return self.end(trailers.map_err(body_error)).await;
                }
                Ok(None) => {}
                Err(status) => {
                    self.broken = true;
                    return self.end(Err(body_error(status))).await;
                }
            }
            if let Err(error) = self.read().await {
                self.broken = true;
                return self.end(Err(error)).await;
            }
        }
    }

    async fn end(&mut self, end: Result<Option<HeaderMap>, BodyError>) {
        let (Some(feeder), mut end) = (self.feeder.take(), Some(end)) else { return };
        let mut feeder = Some(feeder);
        poll_fn(|cx| {
            if let (Some(feeder), Some(end)) = (feeder.take(), end.take()) {
                feeder.end(end, cx);
            }
            Poll::Ready(())
        })
        .await;
    }

    /// The next piece of content from the input; `None` if the input has no more, or the body has
    /// ended.
    fn decode(&mut self) -> Result<Option<Bytes>, Status> {
        let Some(decoder) = &mut self.decoder else { return Ok(None) };
        while *self.start < self.input.len() && !decoder.is_done() {
            let piece = decoder.decode(&self.input[*self.start..])?;
            *self.start += piece.consumed;
            self.trailers.extend_from_slice(piece.trailers);
            if !piece.content.is_empty() {
                return Ok(Some(Bytes::copy_from_slice(piece.content)));
            }
        }
        Ok(None)
    }

    /// Reads what the client has sent. The input has been dealt with.
    async fn read(&mut self) -> Result<(), BodyError> {
        if self.expects_continue {
            self.go_on().await;
        }
        self.input.clear();
        *self.start = 0;
        self.input.reserve(READ_BYTES.min(self.input.capacity().max(READ_BYTES)));
        self.client.stream.set_read_deadline(Some(now() + self.patience));
        match self.client.stream.read_to_spare(self.input).await? {
            0 => Err(BodyError::new(Cause::Disconnected)),
            _ => Ok(()),
        }
    }
}

/// What the handler is told of a body that is refused with `status`.
fn body_error(status: Status) -> BodyError {
    BodyError::new(match status {
        Status::CONTENT_TOO_LARGE => Cause::TooLarge,
        Status::FIELDS_TOO_LARGE => Cause::FieldsTooLarge,
        _ => Cause::Malformed,
    })
}
