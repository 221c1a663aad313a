//! A handler's request as bytes, and a reply in bytes as a handler's response: so the code that
//! answers for files on a connection answers for them in a handler too.
//!
//! `static_files.rs` and `file_store.rs` call it. Only the fields that matter to a file go into the
//! bytes.

use http::header::{
    CONNECTION, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE,
    IF_UNMODIFIED_SINCE, LOCATION, RANGE,
};
use selvedge_handler::{Body, IntoResponse, Mount, Request, Response, StatusCode};

use crate::request::{self, FIELDS_MAX, Limits};
use crate::status::Status;

/// The fields of a request that matter to a file.
const FIELDS: [HeaderName; 6] =
    [IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE];

/// The head of `request` in bytes, for [`parse`].
pub(crate) fn head(request: &Request) -> Vec<u8> {
    let mut head = Vec::with_capacity(256);
    head.extend_from_slice(request.method().as_str().as_bytes());
    head.push(b' ');
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    head.extend_from_slice(target.as_bytes());
    head.extend_from_slice(b" HTTP/1.1\r\nHost:\r\n");
    for name in FIELDS {
        for value in request.headers().get_all(&name) {
            head.extend_from_slice(name.as_str().as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// Parses a head that [`head`] has made. An engine has checked its sizes before.
pub(crate) fn parse(head: &[u8]) -> Result<request::Request<'_>, Status> {
    let limits = Limits { head_bytes: usize::MAX, target_bytes: usize::MAX, body_bytes: u64::MAX };
    request::parse(head, &limits)?.ok_or(Status::BAD_REQUEST)
}

/// A response of the head and the content at the front of `reply`. `body` follows them; if it is
/// none, the content is the body. `mount` stands before a `Location`.
pub(crate) fn response(reply: &[u8], body: Option<Body>, mount: Option<&Mount>) -> Response {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let mut head = httparse::Response::new(&mut fields);
    let Ok(httparse::Status::Complete(len)) = head.parse(reply) else {
        return StatusCode::INTERNAL_SERVER_ERROR.into_response();
    };
    let content = || Body::from(reply[len..].to_vec());
    let mut response = Response::new(body.unwrap_or_else(content));
    *response.status_mut() = head
        .code
        .and_then(|code| StatusCode::from_u16(code).ok())
        .unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    for field in head.headers {
        let name = HeaderName::from_bytes(field.name.as_bytes());
        let value = HeaderValue::from_bytes(field.value);
        if let (Ok(name), Ok(value)) = (name, value)
            && name != CONNECTION
        {
            response.headers_mut().append(name, value);
        }
    }
    if let (Some(mount), Some(location)) = (mount, response.headers().get(LOCATION)) {
        let location = [mount.0.as_bytes(), location.as_bytes()].concat();
        if let Ok(location) = HeaderValue::from_bytes(&location) {
            response.headers_mut().insert(LOCATION, location);
        }
    }
    response
}
