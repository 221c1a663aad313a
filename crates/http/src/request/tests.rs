//! The unit tests of `request.rs`, by the rule that a head is accepted or refused by: each refused
//! head is cut at every byte, because the answer must not depend on how a head arrives.

use super::*;
use proptest::prelude::*;

fn parsed(head: &[u8]) -> Result<Option<Request<'_>>, Status> {
    parse(head, &Limits::default())
}

fn complete(head: &str) -> Request<'_> {
    parsed(head.as_bytes()).unwrap_or_else(|status| panic!("{status}: {head:?}")).expect("a whole head")
}

/// The answer must not depend on how the head was cut: each prefix is incomplete or refused
/// likewise.
fn assert_refused(head: &[u8], status: Status) {
    assert_eq!(parsed(head), Err(status), "{:?}", String::from_utf8_lossy(head));
    for cut in 0..head.len() {
        let prefix = parsed(&head[..cut]);
        assert!(prefix == Ok(None) || prefix == Err(status), "cut at {cut}: {prefix:?}");
    }
}

#[test]
fn a_browser_request() {
    let head = "GET /docs/a%20b.html?x=1&y=? HTTP/1.1\r\nHost: example.org:8080\r\nuser-agent: Moz (X11)\r\n\
                ACCEPT: */*\r\nReferer:http://example.org/ \t\r\nConnection: Keep-Alive\r\nIf-None-Match: \"a\"\r\n\
                IF-NONE-MATCH: \"b\"\r\nIf-Modified-Since: x\r\nRange: bytes=0-1\r\nIf-Range: \"a\"\r\n\r\n";
    let request = complete(head);
    assert_eq!(request.method, Method::Get);
    assert_eq!((request.path, request.query), (&b"/docs/a%20b.html"[..], Some(&b"x=1&y=?"[..])));
    assert_eq!(request.version, Version::Http11);
    assert_eq!(request.host, Some(&b"example.org:8080"[..]));
    assert_eq!(request.user_agent, Some(&b"Moz (X11)"[..]));
    assert_eq!(request.referer, Some(&b"http://example.org/"[..]));
    assert_eq!(request.if_modified_since, Some(&b"x"[..]));
    assert_eq!((request.range, request.if_range), (Some(&b"bytes=0-1"[..]), Some(&b"\"a\""[..])));
    assert!(request.conditional && request.if_none_match && !request.if_match && request.keep_alive);
    assert_eq!(request.values("if-none-match").collect::<Vec<_>>(), [b"\"a\"", b"\"b\""]);
    assert_eq!(request.values("accept").collect::<Vec<_>>(), [b"*/*"]);
    assert_eq!(request.values("accep").count(), 0);
    assert_eq!(request.framing, Framing::None);
    assert_eq!(request.line, b"GET /docs/a%20b.html?x=1&y=? HTTP/1.1");
    assert_eq!((request.len, request.head), (head.len(), head.as_bytes()));
    for cut in 0..head.len() {
        assert_eq!(parsed(&head.as_bytes()[..cut]), Ok(None), "cut at {cut}");
    }
}

#[test]
fn targets() {
    for (line, path, query, host) in [
        ("GET / HTTP/1.1", "/", None, "h"),
        ("GET /? HTTP/1.1", "/", Some(""), "h"),
        ("GET //a//b HTTP/1.1", "//a//b", None, "h"),
        ("GET http://other.example:81/a?b HTTP/1.1", "/a", Some("b"), "other.example:81"),
        ("GET HTTPS://other.example HTTP/1.1", "/", None, "other.example"),
        ("GET http://other.example?b HTTP/1.1", "/", Some("b"), "other.example"),
        ("GET http://[::1]:80/ HTTP/1.1", "/", None, "[::1]:80"),
        ("OPTIONS * HTTP/1.1", "*", None, "h"),
        ("OPTIONS http://other.example HTTP/1.1", "*", None, "other.example"),
        ("OPTIONS http://other.example/ HTTP/1.1", "/", None, "other.example"),
    ] {
        let head = format!("{line}\r\nHost: h\r\n\r\n");
        let request = complete(&head);
        assert_eq!((request.path, request.query), (path.as_bytes(), query.map(str::as_bytes)), "{line}");
        assert_eq!(request.host, Some(host.as_bytes()), "{line}");
        assert_eq!(request.is_asterisk(), path == "*");
    }
    for (line, status) in [
        ("GET * HTTP/1.1", 400),
        ("GET a HTTP/1.1", 400),
        ("GET other.example:80 HTTP/1.1", 400),
        ("GET /a#b HTTP/1.1", 400),
        ("GET http:///a HTTP/1.1", 400),
        ("GET http://user@other.example/ HTTP/1.1", 400),
        ("GET http://other.example:x/ HTTP/1.1", 400),
        ("GET http:/a HTTP/1.1", 400),
        ("GET ftp://other.example/a HTTP/1.1", 400),
        ("CONNECT other.example:443 HTTP/1.1", 501),
        ("GET  / HTTP/1.1", 400),
        ("GET /  HTTP/1.1", 400),
        ("GET / HTTP/1.1 ", 400),
        ("GET /a b HTTP/1.1", 400),
        ("GET\t/ HTTP/1.1", 400),
        (" GET / HTTP/1.1", 400),
        ("GET /\u{1} HTTP/1.1", 400),
        ("GET /\0 HTTP/1.1", 400),
        ("GET /", 400),
        ("GET", 400),
        ("G@T / HTTP/1.1", 400),
    ] {
        let head = format!("{line}\r\nHost: h\r\n\r\n");
        let status = Status::ALL.iter().copied().find(|known| known.code() == status).unwrap();
        assert_refused(head.as_bytes(), status);
    }
}

