//! Requests that existing servers answer in different ways, each with the answer that RFC 9110 and
//! 9112 give.

use crate::site::conversation;

const ETAG: &str = "\"7-2ebc98a1-5-a\"";
const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:50:00 GMT";
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:00 GMT";

struct Reply {
    status: u16,
    head: String,
    body: Vec<u8>,
}

impl Reply {
    fn field(&self, name: &str) -> Option<&str> {
        let prefix = format!("{name}: ");
        let mut values = self.head.lines().filter_map(|line| line.strip_prefix(&prefix));
        let value = values.next();
        assert_eq!(values.next(), None, "{name} twice");
        value
    }
}

/// The one reply to a request with this request line, `Host`, and `fields`.
fn ask(line: &str, fields: &str) -> Reply {
    let fields: String = fields.lines().map(|field| format!("{field}\r\n")).collect();
    let connection = conversation(format!("{line}\r\nHost: example.org\r\n{fields}\r\n").as_bytes());
    assert_eq!(connection.statuses.len(), 1);
    let at = connection.output.windows(4).position(|end| end == b"\r\n\r\n").unwrap() + 4;
    let head = String::from_utf8(connection.output[..at].to_vec()).unwrap();
    let reply = Reply { status: head[9..12].parse().unwrap(), head, body: connection.output[at..].to_vec() };
    assert_eq!(connection.statuses, [reply.status]);
    assert!(reply.head.starts_with("HTTP/1.1 ") && reply.field("Date").is_some());
    reply
}

fn get(name: &str, fields: &str) -> Reply {
    ask(&format!("GET /{name} HTTP/1.1"), fields)
}

#[test]
fn the_plain_reply() {
    let reply = get("ten.txt", "");
    assert_eq!(
        reply.head,
        format!(
            "HTTP/1.1 200 OK\r\nServer: selvedge\r\nDate: Sun, 06 Nov 1994 09:06:17 GMT\r\n\
             Content-Type: text/plain; charset=utf-8\r\nContent-Length: 10\r\nLast-Modified: {DATE}\r\nETag: {ETAG}\r\n\
             Accept-Ranges: bytes\r\n\r\n"
        )
    );
    assert_eq!(reply.body, b"0123456789");
    let head = ask("HEAD /ten.txt HTTP/1.1", "");
    assert_eq!((head.head, head.body), (reply.head, vec![]));
    let empty = get("empty.txt", "");
    assert_eq!((empty.status, empty.field("Content-Length"), empty.body.len()), (200, Some("0"), 0));
}

#[test]
fn one_range() {
    for (range, content_range, body) in [
        ("bytes=0-1", "bytes 0-1/10", "01"),
        ("bytes=8-", "bytes 8-9/10", "89"),
        ("bytes=-1", "bytes 9-9/10", "9"),
        ("bytes=-100", "bytes 0-9/10", "0123456789"),
        ("bytes=5-100", "bytes 5-9/10", "56789"),
    ] {
        let reply = get("ten.txt", &format!("Range: {range}"));
        assert_eq!((reply.status, reply.field("Content-Range")), (206, Some(content_range)));
        assert_eq!(reply.field("Content-Length"), Some(&*body.len().to_string()));
        assert_eq!((reply.field("ETag"), reply.field("Last-Modified")), (Some(ETAG), Some(DATE)));
        assert_eq!(reply.field("Content-Type"), Some("text/plain; charset=utf-8"));
        assert_eq!(reply.body, body.as_bytes());
    }
}

#[test]
fn two_ranges_are_multipart() {
    let reply = get("ten.txt", "Range: bytes=0-1,5-6");
    assert_eq!((reply.status, reply.field("Content-Range")), (206, None));
    let boundary =
        reply.field("Content-Type").unwrap().strip_prefix("multipart/byteranges; boundary=").unwrap();
    assert_eq!(reply.field("Content-Length"), Some(&*reply.body.len().to_string()));
    let body = String::from_utf8(reply.body.clone()).unwrap();
    let parts: Vec<&str> = body.split(&format!("\r\n--{boundary}")).collect();
    let head = "\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Range: bytes ";
    assert_eq!(parts, ["", &format!("{head}0-1/10\r\n\r\n01"), &format!("{head}5-6/10\r\n\r\n56"), "--\r\n"]);
}

