//! [`AnswerBody`]: the body of an answer, read as the caller asks for it.

use crate::address::Address;
use crate::answer_head::Extent;
use crate::error::{Error, ErrorCause};
use crate::outgoing_request::OutgoingRequest;
use crate::request_body::RequestBody;
use crate::shared::Shared;
use crate::switched::Switched;
use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use selvedge_core::Time;
use selvedge_http::body::{Decoder, Framing};
use selvedge_http::trailers;
use selvedge_io::net::Stream;
use selvedge_io::nonblocking::PollState;
use std::error::Error as StdError;
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The smallest and the largest piece that one read asks for.
const PIECE_BYTES: (usize, usize) = (8 << 10, 64 << 10);

/// The body of an answer. It reads from the connection when it is asked for the next piece, so a
/// server can send only as fast as the caller reads.
///
/// The connection goes back to the client's pool at the end of the body. If the body is dropped
/// before, the connection is closed.
///
/// `B` is the body of the request. A part of it may still be on its way when the answer begins; it
/// is sent while the answer is read.
///
/// # Examples
/// ```
/// use selvedge::client::Client;
///
/// async fn count(uri: &str) -> Result<usize, selvedge::client::Error> {
///     let mut body = Client::new().get(uri).await?.into_body();
///     let mut bytes = 0;
///     while let Some(piece) = body.next().await? {
///         bytes += piece.len();
///     }
///     Ok(bytes)
/// }
/// # let _ = count("");
/// ```
pub struct AnswerBody<B = RequestBody> {
    state: State<B>,
    trailers: Option<Box<HeaderMap>>,
}

enum State<B> {
    /// All content that is left.
    Whole(Bytes),
    Reading(Box<Reading<B>>),
    Switched(Box<Switched>),
}

/// A connection on which the rest of an answer comes.
pub(crate) struct Reading<B> {
    pub(crate) shared: Arc<Shared>,
    pub(crate) address: Address,
    pub(crate) stream: Stream,
    /// Bytes that were read and not looked at.
    pub(crate) input: Bytes,
    pub(crate) sending: Option<OutgoingRequest<B>>,
    /// Whether another request may follow on the connection.
    pub(crate) keeps: bool,
    body: Extents,
    /// The trailer section, as far as it was read.
    trailers: Vec<u8>,
    piece_bytes: usize,
    /// The deadline is set for the read that comes next.
    is_timed: bool,
    wait: PollState,
}

enum Extents {
    Framed(Decoder, SizeHint),
    UntilClose,
}

impl<B> AnswerBody<B> {
    /// A body of these bytes.
    pub(crate) fn whole(bytes: Bytes) -> AnswerBody<B> {
        AnswerBody { state: State::Whole(bytes), trailers: None }
    }

    pub(crate) fn upgraded(upgraded: Switched) -> AnswerBody<B> {
        AnswerBody { state: State::Switched(Box::new(upgraded)), trailers: None }
    }

    /// The body that comes on a connection. If all of it is there, the connection is free again.
    ///
    /// # Errors
    /// If the framing of what is there has an error.
    pub(crate) fn reading(
        shared: Arc<Shared>,
        address: Address,
        stream: Stream,
        input: Bytes,
        sending: Option<OutgoingRequest<B>>,
        keeps: bool,
        extent: Extent,
    ) -> Result<AnswerBody<B>, Error> {
        let body = match extent {
            Extent::UntilClose => Extents::UntilClose,
            Extent::Framed(framing) => {
                let decoder = Decoder::new(framing, u64::MAX).map_err(framing_error)?;
                let size = match framing {
                    Framing::None => SizeHint::with_exact(0),
                    Framing::Length(length) => SizeHint::with_exact(length),
                    Framing::Chunked => SizeHint::new(),
                };
                Extents::Framed(decoder, size)
            }
        };
        let (piece_bytes, wait) = (PIECE_BYTES.0, PollState::default());
        let mut reading = Reading {
            shared,
            address,
            stream,
            input,
            sending,
            keeps,
            body,
            trailers: Vec::new(),
            piece_bytes,
            is_timed: false,
            wait,
        };
        if let Extents::Framed(decoder, _) = &mut reading.body {
            let piece = decoder.decode(&reading.input).map_err(framing_error)?;
            if piece.done && matches!(extent, Extent::Framed(Framing::None | Framing::Length(_))) {
                let content = reading.input.split_to(piece.consumed);
                reading.finish();
                return Ok(AnswerBody::whole(content));
            }
            // The decoder looks at the bytes again when they are asked for.
            if let Extent::Framed(framing) = extent {
                *decoder = Decoder::new(framing, u64::MAX).map_err(framing_error)?;
            }
        }
        Ok(AnswerBody { state: State::Reading(Box::new(reading)), trailers: None })
    }

