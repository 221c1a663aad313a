//! One request and its answer on one connection.
//!
//! `client.rs` calls [`attempt`] with a connection. While the request is on its way, the head of
//! the answer is read beside it: a server may refuse a body before it has read all of it.

use crate::address::Address;
use crate::answer_body::AnswerBody;
use crate::answer_head::{self, AnswerHead, Asked};
use crate::error::{Error, ErrorCause};
use crate::field_line::TakeFields;
use crate::outgoing_request::OutgoingRequest;
use crate::plain::WholeAnswer;
use crate::read_room::{self, ROOM_BYTES};
use crate::request_head::BodyFraming;
use crate::shared::Shared;
use crate::switched::Switched;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use http_body::Body;
use selvedge_core::now;
use selvedge_io::net::Stream;
use selvedge_io::nonblocking::PollState;
use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::io::ErrorKind;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The most interim answers before the answer.
const INTERIM_MAX: u32 = 32;

/// How long the server may leave a request with `Expect: 100-continue` unanswered until its body is
/// sent all the same (RFC 9110 §10.1.1: a client must not wait for ever).
const CONTINUE_LIMIT: Duration = Duration::from_secs(1);

/// Code that is told of interim answers (102 to 199, such as `103 Early Hints`): an extension of a
/// request.
#[derive(Clone)]
pub struct OnInterim(Arc<dyn Fn(StatusCode, HeaderMap) + Send + Sync>);

impl OnInterim {
    /// Calls `told` with the status and the fields of each interim answer, before the answer.
    pub fn new(told: impl Fn(StatusCode, HeaderMap) + Send + Sync + 'static) -> OnInterim {
        OnInterim(Arc::new(told))
    }

    pub(crate) fn tell(&self, status: StatusCode, fields: HeaderMap) {
        (self.0)(status, fields);
    }
}

impl fmt::Debug for OnInterim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnInterim").finish_non_exhaustive()
    }
}

/// Sends a request and reads the head of its answer.
pub(crate) async fn attempt<B>(
    shared: &Arc<Shared>,
    address: &Address,
    stream: Stream,
    sending: OutgoingRequest<B>,
    asked: Asked,
    inform: &impl Fn(StatusCode, HeaderMap),
) -> Result<Response<AnswerBody<B>>, Error>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let mut exchange = AwaitedHead::new(stream, Some(sending), shared);
    exchange.hold();
    exchange.answer(shared, address, asked, inform).await
}

/// What the first read of an answer has brought.
pub(crate) enum FirstRead {
    /// All of the answer.
    Whole(WholeAnswer),
    /// Anything else.
    Other(UnfinishedPlain),
}

/// A `GET` request with a head that its caller has written, and the beginning of its answer.
pub(crate) struct UnfinishedPlain {
    /// The part of the head that the stream has not taken.
    unsent: Vec<u8>,
    send_error: Option<Error>,
    read: Vec<u8>,
}

/// Sends a `GET` request with this head, and reads its answer if it comes as a whole. `taker`
/// gets its fields as [`answer_head::whole`] says.
///
/// It borrows the stream: a stream that it took would be in the future twice.
pub(crate) async fn begin_plain(
    shared: &Shared,
    stream: &Stream,
    head: &[u8],
    taker: &mut impl TakeFields,
) -> Result<FirstRead, Error> {
    // Most heads go out at once, and need no state for a rest.
    let (sent, send_error) = match stream.try_write(head) {
        Ok(sent) => (sent, None),
        Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => (0, None),
        Err(error) => (head.len(), Some(Error::from_io(ErrorCause::Send, error))),
    };
    let mut read = Vec::new();
    if sent == head.len() {
        stream.set_read_deadline(Some(now() + shared.limits.answer));
    }
    if sent < head.len() || send_error.is_some() {
        return Ok(FirstRead::Other(UnfinishedPlain { unsent: head[sent..].to_vec(), send_error, read }));
    }
    let bytes = stream.read_with(|stream| {
        // Only now, because a request that waits needs no room.
        if read.capacity() == 0 {
            read = read_room::room();
        }
        stream.try_read_to_spare(&mut read)
    });
    match bytes.await {
        Ok(0) => Err(Error::new(ErrorCause::Unanswered)),
        Err(error) => Err(Error::from_io(ErrorCause::Unanswered, error)),
        Ok(_) => Ok(match answer_head::whole(&read, shared.limits.head_bytes, taker) {
            Some(extent) => FirstRead::Whole(WholeAnswer::new(read, &extent)),
            None => FirstRead::Other(UnfinishedPlain { unsent: Vec::new(), send_error: None, read }),
        }),
    }
}

/// Reads the answer to a request that has not got all of it at once.
pub(crate) async fn finish_plain<B>(
    shared: &Arc<Shared>,
    address: &Address,
    stream: Stream,
    begun: UnfinishedPlain,
    inform: &impl Fn(StatusCode, HeaderMap),
) -> Result<Response<AnswerBody<B>>, Error>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    let UnfinishedPlain { unsent, send_error, read } = begun;
    let sending = (!unsent.is_empty())
        .then(|| OutgoingRequest::new(unsent, Bytes::new(), None, BodyFraming::None, shared.limits.send));
    let exchange = AwaitedHead { send_error, read, ..AwaitedHead::new(stream, sending, shared) };
    exchange.answer(shared, address, Asked::default(), inform).await
}

fn malformed(malformed: answer_head::Malformed) -> Error {
    Error::new(ErrorCause::Malformed(malformed))
}

