//! A handler's request as bytes, and a reply in bytes as a handler's response: so the code that
//! answers for files on a connection answers for them in a handler too.
//!
//! `static_files.rs`, `file_store.rs` and `direct_routes.rs` call it. Only the fields that matter
//! go into the bytes: to a file those of conditions and ranges, to routes all but those of framing.

use crate::request::{self, FIELDS_MAX, Limits};
use crate::status::Status;
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, HeaderValue, IF_MATCH, IF_MODIFIED_SINCE,
    IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, LOCATION, RANGE, SERVER, TE, TRAILER, TRANSFER_ENCODING,
    UPGRADE,
};
use selvedge_handler::{Body, IntoResponse, Mount, Request, Response, StatusCode, WithoutServer};

/// The fields of a request that matter to a file.
const FIELDS: [HeaderName; 6] =
    [IF_MATCH, IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE];

/// The fields of a request that concern its body or its connection.
const FRAMING: [HeaderName; 7] =
    [CONNECTION, CONTENT_LENGTH, EXPECT, TE, TRAILER, TRANSFER_ENCODING, UPGRADE];

/// The head of `request` in bytes, for [`parse`], with the fields that matter to a file.
pub(crate) fn head(request: &Request) -> Vec<u8> {
    let mut head = line(request);
    head.extend_from_slice(b"Host:\r\n");
    for name in FIELDS {
        for value in request.headers().get_all(&name) {
            put_field(&name, value, &mut head);
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

/// The head of `request` in bytes, for [`parse`], with the fields that matter to routes. It says
/// that there is no body.
pub(crate) fn routed_head(request: &Request) -> Vec<u8> {
    let mut head = line(request);
    // A client of HTTP/1.0 may leave it out.
    let host = request.headers().get(HOST).cloned();
    put_field(&HOST, &host.unwrap_or(HeaderValue::from_static("")), &mut head);
    for (name, value) in request.headers() {
        if *name != HOST && !FRAMING.contains(name) {
            put_field(name, value, &mut head);
        }
    }
    head.extend_from_slice(b"\r\n");
    head
}

fn line(request: &Request) -> Vec<u8> {
    let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
    let mut line = Vec::with_capacity(256);
    for part in [request.method().as_str(), " ", target, " HTTP/1.1\r\n"] {
        line.extend_from_slice(part.as_bytes());
    }
    line
}

fn put_field(name: &HeaderName, value: &HeaderValue, head: &mut Vec<u8>) {
    for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
        head.extend_from_slice(part);
    }
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
    // Each reply is made with this field. A rule has taken it away.
    if !response.headers().contains_key(SERVER) {
        response.extensions_mut().insert(WithoutServer);
    }
    if let (Some(mount), Some(location)) = (mount, response.headers().get(LOCATION)) {
        let location = [mount.0.as_bytes(), location.as_bytes()].concat();
        if let Ok(location) = HeaderValue::from_bytes(&location) {
            response.headers_mut().insert(LOCATION, location);
        }
    }
    response
}
