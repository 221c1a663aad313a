//! The short way through a proxy and the long one: the same request, and the same answer.

use crate::proxy::{UPSTREAM, listen, proxy, read_until, through};
use selvedge_gateway::Proxy;
use selvedge_handler::{Handler, PlainCall, PlainRequest, Request, Response};
use selvedge_io::time::{sleep, timeout};
use selvedge_scope::join;
use selvedge_sim::simulate;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Lines of requests, each usual or not.
const REQUEST_LINES: [&str; 24] = [
    "Accept: */*",
    "accept:a ,b",
    "X-Latin: caf\u{e9}",
    "X-Empty:",
    "Cookie: a=b; c=d",
    "Cookie: e=f",
    "Connection: keep-alive",
    "Connection: keep-alive, X-Secret",
    "X-Secret: s",
    "Keep-Alive: 5",
    "Proxy-Connection: keep-alive",
    "Proxy-Authorization: Basic x",
    "TE: trailers",
    "Upgrade: h2c",
    "Upgrade: websocket\r\nConnection: upgrade",
    "HTTP2-Settings: AAMAAABkAAQ",
    "Forwarded: for=6.6.6.6",
    "X-Forwarded-For: 6.6.6.6",
    "x-forwarded-host: evil",
    "X-Forwarded-Proto: https",
    "Via: 1.0 first",
    "Content-Length: 0",
    "Range: bytes=0-1",
    "Max-Forwards: 3",
];

const TARGETS: [&str; 8] =
    ["/", "/a/b?c=d&e", "/a?", "/%7e", "/a|b", "/..", "http://other:8/x?y", "/a/%2e%2e/b"];

/// Answers, in pieces that come one after the other.
const ANSWERS: [&[&str]; 22] = [
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
    &[
        "HTTP/1.1 404 Away\r\ncontent-length:4 \r\nserver: a\r\ndate: Thu, 01 Jan 2026 00:00:00 GMT\r\n\r\nweft",
    ],
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\nVia: 1.1 b\r\nSet-Cookie: a\r\nSet-Cookie: b\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: keep-alive\r\nKeep-Alive: 5\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: X-Own\r\nX-Own: 1\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\nProxy-Authenticate: Basic\r\nTE: x\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\nUpgrade: websocket\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwe", "ft"],
    &["HTTP/1.1 200 OK\r\nConte", "nt-Length: 4\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nweft\r\n0\r\n\r\n"],
    &["HTTP/1.1 200 OK\r\n\r\nweft"],
    &["HTTP/1.0 200 OK\r\nContent-Length: 4\r\n\r\nweft"],
    &["HTTP/1.1 204 No Content\r\nX: y\r\n\r\n"],
    &["HTTP/1.1 304 Same\r\nContent-Length: 4\r\nETag: \"a\"\r\n\r\n"],
    &["HTTP/1.1 103 Early\r\nLink: <a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\nContent-Length: 4\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\nA: b\r\n\r\nweft"],
    &["HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nwe"],
    &["SSH-2.0-x\r\n\r\n"],
];

/// The first line of a message, its fields with the lines of a name joined, and its content.
type Message = (String, BTreeMap<String, String>, String);

fn message(text: &str) -> Message {
    let text = text.replace("\r\n", "\n");
    let (head, rest) = text.split_once("\n\n").unwrap_or((&text, ""));
    let mut lines = head.lines();
    let first = lines.next().unwrap_or_default().to_owned();
    let mut fields = BTreeMap::<String, String>::new();
    for line in lines {
        let (name, value) = line.split_once(':').unwrap_or((line, ""));
        fields
            .entry(name.to_ascii_lowercase())
            .and_modify(|all| *all = format!("{all}, {}", value.trim()))
            .or_insert(value.trim().to_owned());
    }
    (first, fields, rest.to_owned())
}

/// What the upstream was asked, if it was, and what the client got, by the short way if it may be
/// taken, or by the long one.
fn exchanged(is_short: bool, request: &str, answer: &'static [&'static str]) -> (Option<Message>, Message) {
    let outcome = Arc::new(Mutex::new(None));
    let (request, kept) = (request.to_owned(), outcome.clone());
    simulate(0..1, move || {
        let (request, kept) = (request.clone(), kept.clone());
        async move {
            let upstream = listen(UPSTREAM);
            let asked = Arc::new(Mutex::new(None));
            let told = asked.clone();
            let serve = async move {
                let (stream, _) = upstream.accept().await.unwrap();
                *told.lock().unwrap() = Some(read_until(&stream, "\r\n\r\n").await.unwrap());
                for piece in answer {
                    stream.write_all(piece.as_bytes()).await.unwrap();
                    sleep(Duration::from_millis(1)).await;
                }
            };
            let way = Way { proxy: proxy(&[8001]), is_short };
            let served = timeout(Duration::from_secs(5), serve);
            let (_, got) = join((served, through(way, &request))).await;
            let asked = asked.lock().unwrap().take();
            *kept.lock().unwrap() = Some((asked.as_deref().map(message), message(&got)));
        }
    });
    outcome.lock().unwrap().take().expect("the world has run")
}

/// A proxy, or a handler that calls one with owned requests alone.
struct Way {
    proxy: Proxy,
    is_short: bool,
}

impl Handler for Way {
    async fn call(&self, request: Request) -> Response {
        self.proxy.call(request).await
    }

    fn call_plain(&self, request: &PlainRequest<'_>) -> Option<PlainCall> {
        self.is_short.then(|| self.proxy.call_plain(request)).flatten()
    }
}

/// A request with the target and the lines that the bits of `choice` choose.
fn request(choice: u64) -> String {
    let target = TARGETS[choice as usize % TARGETS.len()];
    let mut text = format!("GET {target} HTTP/1.1\r\nHost: loom:80\r\n");
    let mut bits = choice / TARGETS.len() as u64;
    for line in REQUEST_LINES {
        if bits.is_multiple_of(5) {
            text += &format!("{line}\r\n");
        }
        bits = bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 7;
    }
    text + "Connection: close\r\n\r\n"
}

#[test]
fn a_request_and_its_answer_are_the_same_by_both_ways() {
    let mut asked = 0;
    for choice in 0..240_u64 {
        let request = request((choice.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 5) | (choice % 8));
        let answer = ANSWERS[choice as usize % ANSWERS.len()];
        let (short, long) = (exchanged(true, &request, answer), exchanged(false, &request, answer));
        assert_eq!(short, long, "{request}{answer:?}");
        asked += usize::from(short.0.is_some());
    }
    assert!(asked > 100, "{asked} requests have reached the upstream");
}

#[test]
fn each_line_and_each_answer_by_itself() {
    let plain = "GET /a HTTP/1.1\r\nHost: loom\r\nConnection: close\r\n";
    for line in REQUEST_LINES {
        let request = format!("{plain}{line}\r\n\r\n");
        assert_eq!(
            exchanged(true, &request, ANSWERS[0]),
            exchanged(false, &request, ANSWERS[0]),
            "{request}"
        );
    }
    for answer in ANSWERS {
        let request = format!("{plain}\r\n");
        assert_eq!(exchanged(true, &request, answer), exchanged(false, &request, answer), "{answer:?}");
    }
}
