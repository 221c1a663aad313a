//! Where a redirect leads, and what the next request is. No I/O.

use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE, COOKIE, HOST, LOCATION};
use http::request::Parts;
use http::{HeaderMap, Method, StatusCode, Uri};

/// The URI that an answer redirects to, if it does. `None` too for a location that is no URI.
pub(crate) fn target(status: StatusCode, fields: &HeaderMap, base: &Uri) -> Option<Uri> {
    if !matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308) {
        return None;
    }
    resolve(base, fields.get(LOCATION)?.to_str().ok()?)
}

/// Turns `parts` into the request that follows a redirect to `target`. Returns whether the body
/// is sent again.
///
/// `POST` becomes `GET` after 301 and 302, and every method but `HEAD` does after 303, as browsers
/// do it (RFC 9110 §15.4). Fields with secrets stay with their server.
pub(crate) fn follow(parts: &mut Parts, status: StatusCode, target: Uri) -> bool {
    let is_get = match status.as_u16() {
        301 | 302 => parts.method == Method::POST,
        303 => parts.method != Method::HEAD,
        _ => false,
    };
    if is_get {
        parts.method = Method::GET;
        parts.headers.remove(CONTENT_TYPE);
        parts.headers.remove(CONTENT_ENCODING);
    }
    if target.authority() != parts.uri.authority() {
        parts.headers.remove(AUTHORIZATION);
        parts.headers.remove(COOKIE);
        parts.headers.remove(HOST);
    }
    parts.uri = target;
    !is_get
}

/// RFC 3986 §5.2.2, for a base of the scheme `http`. A fragment is dropped.
fn resolve(base: &Uri, reference: &str) -> Option<Uri> {
    let reference = reference.split('#').next().unwrap_or_default();
    let has_scheme = reference.split(['/', '?']).next().is_some_and(|start| start.contains(':'));
    if has_scheme {
        return reference.parse().ok();
    }
    if reference.starts_with("//") {
        return format!("{}:{reference}", base.scheme_str()?).parse().ok();
    }
    let (path, query) = match reference.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (reference, None),
    };
    let (path, query) = match path {
        "" => (base.path().to_owned(), query.or(base.query())),
        _ if path.starts_with('/') => (without_dots(path), query),
        _ => {
            let directory = base.path().rsplit_once('/').map_or("", |(directory, _)| directory);
            (without_dots(&format!("{directory}/{path}")), query)
        }
    };
    let path = if path.is_empty() { "/" } else { &path };
    let query = query.map_or(String::new(), |query| format!("?{query}"));
    format!("{}://{}{path}{query}", base.scheme_str()?, base.authority()?).parse().ok()
}

/// RFC 3986 §5.2.4, for a path that begins with a slash.
fn without_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.split('/').skip(1).peekable();
    while let Some(part) = parts.next() {
        let is_last = parts.peek().is_none();
        match part {
            "." | ".." => {
                if part == ".." {
                    kept.pop();
                }
                if is_last {
                    kept.push("");
                }
            }
            _ => kept.push(part),
        }
    }
    format!("/{}", kept.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    #[test]
    fn references_of_the_standard() {
        // The examples of RFC 3986 §5.4 that a path of `http` can have.
        let base: Uri = "http://a/b/c/d;p?q".parse().unwrap();
        for (reference, resolved) in [
            ("g", "http://a/b/c/g"),
            ("./g", "http://a/b/c/g"),
            ("g/", "http://a/b/c/g/"),
            ("/g", "http://a/g"),
            ("//g", "http://g/"),
            ("?y", "http://a/b/c/d;p?y"),
            ("g?y", "http://a/b/c/g?y"),
            ("g#s", "http://a/b/c/g"),
            ("", "http://a/b/c/d;p?q"),
            (".", "http://a/b/c/"),
            ("./", "http://a/b/c/"),
            ("..", "http://a/b/"),
            ("../g", "http://a/b/g"),
            ("../..", "http://a/"),
            ("../../g", "http://a/g"),
            ("../../../g", "http://a/g"),
            ("/./g", "http://a/g"),
            ("/../g", "http://a/g"),
            ("g.", "http://a/b/c/g."),
            ("./g/.", "http://a/b/c/g/"),
            ("g/../h", "http://a/b/c/h"),
            ("g;x=1/../y", "http://a/b/c/y"),
            ("g?y/../x", "http://a/b/c/g?y/../x"),
            ("http://b:81/c", "http://b:81/c"),
        ] {
            let uri = resolve(&base, reference).map(|uri| uri.to_string());
            assert_eq!(uri.as_deref(), Some(resolved), "{reference}");
        }
    }

    #[test]
    fn methods_and_secrets() {
        let follow_to = |method: Method, status: u16, target: &str| {
            let request = Request::builder()
                .method(method)
                .uri("http://a/")
                .header("Authorization", "secret")
                .header("Content-Type", "text/plain");
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            let status = StatusCode::from_u16(status).unwrap();
            let again = follow(&mut parts, status, target.parse().unwrap());
            (parts.method, again, parts.headers.contains_key("authorization"))
        };
        assert_eq!(follow_to(Method::POST, 301, "http://a/b"), (Method::GET, false, true));
        assert_eq!(follow_to(Method::PUT, 302, "http://a/b"), (Method::PUT, true, true));
        assert_eq!(follow_to(Method::PUT, 303, "http://a/b"), (Method::GET, false, true));
        assert_eq!(follow_to(Method::HEAD, 303, "http://a/b"), (Method::HEAD, true, true));
        assert_eq!(follow_to(Method::POST, 307, "http://b/"), (Method::POST, true, false));
        assert_eq!(follow_to(Method::POST, 308, "http://a:81/"), (Method::POST, true, false));
    }
}
