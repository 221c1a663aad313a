//! Response heads: written byte by byte into the connection's write buffer, or prebuilt with a slot
//! for the date.
//!
//! No formatting machinery is involved. Every head says HTTP/1.1, whatever the request said (RFC
//! 9110 §6.2).
//!
//! `representation.rs` and `error_page.rs` write all heads with it.

use crate::date::{Clock, HTTP_LEN};
use crate::decimal::{self, DIGITS_MAX};
use crate::request::{Request, Version};
use crate::status::Status;

/// The value of the `Server` field.
pub const SERVER: &str = "selvedge";

/// What a reply says about the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// It stays open, as is the rule in HTTP/1.1: nothing is said.
    Implied,
    /// It stays open and an HTTP/1.0 client has to be told: `Connection: keep-alive`.
    KeepAlive,
    /// It is closed behind this reply: `Connection: close`.
    Close,
}

impl Persistence {
    /// For the reply to `request`, if the server is willing to keep the connection (`willing`) or
    /// not.
    ///
    /// A request that is answered while its client waits for `100 Continue` is the last: the client
    /// may send the body all the same or leave it out, so where the next request begins is unknown.
    #[inline]
    pub fn of(request: &Request<'_>, willing: bool) -> Persistence {
        let is_framed = !(request.expects_continue && request.framing.has_content());
        Persistence::offered(request, willing && is_framed)
    }

    /// As [`of`](Self::of), for a server that reads the body.
    #[inline]
    pub(crate) fn offered(request: &Request<'_>, willing: bool) -> Persistence {
        match (request.keep_alive && willing, request.version) {
            (true, Version::Http11) => Persistence::Implied,
            (true, Version::Http10) => Persistence::KeepAlive,
            (false, _) => Persistence::Close,
        }
    }

    /// Whether another request may follow on the connection.
    #[inline]
    pub fn keeps(self) -> bool {
        self != Persistence::Close
    }

    pub(crate) fn field(self) -> &'static [u8] {
        match self {
            Persistence::Implied => b"",
            Persistence::KeepAlive => b"Connection: keep-alive\r\n",
            Persistence::Close => b"Connection: close\r\n",
        }
    }
}

/// Writes one response head to the end of a buffer.
///
/// # Examples
/// ```
/// use selvedge::http::{date::Clock, response::{Persistence, Writer}, status::Status};
/// let mut out = Vec::new();
/// let head = Writer::begin(Status::OK, &Clock::at(784_111_777), &mut out);
/// head.number("Content-Length", 0).end(Persistence::Implied);
/// assert_eq!(out, b"HTTP/1.1 200 OK\r\nServer: selvedge\r\n\
///     Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nContent-Length: 0\r\n\r\n");
/// ```
#[derive(Debug)]
#[must_use = "a head is complete only after `end`"]
pub struct Writer<'o> {
    out: &'o mut Vec<u8>,
}

impl<'o> Writer<'o> {
    /// Writes the status line, `Server` and `Date`.
    pub fn begin(status: Status, clock: &Clock, out: &'o mut Vec<u8>) -> Writer<'o> {
        out.extend_from_slice(b"HTTP/1.1 ");
        out.extend_from_slice(status.line().as_bytes());
        out.extend_from_slice(b"\r\n");
        Writer { out }.field("Server", SERVER.as_bytes()).field("Date", clock.http())
    }

    /// Writes a field. The caller vouches that `value` holds no CR or LF.
    pub fn field(self, name: &str, value: &[u8]) -> Writer<'o> {
        debug_assert!(!value.iter().any(|byte| b"\r\n\0".contains(byte)));
        self.field_with(name, |out| out.extend_from_slice(value))
    }

    /// Writes a field with a number as its value.
    pub fn number(self, name: &str, value: u64) -> Writer<'o> {
        self.field_with(name, |out| put_number(value, out))
    }

    /// Writes a field with the value that `put` appends.
    pub fn field_with(self, name: &str, put: impl FnOnce(&mut Vec<u8>)) -> Writer<'o> {
        self.out.extend_from_slice(name.as_bytes());
        self.out.extend_from_slice(b": ");
        put(self.out);
        self.out.extend_from_slice(b"\r\n");
        self
    }

    /// Writes what is to be said about the connection, and the empty line.
    pub fn end(self, persistence: Persistence) {
        self.out.extend_from_slice(persistence.field());
        self.out.extend_from_slice(b"\r\n");
    }
}

/// A head made once and sent many times; only its `Date` is written anew.
#[derive(Clone, Debug)]
pub struct Head {
    /// The whole head, with the empty line.
    bytes: Box<[u8]>,
    date_at: usize,
}

impl Head {
    /// A head with `status` and the fields that `fields` writes.
    pub fn new(status: Status, fields: impl FnOnce(Writer<'_>) -> Writer<'_>) -> Head {
        let mut bytes = Vec::with_capacity(320);
        let begun = Writer::begin(status, &Clock::at(0), &mut bytes);
        let date_at = begun.out.len() - HTTP_LEN - "\r\n".len();
        fields(begun).end(Persistence::Implied);
        Head { bytes: bytes.into(), date_at }
    }

    /// Appends the head with the date that `clock` shows.
    #[inline]
    pub fn put(&self, persistence: Persistence, clock: &Clock, out: &mut Vec<u8>) {
        let start = out.len();
        out.extend_from_slice(&self.bytes);
        let date_at = start + self.date_at;
        out[date_at..date_at + HTTP_LEN].copy_from_slice(clock.http());
        if persistence != Persistence::Implied {
            out.truncate(out.len() - "\r\n".len());
            out.extend_from_slice(persistence.field());
            out.extend_from_slice(b"\r\n");
        }
    }

    /// Length in bytes, when nothing is said about the connection.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.bytes.len()
    }
}

/// Appends `n` in decimal.
#[inline]
pub fn put_number(n: u64, out: &mut Vec<u8>) {
    let mut digits = [0; DIGITS_MAX];
    let len = decimal::put(n, &mut digits);
    out.extend_from_slice(&digits[..len]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_prebuilt_head_is_what_the_writer_writes() {
        let clock = Clock::at(784_111_777);
        let head = Head::new(Status::OK, |head| head.number("Content-Length", 7));
        for persistence in [Persistence::Implied, Persistence::KeepAlive, Persistence::Close] {
            let (mut prebuilt, mut written) = (b"before".to_vec(), b"before".to_vec());
            head.put(persistence, &clock, &mut prebuilt);
            Writer::begin(Status::OK, &clock, &mut written).number("Content-Length", 7).end(persistence);
            assert_eq!(String::from_utf8(prebuilt).unwrap(), String::from_utf8(written).unwrap());
        }
    }

    proptest! {
        #[test]
        fn numbers(n: u64) {
            let mut out = Vec::new();
            put_number(n, &mut out);
            prop_assert_eq!(String::from_utf8(out).unwrap(), n.to_string());
        }
    }
}
