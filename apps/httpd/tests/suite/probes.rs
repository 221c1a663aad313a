//! Requests that existing servers answer in different ways, sent to the real server over a real
//! socket.

use super::serve;
use crate::common::{Reply, Server, bytes, let_settle, site};
use std::process::Command;

const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const LATER: &str = "Sun, 06 Nov 1994 08:50:00 GMT";
const EARLIER: &str = "Sun, 06 Nov 1994 08:49:00 GMT";

fn get(server: &Server, path: &str, fields: &str) -> Reply {
    ask(server, "GET", path, fields)
}

fn ask(server: &Server, method: &str, path: &str, fields: &str) -> Reply {
    let fields: String = fields.lines().map(|field| format!("{field}\r\n")).collect();
    server.ask(&format!("{method} {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"))
}

/// Every row of the table that servers disagree on.
#[test]
fn what_other_servers_get_wrong() {
    let site = site();
    let_settle();
    let server = serve(site.path(), &[]);
    let whole = get(&server, "/ten.txt", "");
    let etag = whole.field("ETag").unwrap().to_owned();
    assert!(etag.starts_with('"'), "{etag}");
    assert_eq!((whole.field("Last-Modified"), &whole.body[..]), (Some(DATE), &b"0123456789"[..]));

    let two = get(&server, "/ten.txt", "Range: bytes=0-1,5-6");
    let boundary =
        two.field("Content-Type").unwrap().strip_prefix("multipart/byteranges; boundary=").unwrap();
    let text = String::from_utf8(two.body.clone()).unwrap();
    assert_eq!((two.status, text.matches(boundary).count()), (206, 3));
    assert!(text.contains("bytes 0-1/10\r\n\r\n01\r\n") && text.contains("bytes 5-6/10\r\n\r\n56\r\n"));

    for count in [16, 300, 1000] {
        let ranges = vec!["0-"; count].join(",");
        let reply = get(&server, "/middle.bin", &format!("Range: bytes={ranges}"));
        assert!(reply.body == bytes(16 << 10), "{count} ranges: {} bytes", reply.body.len());
    }

    for (fields, status) in [
        ("Range: bytes=10-", 416),
        ("If-None-Match: *", 304),
        ("If-Match: \"x\"", 412),
        (&format!("If-Match: {etag}"), 200),
        ("Range: bytes=0-1\nIf-Range: \"x\"", 200),
        (&format!("Range: bytes=0-1\nIf-Range: {etag}"), 206),
        (&format!("If-Modified-Since: {LATER}"), 304),
        (&format!("If-Modified-Since: {DATE}"), 304),
        (&format!("If-Modified-Since: {EARLIER}"), 200),
        (&format!("If-Unmodified-Since: {EARLIER}"), 412),
    ] {
        assert_eq!(get(&server, "/ten.txt", fields).status, status, "{fields}");
    }
    assert_eq!(get(&server, "/ten.txt", "Range: bytes=10-").field("Content-Range"), Some("bytes */10"));

    for (path, status) in [
        ("/ten.txt%00.html", 400),
        ("/%00", 400),
        ("/../etc/passwd", 400),
        ("/%2e%2e/%2e%2e/etc/passwd", 400),
        ("/..%2f..%2fetc/passwd", 404),
        ("/.secret", 404),
        ("/.well-known/key", 200),
        ("/docs", 301),
        ("/docs/", 200),
        ("/empty/", 403),
        ("/empty.txt", 200),
        ("/ten.txt/", 404),
        ("/%74en.txt", 200),
        ("/", 200),
    ] {
        assert_eq!(get(&server, path, "").status, status, "{path}");
    }
    assert_eq!(get(&server, "/docs?a=b", "").field("Location"), Some("/docs/?a=b"));

    for (method, status) in [("TRACE", 405), ("OPTIONS", 204), ("POST", 405), ("BREW", 501), ("HEAD", 200)] {
        assert_eq!(ask(&server, method, "/ten.txt", "").status, status, "{method}");
    }
    let mut head = server.connect();
    let reply = head.ask("HEAD /ten.txt HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
    assert_eq!(reply.field("Content-Length"), Some("10"));
    head.assert_end();
}

/// Requests that two readers could take apart differently. Each is refused, and the refusal arrives
/// although the server has not read all that was sent.
#[test]
fn ambiguous_messages() {
    let site = site();
    let server = serve(site.path(), &[]);
    let more = "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n".repeat(2000);
    for (request, status) in [
        ("GET / HTTP/1.1\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        ("GET / HTTP/1.1\nHost: a\n\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\nA : b\r\n\r\n", 400),
        ("GET / HTTP/1.1\r\nHost: a\r\n b: folded\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: +1\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST / HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip\r\n\r\n", 400),
        ("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n", 501),
        ("GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        ("GET / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n", 417),
        ("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999\r\n\r\n", 413),
        (&format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(9000)), 414),
        (&format!("GET / HTTP/1.1\r\nHost: a\r\nA: {}\r\n\r\n", "a".repeat(17_000)), 431),
    ] {
        let mut client = server.connect();
        client.send(request);
        // More than the server reads before it refuses, so that closing at once would reset the
        // connection.
        client.send(&more);
        let reply = client.reply();
        let short: String = request.chars().take(100).collect();
        assert_eq!((reply.status, reply.field("Connection")), (status, Some("close")), "{short}");
        client.stream.shutdown(std::net::Shutdown::Write).unwrap();
        client.assert_end();
    }
}

#[test]
fn curl_gets_what_is_there() {
    let site = site();
    let server = serve(site.path(), &[]);
    let url = |path: &str| format!("http://{}{path}", server.address);
    let curl = |arguments: &[&str]| {
        let output = Command::new("curl").args(["-sS", "--max-time", "20"]).args(arguments).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        output.stdout
    };
    assert!(curl(&[&url("/big.bin")]) == bytes(3_000_000));
    assert!(curl(&["-r", "1000000-1999999", &url("/big.bin")]) == bytes(3_000_000)[1_000_000..2_000_000]);
    assert_eq!(curl(&["-L", &url("/docs")]), b"<h1>Docs</h1>");
    assert_eq!(curl(&["-0", &url("/ten.txt")]), b"0123456789");
    // The case of names is free.
    let head = String::from_utf8(curl(&["-I", &url("/")])).unwrap().to_lowercase();
    assert!(
        head.starts_with("http/1.1 200 ok\r\n") && head.contains("content-type: text/html; charset=utf-8")
    );
    // A body that curl asks to be allowed to send, and is not.
    let body = "x".repeat(100_000);
    let arguments = ["-i", "-H", "Expect: 100-continue", "--data-binary", &body, &url("/ten.txt")];
    let reply = String::from_utf8(curl(&arguments)).unwrap();
    assert!(reply.starts_with("HTTP/1.1 405 "), "{reply}");
    let arguments = ["-i", "-H", "Transfer-Encoding: chunked", "--data-binary", &body, &url("/ten.txt")];
    assert!(String::from_utf8(curl(&arguments)).unwrap().contains("HTTP/1.1 405 "));
    // Several transfers over one connection, one after another.
    let count =
        curl(&["-w", "%{num_connects} ", "-o", "/dev/null", &url("/"), "-o", "/dev/null", &url("/ten.txt")]);
    assert_eq!(String::from_utf8(count).unwrap(), "1 0 ");
}

/// Nothing follows the head of a reply to `HEAD`, whatever is wrong with the request (RFC 9110
/// §9.3.2).
#[test]
fn errors_of_head_have_no_content() {
    let site = site();
    let server = serve(site.path(), &["--head", "0.3"]);
    let long = |n: usize| "a".repeat(n);
    for (request, status) in [
        ("HEAD / HTTP/1.1\r\n\r\n".to_owned(), 400),
        ("HEAD / HTTP/1.1\r\nHost: a\r\nbad field: x\r\n\r\n".to_owned(), 400),
        ("HEAD /x y HTTP/1.1\r\nHost: a\r\n\r\n".to_owned(), 400),
        (format!("HEAD /{} HTTP/1.1\r\nHost: a\r\n\r\n", long(9000)), 414),
        (format!("HEAD / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", long(17_000)), 431),
        ("HEAD / HTTP/1.1\r\nHost: a\r\nExpect: magic\r\n\r\n".to_owned(), 417),
        ("HEAD / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: gzip, chunked\r\n\r\n".to_owned(), 501),
        ("HEAD / HTTP/2.0\r\nHost: a\r\n\r\n".to_owned(), 505),
        ("HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 99999999999\r\n\r\n".to_owned(), 413),
        ("HEAD / HTTP/1.1\r\nHost:".to_owned(), 408),
        ("HEAD /none HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".to_owned(), 404),
    ] {
        let mut client = server.connect();
        client.send(&request);
        let reply = client.reply_to(true);
        let line = &request[..request.len().min(60)];
        assert_eq!((reply.status, reply.field("Connection")), (status, Some("close")), "{line}");
        assert!(reply.field("Content-Length").is_some_and(|len| len != "0"), "{line}");
        client.assert_end();
    }
}

/// What is no request line is a bad request, not a method that is not implemented.
#[test]
fn other_protocols_are_bad_requests() {
    let site = site();
    let server = serve(site.path(), &[]);
    let hello = [b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03".to_vec(), bytes(500)].concat();
    for request in
        [&hello[..], b"\x80\x2e\x01\x00\x02\x00\x15", b"SSH-2.0-OpenSSH_9.6 \x00\r\n", b"\0\0\0\r\n\r\n"]
    {
        let mut client = server.connect();
        client.send(request);
        let text = String::from_utf8(client.rest()).unwrap();
        assert!(text.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{text}");
    }
    // A token is a method, however odd.
    assert_eq!(server.ask("abcdefghijklmnopqrstuvwxyz / HTTP/1.1\r\nHost: a\r\n\r\n").status, 501);
}

/// Chunk extensions have the form of RFC 9112 §7.1.1, or the connection is closed.
#[test]
fn chunk_extensions_are_checked() {
    let site = site();
    let server = serve(site.path(), &[]);
    for (extension, formed) in [
        (";a", true),
        (";a=b;c=\"d \\\" e\"", true),
        (" ; a = b", true),
        (";", false),
        (";a=", false),
        (";a=\"b", false),
        (";=b", false),
        (";a b", false),
        (";a=b c", false),
    ] {
        let mut client = server.connect();
        let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        client.send(format!("{head}1{extension}\r\nx\r\n0\r\n\r\n"));
        assert_eq!(client.reply().status, 405);
        if formed {
            assert_eq!(client.ask("GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n").status, 200, "{extension}");
        } else {
            client.assert_end();
        }
    }
}
