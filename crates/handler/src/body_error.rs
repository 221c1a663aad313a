//! [`BodyError`]: why a body ended before its end.

use http::StatusCode;
use std::error::Error;
use std::fmt;
use std::io;

/// Why a body could not be read, or could not be made, to its end.
pub struct BodyError {
    cause: Cause,
    source: Option<Box<dyn Error + Send + Sync>>,
}

/// The kinds of [`BodyError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Cause {
    /// The framing of the body has an error.
    Malformed,
    /// The body has more bytes than allowed.
    TooLarge,
    /// The trailers, or the extensions of chunks, have more bytes than allowed.
    FieldsTooLarge,
    /// The peer sent nothing for too long.
    TimedOut,
    /// The peer closed or broke the connection before the end.
    Disconnected,
    /// The code that makes the body failed.
    Failed,
}

impl BodyError {
    /// An error without a further source.
    pub fn new(cause: Cause) -> BodyError {
        BodyError { cause, source: None }
    }

    /// The code that makes the body failed with `source`.
    pub fn failed(source: impl Into<Box<dyn Error + Send + Sync>>) -> BodyError {
        let source = source.into();
        // An error of a body within a body stays what it is.
        match source.downcast::<BodyError>() {
            Ok(error) => *error,
            Err(source) => BodyError { cause: Cause::Failed, source: Some(source) },
        }
    }

    /// The kind of the error.
    pub fn cause(&self) -> Cause {
        self.cause
    }

    /// The status with which a handler answers a request with such a body: 400, 408, 413 or 431 if
    /// the client is at fault, 500 otherwise.
    pub fn status(&self) -> StatusCode {
        match self.cause {
            Cause::Malformed | Cause::Disconnected => StatusCode::BAD_REQUEST,
            Cause::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Cause::FieldsTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Cause::TimedOut => StatusCode::REQUEST_TIMEOUT,
            Cause::Failed => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl fmt::Display for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.cause {
            Cause::Malformed => "the body is malformed",
            Cause::TooLarge => "the body is too large",
            Cause::FieldsTooLarge => "the trailers of the body are too large",
            Cause::TimedOut => "the body took too long",
            Cause::Disconnected => "the connection ended within the body",
            Cause::Failed => "the body could not be made",
        })?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl fmt::Debug for BodyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Error for BodyError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_deref().map(|source| source as &(dyn Error + 'static))
    }
}

impl From<io::Error> for BodyError {
    /// An error of the connection, or of a file that is the body.
    fn from(error: io::Error) -> BodyError {
        let cause = match error.kind() {
            io::ErrorKind::TimedOut => Cause::TimedOut,
            io::ErrorKind::UnexpectedEof
            | io::ErrorKind::ConnectionReset
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::BrokenPipe => Cause::Disconnected,
            _ => Cause::Failed,
        };
        BodyError { cause, source: Some(error.into()) }
    }
}

impl From<BodyError> for io::Error {
    fn from(error: BodyError) -> io::Error {
        let kind = match error.cause {
            Cause::Malformed => io::ErrorKind::InvalidData,
            Cause::TooLarge | Cause::FieldsTooLarge => io::ErrorKind::FileTooLarge,
            Cause::TimedOut => io::ErrorKind::TimedOut,
            Cause::Disconnected => io::ErrorKind::UnexpectedEof,
            Cause::Failed => io::ErrorKind::Other,
        };
        io::Error::new(kind, error)
    }
}
