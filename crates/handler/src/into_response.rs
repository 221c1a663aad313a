//! [`IntoResponse`]: what a handler may return, and [`ResponsePart`], what may stand before it.

use crate::{Body, BodyError, ContentType, PlainOutcome, Response, has_content};
use bytes::Bytes;
use http::{HeaderValue, StatusCode};

/// What a handler may return in place of a [`Response`].
///
/// A `Result` is a response when both its sides are, so a handler may use `?` with errors of its
/// own.
pub trait IntoResponse {
    /// The response.
    fn into_response(self) -> Response;

    /// The response, as bytes if it has no more to say than bytes can.
    fn into_outcome(self) -> PlainOutcome
    where
        Self: Sized,
    {
        self.into_response().into()
    }
}

impl IntoResponse for Response {
    fn into_response(self) -> Response {
        self
    }
}

/// An empty body with this status.
impl IntoResponse for StatusCode {
    fn into_response(self) -> Response {
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self;
        response
    }
}

/// `204 No Content`.
impl IntoResponse for () {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl IntoResponse for std::convert::Infallible {
    fn into_response(self) -> Response {
        match self {}
    }
}

impl<R: IntoResponse, E: IntoResponse> IntoResponse for Result<R, E> {
    fn into_response(self) -> Response {
        match self {
            Ok(response) => response.into_response(),
            Err(error) => error.into_response(),
        }
    }

    fn into_outcome(self) -> PlainOutcome {
        match self {
            Ok(response) => response.into_outcome(),
            Err(error) => error.into_outcome(),
        }
    }
}

/// What a handler may return before a response: `(part, response)` and `(part, part, response)` are
/// responses too.
///
/// # Examples
/// ```
/// use selvedge_handler::{IntoResponse, StatusCode, header};
///
/// let response = (StatusCode::CREATED, [(header::LOCATION, "/looms/7")], "woven").into_response();
/// assert_eq!(response.status(), 201);
/// assert_eq!(response.headers()["location"], "/looms/7");
/// ```
pub trait ResponsePart {
    /// Adds it to a response.
    fn add_to(self, response: &mut Response);

    /// Adds it to a response that may be bytes.
    fn add_to_outcome(self, outcome: PlainOutcome) -> PlainOutcome
    where
        Self: Sized,
    {
        let mut response = Response::from(outcome);
        self.add_to(&mut response);
        response.into()
    }
}

/// The status of the response.
impl ResponsePart for StatusCode {
    fn add_to(self, response: &mut Response) {
        *response.status_mut() = self;
    }

    fn add_to_outcome(self, outcome: PlainOutcome) -> PlainOutcome {
        match outcome {
            PlainOutcome::Plain(mut answer) if has_content(self) => {
                answer.status = self;
                PlainOutcome::Plain(answer)
            }
            outcome => {
                let mut response = Response::from(outcome);
                self.add_to(&mut response);
                response.into()
            }
        }
    }
}

/// Further fields, which replace those of the same names.
impl ResponsePart for http::HeaderMap {
    fn add_to(self, response: &mut Response) {
        response.headers_mut().extend(self);
    }
}

/// Further fields, which replace those of the same names.
impl<const N: usize> ResponsePart for [(http::HeaderName, &'static str); N] {
    fn add_to(self, response: &mut Response) {
        for (name, value) in self {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
    }
}

impl<P: ResponsePart, R: IntoResponse> IntoResponse for (P, R) {
    fn into_response(self) -> Response {
        let mut response = self.1.into_response();
        self.0.add_to(&mut response);
        response
    }

    fn into_outcome(self) -> PlainOutcome {
        self.0.add_to_outcome(self.1.into_outcome())
    }
}

impl<P: ResponsePart, Q: ResponsePart, R: IntoResponse> IntoResponse for (P, Q, R) {
    fn into_response(self) -> Response {
        let mut response = self.2.into_response();
        self.1.add_to(&mut response);
        self.0.add_to(&mut response);
        response
    }

    fn into_outcome(self) -> PlainOutcome {
        self.0.add_to_outcome(self.1.add_to_outcome(self.2.into_outcome()))
    }
}

/// Plain text.
impl IntoResponse for &'static str {
    fn into_response(self) -> Response {
        ContentType::text().response(self.into())
    }

    fn into_outcome(self) -> PlainOutcome {
        ContentType::text().plain(self)
    }
}

/// Plain text.
impl IntoResponse for String {
    fn into_response(self) -> Response {
        ContentType::text().response(self.into())
    }

    fn into_outcome(self) -> PlainOutcome {
        ContentType::text().plain(self)
    }
}

/// Bytes of no known type: `application/octet-stream`.
impl IntoResponse for Bytes {
    fn into_response(self) -> Response {
        ContentType::bytes().response(self.into())
    }

    fn into_outcome(self) -> PlainOutcome {
        ContentType::bytes().plain(self)
    }
}

/// Bytes of no known type: `application/octet-stream`.
impl IntoResponse for Vec<u8> {
    fn into_response(self) -> Response {
        ContentType::bytes().response(self.into())
    }

    fn into_outcome(self) -> PlainOutcome {
        ContentType::bytes().plain(self)
    }
}

/// The body, with no field that says of which type it is.
impl IntoResponse for Body {
    fn into_response(self) -> Response {
        Response::new(self)
    }
}

/// The [status](BodyError::status) that the error stands for, and the error as plain text.
impl IntoResponse for BodyError {
    fn into_response(self) -> Response {
        (self.status(), self.to_string()).into_response()
    }
}