#[test]
fn methods() {
    for (name, method) in [
        ("GET", Method::Get),
        ("HEAD", Method::Head),
        ("POST", Method::Post),
        ("PUT", Method::Put),
        ("DELETE", Method::Delete),
        ("OPTIONS", Method::Options),
        ("TRACE", Method::Trace),
        ("PATCH", Method::Patch),
        ("get", Method::Other),
        ("PROPFIND", Method::Other),
    ] {
        assert_eq!(complete(&format!("{name} / HTTP/1.1\r\nHost: h\r\n\r\n")).method, method);
    }
    assert_refused(&[&[b'A'; 25][..], b" / HTTP/1.1\r\nHost: h\r\n\r\n"].concat(), Status::NOT_IMPLEMENTED);
}

#[test]
fn versions() {
    for version in ["1.2", "1.9"] {
        let head = format!("\r\nGET /a?b HTTP/{version}\r\nHost: h\r\nContent-Length: 3\r\n\r\n");
        let request = complete(&head);
        assert_eq!((request.version, request.path, request.len), (Version::Http11, &b"/a"[..], head.len()));
        assert_eq!(request.line, format!("GET /a?b HTTP/{version}").as_bytes());
        assert_eq!(request.framing, Framing::Length(3));
        for cut in 0..head.len() {
            assert_eq!(parsed(&head.as_bytes()[..cut]), Ok(None), "cut at {cut}");
        }
        let folded = format!("GET / HTTP/{version}\r\nHost: h\r\n a\r\n\r\n");
        assert_refused(folded.as_bytes(), Status::BAD_REQUEST);
        let bare = format!("GET / HTTP/{version}\nHost: h\r\n\r\n");
        assert_refused(bare.as_bytes(), Status::BAD_REQUEST);
    }
    for version in ["2.0", "0.9", "3.1"] {
        let head = format!("GET / HTTP/{version}\r\nHost: h\r\n\r\n");
        assert_refused(head.as_bytes(), Status::VERSION_NOT_SUPPORTED);
    }
    assert_refused(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Status::VERSION_NOT_SUPPORTED);
    for version in ["HTTP/1.10", "HTTP/11", "HTTP/1", "http/1.1", "HTTP/1.1x", "HTTP/a.b", "HTTPS/1.1", "x"] {
        assert_refused(format!("GET / {version}\r\nHost: h\r\n\r\n").as_bytes(), Status::BAD_REQUEST);
    }
}

