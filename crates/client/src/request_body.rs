//! [`RequestBody`]: a body of a request that can be sent again.

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};

/// A body in memory: what [`RequestBuilder`](crate::RequestBuilder) sends. Because it can be sent
/// again, a request with it can follow redirects.
///
/// A body that is made while it is sent goes through [`Client::send`](crate::Client::send).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestBody(Bytes);

impl<T: Into<Bytes>> From<T> for RequestBody {
    fn from(bytes: T) -> RequestBody {
        RequestBody(bytes.into())
    }
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let bytes = std::mem::take(&mut self.0);
        Poll::Ready(if bytes.is_empty() { None } else { Some(Ok(Frame::data(bytes))) })
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.0.len() as u64)
    }
}
