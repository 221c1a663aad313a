//! [`Status`]: status codes and their reason phrases. All files that answer or refuse a request use
//! it. A new code is one line in the table, and its reason phrase is the registry's.

use crate::decimal;

/// A response status code (RFC 9110 §15).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Status(u16);

macro_rules! statuses {
    ($($name:ident $code:literal $reason:literal;)*) => {
        impl Status {
            $(#[doc = concat!("`", $code, " ", $reason, "`")] pub const $name: Status = Status($code);)*

            /// The status line after the version: code, space, reason phrase. For every constant of
            /// this type it is the phrase of the registry; `None` for codes this engine does not
            /// send.
            const fn known(self) -> Option<&'static str> {
                match self.0 {
                    $($code => Some(concat!($code, " ", $reason)),)*
                    _ => None,
                }
            }

            pub(crate) const ALL: &[Status] = &[$(Status($code)),*];
        }
    };
}

statuses! {
    OK 200 "OK";
    NO_CONTENT 204 "No Content";
    PARTIAL_CONTENT 206 "Partial Content";
    MOVED_PERMANENTLY 301 "Moved Permanently";
    FOUND 302 "Found";
    SEE_OTHER 303 "See Other";
    NOT_MODIFIED 304 "Not Modified";
    TEMPORARY_REDIRECT 307 "Temporary Redirect";
    PERMANENT_REDIRECT 308 "Permanent Redirect";
    BAD_REQUEST 400 "Bad Request";
    UNAUTHORIZED 401 "Unauthorized";
    FORBIDDEN 403 "Forbidden";
    NOT_FOUND 404 "Not Found";
    METHOD_NOT_ALLOWED 405 "Method Not Allowed";
    REQUEST_TIMEOUT 408 "Request Timeout";
    GONE 410 "Gone";
    PRECONDITION_FAILED 412 "Precondition Failed";
    CONTENT_TOO_LARGE 413 "Content Too Large";
    URI_TOO_LONG 414 "URI Too Long";
    RANGE_NOT_SATISFIABLE 416 "Range Not Satisfiable";
    EXPECTATION_FAILED 417 "Expectation Failed";
    MISDIRECTED_REQUEST 421 "Misdirected Request";
    TOO_MANY_REQUESTS 429 "Too Many Requests";
    FIELDS_TOO_LARGE 431 "Request Header Fields Too Large";
    UNAVAILABLE_FOR_LEGAL_REASONS 451 "Unavailable For Legal Reasons";
    INTERNAL_SERVER_ERROR 500 "Internal Server Error";
    NOT_IMPLEMENTED 501 "Not Implemented";
    BAD_GATEWAY 502 "Bad Gateway";
    SERVICE_UNAVAILABLE 503 "Service Unavailable";
    GATEWAY_TIMEOUT 504 "Gateway Timeout";
    VERSION_NOT_SUPPORTED 505 "HTTP Version Not Supported";
}

impl Status {
    /// The number, 100 to 999.
    pub const fn code(self) -> u16 {
        self.0
    }

    /// The status with this code, also one that the engine itself does not send: such a status has
    /// no [`line`](Self::line).
    pub(crate) const fn of_code(code: u16) -> Status {
        Status(code)
    }

    /// The status with this code, if the engine has a line for it.
    pub(crate) fn by_code(code: u16) -> Option<Status> {
        Status::ALL.iter().copied().find(|status| status.0 == code)
    }

    /// The three digits of the number.
    #[inline]
    pub(crate) fn digits(self) -> [u8; 3] {
        decimal::three(self.0)
    }

    /// Code and reason phrase as they stand in the status line, such as `404 Not Found`.
    pub const fn line(self) -> &'static str {
        match self.known() {
            Some(line) => line,
            None => panic!("a status is only made from the constants"),
        }
    }

    /// The reason phrase, such as `Not Found`.
    pub fn reason(self) -> &'static str {
        &self.line()[4..]
    }
}

impl std::fmt::Debug for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.line())
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.line())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_status_has_its_line() {
        for status in Status::ALL {
            assert_eq!(status.line(), format!("{} {}", status.code(), status.reason()));
        }
        assert_eq!(Status::NOT_FOUND.to_string(), "404 Not Found");
    }
}
