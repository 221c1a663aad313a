//! The trailer section behind a chunked body: its fields, and which of them count.
//!
//! [`Decoder`](crate::body::Decoder) gives the section in pieces. A server reads the section of a
//! request with [`parse`], a client that of an answer.

use crate::request::FIELDS_MAX;
use crate::status::Status;
use http::HeaderMap;
use http::header::{
    CONNECTION, CONTENT_LENGTH, HOST, HeaderName, HeaderValue, TE, TRAILER, TRANSFER_ENCODING,
};

/// The fields of a whole trailer section, with the empty line at its end. `None` if there are none;
/// an empty section is that of a body with a length.
///
/// # Errors
/// 400 if a line is no field, 431 if there are too many.
///
/// # Examples
/// ```
/// use selvedge::http::trailers;
///
/// let fields = trailers::parse(b"Sum: 9\r\nHost: b\r\n\r\n")?.unwrap();
/// assert_eq!(fields.len(), 1);
/// assert_eq!(fields["sum"], "9");
/// # Ok::<(), selvedge::http::status::Status>(())
/// ```
pub fn parse(section: &[u8]) -> Result<Option<HeaderMap>, Status> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS_MAX];
    let fields = match httparse::parse_headers(section, &mut fields) {
        Ok(httparse::Status::Complete((_, fields))) => fields,
        Ok(httparse::Status::Partial) if section.is_empty() => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Status::FIELDS_TOO_LARGE),
        Ok(httparse::Status::Partial) | Err(_) => return Err(Status::BAD_REQUEST),
    };
    let mut map = HeaderMap::new();
    for field in fields {
        let name = HeaderName::from_bytes(field.name.as_bytes()).map_err(|_| Status::BAD_REQUEST)?;
        let value = HeaderValue::from_bytes(field.value).map_err(|_| Status::BAD_REQUEST)?;
        if counts(&name) {
            map.append(name, value);
        }
    }
    Ok((!map.is_empty()).then_some(map))
}

/// Whether a field may stand in a trailer section. Fields that concern the framing or the routing
/// of a message have no meaning there, and are dropped (RFC 9110 §6.5.1).
pub fn counts(name: &HeaderName) -> bool {
    ![CONNECTION, CONTENT_LENGTH, HOST, TE, TRAILER, TRANSFER_ENCODING].contains(name)
}
