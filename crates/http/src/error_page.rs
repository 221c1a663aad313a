//! Replies that have no file behind them: errors, redirects, `OPTIONS`.
//!
//! `connection/exchange.rs` puts the refusals of the protocol, `files.rs` and `representation.rs`
//! those of a request that no file answers. `put` appends a whole reply to the write buffer, so
//! nothing may be sent between its head and its page.

use crate::date::Clock;
use crate::request::{Method, Request};
use crate::response::{Persistence, Writer, put_number};
use crate::status::Status;

/// The methods that a file answers: the value of `Allow`.
pub const ALLOW: &str = "GET, HEAD, OPTIONS";

/// The field that a reply has besides the usual ones.
#[derive(Clone, Copy, Debug)]
pub enum Extra<'a> {
    /// Nothing.
    None,
    /// `Location`, of a redirect.
    Location(&'a [u8]),
    /// `Content-Range: bytes */length`, if no range of the request could be satisfied. The number
    /// is the length of the representation.
    Length(u64),
}

/// The status for a request with another method than `GET` and `HEAD`: 204 for `OPTIONS`, 405 for
/// the other methods that the parser knows, 501 for the rest. `None` for `GET` and `HEAD`, which a
/// file answers.
pub fn instead_of_file(request: &Request<'_>) -> Option<Status> {
    match request.method {
        Method::Get | Method::Head => None,
        Method::Options => Some(Status::NO_CONTENT),
        Method::Other => Some(Status::NOT_IMPLEMENTED),
        Method::Post | Method::Put | Method::Delete | Method::Trace | Method::Patch => {
            Some(Status::METHOD_NOT_ALLOWED)
        }
    }
}

/// Appends a whole reply with a small page that names `status`. If `method` is `HEAD`, the reply
/// has no page. Pass `GET` as the method of a request that could not be parsed. Returns the number
/// of bytes of the page that were appended.
pub fn put(
    status: Status,
    extra: Extra<'_>,
    method: Method,
    persistence: Persistence,
    clock: &Clock,
    out: &mut Vec<u8>,
) -> u64 {
    const START: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n<title>";
    const MIDDLE: &str = "</title>\n<h1>";
    const END: &str = "</h1>\n</html>\n";
    let mut head = Writer::begin(status, clock, out);
    head = match extra {
        Extra::None => head,
        Extra::Location(location) => head.field("Location", location),
        Extra::Length(len) => head.field_with("Content-Range", |out| {
            out.extend_from_slice(b"bytes */");
            put_number(len, out);
        }),
    };
    if status == Status::NO_CONTENT || status == Status::METHOD_NOT_ALLOWED {
        head = head.field("Allow", ALLOW.as_bytes());
    }
    if status == Status::NO_CONTENT {
        head.end(persistence);
        return 0;
    }
    let line = status.line();
    let page = [START, line, MIDDLE, line, END];
    let len = page.iter().map(|part| part.len() as u64).sum();
    head.field("Content-Type", b"text/html; charset=utf-8").number("Content-Length", len).end(persistence);
    if method == Method::Head {
        return 0;
    }
    page.iter().for_each(|part| out.extend_from_slice(part.as_bytes()));
    len
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(status: Status, extra: Extra<'_>, method: Method) -> (String, u64) {
        let mut out = Vec::new();
        let len = put(status, extra, method, Persistence::Implied, &Clock::at(784_111_777), &mut out);
        (String::from_utf8(out).unwrap(), len)
    }

    #[test]
    fn the_length_is_the_length_of_the_page() {
        for &status in Status::ALL {
            let (reply, len) = page(status, Extra::None, Method::Get);
            let (head, body) = reply.split_once("\r\n\r\n").unwrap();
            assert_eq!(body.len() as u64, len);
            assert_eq!(
                head.contains(&format!("Content-Length: {len}")),
                status != Status::NO_CONTENT,
                "{head}"
            );
            let (without, len) = page(status, Extra::None, Method::Head);
            assert_eq!((without, len), (format!("{head}\r\n\r\n"), 0));
        }
    }

    #[test]
    fn special_fields() {
        assert!(
            page(Status::METHOD_NOT_ALLOWED, Extra::None, Method::Get)
                .0
                .contains("\r\nAllow: GET, HEAD, OPTIONS\r\n")
        );
        assert!(
            page(Status::NO_CONTENT, Extra::None, Method::Get)
                .0
                .contains("\r\nAllow: GET, HEAD, OPTIONS\r\n")
        );
        assert!(
            page(Status::MOVED_PERMANENTLY, Extra::Location(b"/a/"), Method::Get)
                .0
                .contains("\r\nLocation: /a/\r\n")
        );
        assert!(
            page(Status::RANGE_NOT_SATISFIABLE, Extra::Length(7), Method::Get)
                .0
                .contains("\r\nContent-Range: bytes */7\r\n")
        );
    }
}
