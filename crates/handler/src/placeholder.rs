//! [`Placeholder`]: the mark of a response that says nothing but its status.

/// The mark of a response with a body that says nothing but the status: an extension of a response.
/// A server may put a page of its own into the body's place.
///
/// `selvedge-gateway` marks the responses that no other program has made, such as
/// `502 Bad Gateway`, and `selvedge-http` sends the route's own page for them, if there is one. A
/// response of a program behind the server has no mark, so its page goes to the client as it is.
///
/// # Examples
/// ```
/// use selvedge_handler::{IntoResponse, Placeholder, Response, StatusCode};
///
/// fn busy() -> Response {
///     let mut response = StatusCode::SERVICE_UNAVAILABLE.into_response();
///     response.extensions_mut().insert(Placeholder);
///     response
/// }
/// assert!(busy().extensions().get::<Placeholder>().is_some());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Placeholder;
