//! [`Rejection`]: why a request does not fit the arguments of its handler.

use selvedge_handler::{BodyError, IntoResponse, Response, StatusCode};
use std::fmt;

/// A request that does not fit the arguments of its handler: the status that says so, and the
/// reason as plain text for the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    status: StatusCode,
    reason: String,
}

impl Rejection {
    /// A rejection with this status and reason.
    pub fn new(status: StatusCode, reason: impl Into<String>) -> Rejection {
        Rejection { status, reason: reason.into() }
    }

    /// The status.
    pub fn status(&self) -> StatusCode {
        self.status
    }
}

impl From<BodyError> for Rejection {
    fn from(error: BodyError) -> Rejection {
        Rejection::new(error.status(), error.to_string())
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.reason)
    }
}

impl std::error::Error for Rejection {}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        (self.status, self.reason).into_response()
    }
}