    /// The connection, after an answer `101 Switching Protocols`.
    ///
    /// # Errors
    /// The body itself, if the answer was another.
    pub fn into_upgraded(self) -> Result<Switched, AnswerBody<B>> {
        match self.state {
            State::Switched(upgraded) => Ok(*upgraded),
            state => Err(AnswerBody { state, trailers: self.trailers }),
        }
    }

    /// The content, if all of it came with the head.
    ///
    /// # Errors
    /// The body itself, if more is to come or the connection has another protocol now.
    pub fn into_bytes(self) -> Result<Bytes, AnswerBody<B>> {
        match self.state {
            State::Whole(bytes) => Ok(bytes),
            state => Err(AnswerBody { state, trailers: self.trailers }),
        }
    }

    /// The trailers behind the body, if there were any. They are known when
    /// [`next`](Self::next) has returned `None`.
    pub fn trailers(&self) -> Option<&HeaderMap> {
        self.trailers.as_deref()
    }
}

impl<B> AnswerBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    /// The next piece, and `None` at the end.
    ///
    /// # Errors
    /// If the connection breaks before the end, a time limit passes, or the framing has an error.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Error> {
        loop {
            match poll_fn(|cx| Pin::new(&mut *self).poll_frame(cx)).await.transpose()? {
                None => return Ok(None),
                Some(frame) => match frame.into_data() {
                    Ok(piece) => return Ok(Some(piece)),
                    Err(frame) => self.trailers = frame.into_trailers().ok().map(Box::new),
                },
            }
        }
    }

    /// Reads the body to its end.
    ///
    /// # Errors
    /// As for [`next`](Self::next), and if the body has more than `bytes_max` bytes.
    pub async fn read_all(mut self, bytes_max: usize) -> Result<Bytes, Error> {
        let Some(first) = self.next().await? else { return Ok(Bytes::new()) };
        let mut all = first;
        let mut joined: Option<BytesMut> = None;
        loop {
            let len = joined.as_ref().map_or(all.len(), BytesMut::len);
            if len > bytes_max {
                return Err(Error::new(ErrorCause::TooLarge));
            }
            let Some(piece) = self.next().await? else { break };
            joined.get_or_insert_with(|| BytesMut::from(std::mem::take(&mut all))).extend_from_slice(&piece);
        }
        Ok(joined.map_or(all, BytesMut::freeze))
    }

    /// Reads the body to its end, as text in UTF-8.
    ///
    /// # Errors
    /// As for [`read_all`](Self::read_all), and if the body is no UTF-8.
    pub async fn text(self, bytes_max: usize) -> Result<String, Error> {
        let bytes = self.read_all(bytes_max).await?;
        String::from_utf8(bytes.into()).map_err(|error| Error::with(ErrorCause::NotText, error))
    }
}

impl<B> Reading<B> {
    /// The answer is complete: gives the connection to the pool, if nothing speaks against it.
    fn finish(self) {
        if self.keeps && self.sending.is_none() && self.input.is_empty() {
            self.stream.set_read_deadline(None);
            self.stream.set_write_deadline(None);
            self.shared.pool.put(&self.address, self.stream);
        }
    }

    /// The next piece of content among the bytes that are there.
    fn decode(&mut self) -> Result<Decoded, Error> {
        match &mut self.body {
            Extents::UntilClose if self.input.is_empty() => Ok(Decoded::More),
            Extents::UntilClose => Ok(Decoded::Piece(std::mem::take(&mut self.input))),
            Extents::Framed(decoder, _) if decoder.is_done() => Ok(Decoded::Done),
            Extents::Framed(decoder, size) => {
                let piece = decoder.decode(&self.input).map_err(framing_error)?;
                let (consumed, length, done) = (piece.consumed, piece.content.len(), piece.done);
                self.trailers.extend_from_slice(piece.trailers);
                let mut taken = self.input.split_to(consumed);
                // The content is the end of what was consumed.
                taken.advance(consumed - length);
                if let Some(left) = size.exact() {
                    *size = SizeHint::with_exact(left.saturating_sub(length as u64));
                }
                match (length, done) {
                    (0, true) => Ok(Decoded::Done),
                    (0, false) if self.input.is_empty() => Ok(Decoded::More),
                    (0, false) => self.decode(),
                    _ => Ok(Decoded::Piece(taken)),
                }
            }
        }
    }
}