#[test]
fn hosts() {
    for host in [
        "",
        "a",
        "a.b-c_d~1",
        "a:80",
        "a:",
        "127.0.0.1",
        "[::1]",
        "[::1]:8080",
        "xn--bcher-kva.example",
        "a%20b",
        "A,b",
    ] {
        let head = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(complete(&head).host, Some(host.as_bytes()));
    }
    for host in [
        ":80",
        "a b",
        "a/b",
        "a@b",
        "a:b",
        "a:80:80",
        "::1",
        "[::1",
        "[x]",
        "[::1]x",
        "a%2",
        "a%zz",
        "b\u{fc}cher",
        "a\\b",
        "a?b",
        "\"a\"",
        "<a>",
    ] {
        assert_refused(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n").as_bytes(), Status::BAD_REQUEST);
    }
    for fields in ["", "Accept: a\r\n", "Host: a\r\nHost: a\r\n", "Host: a\r\nhost: b\r\n"] {
        assert_refused(format!("GET / HTTP/1.1\r\n{fields}\r\n").as_bytes(), Status::BAD_REQUEST);
    }
    // An absolute target overrides `Host`, but does not excuse it.
    assert_refused(b"GET http://a/ HTTP/1.1\r\n\r\n", Status::BAD_REQUEST);
    assert_eq!(complete("GET / HTTP/1.0\r\n\r\n").host, None);
    assert_refused(b"GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n", Status::BAD_REQUEST);
}

#[test]
fn framing() {
    for (fields, framing) in [
        ("", Framing::None),
        ("Content-Length: 0", Framing::Length(0)),
        ("content-length:  0042 ", Framing::Length(42)),
        ("Transfer-Encoding: chunked", Framing::Chunked),
        ("TRANSFER-ENCODING: Chunked ", Framing::Chunked),
    ] {
        let end = if fields.is_empty() { "" } else { "\r\n" };
        assert_eq!(complete(&format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}{end}\r\n")).framing, framing);
    }
    for (fields, status) in [
        ("Content-Length: 5\r\nContent-Length: 5", Status::BAD_REQUEST),
        ("Content-Length: 5\r\nContent-Length: 6", Status::BAD_REQUEST),
        ("Content-Length: 5, 5", Status::BAD_REQUEST),
        ("Content-Length: +5", Status::BAD_REQUEST),
        ("Content-Length: -5", Status::BAD_REQUEST),
        ("Content-Length: 0x5", Status::BAD_REQUEST),
        ("Content-Length: 5 5", Status::BAD_REQUEST),
        ("Content-Length: 5;", Status::BAD_REQUEST),
        ("Content-Length:", Status::BAD_REQUEST),
        ("Content-Length: 18446744073709551616", Status::CONTENT_TOO_LARGE),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked", Status::BAD_REQUEST),
        ("Transfer-Encoding: chunked\r\nContent-Length: 5", Status::BAD_REQUEST),
        ("Transfer-Encoding: chunked, chunked", Status::BAD_REQUEST),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", Status::BAD_REQUEST),
        ("Transfer-Encoding: chunked, gzip", Status::BAD_REQUEST),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: identity", Status::BAD_REQUEST),
        ("Transfer-Encoding: identity", Status::BAD_REQUEST),
        ("Transfer-Encoding: gzip", Status::BAD_REQUEST),
        ("Transfer-Encoding: xchunked", Status::BAD_REQUEST),
        ("Transfer-Encoding: chunked;a=b", Status::BAD_REQUEST),
        ("Transfer-Encoding: \"chunked\"", Status::BAD_REQUEST),
        ("Transfer-Encoding: ,chunked", Status::BAD_REQUEST),
        ("Transfer-Encoding: chunked,", Status::BAD_REQUEST),
        ("Transfer-Encoding:", Status::BAD_REQUEST),
        ("Transfer-Encoding: gzip, chunked", Status::NOT_IMPLEMENTED),
        ("Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked", Status::NOT_IMPLEMENTED),
    ] {
        assert_refused(format!("POST / HTTP/1.1\r\nHost: h\r\n{fields}\r\n\r\n").as_bytes(), status);
    }
    assert_refused(b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", Status::BAD_REQUEST);
}

#[test]
fn lines_that_readers_split_differently() {
    for head in [
        &b"GET / HTTP/1.1\nHost: h\r\n\r\n"[..],
        b"GET / HTTP/1.1\r\nHost: h\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\nA: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nA:\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n\n",
        b"GET / HTTP/1.0\n\n",
        b"GET / HTTP/1.0\n\r\n",
        b"\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"\r\n\nGET / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"\rGET / HTTP/1.1\r\nHost: h\r\n\r\n",
        b"GET / HTTP/1.1\rHost: h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\rA: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost : h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost\t: h\r\n\r\n",
        b"GET / HTTP/1.1\r\n Host: h\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n folded\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\tfolded\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\n: empty\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nno colon\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nA: \0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nA: \x08\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nA: \x7f\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nA\xc4: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: h\r\nA(b): c\r\n\r\n",
    ] {
        assert_eq!(parsed(head), Err(Status::BAD_REQUEST), "{:?}", String::from_utf8_lossy(head));
    }
    // Text beyond ASCII is allowed in values, and empty lines before a request are skipped, up to a
    // point.
    assert!(
        parsed(b"\r\n\r\nGET / HTTP/1.1\r\nHost: h\r\nA: \xff\t\xc3\xa9\r\nB:\r\n\r\n").unwrap().is_some()
    );
    assert_refused(&b"\r\n".repeat(EMPTY_LINES_MAX + 1), Status::BAD_REQUEST);
}

#[test]
fn persistence() {
    for (version, connection, keep) in [
        ("1.1", "", true),
        ("1.1", "close", false),
        ("1.1", "foo, CLOSE ,bar", false),
        ("1.1", "keep-alive, close", false),
        ("1.1", "closed", true),
        ("1.0", "", false),
        ("1.0", "Keep-Alive", true),
        ("1.0", "keep-alive, close", false),
        ("1.2", "", true),
    ] {
        let head = format!("GET / HTTP/{version}\r\nHost: h\r\nConnection: {connection}\r\n\r\n");
        assert_eq!(complete(&head).keep_alive, keep, "{version} {connection}");
    }
    assert!(!complete("GET / HTTP/1.1\r\nHost: h\r\nConnection: a\r\nConnection: close\r\n\r\n").keep_alive);
}

#[test]
fn expectations() {
    let head = |version, value| format!("PUT / HTTP/{version}\r\nHost: h\r\nExpect: {value}\r\n\r\n");
    assert!(complete(&head("1.1", "100-Continue")).expects_continue);
    assert!(!complete(&head("1.0", "100-continue")).expects_continue);
    assert!(!complete(&head("1.0", "magic")).expects_continue);
    assert_refused(head("1.1", "magic").as_bytes(), Status::EXPECTATION_FAILED);
    assert_refused(head("1.1", "100-continue, magic").as_bytes(), Status::EXPECTATION_FAILED);
    assert_refused(head("1.1", "100-continue\r\nExpect: magic").as_bytes(), Status::EXPECTATION_FAILED);
}

#[test]
fn fields_given_twice_count_for_nothing() {
    let head = "GET / HTTP/1.1\r\nHost: h\r\nRange: bytes=0-1\r\nRange: bytes=0-1\r\nIf-Range: a\r\nIf-Range: a\r\n\
                If-Modified-Since: a\r\nIf-Modified-Since: a\r\nReferer: a\r\nReferer: b\r\n\r\n";
    let request = complete(head);
    let empty = Some(&b""[..]);
    assert_eq!((request.range, request.if_range, request.if_modified_since), (empty, empty, empty));
    assert_eq!(request.referer, Some(&b"a"[..]));
}

#[test]
fn limits() {
    let limits = Limits { head_bytes: 200, target_bytes: 100, body_bytes: 0 };
    let head = |target: usize, value: usize| {
        format!("GET /{} HTTP/1.1\r\nHost: h\r\nA: {}\r\n\r\n", "a".repeat(target - 1), "b".repeat(value))
    };
    let status =
        |text: &str| parse(text.as_bytes(), &limits).map(|request| request.map(|request| request.len));
    assert_eq!(status(&head(100, 1)), Ok(Some(head(100, 1).len())));
    assert_eq!(status(&head(101, 1)), Err(Status::URI_TOO_LONG));
    assert_eq!(status(&head(101, 1)[..105]), Err(Status::URI_TOO_LONG));
    assert_eq!(status(&head(101, 1)[..104]), Ok(None));
    assert_eq!(status(&head(5000, 1)), Err(Status::URI_TOO_LONG));
    let exact = 200 - head(10, 1).len() + 1;
    assert_eq!(status(&head(10, exact)), Ok(Some(200)));
    assert_eq!(status(&head(10, exact + 1)), Err(Status::FIELDS_TOO_LARGE));
    assert_eq!(status(&head(10, exact + 1)[..199]), Ok(None));
    assert_eq!(status(&head(10, exact + 1)[..200]), Err(Status::FIELDS_TOO_LARGE));
    assert_eq!(status(&"A".repeat(25)), Err(Status::NOT_IMPLEMENTED));
    let fields = |count| format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", "A: b\r\n".repeat(count));
    assert!(parsed(fields(FIELDS_MAX - 1).as_bytes()).unwrap().is_some());
    assert_refused(fields(FIELDS_MAX).as_bytes(), Status::FIELDS_TOO_LARGE);
}

#[test]
fn the_first_line_of_what_was_refused() {
    for (buf, line) in [
        (&b""[..], &b""[..]),
        (b"\r\n", b""),
        (b"GET /", b"GET /"),
        (b"GET /\r", b"GET /"),
        (b"\r\nGET /\r\nHost", b"GET /"),
        (b"GET /\nHost", b"GET /"),
    ] {
        assert_eq!(first_line(buf), line);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_keep_the_invariants(
        data in prop::collection::vec(
            prop_oneof![
                8 => prop::sample::select(vec![
                    "GET ", "OPTIONS ", "POST ", "/", "/a?b", "*", "http://a/", " HTTP/1.1\r\n", " HTTP/1.0\r\n",
                    " HTTP/1.3\r\n", "Host: a\r\n", "\r\n", "\n", "\r", " ", "Content-Length: 3\r\n", "abc", "A: b\r\n",
                    "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n", "0\r\n\r\n", ":",
                    "GET / HTTP/1.1\r\nHost: a\r\n",
                ]).prop_map(|text| text.as_bytes().to_vec()),
                1 => prop::collection::vec(any::<u8>(), 1..4),
            ],
            0..16,
        )
    ) {
        crate::fuzz::requests(&data.concat());
        crate::fuzz::chunks(&data.concat());
    }
}
