//! One file as the server answers for it: what a cache holds, and the decision what to send.
//!
//! The decision is a pure function of the request and the file's status: it appends the head to the
//! write buffer and says which bytes of the file follow. The connection thread does nothing but
//! send them.
//!
//! The cache builds a [`Representation`] for each file (`cache.rs`), and `files.rs` asks it for the
//! answer to each request.

use crate::conditional::{ETag, Outcome, Validators, evaluate};
use crate::date::{self, Clock};
use crate::error_page::{self, Extra};
use crate::range::{Parts, Resolved, Span, put_content_range};
use crate::request::{Method, Request};
use crate::response::{Head, Persistence, Writer};
use crate::status::Status;

/// A file's status with the heads of its usual replies prebuilt.
#[derive(Clone, Debug)]
pub struct Representation {
    len: u64,
    content_type: &'static str,
    validators: Validators,
    ok: Head,
    not_modified: Head,
}

/// What was decided, and what is to be sent behind the head.
#[derive(Clone, Debug)]
pub struct Answer {
    /// The status, for the log.
    pub status: Status,
    /// What follows what was appended to the write buffer.
    pub content: Content,
    /// Bytes of content of the whole reply, for the log: those already appended and those to
    /// follow.
    pub content_bytes: u64,
}

/// Bytes of the file that follow a head.
#[derive(Clone, Debug)]
pub enum Content {
    /// None; the reply is complete.
    Nothing,
    /// One span of the file, perhaps all of it.
    Span(Span),
    /// Several spans, each behind its part head.
    Parts(Parts),
}

impl Representation {
    /// The representation of a file of `len` bytes and type `content_type` (see [`crate::mime`]),
    /// last modified in second `seconds` (Unix time), as seen at `now` (Unix seconds).
    ///
    /// `Last-Modified` is left out for times before 1970, and is `now` for a time that lies in the
    /// future (RFC 9110 §8.8.2.1).
    pub fn new(content_type: &'static str, len: u64, seconds: i64, etag: ETag, now: u64) -> Representation {
        let modified = u64::try_from(seconds).ok().map(|seconds| seconds.min(now));
        let mut entry = Representation {
            len,
            content_type,
            validators: Validators { etag, modified },
            ok: Head::new(Status::OK, |head| head),
            not_modified: Head::new(Status::NOT_MODIFIED, |head| head.field("ETag", etag.as_bytes())),
        };
        entry.ok = Head::new(Status::OK, |head| {
            let head = head.field("Content-Type", content_type.as_bytes()).number("Content-Length", len);
            entry.validator_fields(head)
        });
        entry
    }

    /// The file's length in bytes.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether the file is empty.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The file's entity tag and modification time.
    pub fn validators(&self) -> &Validators {
        &self.validators
    }

    /// Answers a `GET` or `HEAD` request for this file: appends the head, or the whole reply if no
    /// byte of the file is part of it.
    ///
    /// # Complexity
    /// A request without conditions and ranges costs one branch, one copy of the head and one of
    /// the date; nothing is allocated unless `out` has to grow. Ranges allocate.
    #[inline]
    pub fn answer(
        &self,
        request: &Request<'_>,
        persistence: Persistence,
        clock: &Clock,
        out: &mut Vec<u8>,
    ) -> Answer {
        if request.conditional {
            return self.answer_conditional(request, persistence, clock, out);
        }
        self.whole(request.method, persistence, clock, out)
    }

    #[inline]
    fn whole(&self, method: Method, persistence: Persistence, clock: &Clock, out: &mut Vec<u8>) -> Answer {
        self.ok.put(persistence, clock, out);
        if method == Method::Head || self.len == 0 {
            return Answer { status: Status::OK, content: Content::Nothing, content_bytes: 0 };
        }
        let content = Content::Span(Span { start: 0, end: self.len });
        Answer { status: Status::OK, content, content_bytes: self.len }
    }