struct AwaitedHead<B> {
    stream: Stream,
    sending: Option<OutgoingRequest<B>>,
    /// Why the server does not take the rest of the request. It may have answered all the same.
    send_error: Option<Error>,
    answer_limit: Duration,
    /// Bytes of the answer that were read and not looked at.
    read: Vec<u8>,
    wait: PollState,
}

impl<B> AwaitedHead<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    /// The wait for the head of an answer. Without `sending` the whole request has been sent, and
    /// the stream has its deadline.
    fn new(stream: Stream, sending: Option<OutgoingRequest<B>>, shared: &Shared) -> AwaitedHead<B> {
        let answer_limit = shared.limits.answer;
        let (read, wait) = (Vec::new(), PollState::default());
        AwaitedHead { stream, sending, send_error: None, answer_limit, read, wait }
    }

    /// Reads the head of the answer.
    async fn answer(
        mut self,
        shared: &Arc<Shared>,
        address: &Address,
        asked: Asked,
        inform: &impl Fn(StatusCode, HeaderMap),
    ) -> Result<Response<AnswerBody<B>>, Error> {
        let mut interims = 0;
        let (head, early) = loop {
            let (bytes, rest) = self.head_bytes(shared.limits.head_bytes).await?;
            let parsed = answer_head::parse(&bytes, asked).map_err(malformed)?;
            let is_interim =
                parsed.status.is_informational() && parsed.status != StatusCode::SWITCHING_PROTOCOLS;
            if !is_interim {
                break (parsed, rest);
            }
            self.read = Vec::from(rest);
            interims += 1;
            if interims > INTERIM_MAX {
                return Err(malformed(answer_head::Malformed::TooLarge));
            }
            if parsed.status == StatusCode::CONTINUE {
                self.release();
            } else {
                inform(parsed.status, parsed.fields);
            }
        };
        let AnswerHead { status, version, fields, extent, keeps } = head;
        let AwaitedHead { stream, sending, send_error, .. } = self;
        // A body that the server did not ask for is not sent behind its answer.
        let is_held = sending.as_ref().is_some_and(|sending| sending.is_held);
        let sending = sending.filter(|sending| !sending.is_held);
        let keeps = keeps && send_error.is_none() && !is_held;
        let body = if status == StatusCode::SWITCHING_PROTOCOLS {
            stream.set_read_deadline(None);
            stream.set_write_deadline(None);
            AnswerBody::upgraded(Switched { early, stream })
        } else {
            AnswerBody::reading(shared.clone(), address.clone(), stream, early, sending, keeps, extent)?
        };
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.version_mut() = version;
        *response.headers_mut() = fields;
        Ok(response)
    }

    /// The bytes of the next head, and what was read behind it.
    async fn head_bytes(&mut self, bytes_max: usize) -> Result<(Bytes, Bytes), Error> {
        loop {
            if !self.read.is_empty()
                && let Some(length) = answer_head::length(&self.read, bytes_max).map_err(malformed)?
            {
                let mut all = Bytes::from(std::mem::take(&mut self.read));
                let head = all.split_to(length);
                return Ok((head, all));
            }
            self.read_more().await?;
        }
    }

    /// Reads something of the answer, while the request is sent.
    async fn read_more(&mut self) -> Result<(), Error> {
        loop {
            match poll_fn(|cx| self.poll_more(cx)).await {
                Ok(0) if self.read.is_empty() => {
                    return Err(self.send_error.take().unwrap_or(Error::new(ErrorCause::Unanswered)));
                }
                Ok(0) => return Err(Error::new(ErrorCause::Head)),
                Ok(_) => return Ok(()),
                Err(error) if error.is_timeout() && self.is_held() => self.release(),
                Err(error) => return Err(self.send_error.take().unwrap_or(error)),
            }
        }
    }

    /// Sends as much as the server takes, and reads what it answers.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, Error>> {
        if let Some(sending) = &mut self.sending {
            let sent = sending.poll(&self.stream, cx);
            if let Poll::Ready(sent) = sent {
                self.sending = None;
                match sent {
                    // The fault is this side's: the server must not wait for the rest.
                    Err(error) if error.is_request_body() => return Poll::Ready(Err(error)),
                    sent => self.send_error = sent.err(),
                }
                self.stream.set_read_deadline(Some(now() + self.answer_limit));
                self.wait = PollState::default();
            }
        }
        let AwaitedHead { stream, read, wait, .. } = self;
        let kind = if read.is_empty() { ErrorCause::Unanswered } else { ErrorCause::Head };
        stream
            .poll_read_with(wait, cx, |stream| {
                // Only now, because a request that waits needs no room.
                if read.capacity() == 0 {
                    *read = read_room::room();
                } else if read.len() == read.capacity() {
                    read.reserve(ROOM_BYTES);
                }
                stream.try_read_to_spare(read)
            })
            .map_err(|error| Error::from_io(kind, error))
    }

    fn is_held(&self) -> bool {
        self.sending.as_ref().is_some_and(|sending| sending.is_held)
    }

    /// Gives the server some time to ask for the body, if it has to ask.
    fn hold(&mut self) {
        if self.is_held() {
            self.stream.set_read_deadline(Some(now() + CONTINUE_LIMIT));
        }
    }

    /// The server wants the body, or does not know how to ask for it.
    fn release(&mut self) {
        if let Some(sending) = &mut self.sending {
            sending.is_held = false;
            self.stream.set_read_deadline(None);
            self.wait = PollState::default();
        }
    }
}
