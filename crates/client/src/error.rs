//! [`Error`]: why there is no answer, or not all of one.

use crate::answer_head::Malformed;
use selvedge_http::status::Status;
use std::error::Error as StdError;
use std::fmt;
use std::io;

/// Why there is no answer, or why its body broke off.
///
/// A program asks by the methods `is_..` what to do. The text names the cause.
#[derive(Debug)]
pub struct Error {
    kind: Kind,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The cause of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// The request cannot be sent at all.
    Request(&'static str),
    Connect,
    /// The request could not be written.
    Send,
    /// The body of the request failed, or had another length than it said.
    RequestBody,
    /// The connection ended before a byte of the answer.
    Unanswered,
    /// The connection ended within the head.
    Head,
    Malformed(Malformed),
    /// The body of the answer broke off.
    Body,
    /// The framing of the body has an error.
    BodyFraming(Status),
    /// The body is larger than the caller takes.
    TooLarge,
    /// More redirects than allowed.
    Redirects,
    NotText,
}

impl Error {
    pub(crate) fn new(kind: Kind) -> Error {
        Error { kind, source: None }
    }

    pub(crate) fn from_io(kind: Kind, error: io::Error) -> Error {
        Error { kind, source: Some(error.into()) }
    }

    pub(crate) fn with(kind: Kind, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error { kind, source: Some(error.into()) }
    }

    /// Whether no connection could be made: the server has seen nothing of the request.
    pub fn is_connect(&self) -> bool {
        self.kind == Kind::Connect
    }

    /// Whether a time limit has passed.
    pub fn is_timeout(&self) -> bool {
        let source = self.source.as_ref().and_then(|source| source.downcast_ref::<io::Error>());
        source.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
    }

    /// Whether the connection broke before a byte of the answer came. The server may have acted on
    /// the request, or may have seen nothing of it.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.kind, Kind::Unanswered | Kind::Send)
    }

    /// Whether what came is not HTTP, or is ambiguous.
    pub fn is_malformed(&self) -> bool {
        matches!(self.kind, Kind::Malformed(_) | Kind::BodyFraming(_))
    }

    /// Whether the request's own body is at fault: it failed, or had another length than it said.
    pub fn is_request_body(&self) -> bool {
        self.kind == Kind::RequestBody
    }

    /// Whether the body of the answer is larger than the caller takes.
    pub fn is_too_large(&self) -> bool {
        self.kind == Kind::TooLarge
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Request(text) => text,
            Kind::Connect => "no connection to the server",
            Kind::Send => "the request could not be sent",
            Kind::RequestBody => "the body of the request failed",
            Kind::Unanswered => "the server closed the connection without an answer",
            Kind::Head => "the connection broke within the head of the answer",
            Kind::Malformed(malformed) => malformed.text(),
            Kind::Body => "the body of the answer broke off",
            Kind::BodyFraming(_) => "the body of the answer is framed wrongly",
            Kind::TooLarge => "the body of the answer is too large",
            Kind::Redirects => "the server redirects too often",
            Kind::NotText => "the body of the answer is no UTF-8",
        })?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl StdError for Error {
    fn source(&self) -> Option<&(dyn StdError + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn StdError + 'static))
    }
}

impl From<Error> for io::Error {
    fn from(error: Error) -> io::Error {
        let kind = match error.kind {
            _ if error.is_timeout() => io::ErrorKind::TimedOut,
            Kind::Request(_) => io::ErrorKind::InvalidInput,
            Kind::Connect => io::ErrorKind::ConnectionRefused,
            Kind::Unanswered | Kind::Send => io::ErrorKind::ConnectionReset,
            Kind::Head | Kind::Body => io::ErrorKind::UnexpectedEof,
            Kind::Malformed(_) | Kind::BodyFraming(_) | Kind::NotText => io::ErrorKind::InvalidData,
            Kind::TooLarge => io::ErrorKind::FileTooLarge,
            Kind::RequestBody | Kind::Redirects => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
