//! [`WithoutServer`]: the mark of a response that does not name the server.

/// The mark of a response of which an engine sends no `Server` field of its own: an extension of a
/// response.
///
/// # Examples
/// ```
/// use selvedge_handler::{IntoResponse, Response, WithoutServer};
///
/// fn discreet() -> Response {
///     let mut response = "woven".into_response();
///     response.extensions_mut().insert(WithoutServer);
///     response
/// }
/// assert!(discreet().extensions().get::<WithoutServer>().is_some());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WithoutServer;