#[test]
fn many_overlapping_ranges_do_not_amplify() {
    for count in 2..=1000 {
        let ranges = vec!["0-"; count].join(",");
        // A field of this length is within the limits of a real server, if not of the site here.
        let set = selvedge_http::range::RangeSet::parse(format!("bytes={ranges}").as_bytes());
        assert_eq!(set.is_some(), count <= 16);
    }
    let reply = get("big.bin", &format!("Range: bytes={}", vec!["0-"; 300].join(",")));
    assert_eq!((reply.status, reply.body.len()), (200, 16384));
    let reply = get("big.bin", &format!("Range: bytes={}", vec!["0-"; 16].join(",")));
    assert_eq!((reply.status, reply.body.len()), (206, 16384));
    let reply = get("big.bin", "Range: bytes=0-9,5-14,5-14,100-109");
    assert_eq!(reply.status, 206);
    assert!(reply.body.len() < 400, "{}", reply.body.len());
}

#[test]
fn unsatisfiable_ranges() {
    for range in ["bytes=10-", "bytes=10-20", "bytes=-0", "bytes=99999999999999999999-", "bytes=10-,11-"] {
        let reply = get("ten.txt", &format!("Range: {range}"));
        assert_eq!((reply.status, reply.field("Content-Range")), (416, Some("bytes */10")), "{range}");
        assert_eq!(reply.field("Content-Length"), Some(&*reply.body.len().to_string()));
    }
    let reply = get("empty.txt", "Range: bytes=0-");
    assert_eq!((reply.status, reply.field("Content-Range")), (416, Some("bytes */0")));
    assert_eq!(get("empty.txt", "Range: bytes=-5").status, 200);
}

#[test]
fn ranges_that_are_ignored() {
    for range in ["bytes=5-2", "bytes=a-b", "bytes", "lines=0-1", "bytes=0-1\nRange: bytes=2-3"] {
        let reply = get("ten.txt", &format!("Range: {range}"));
        assert_eq!((reply.status, reply.body.len()), (200, 10), "{range}");
    }
    let reply = ask("HEAD /ten.txt HTTP/1.1", "Range: bytes=0-1");
    assert_eq!((reply.status, reply.field("Content-Length")), (200, Some("10")));
}

#[test]
fn preconditions() {
    for (fields, status) in [
        ("If-None-Match: *".into(), 304),
        (format!("If-None-Match: {ETAG}"), 304),
        (format!("If-None-Match: \"x\", W/{ETAG}"), 304),
        ("If-None-Match: \"x\"".into(), 200),
        ("If-Match: \"x\"".into(), 412),
        ("If-Match: *".into(), 200),
        (format!("If-Match: {ETAG}"), 200),
        (format!("If-Match: W/{ETAG}"), 412),
        (format!("If-Modified-Since: {DATE}"), 304),
        (format!("If-Modified-Since: {LATER}"), 304),
        (format!("If-Modified-Since: {EARLIER}"), 200),
        ("If-Modified-Since: Sunday, 06-Nov-94 08:49:37 GMT".into(), 304),
        ("If-Modified-Since: Sun Nov  6 08:49:37 1994".into(), 304),
        (format!("If-Unmodified-Since: {EARLIER}"), 412),
        (format!("If-Unmodified-Since: {DATE}"), 200),
        (format!("Range: bytes=0-1\nIf-Range: {ETAG}"), 206),
        (format!("Range: bytes=0-1\nIf-Range: {DATE}"), 206),
        ("Range: bytes=0-1\nIf-Range: \"x\"".into(), 200),
        (format!("Range: bytes=0-1\nIf-Range: {LATER}"), 200),
        (format!("Range: bytes=0-1\nIf-Range: W/{ETAG}"), 200),
        ("Range: bytes=0-1\nIf-Match: \"x\"".into(), 412),
        (format!("Range: bytes=99-\nIf-None-Match: {ETAG}"), 304),
    ] {
        let reply = get("ten.txt", &fields);
        assert_eq!(reply.status, status, "{fields}");
        let head = ask("HEAD /ten.txt HTTP/1.1", &fields);
        assert_eq!(head.status, if status == 206 { 200 } else { status }, "HEAD {fields}");
        assert!(head.body.is_empty());
        if status == 304 {
            assert_eq!((reply.body, reply.head.as_str()), (vec![], head.head.as_str()));
            assert_eq!((reply.head.contains("Content-"), head.field("ETag")), (false, Some(ETAG)));
        }
    }
    // A precondition is about a representation: without one it does not count.
    assert_eq!(get("none", "If-Match: *").status, 404);
    assert_eq!(get("none", "If-None-Match: *").status, 404);
    assert_eq!(get("none", "Range: bytes=0-1").status, 404);
}

