//! [`FramingFields`]: what `Content-Length` and `Transfer-Encoding` say about the length of a body.
//!
//! The parser of requests (`request.rs`) uses it, and so does a client's parser of answers. It
//! takes each choice that RFC 9112 §6.3 leaves for refusal, because a message that two readers
//! could frame differently is the way to smuggle a second message in its body.

use crate::body::Framing;
use crate::request::Version;
use crate::status::Status;

/// What the two fields have said so far. The parser of a head gives it each line of them.
///
/// # Examples
/// ```
/// use selvedge::http::body::Framing;
/// use selvedge::http::framing_fields::FramingFields;
/// use selvedge::http::request::Version;
///
/// let mut fields = FramingFields::default();
/// fields.content_length(b"12")?;
/// assert_eq!(fields.framing(Version::Http11), Ok(Some(Framing::Length(12))));
/// fields.transfer_encoding(b"chunked")?;
/// assert!(fields.framing(Version::Http11).is_err(), "which of the two is true?");
/// # Ok::<(), selvedge::http::status::Status>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct FramingFields {
    length: Option<u64>,
    length_lines: u32,
    transfer: bool,
    chunked: bool,
    other_coding: bool,
}

impl FramingFields {
    /// Takes the value of a line `Content-Length`.
    ///
    /// # Errors
    /// 400 if it is no plain number, 413 if the number has more than 64 bits.
    #[inline]
    pub fn content_length(&mut self, value: &[u8]) -> Result<(), Status> {
        self.length_lines += 1;
        self.length = Some(content_length(value)?);
        Ok(())
    }

    /// Takes the value of a line `Transfer-Encoding`.
    ///
    /// # Errors
    /// 400 if a coding is empty, or comes behind `chunked`.
    pub fn transfer_encoding(&mut self, value: &[u8]) -> Result<(), Status> {
        self.transfer = true;
        for coding in value.split(|&byte| byte == b',') {
            if coding.trim_ascii().eq_ignore_ascii_case(b"chunked") && !self.chunked {
                self.chunked = true;
            } else if self.chunked || coding.trim_ascii().is_empty() {
                return Err(Status::BAD_REQUEST);
            } else {
                self.other_coding = true;
            }
        }
        Ok(())
    }

    /// The framing that all lines together name, if they name one.
    ///
    /// # Errors
    /// 400 if they contradict each other: two lengths, a length and a coding, a coding in HTTP/1.0,
    /// or codings that do not end in `chunked`. 501 for a coding besides `chunked`.
    #[inline]
    pub fn framing(&self, version: Version) -> Result<Option<Framing>, Status> {
        if self.length_lines > 1 {
            return Err(Status::BAD_REQUEST);
        }
        if !self.transfer {
            return Ok(self.length.map(Framing::Length));
        }
        if self.length.is_some() || version == Version::Http10 || !self.chunked {
            return Err(Status::BAD_REQUEST);
        }
        if self.other_coding { Err(Status::NOT_IMPLEMENTED) } else { Ok(Some(Framing::Chunked)) }
    }
}

/// Reads the value of one line `Content-Length`: digits, and nothing else (RFC 9110 §8.6).
///
/// # Errors
/// 400 if it is no plain number, 413 if the number has more than 64 bits: it is too large
/// whatever the limit.
///
/// # Complexity
/// Two passes over the value.
///
/// # Examples
/// ```
/// use selvedge::http::framing_fields::content_length;
/// use selvedge::http::status::Status;
///
/// assert_eq!(content_length(b"012"), Ok(12));
/// assert_eq!(content_length(b"+12"), Err(Status::BAD_REQUEST));
/// ```
#[inline]
pub fn content_length(value: &[u8]) -> Result<u64, Status> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return Err(Status::BAD_REQUEST);
    }
    value
        .iter()
        .try_fold(0u64, |n, digit| n.checked_mul(10)?.checked_add(u64::from(digit - b'0')))
        .ok_or(Status::CONTENT_TOO_LARGE)
}
