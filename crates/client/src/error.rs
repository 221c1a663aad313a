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
    kind: ErrorCause,
    source: Option<Box<dyn StdError + Send + Sync>>,
}

/// The cause of an [`Error`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ErrorCause {
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
    pub(crate) fn new(kind: ErrorCause) -> Error {
        Error { kind, source: None }
    }

    pub(crate) fn from_io(kind: ErrorCause, error: io::Error) -> Error {
        Error { kind, source: Some(error.into()) }
    }

    pub(crate) fn with(kind: ErrorCause, error: impl Into<Box<dyn StdError + Send + Sync>>) -> Error {
        Error { kind, source: Some(error.into()) }
    }

    /// Whether no connection could be made: the server has seen nothing of the request.
    pub fn is_connect(&self) -> bool {
        self.kind == ErrorCause::Connect
    }

    /// Whether a time limit has passed.
    pub fn is_timeout(&self) -> bool {
        let source = self.source.as_ref().and_then(|source| source.downcast_ref::<io::Error>());
        source.is_some_and(|error| error.kind() == io::ErrorKind::TimedOut)
    }

    /// Whether the connection broke before a byte of the answer came. The server may have acted on
    /// the request, or may have seen nothing of it.
    pub fn is_unanswered(&self) -> bool {
        matches!(self.kind, ErrorCause::Unanswered | ErrorCause::Send)
    }

    /// Whether what came is not HTTP, or is ambiguous.
    pub fn is_malformed(&self) -> bool {
        matches!(self.kind, ErrorCause::Malformed(_) | ErrorCause::BodyFraming(_))
    }

    /// Whether the request's own body is at fault: it failed, or had another length than it said.
    pub fn is_request_body(&self) -> bool {
        self.kind == ErrorCause::RequestBody
    }

    /// Whether the body of the answer is larger than the caller takes.
    pub fn is_too_large(&self) -> bool {
        self.kind == ErrorCause::TooLarge
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            ErrorCause::Request(text) => text,
            ErrorCause::Connect => "no connection to the server",
            ErrorCause::Send => "the request could not be sent",
            ErrorCause::RequestBody => "the body of the request failed",
            ErrorCause::Unanswered => "the server closed the connection without an answer",
            ErrorCause::Head => "the connection broke within the head of the answer",
            ErrorCause::Malformed(malformed) => malformed.text(),
            ErrorCause::Body => "the body of the answer broke off",
            ErrorCause::BodyFraming(_) => "the body of the answer is framed wrongly",
            ErrorCause::TooLarge => "the body of the answer is too large",
            ErrorCause::Redirects => "the server redirects too often",
            ErrorCause::NotText => "the body of the answer is no UTF-8",
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
            ErrorCause::Request(_) => io::ErrorKind::InvalidInput,
            ErrorCause::Connect => io::ErrorKind::ConnectionRefused,
            ErrorCause::Unanswered | ErrorCause::Send => io::ErrorKind::ConnectionReset,
            ErrorCause::Head | ErrorCause::Body => io::ErrorKind::UnexpectedEof,
            ErrorCause::Malformed(_) | ErrorCause::BodyFraming(_) | ErrorCause::NotText => {
                io::ErrorKind::InvalidData
            }
            ErrorCause::TooLarge => io::ErrorKind::FileTooLarge,
            ErrorCause::RequestBody | ErrorCause::Redirects => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
