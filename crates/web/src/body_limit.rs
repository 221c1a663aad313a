//! [`BodyLimit`]: how much of a body an argument of a handler keeps in memory.

use crate::layer::{Layer, Next};
use crate::rejection::Rejection;
use http::StatusCode;
use selvedge_handler::IntoResponse;
use selvedge_handler::{Handler, Request, Response};

/// The limit where no [`BodyLimit`] is set: 2 MiB.
pub const BODY_BYTES_MAX: u64 = 2 << 20;

/// A layer that sets the most bytes of a body that `Json`, `Form`, `Bytes` and `String` read; it is
/// [`BODY_BYTES_MAX`] without it. A longer body is answered with 413. `Body` and
/// [`Multipart`](crate::Multipart), which are read piece by piece, have no limit.
#[derive(Clone, Copy, Debug)]
pub struct BodyLimit(pub u64);

impl BodyLimit {
    pub(crate) fn of(request: &Request) -> u64 {
        request.extensions().get::<BodyLimit>().map_or(BODY_BYTES_MAX, |limit| limit.0)
    }
}

impl Layer for BodyLimit {
    async fn call(&self, mut request: Request, next: Next) -> Response {
        if request.body().len().is_some_and(|len| len > self.0) {
            let reason = format!("the body has more than {} bytes", self.0);
            return Rejection::new(StatusCode::PAYLOAD_TOO_LARGE, reason).into_response();
        }
        request.extensions_mut().insert(*self);
        next.call(request).await
    }
}
