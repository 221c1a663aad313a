//! [`KnownLength`]: a stream of pieces as a body of known length.

use bytes::Bytes;
use http_body::{Frame, SizeHint};
use selvedge_handler::{Body, BodyError};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body with a known length, although its pieces come one after the other.
pub(crate) struct KnownLength {
    body: Body,
    left: u64,
}

impl KnownLength {
    pub(crate) fn new(body: Body, length: u64) -> KnownLength {
        KnownLength { body, left: length }
    }
}

impl http_body::Body for KnownLength {
    type Data = Bytes;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        if let Poll::Ready(Some(Ok(frame))) = &polled
            && let Some(piece) = frame.data_ref()
        {
            self.left = self.left.saturating_sub(piece.len() as u64);
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.left == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left)
    }
}
