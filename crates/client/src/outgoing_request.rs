//! [`OutgoingRequest`]: a request on its way to the server, head and body.
//!
//! `exchange.rs` polls it until the head of the answer is there, and `answer_body.rs` goes on
//! polling it while the caller reads the body of the answer, because a server may answer before it
//! has the whole request. It asks the body for the next piece when the kernel has taken the piece
//! before.

use crate::error::{Error, ErrorCause};
use crate::request_head::BodyFraming;
use bytes::{Buf, Bytes};
use http_body::Body;
use selvedge_core::now;
use selvedge_http::trailers;
use selvedge_io::net::Stream;
use selvedge_io::nonblocking::PollState;
use std::error::Error as StdError;
use std::fmt;
use std::io::{self, IoSlice, Write};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

/// The most content that one write is given.
const WRITE_BYTES_MAX: usize = 256 << 10;

/// The rest of a request.
pub(crate) struct OutgoingRequest<B> {
    /// Bytes of the head and of the framing that go out before `piece`.
    front: Vec<u8>,
    front_sent: usize,
    /// Content.
    piece: Bytes,
    /// Pieces are still to come from it.
    body: Option<Pin<Box<B>>>,
    framing: BodyFraming,
    /// Content that the length promises and that has not come yet.
    left: u64,
    /// A chunk went out, and not yet the line end behind it.
    is_within_chunks: bool,
    /// The server has to ask for the body first (`100 Continue`).
    pub(crate) is_held: bool,
    /// The longest time for which the server may take nothing.
    limit: Duration,
    /// The deadline is set for the write that comes next.
    is_timed: bool,
    wait: PollState,
}

impl<B> OutgoingRequest<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<Box<dyn StdError + Send + Sync>>,
{
    /// `head` and then `whole`, the content as far as it is known, and then what `body` gives.
    pub(crate) fn new(
        head: Vec<u8>,
        whole: Bytes,
        body: Option<Pin<Box<B>>>,
        framing: BodyFraming,
        limit: Duration,
    ) -> OutgoingRequest<B> {
        let length = if let BodyFraming::Length(length) = framing { length } else { 0 };
        let left = length.saturating_sub(whole.len() as u64);
        let wait = PollState::default();
        OutgoingRequest {
            front: head,
            front_sent: 0,
            piece: whole,
            body,
            framing,
            left,
            is_within_chunks: false,
            is_held: false,
            limit,
            is_timed: false,
            wait,
        }
    }

    /// Sends until all is sent.
    pub(crate) fn poll(&mut self, stream: &Stream, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        loop {
            ready!(self.poll_write(stream, cx)).map_err(|error| Error::from_io(ErrorCause::Send, error))?;
            if self.is_held {
                return Poll::Pending;
            }
            let Some(body) = &mut self.body else { return Poll::Ready(Ok(())) };
            match ready!(body.as_mut().poll_frame(cx)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.put_piece(data)?,
                    Err(frame) => {
                        let fields = frame.into_trailers().unwrap_or_default();
                        self.end(&fields)?;
                    }
                },
                Some(Err(error)) => return Poll::Ready(Err(Error::with(ErrorCause::RequestBody, error))),
                None => self.end(&http::HeaderMap::new())?,
            }
        }
    }

    fn poll_write(&mut self, stream: &Stream, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while self.front_sent < self.front.len() || !self.piece.is_empty() {
            if !self.is_timed {
                // A poll that finds no room must not put the deadline off.
                stream.set_write_deadline(Some(now() + self.limit));
                self.is_timed = true;
            }
            let front = &self.front[self.front_sent..];
            let piece = &self.piece[..self.piece.len().min(WRITE_BYTES_MAX)];
            let parts = [IoSlice::new(front), IoSlice::new(piece)];
            let written = ready!(stream.poll_write_with(&mut self.wait, cx, |stream| {
                if piece.is_empty() { stream.try_write(front) } else { stream.try_write_vectored(&parts) }
            }))?;
            let of_front = written.min(front.len());
            self.front_sent += of_front;
            self.piece.advance(written - of_front);
            self.is_timed = false;
        }
        self.front.clear();
        self.front_sent = 0;
        Poll::Ready(Ok(()))
    }

    /// Takes the next piece of content.
    fn put_piece(&mut self, piece: Bytes) -> Result<(), Error> {
        match self.framing {
            BodyFraming::Chunked if piece.is_empty() => {}
            BodyFraming::Chunked => {
                // The line end behind the chunk before goes out with this one's size.
                if self.is_within_chunks {
                    self.front.extend_from_slice(b"\r\n");
                }
                self.is_within_chunks = true;
                write!(self.front, "{:x}\r\n", piece.len()).expect("a vector takes all bytes");
                self.piece = piece;
            }
            BodyFraming::Length(_) | BodyFraming::None => {
                let left = self.left.checked_sub(piece.len() as u64);
                self.left = left.ok_or_else(|| length_differs("more"))?;
                self.piece = piece;
            }
        }
        Ok(())
    }

    /// Takes the end of the content.
    fn end(&mut self, fields: &http::HeaderMap) -> Result<(), Error> {
        self.body = None;
        if self.framing != BodyFraming::Chunked {
            return if self.left == 0 { Ok(()) } else { Err(length_differs("fewer")) };
        }
        if self.is_within_chunks {
            self.front.extend_from_slice(b"\r\n");
        }
        self.front.extend_from_slice(b"0\r\n");
        for (name, value) in fields {
            if trailers::counts(name) {
                self.front.extend_from_slice(name.as_str().as_bytes());
                self.front.extend_from_slice(b": ");
                self.front.extend_from_slice(value.as_bytes());
                self.front.extend_from_slice(b"\r\n");
            }
        }
        self.front.extend_from_slice(b"\r\n");
        Ok(())
    }
}

fn length_differs(which: &str) -> Error {
    Error::with(ErrorCause::RequestBody, format!("it has {which} bytes than it said"))
}

impl<B> fmt::Debug for OutgoingRequest<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingRequest")
            .field("framing", &self.framing)
            .field("is_held", &self.is_held)
            .finish_non_exhaustive()
    }
}
