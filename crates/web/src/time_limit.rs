//! [`TimeLimit`]: how long a handler may take.

use crate::layer::{Layer, Next};
use http::StatusCode;
use selvedge_handler::{Handler, IntoResponse, Request, Response};
use selvedge_io::time::timeout;
use std::time::Duration;

/// A layer that drops a handler which has not answered within this time, and answers 503. The body
/// of the response is not counted.
#[derive(Clone, Copy, Debug)]
pub struct TimeLimit(pub Duration);

impl Layer for TimeLimit {
    async fn call(&self, request: Request, next: Next) -> Response {
        match timeout(self.0, next.call(request)).await {
            Ok(response) => response,
            Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the handler took too long").into_response(),
        }
    }
}
