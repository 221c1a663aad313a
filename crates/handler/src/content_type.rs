//! [`ContentType`]: a media type, as the value of a field and as a line of a head.

use crate::{Body, PlainAnswer, PlainContent, PlainOutcome, Response, StatusCode};
use http::HeaderValue;
use http::header::CONTENT_TYPE;
use std::borrow::Cow;

/// The type of an answer's content. It is written down once, as a value and as a line, because a
/// value that is checked for each answer costs more than the answer's head.
#[derive(Debug)]
pub struct ContentType {
    value: HeaderValue,
    line: &'static str,
}

macro_rules! content_type {
    ($value:literal) => {
        ContentType {
            value: HeaderValue::from_static($value),
            line: concat!("content-type: ", $value, "\r\n"),
        }
    };
}

static TEXT: ContentType = content_type!("text/plain; charset=utf-8");
static BYTES: ContentType = content_type!("application/octet-stream");
static HTML: ContentType = content_type!("text/html; charset=utf-8");
static JSON: ContentType = content_type!("application/json");

impl ContentType {
    /// `text/plain; charset=utf-8`
    pub fn text() -> &'static ContentType {
        &TEXT
    }

    /// `application/octet-stream`
    pub fn bytes() -> &'static ContentType {
        &BYTES
    }

    /// `text/html; charset=utf-8`
    pub fn html() -> &'static ContentType {
        &HTML
    }

    /// `application/json`
    pub fn json() -> &'static ContentType {
        &JSON
    }

    /// `200 OK` with content of this type.
    pub fn response(&self, content: Body) -> Response {
        let mut response = Response::new(content);
        response.headers_mut().insert(CONTENT_TYPE, self.value.clone());
        response
    }

    /// [`response`](Self::response) as bytes.
    pub fn plain(&self, content: impl Into<PlainContent>) -> PlainOutcome {
        PlainOutcome::Plain(PlainAnswer {
            status: StatusCode::OK,
            lines: Cow::Borrowed(self.line.as_bytes()),
            names_server: false,
            names_date: false,
            content: content.into(),
        })
    }
}
