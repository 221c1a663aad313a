//! The head of a handler's response: which of its fields go out, and how the body is framed (RFC
//! 9112 §6).
//!
//! The engine alone decides about `Connection`, `Content-Length` and `Transfer-Encoding`, so that a
//! handler knows nothing of versions, and cannot frame a message wrongly.

use super::call::{CallTerms, names};
use crate::date::Clock;
use crate::request::{Method, Version};
use crate::response::{Persistence, SERVER as SERVER_NAME, put_number};
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, SERVER, TRANSFER_ENCODING, UPGRADE};
use http::response::Parts;
use http::{HeaderMap, HeaderName, StatusCode};
use selvedge_handler::{Interim, PlainAnswer, WithoutServer, has_content};

/// The status line and the server's name in most heads, and the name of the field behind them.
const USUAL_BEGINNING: &str = "HTTP/1.1 200 OK\r\nServer: selvedge\r\nDate: ";

static KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");

/// How the end of a body is known to the client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delimiter {
    /// There is no body, whatever the fields say.
    Nothing,
    /// By its length.
    Length(u64),
    /// By a last chunk.
    Chunks,
    /// By the end of the connection.
    Close,
}

/// The fields of a response that the engine looks at. They are found in one pass, because a look-up
/// of each would cost more than a response of the usual few fields has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct KnownFields {
    /// `Server`, or the response must not name the server.
    server: bool,
    date: bool,
    upgrade: bool,
    /// `Connection` has the option `close`.
    closes: bool,
}

impl KnownFields {
    pub(super) fn of(parts: &Parts) -> KnownFields {
        let server = parts.extensions.get::<WithoutServer>().is_some();
        let mut known = KnownFields { server, ..KnownFields::default() };
        for (name, value) in &parts.headers {
            known.server |= *name == SERVER;
            known.date |= *name == DATE;
            known.upgrade |= *name == UPGRADE;
            known.closes |= *name == CONNECTION && names(value.as_bytes(), b"close");
        }
        known
    }
}

/// How the body of `parts` is framed, and what is said about the connection. `len` is the length of
/// the body, if it is known.
pub(super) fn frame(
    parts: &Parts,
    known: KnownFields,
    len: Option<u64>,
    terms: &CallTerms,
) -> (Delimiter, Persistence) {
    let persistence = if known.closes { Persistence::Close } else { terms.persistence };
    if terms.method == Method::Head || !has_content(parts.status) {
        return (Delimiter::Nothing, persistence);
    }
    let declared = || parts.headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok();
    match (len.or_else(declared), terms.version) {
        (Some(len), _) => (Delimiter::Length(len), persistence),
        (None, Version::Http11) => (Delimiter::Chunks, persistence),
        (None, Version::Http10) => (Delimiter::Close, Persistence::Close),
    }
}

/// Appends the head of a response. `len` is the length of the body, if it is known.
pub(super) fn put(
    (parts, known): (&Parts, KnownFields),
    (delimiter, len): (Delimiter, Option<u64>),
    persistence: Persistence,
    clock: &Clock,
    out: &mut Vec<u8>,
) {
    put_beginning(parts.status, known.server, known.date, clock, out);
    put_fields(&parts.headers, out);
    match delimiter {
        Delimiter::Length(len) => put_length(len, out),
        Delimiter::Chunks => out.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        Delimiter::Close => {}
        // A reply to HEAD, and a 304, may say how long the body of the reply to GET would be.
        Delimiter::Nothing if may_name_length(parts.status) => {
            if let Some(declared) = parts.headers.get(CONTENT_LENGTH) {
                put_field(b"Content-Length", declared.as_bytes(), out);
            } else if let Some(len) = len.filter(|&len| len > 0) {
                put_length(len, out);
            }
        }
        Delimiter::Nothing => {}
    }
    if known.upgrade {
        let option: &[u8] = if persistence.keeps() { b"upgrade" } else { b"upgrade, close" };
        put_field(b"Connection", option, out);
    } else {
        out.extend_from_slice(persistence.field());
    }
    out.extend_from_slice(b"\r\n");
}

/// Appends the head of an answer that came as bytes.
pub(super) fn put_plain(answer: &PlainAnswer, persistence: Persistence, clock: &Clock, out: &mut Vec<u8>) {
    put_beginning(answer.status, answer.names_server, answer.names_date, clock, out);
    out.extend_from_slice(&answer.lines);
    put_length(answer.content.len() as u64, out);
    out.extend_from_slice(persistence.field());
    out.extend_from_slice(b"\r\n");
}

/// Appends an interim response.
pub(super) fn put_interim(interim: &Interim, out: &mut Vec<u8>) {
    put_status_line(interim.status, out);
    put_fields(&interim.fields, out);
    out.extend_from_slice(b"\r\n");
}

/// Appends the fields that do not frame a message.
pub(super) fn put_fields(fields: &HeaderMap, out: &mut Vec<u8>) {
    for (name, value) in fields {
        if !is_framing(name) {
            put_field(name.as_str().as_bytes(), value.as_bytes(), out);
        }
    }
}

fn may_name_length(status: StatusCode) -> bool {
    !status.is_informational() && status != StatusCode::NO_CONTENT
}

/// Whether the engine alone writes this field.
fn is_framing(name: &HeaderName) -> bool {
    *name == CONTENT_LENGTH || *name == TRANSFER_ENCODING || *name == CONNECTION || *name == KEEP_ALIVE
}

/// Appends the status line, and the server's own fields that the response does not name.
fn put_beginning(status: StatusCode, names_server: bool, names_date: bool, clock: &Clock, out: &mut Vec<u8>) {
    if status == StatusCode::OK && !names_server && !names_date {
        // The usual case, as copies of lengths that the compiler knows.
        out.extend_from_slice(USUAL_BEGINNING.as_bytes());
        out.extend_from_slice(clock.http());
        out.extend_from_slice(b"\r\n");
        return;
    }
    put_status_line(status, out);
    if !names_server {
        put_field(b"Server", SERVER_NAME.as_bytes(), out);
    }
    if !names_date {
        put_field(b"Date", clock.http(), out);
    }
}

fn put_status_line(status: StatusCode, out: &mut Vec<u8>) {
    out.extend_from_slice(b"HTTP/1.1 ");
    out.extend_from_slice(status.as_str().as_bytes());
    out.push(b' ');
    out.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    out.extend_from_slice(b"\r\n");
}

fn put_length(len: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(b"Content-Length: ");
    put_number(len, out);
    out.extend_from_slice(b"\r\n");
}

fn put_field(name: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(name);
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}
