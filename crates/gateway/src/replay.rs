//! [`Replay`]: the body of a request, of which the beginning can be sent again.
//!
//! `proxy.rs` and `fastcgi` send it. What was taken from the client is kept as long as it is
//! little. So a request can go to another server if the first one could not be reached, although a
//! part of the body had been asked for already.

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use selvedge_handler::{Body, BodyError};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// The most bytes of memory that are kept.
const KEPT_BYTES_MAX: usize = 64 << 10;

/// The memory that a kept piece needs besides its content. A body of very small pieces needs more
/// for this than for its content.
const PIECE_BYTES: usize = 128;

/// A body that can be [sent](Replay::body) several times, one time after the other.
pub(crate) struct Replay {
    shared: Rc<RefCell<TakenBody>>,
    size: SizeHint,
}

struct TakenBody {
    body: Body,
    pieces: Vec<Bytes>,
    bytes: usize,
    /// More has been taken than is kept.
    is_lost: bool,
}

impl Replay {
    pub(crate) fn new(body: Body) -> Replay {
        let size = if body.is_end_stream() { SizeHint::with_exact(0) } else { body.size_hint() };
        let kept = TakenBody { body, pieces: Vec::new(), bytes: 0, is_lost: false };
        Replay { shared: Rc::new(RefCell::new(kept)), size }
    }

    /// Whether [`body`](Self::body) can begin at the beginning.
    pub(crate) fn is_whole(&self) -> bool {
        !self.shared.borrow().is_lost
    }

    /// The body from its beginning. Only the newest of several is polled.
    pub(crate) fn body(&self) -> Replayed {
        debug_assert!(self.is_whole(), "the beginning is still there");
        Replayed { shared: self.shared.clone(), at: 0, size: self.size }
    }
}

/// One sending of a [`Replay`].
pub(crate) struct Replayed {
    shared: Rc<RefCell<TakenBody>>,
    /// The piece that comes next.
    at: usize,
    size: SizeHint,
}

impl http_body::Body for Replayed {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let this = self.get_mut();
        let kept = &mut *this.shared.borrow_mut();
        let piece = match kept.pieces.get(this.at) {
            Some(piece) => piece.clone(),
            None => {
                let frame = match ready!(Pin::new(&mut kept.body).poll_frame(cx)) {
                    Some(Ok(frame)) => frame,
                    ended => return Poll::Ready(ended),
                };
                let piece = match frame.into_data() {
                    Ok(piece) => piece,
                    Err(trailers) => {
                        // Trailers are the end, and cannot be taken a second time.
                        kept.is_lost = true;
                        return Poll::Ready(Some(Ok(trailers)));
                    }
                };
                kept.keep(&piece);
                piece
            }
        };
        this.at += 1;
        if let Some(left) = this.size.exact() {
            this.size = SizeHint::with_exact(left.saturating_sub(piece.len() as u64));
        }
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.size.exact() == Some(0)
    }

    fn size_hint(&self) -> SizeHint {
        self.size
    }
}

impl TakenBody {
    fn keep(&mut self, piece: &Bytes) {
        self.bytes = self.bytes.saturating_add(piece.len() + PIECE_BYTES);
        self.is_lost |= self.bytes > KEPT_BYTES_MAX;
        if self.is_lost {
            // `at` of the sending goes on counting, and finds no piece.
            self.pieces.clear();
        } else {
            self.pieces.push(piece.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::task::Waker;

    /// Pieces of one byte, without an end.
    struct Drops;

    impl http_body::Body for Drops {
        type Data = Bytes;
        type Error = BodyError;

        fn poll_frame(
            self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
            Poll::Ready(Some(Ok(Frame::data(Bytes::from(vec![b'x'])))))
        }
    }

    #[test]
    fn small_pieces_count_with_the_memory_that_each_of_them_needs() {
        let replay = Replay::new(Body::new(Drops));
        let mut body = replay.body();
        for _ in 0..1000 {
            let polled = Pin::new(&mut body).poll_frame(&mut Context::from_waker(Waker::noop()));
            assert!(matches!(polled, Poll::Ready(Some(Ok(_)))));
            assert!(replay.shared.borrow().pieces.len() <= 512, "about 64 KiB");
        }
        assert!(!replay.is_whole());
    }
}
