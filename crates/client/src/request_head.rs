//! The head of a request: which fields it gets, and its bytes.
//!
//! The caller's fields go out as they are, but for the fields that are about this connection alone
//! and for the framing of the body: these are the client's, so that no caller can send a request
//! of a length that two readers would see differently.

use crate::error::{Error, ErrorCause};
use http::header::{CONNECTION, CONTENT_LENGTH, HOST, TE, TRANSFER_ENCODING, UPGRADE};
use http::request::Parts;
use http::uri::Authority;
use http::{Method, Version};
use selvedge_http::response::put_number;

/// How the body of a request is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// There is none, and nothing is said about it.
    None,
    Length(u64),
    Chunked,
}

impl BodyFraming {
    /// For a body of `length` bytes, of unknown length, or for none (`length` 0).
    pub(crate) fn of(method: &Method, length: Option<u64>) -> BodyFraming {
        // A server may ask for a length with these methods (411), so an empty body has one.
        let is_expected = [Method::POST, Method::PUT, Method::PATCH].contains(method);
        match length {
            Some(0) if !is_expected => BodyFraming::None,
            Some(length) => BodyFraming::Length(length),
            None => BodyFraming::Chunked,
        }
    }
}

/// Whether the request asks for another protocol on its connection.
pub(crate) fn asks_for_upgrade(parts: &Parts) -> bool {
    parts.headers.contains_key(UPGRADE)
}

/// Appends the head of a request to `out`.
///
/// # Errors
/// If there is no host to name.
pub(crate) fn put(parts: &Parts, framing: BodyFraming, out: &mut Vec<u8>) -> Result<(), Error> {
    out.extend_from_slice(parts.method.as_str().as_bytes());
    out.push(b' ');
    match parts.uri.path_and_query() {
        Some(target) if target.as_str().starts_with('?') => {
            out.push(b'/');
            out.extend_from_slice(target.as_str().as_bytes());
        }
        Some(target) if !target.as_str().is_empty() => out.extend_from_slice(target.as_str().as_bytes()),
        _ => out.push(b'/'),
    }
    out.extend_from_slice(b" HTTP/1.1\r\n");
    match (parts.headers.get(HOST), parts.uri.authority()) {
        (Some(host), _) => put_field("host", host.as_bytes(), out),
        (None, Some(authority)) => put_field("host", host_of(authority).as_bytes(), out),
        // A request without a host is sent to no virtual host, which is what an empty value says.
        (None, None) if parts.version < Version::HTTP_11 => put_field("host", b"", out),
        (None, None) => return Err(Error::new(ErrorCause::Request("the request names no host"))),
    }
    let mut te_trailers = false;
    for (name, value) in &parts.headers {
        if *name == TE {
            te_trailers |= value.as_bytes().eq_ignore_ascii_case(b"trailers");
        } else if !is_of_the_client(name.as_str()) {
            put_field(name.as_str(), value.as_bytes(), out);
        }
    }
    match (asks_for_upgrade(parts), te_trailers) {
        (true, true) => out.extend_from_slice(b"te: trailers\r\nconnection: upgrade, te\r\n"),
        (true, false) => out.extend_from_slice(b"connection: upgrade\r\n"),
        (false, true) => out.extend_from_slice(b"te: trailers\r\nconnection: te\r\n"),
        (false, false) => {}
    }
    match framing {
        BodyFraming::None => {}
        BodyFraming::Length(length) => {
            out.extend_from_slice(b"content-length: ");
            put_number(length, out);
            out.extend_from_slice(b"\r\n");
        }
        BodyFraming::Chunked => out.extend_from_slice(b"transfer-encoding: chunked\r\n"),
    }
    out.extend_from_slice(b"\r\n");
    Ok(())
}

/// Host and port, without what may stand before them.
fn host_of(authority: &Authority) -> &str {
    let text = authority.as_str();
    text.rsplit_once('@').map_or(text, |(_, host)| host)
}

/// Whether the client itself decides on a field, because it is about one connection or about the
/// framing.
fn is_of_the_client(name: &str) -> bool {
    name == HOST
        || name == CONNECTION
        || name == CONTENT_LENGTH
        || name == TRANSFER_ENCODING
        || name == "keep-alive"
        || name == "proxy-connection"
}

/// Appends one field. Neither a name nor a value of `http` has a line end.
fn put_field(name: &str, value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    fn head(request: http::request::Builder, framing: BodyFraming) -> String {
        let (parts, ()) = request.body(()).unwrap().into_parts();
        let mut out = Vec::new();
        put(&parts, framing, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn a_target_is_in_origin_form_and_the_host_comes_first() {
        let request = Request::get("http://a:81/b?c").header("X", "y");
        assert_eq!(head(request, BodyFraming::None), "GET /b?c HTTP/1.1\r\nhost: a:81\r\nx: y\r\n\r\n");
        let request = Request::get("http://a");
        assert_eq!(head(request, BodyFraming::None), "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
        let request = Request::get("http://a?b");
        assert_eq!(head(request, BodyFraming::None), "GET /?b HTTP/1.1\r\nhost: a\r\n\r\n");
        let request = Request::get("/b").header("Host", "other");
        assert_eq!(head(request, BodyFraming::None), "GET /b HTTP/1.1\r\nhost: other\r\n\r\n");
        let request = Request::options("*").header("Host", "other");
        assert_eq!(head(request, BodyFraming::None), "OPTIONS * HTTP/1.1\r\nhost: other\r\n\r\n");
    }

    #[test]
    fn the_framing_is_the_clients() {
        let request = Request::post("http://a/")
            .header("Content-Length", "7")
            .header("Transfer-Encoding", "gzip")
            .header("Connection", "x")
            .header("Keep-Alive", "5");
        let sent = "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 3\r\n\r\n";
        assert_eq!(head(request, BodyFraming::Length(3)), sent);
        let sent = "POST / HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n";
        assert_eq!(head(Request::post("http://a/"), BodyFraming::Chunked), sent);
        assert_eq!(BodyFraming::of(&Method::POST, Some(0)), BodyFraming::Length(0));
        assert_eq!(BodyFraming::of(&Method::GET, Some(0)), BodyFraming::None);
        assert_eq!(BodyFraming::of(&Method::GET, None), BodyFraming::Chunked);
    }

    #[test]
    fn an_upgrade_and_trailers_are_named_in_connection() {
        let request =
            Request::get("http://a/").header("Upgrade", "websocket").header("Connection", "upgrade");
        let sent = "GET / HTTP/1.1\r\nhost: a\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n";
        assert_eq!(head(request, BodyFraming::None), sent);
        let request = Request::get("http://a/").header("TE", "trailers");
        assert_eq!(
            head(request, BodyFraming::None),
            "GET / HTTP/1.1\r\nhost: a\r\nte: trailers\r\nconnection: te\r\n\r\n"
        );
    }
}