enum Decoded {
    Piece(Bytes),
    /// More bytes must be read first.
    More,
    Done,
}

fn framing_error(status: selvedge_http::status::Status) -> Error {
    Error::new(ErrorCause::BodyFraming(status))
}

impl<B> Reading<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    fn poll_piece(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Error>> {
        if let Some(sending) = &mut self.sending {
            match sending.poll(&self.stream, cx) {
                Poll::Pending => {}
                Poll::Ready(sent) => {
                    // If the server does not want the rest of the request, its answer is valid.
                    self.keeps &= sent.is_ok();
                    self.sending = None;
                    // The wait for the answer has a limit from now on.
                    self.wait = PollState::default();
                }
            }
        }
        loop {
            match self.decode()? {
                Decoded::Piece(piece) => return Poll::Ready(Ok(Some(piece))),
                Decoded::Done => return Poll::Ready(Ok(None)),
                Decoded::More => {}
            }
            if !self.is_timed && self.sending.is_none() {
                // A poll that finds nothing must not put the deadline off.
                self.stream.set_read_deadline(Some(Time::now() + self.shared.limits.read));
                self.is_timed = true;
            }
            let mut buffer = Vec::with_capacity(self.piece_bytes);
            let read = self
                .stream
                .poll_read_with(&mut self.wait, cx, |stream| stream.try_read_to_spare(&mut buffer));
            match ready!(read).map_err(|error| Error::from_io(ErrorCause::Body, error))? {
                0 if matches!(self.body, Extents::UntilClose) => return Poll::Ready(Ok(None)),
                0 => return Poll::Ready(Err(Error::new(ErrorCause::Body))),
                read => {
                    self.is_timed = false;
                    if read == self.piece_bytes {
                        self.piece_bytes = (2 * self.piece_bytes).min(PIECE_BYTES.1);
                    }
                    self.input = buffer.into();
                }
            }
        }
    }
}

impl<B> Body for AnswerBody<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let this = self.get_mut();
        match &mut this.state {
            State::Switched(_) => Poll::Ready(None),
            State::Whole(bytes) if bytes.is_empty() => Poll::Ready(None),
            State::Whole(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            State::Reading(reading) => match ready!(reading.poll_piece(cx)) {
                Ok(Some(piece)) => Poll::Ready(Some(Ok(Frame::data(piece)))),
                Ok(None) => {
                    let fields = trailers::parse(&reading.trailers).map_err(framing_error);
                    let ended = std::mem::replace(&mut this.state, State::Whole(Bytes::new()));
                    if let State::Reading(reading) = ended
                        && fields.is_ok()
                    {
                        reading.finish();
                    }
                    Poll::Ready(fields.transpose().map(|fields| fields.map(Frame::trailers)))
                }
                Err(error) => {
                    this.state = State::Whole(Bytes::new());
                    Poll::Ready(Some(Err(error)))
                }
            },
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.state {
            State::Whole(bytes) => bytes.is_empty(),
            State::Reading(_) => false,
            State::Switched(_) => true,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.state {
            State::Whole(bytes) => SizeHint::with_exact(bytes.len() as u64),
            State::Reading(reading) => match &reading.body {
                Extents::Framed(_, size) => *size,
                Extents::UntilClose => SizeHint::new(),
            },
            State::Switched(_) => SizeHint::with_exact(0),
        }
    }
}

// Nothing in it is pinned: the body of the request is in a box.
impl<B> Unpin for AnswerBody<B> {}

impl<B> fmt::Debug for AnswerBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match &self.state {
            State::Whole(_) => "whole",
            State::Reading(_) => "reading",
            State::Switched(_) => "upgraded",
        };
        f.debug_tuple("AnswerBody").field(&state).finish()
    }
}