    #[cold]
    fn answer_conditional(
        &self,
        request: &Request<'_>,
        persistence: Persistence,
        clock: &Clock,
        out: &mut Vec<u8>,
    ) -> Answer {
        let page = |status, extra, out: &mut Vec<u8>| {
            let content_bytes = error_page::put(status, extra, request.method, persistence, clock, out);
            Answer { status, content: Content::Nothing, content_bytes }
        };
        let ranges = match evaluate(request, &self.validators, clock.second()) {
            Outcome::Whole => return self.whole(request.method, persistence, clock, out),
            Outcome::PreconditionFailed => return page(Status::PRECONDITION_FAILED, Extra::None, out),
            Outcome::NotModified => {
                self.not_modified.put(persistence, clock, out);
                return Answer { status: Status::NOT_MODIFIED, content: Content::Nothing, content_bytes: 0 };
            }
            Outcome::Ranges(ranges) => ranges,
        };
        let status = Status::PARTIAL_CONTENT;
        match ranges.resolve(self.len) {
            Resolved::Whole => self.whole(request.method, persistence, clock, out),
            Resolved::NotSatisfiable => page(Status::RANGE_NOT_SATISFIABLE, Extra::Length(self.len), out),
            Resolved::One(span) => {
                let head = Writer::begin(status, clock, out)
                    .field("Content-Type", self.content_type.as_bytes())
                    .field_with("Content-Range", |out| put_content_range(span, self.len, out))
                    .number("Content-Length", span.len());
                self.validator_fields(head).end(persistence);
                Answer { status, content: Content::Span(span), content_bytes: span.len() }
            }
            Resolved::Many(spans) => {
                let parts = Parts::new(spans, self.content_type, self.len);
                let content_bytes = parts.content_length();
                let head = Writer::begin(status, clock, out)
                    .field_with("Content-Type", |out| {
                        out.extend_from_slice(b"multipart/byteranges; boundary=");
                        out.extend_from_slice(parts.boundary());
                    })
                    .number("Content-Length", content_bytes);
                self.validator_fields(head).end(persistence);
                Answer { status, content: Content::Parts(parts), content_bytes }
            }
        }
    }

    fn validator_fields<'o>(&self, mut head: Writer<'o>) -> Writer<'o> {
        if let Some(modified) = self.validators.modified {
            head = head.field("Last-Modified", &date::http(modified));
        }
        head.field("ETag", self.validators.etag.as_bytes()).field("Accept-Ranges", b"bytes")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::{Limits, parse};

    fn head(seconds: i64, now: u64) -> String {
        let entry =
            Representation::new("text/plain", 3, seconds, ETag::of_file(7, (seconds, 0), 3, now), now);
        let request = parse(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &Limits::default()).unwrap().unwrap();
        let mut out = Vec::new();
        entry.answer(&request, Persistence::Implied, &Clock::at(now), &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn last_modified_is_never_in_the_future_nor_before_1970() {
        assert!(head(0, 9).contains("\r\nLast-Modified: Thu, 01 Jan 1970 00:00:00 GMT\r\n"));
        assert!(head(99, 9).contains("\r\nLast-Modified: Thu, 01 Jan 1970 00:00:09 GMT\r\n"));
        assert!(!head(-1, 9).contains("Last-Modified"));
    }

    #[test]
    fn a_plain_answer_allocates_nothing_in_a_buffer_that_is_large_enough() {
        let entry = Representation::new("text/plain", 3, 0, ETag::of_file(7, (0, 0), 3, 9), 9);
        let request = parse(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n", &Limits::default()).unwrap().unwrap();
        let mut out = Vec::with_capacity(entry.ok.len());
        let buffer = out.as_ptr();
        let answer = entry.answer(&request, Persistence::Implied, &Clock::at(9), &mut out);
        assert_eq!((out.as_ptr(), out.len()), (buffer, entry.ok.len()));
        assert!(matches!(answer.content, Content::Span(Span { start: 0, end: 3 })));
    }
}
