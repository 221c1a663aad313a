//! The short way through FastCGI and the long one: the same request, and the same answer.

use crate::fastcgi::record;
use crate::proxy::{listen, through};
use selvedge_client::Address;
use selvedge_core::spawn_local;
use selvedge_gateway::{ErrorLog, FastCgi};
use selvedge_handler::{Handler, PlainCall, PlainRequest, Request, Response};
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const APPLICATION: &str = "127.0.0.1:9000";

/// Lines of requests, each usual or not.
const REQUEST_LINES: [&str; 18] = [
    "Accept: */*",
    "accept:a ,b",
    "X-Latin: caf\u{e9}",
    "X-Empty:",
    "X_Under: a",
    "Cookie: a=b; c=d",
    "Cookie: a=b\r\nCookie: c=d",
    "X-A: b\r\nx-a: c",
    "Connection: keep-alive",
    "Proxy: evil",
    "Proxy-Authorization: Basic x",
    "Authorization: Basic x",
    "TE: trailers",
    "Upgrade: websocket",
    "Content-Type: a/b",
    "Content-Length: 0",
    "Content-Length: 3\r\n\r\nabc",
    "User-Agent: loom/1 (weft)",
];

const TARGETS: [&str; 9] =
    ["/", "/a/b?c=d&e", "/a?", "/%7e%20", "/a|b", "/../x", "http://other:8/x?y", "/a//b", "/a/./%2e%2e/b"];

/// What the application says, in records of standard output, and whether it ends the request.
const ANSWERS: [(&[&str], bool); 16] = [
    (&["Content-Type: a/b\r\n\r\nweft"], true),
    (&["Content-Type: a/b\n", "\nwe", "ft"], true),
    (&["content-type:a/b\nContent-Length: 4\n\nweft"], true),
    (&["Content-Type: a/b\nContent-Length: 5\n\nweft"], true),
    (&["Content-Type: a/b\nContent-Length: 3\n\nweft"], true),
    (&["Status: 404 Away\nContent-Type: a/b\nServer: a\nDate: Thu, 01 Jan 2026 00:00:00 GMT\n\nweft"], true),
    (&["Status: 204 None\n\n"], true),
    (&["Status: 200\nX-CGI-Own: a\nX: y\nX: z\n\nweft"], true),
    (&["Content-Type: a/b\nConnection: close\nKeep-Alive: 5\nTransfer-Encoding: chunked\n\nweft"], true),
    (&["Content-Type: a/b\nConnection: x\nX: y\n\nweft"], true),
    (&["Location: http://elsewhere/\n\n"], true),
    (&["Location: /redirected?q\n\n"], true),
    (&["Content-Type: a/b\n\nwe"], false),
    (&["Content-Type: caf\u{e9}\n\nweft"], true),
    (&["no head\n\n"], true),
    (&[], true),
];

/// A handler by FastCGI, or one that gives it owned requests alone.
struct Way {
    application: FastCgi,
    is_short: bool,
    taken: Rc<Cell<usize>>,
}

impl Handler for Way {
    async fn call(&self, request: Request) -> Response {
        self.application.call(request).await
    }

    fn call_plain(&self, request: &PlainRequest<'_>) -> Option<PlainCall> {
        let call = self.is_short.then(|| self.application.call_plain(request)).flatten()?;
        self.taken.set(self.taken.get() + 1);
        Some(call)
    }
}

/// The parameters in what an application was sent, in the order of their names.
fn parameters(mut sent: &[u8]) -> Vec<String> {
    let (mut content, mut all) = (Vec::new(), Vec::new());
    while let [_, kind, _, _, high, low, padding, _, rest @ ..] = sent {
        let length = usize::from(u16::from_be_bytes([*high, *low]));
        if *kind == 4 {
            content.extend_from_slice(&rest[..length]);
        }
        sent = &rest[length + usize::from(*padding)..];
    }
    let mut left = &content[..];
    while let [name, value, rest @ ..] = left {
        let (name, value) = (usize::from(*name), usize::from(*value));
        assert!(name < 128 && value < 128, "the test has short parameters");
        let text = String::from_utf8_lossy(&rest[..name + value]);
        all.push(format!("{} {text}", name));
        left = &rest[name + value..];
    }
    all.sort();
    all
}

/// What the application was asked, and what the client got, and how many requests were taken as
/// bytes.
fn exchanged(
    is_short: bool,
    request: &str,
    (answer, ends): (&'static [&'static str], bool),
) -> (Vec<Vec<String>>, String, usize) {
    let outcome = Arc::new(Mutex::new(None));
    let (request, kept) = (request.to_owned(), outcome.clone());
    simulate(0..1, move || {
        let (request, kept) = (request.clone(), kept.clone());
        async move {
            let (listener, asked) = (listen(APPLICATION), Rc::new(std::cell::RefCell::new(Vec::new())));
            let told = asked.clone();
            let application = spawn_local(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    let mut sent = Vec::new();
                    while !sent.ends_with(&record(5, b"", 0)) {
                        let mut buffer = [0; 1000];
                        let read = stream.read(&mut buffer).await.unwrap();
                        sent.extend_from_slice(&buffer[..read]);
                    }
                    told.borrow_mut().push(parameters(&sent));
                    for piece in answer {
                        stream.write_all(&record(6, piece.as_bytes(), 3)).await.unwrap();
                    }
                    if ends {
                        let end = [record(6, b"", 0), record(3, &[0; 8], 0)].concat();
                        stream.write_all(&end).await.unwrap();
                    }
                }
            });
            let application_by_fastcgi = FastCgi::new(Address::tcp(APPLICATION))
                .kept_connections(0, Duration::ZERO)
                .error_log(ErrorLog::new(|_, _| {}));
            let taken = Rc::new(Cell::new(0));
            let way = Way { application: application_by_fastcgi, is_short, taken: taken.clone() };
            let got = through(way, &request).await;
            application.cancel();
            sleep(Duration::from_secs(1)).await;
            let asked = asked.borrow().clone();
            *kept.lock().unwrap() = Some((asked, got, taken.get()));
        }
    });
    outcome.lock().unwrap().take().expect("the world has run")
}

/// The answer with its fields in one order and their names in lower case.
fn sorted(got: &str) -> Vec<String> {
    let (head, content) = got.split_once("\n\n").unwrap_or((got, ""));
    let mut lines: Vec<String> = head
        .lines()
        .map(|line| match line.split_once(": ") {
            Some((name, value)) => format!("{}: {value}", name.to_ascii_lowercase()),
            None => line.to_owned(),
        })
        .collect();
    lines.sort();
    lines.push(content.to_owned());
    lines
}

#[test]
fn each_line_each_target_and_each_answer() {
    let mut taken = 0;
    let mut compare = |target: &str, line: &str, answer| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: loom:81\r\nConnection: close\r\n{line}");
        let request = if line.contains("\r\n\r\n") { request } else { format!("{request}\r\n\r\n") };
        let request = request.replace("\r\n\r\n\r\n", "\r\n\r\n");
        let (short, long) = (exchanged(true, &request, answer), exchanged(false, &request, answer));
        assert_eq!(short.0, long.0, "{request}");
        assert_eq!(sorted(&short.1), sorted(&long.1), "{request}{answer:?}");
        taken += short.2;
    };
    for line in REQUEST_LINES {
        compare("/a", line, ANSWERS[0]);
    }
    for target in TARGETS {
        compare(target, "", ANSWERS[0]);
    }
    for answer in ANSWERS {
        compare("/a", "", answer);
    }
    assert!(taken > 30, "{taken} requests went the short way");
}