#[test]
fn paths() {
    for (path, status) in [
        ("/", 200),
        ("/ten.txt?x", 200),
        ("/%74en.txt", 200),
        ("/docs/../ten.txt", 200),
        ("/docs", 301),
        ("/docs/", 200),
        ("/ten.txt%00.html", 400),
        ("/%00", 400),
        ("/../ten.txt", 400),
        ("/%2e%2e/%2e%2e/etc/passwd", 400),
        ("/..%2fetc/passwd", 404),
        ("/docs%2findex.html", 404),
        ("/docs\\index.html", 404),
        ("/ten.txt/", 404),
        ("/.secret", 404),
        ("/.well-known/key", 200),
        ("/%", 400),
    ] {
        assert_eq!(ask(&format!("GET {path} HTTP/1.1"), "").status, status, "{path}");
    }
    assert_eq!(get("docs?a=b", "").field("Location"), Some("/docs/?a=b"));
}

#[test]
fn methods() {
    for (method, status) in [
        ("TRACE", 405),
        ("POST", 405),
        ("PUT", 405),
        ("DELETE", 405),
        ("PATCH", 405),
        ("OPTIONS", 204),
        ("BREW", 501),
        ("get", 501),
    ] {
        let reply = ask(&format!("{method} /ten.txt HTTP/1.1"), "");
        assert_eq!(reply.status, status, "{method}");
        assert_eq!(reply.field("Allow"), (status != 501).then_some("GET, HEAD, OPTIONS"), "{method}");
        assert_eq!(reply.field("Content-Length").is_none(), status == 204);
    }
    let reply = ask("OPTIONS * HTTP/1.1", "");
    assert_eq!((reply.status, reply.field("Allow")), (204, Some("GET, HEAD, OPTIONS")));
    assert_eq!(ask("CONNECT example.org:80 HTTP/1.1", "").status, 501);
}

#[test]
fn the_connection_field_says_what_happens() {
    for (version, connection, said, closed) in [
        ("1.1", "", None, false),
        ("1.1", "Connection: close", Some("close"), true),
        ("1.0", "", Some("close"), true),
        ("1.0", "Connection: keep-alive", Some("keep-alive"), false),
        ("1.4", "", None, false),
    ] {
        let reply = ask(&format!("GET / HTTP/{version}"), connection);
        assert_eq!(reply.field("Connection"), said, "{version} {connection}");
        let head = format!("GET / HTTP/{version}\r\nHost: a\r\n{connection}\r\n\r\n");
        let head = head.replace("\r\n\r\n\r\n", "\r\n\r\n");
        assert_eq!(conversation(head.as_bytes()).closed, closed);
    }
    let refused = ask("GET / HTTP/1.1", "Host: twice");
    assert_eq!((refused.status, refused.field("Connection")), (400, Some("close")));
    assert_eq!(ask("GET / HTTP/2.0", "").status, 505);
    assert_eq!(ask(&format!("GET /{} HTTP/1.1", "a".repeat(300)), "").status, 414);
    assert_eq!(get("", &format!("A: {}", "a".repeat(1100))).status, 431);
    assert_eq!(ask("POST / HTTP/1.1", "Content-Length: 65").status, 413);
    assert_eq!(get("", "Expect: magic").status, 417);
}
