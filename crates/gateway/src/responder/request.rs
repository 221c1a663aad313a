//! A request from its meta-variables, and the head of an answer as a program writes it. No I/O.

use http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderName, HeaderValue, Method, Uri, response};
use selvedge_handler::{Authenticated, Body, Caller, Request};

/// The request that the variables describe, without its body, and the length of the body.
///
/// # Errors
/// What is missing or wrong.
pub(crate) fn request<'v>(
    variables: impl Iterator<Item = (&'v [u8], &'v [u8])>,
) -> Result<(Request, u64), &'static str> {
    let mut request = Request::new(Body::empty());
    let (mut target, mut script, mut info, mut query) = (None, &b""[..], &b""[..], &b""[..]);
    let (mut length, mut peer, mut scheme, mut user) = (0, None, None, None);
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    for (name, value) in variables {
        match name {
            b"REQUEST_METHOD" => {
                *request.method_mut() = Method::from_bytes(value).map_err(|_| "the method is none")?;
            }
            b"REQUEST_URI" if value.starts_with(b"/") => target = Some(value),
            b"SCRIPT_NAME" => script = value,
            b"PATH_INFO" => info = value,
            b"QUERY_STRING" => query = value,
            b"CONTENT_LENGTH" if value.is_empty() => {}
            b"CONTENT_LENGTH" => {
                let number = std::str::from_utf8(value).ok().and_then(|text| text.parse().ok());
                length = number.ok_or("the length of the body is no number")?;
                request.headers_mut().insert(CONTENT_LENGTH, length.into());
            }
            b"CONTENT_TYPE" if !value.is_empty() => {
                let kind = HeaderValue::from_bytes(value).map_err(|_| "the type of the body is none")?;
                request.headers_mut().insert(CONTENT_TYPE, kind);
            }
            b"REMOTE_ADDR" => peer = text(value).parse().ok(),
            b"AUTH_TYPE" if !value.is_empty() => scheme = Some(text(value)),
            b"REMOTE_USER" if !value.is_empty() => user = Some(text(value)),
            _ => {
                if let Some(name) = name.strip_prefix(b"HTTP_")
                    && name != b"CONTENT_LENGTH"
                    && name != b"CONTENT_TYPE"
                {
                    let name: Vec<u8> =
                        name.iter().map(|byte| if *byte == b'_' { b'-' } else { *byte }).collect();
                    let name = HeaderName::from_bytes(&name).map_err(|_| "a field has no valid name")?;
                    let value = HeaderValue::from_bytes(value).map_err(|_| "a field has no valid value")?;
                    request.headers_mut().append(name, value);
                }
            }
        }
    }
    *request.uri_mut() = match target {
        Some(target) => Uri::try_from(target),
        None => {
            let path = [encoded(script), encoded(info)].concat();
            let path = if path.starts_with('/') { path } else { format!("/{path}") };
            let query = if query.is_empty() { String::new() } else { format!("?{}", text(query)) };
            Uri::try_from(format!("{path}{query}"))
        }
    }
    .map_err(|_| "the target is none")?;
    request.extensions_mut().insert(Caller::new(peer));
    if let (Some(scheme), Some(user)) = (scheme, user) {
        request.extensions_mut().insert(Authenticated { scheme, user });
    }
    Ok((request, length))
}

/// A path that was decoded, encoded again.
fn encoded(path: &[u8]) -> String {
    let mut text = String::with_capacity(path.len());
    for &byte in path {
        if byte.is_ascii_alphanumeric() || b"/-._~!$&'()*+,;=:@".contains(&byte) {
            text.push(byte.into());
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
    }
    text
}

/// Appends the head of an answer, as a program writes it (RFC 3875 §6).
pub(crate) fn put_head(parts: &response::Parts, length: Option<u64>, out: &mut Vec<u8>) {
    let reason = parts.status.canonical_reason().unwrap_or_default();
    out.extend_from_slice(format!("Status: {} {reason}\r\n", parts.status.as_str()).as_bytes());
    let mut put = |name: &str, value: &[u8]| {
        out.extend_from_slice(name.as_bytes());
        out.extend_from_slice(b": ");
        out.extend_from_slice(value);
        out.extend_from_slice(b"\r\n");
    };
    for (name, value) in &parts.headers {
        let is_of_the_server =
            matches!(name.as_str(), "connection" | "keep-alive" | "transfer-encoding" | "status");
        if !(is_of_the_server || *name == CONTENT_LENGTH && length.is_some()) {
            put(name.as_str(), value.as_bytes());
        }
    }
    let has_body =
        parts.status != http::StatusCode::NO_CONTENT && parts.status != http::StatusCode::NOT_MODIFIED;
    if let Some(length) = length.filter(|_| has_body) {
        put("Content-Length", length.to_string().as_bytes());
    }
    out.extend_from_slice(b"\r\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<(Request, u64), &'static str> {
        request(variables.iter().map(|(name, value)| (name.as_bytes(), value.as_bytes())))
    }

    #[test]
    fn a_request_has_what_the_variables_say() {
        let (request, length) = of(&[
            ("REQUEST_METHOD", "POST"),
            ("REQUEST_URI", "/a%20b?c=d"),
            ("CONTENT_LENGTH", "4"),
            ("CONTENT_TYPE", "text/cloth"),
            ("REMOTE_ADDR", "192.0.2.7"),
            ("HTTP_X_OWN", "warp"),
            ("HTTP_CONTENT_LENGTH", "9"),
            ("AUTH_TYPE", "Basic"),
            ("REMOTE_USER", "ada"),
            ("SERVER_NAME", "loom"),
        ])
        .unwrap();
        assert_eq!(
            (request.method(), request.uri().to_string(), length),
            (&Method::POST, "/a%20b?c=d".into(), 4)
        );
        assert_eq!((request.headers().len(), request.headers()["x-own"].as_bytes()), (3, &b"warp"[..]));
        let caller = request.extensions().get::<Caller>().unwrap();
        assert_eq!(caller.peer(), Some("192.0.2.7".parse().unwrap()));
        assert_eq!(request.extensions().get::<Authenticated>().unwrap().user, "ada");
    }

    #[test]
    fn without_a_target_the_decoded_path_is_encoded_again() {
        let (request, _) =
            of(&[("SCRIPT_NAME", "/a b"), ("PATH_INFO", "/c?d\u{e9}"), ("QUERY_STRING", "e=f")]).unwrap();
        assert_eq!(request.uri().to_string(), "/a%20b/c%3Fd%C3%A9?e=f");
    }

    #[test]
    fn what_is_wrong_is_told() {
        for wrong in [
            ("REQUEST_METHOD", "a b"),
            ("CONTENT_LENGTH", "x"),
            ("HTTP_A", "b\nc"),
            ("REQUEST_URI", "/\u{1}"),
        ] {
            assert!(of(&[wrong]).is_err(), "{wrong:?}");
        }
    }
}
