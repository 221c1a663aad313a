//! The short way through FastCGI and the long one: the same request, and the same answer.

use crate::fastcgi::record;
use crate::proxy::{listen, through};
use selvedge_client::Address;
use selvedge_core::{now, spawn_local};
use selvedge_gateway::{ErrorLog, FastCgi};
use selvedge_handler::{Handler, LazyCaller, PlainCall, PlainRequest, Request, Response, StatusCode};
use selvedge_io::net::Stream;
use selvedge_io::time::{sleep, timeout};
use selvedge_sim::simulate;
use std::cell::{Cell, RefCell};
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
    (&["Status: 404 Away\nContent-Type: a/b\nServer: a\ndate: Thu, 01 Jan 2026 00:00:00 GMT\n\nweft"], true),
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

/// An application that gives this answer to each request, on each connection, and tells what it was
/// asked. It counts the connections.
async fn answering(
    (answer, ends): (&'static [&'static str], bool),
    told: Rc<RefCell<Vec<Vec<String>>>>,
    connections: Rc<Cell<usize>>,
) {
    let listener = listen(APPLICATION);
    while let Ok((stream, _)) = listener.accept().await {
        connections.set(connections.get() + 1);
        let told = told.clone();
        drop(spawn_local(async move {
            let mut requests = 0;
            while let Some(sent) = whole_request(&stream).await {
                requests += 1;
                told.borrow_mut().push(parameters(&sent));
                let mut said: Vec<_> = answer.iter().map(|piece| record(6, piece.as_bytes(), 3)).collect();
                if ends {
                    said.extend([record(6, b"", 0), record(3, &[0; 8], 0)]);
                }
                // The second answer comes as a whole.
                if requests == 2 {
                    said = vec![said.concat()];
                }
                for piece in said {
                    stream.write_all(&piece).await.unwrap();
                }
                if !ends {
                    return;
                }
            }
        }));
    }
}

/// The records of a request; `None` if the connection ends before.
async fn whole_request(stream: &Stream) -> Option<Vec<u8>> {
    let mut sent = Vec::new();
    while !sent.ends_with(&record(5, b"", 0)) {
        let mut buffer = [0; 1000];
        match stream.read(&mut buffer).await {
            Ok(read @ 1..) => sent.extend_from_slice(&buffer[..read]),
            _ => return None,
        }
    }
    Some(sent)
}

/// What became of a request that was sent three times, on a kept connection if there is one.
#[derive(Debug)]
struct Exchanged {
    /// What the application was asked.
    asked: Vec<Vec<String>>,
    got: [String; 3],
    connections: usize,
    /// How many requests were taken as bytes.
    taken: usize,
}

fn exchanged(is_short: bool, request: &str, answer: (&'static [&'static str], bool)) -> Exchanged {
    let outcome = Arc::new(Mutex::new(None));
    let (request, kept) = (request.to_owned(), outcome.clone());
    simulate(0..1, move || {
        let (request, kept) = (request.clone(), kept.clone());
        async move {
            let (asked, connections) = (Rc::<RefCell<Vec<_>>>::default(), Rc::<Cell<usize>>::default());
            let application = spawn_local(answering(answer, asked.clone(), connections.clone()));
            let application_by_fastcgi = FastCgi::new(Address::tcp(APPLICATION))
                .kept_connections(8, Duration::from_millis(500))
                .error_log(ErrorLog::new(|_, _| {}));
            let taken = Rc::new(Cell::new(0));
            let way = || Way { application: application_by_fastcgi.clone(), is_short, taken: taken.clone() };
            let mut got = [const { String::new() }; 3];
            for got in &mut got {
                *got = through(way(), &request).await;
            }
            sleep(Duration::from_secs(2)).await;
            application.cancel();
            sleep(Duration::from_secs(1)).await;
            let (connections, taken) = (connections.get(), taken.get());
            let asked = asked.take();
            *kept.lock().unwrap() = Some(Exchanged { asked, got, connections, taken });
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
    let (mut taken, mut kept) = (0, 0);
    let mut compare = |target: &str, line: &str, answer| {
        let request = format!("GET {target} HTTP/1.1\r\nHost: loom:81\r\nConnection: close\r\n{line}");
        let request = if line.contains("\r\n\r\n") { request } else { format!("{request}\r\n\r\n") };
        let request = request.replace("\r\n\r\n\r\n", "\r\n\r\n");
        let (short, long) = (exchanged(true, &request, answer), exchanged(false, &request, answer));
        assert_eq!(short.asked, long.asked, "{request}");
        assert_eq!(short.connections, long.connections, "{request}{answer:?}");
        for (short, long) in short.got.iter().zip(&long.got) {
            assert_eq!(sorted(short), sorted(long), "{request}{answer:?}");
        }
        taken += short.taken;
        kept += usize::from(short.connections < short.asked.len());
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
    assert!(taken > 90, "{taken} requests went the short way");
    assert!(kept > 30, "{kept} times a connection was kept");
}

/// A request by the short way on a kept connection.
async fn call(application: &FastCgi) -> StatusCode {
    let caller = LazyCaller::new(None);
    let request = PlainRequest::new(b"/a", b"loom", b"Host: loom\r\n\r\n", &caller);
    application.call_plain(&request).expect("it is usual").await.status()
}

/// An application that answers at once, then after `pause`, and then never. It returns what it was
/// sent after the third request.
async fn slower_and_slower(pause: Duration) -> Vec<u8> {
    let (stream, _) = listen(APPLICATION).accept().await.unwrap();
    for pause in [Duration::ZERO, pause] {
        whole_request(&stream).await.expect("a request");
        sleep(pause).await;
        let answer = [record(6, b"Status: 200\r\n\r\nweft", 1), record(3, &[0; 8], 0)].concat();
        stream.write_all(&answer).await.unwrap();
    }
    whole_request(&stream).await.expect("a request");
    stream.read_to_end().await.unwrap()
}

#[test]
fn a_slow_answer_on_a_kept_connection_is_waited_for() {
    simulate(0..8, || async {
        let application = spawn_local(slower_and_slower(Duration::from_millis(500)));
        let client = FastCgi::new(Address::tcp(APPLICATION))
            .kept_connections(8, Duration::from_secs(10))
            .read_limit(Duration::from_secs(7))
            .error_log(ErrorLog::new(|_, _| {}));
        for (status, millis) in [(200, 0), (200, 500), (504, 7000)] {
            let start = now();
            assert_eq!(call(&client).await, status);
            let took = now().since(start).as_millis();
            assert!((millis..millis + 20).contains(&took), "{took} ms");
        }
        // The request was given up, and its connection closed.
        assert_eq!(application.await.unwrap(), record(2, b"", 0));
    });
}

#[test]
fn a_request_on_a_kept_connection_is_given_up_with_its_client() {
    simulate(0..8, || async {
        let application = spawn_local(slower_and_slower(Duration::ZERO));
        let client = FastCgi::new(Address::tcp(APPLICATION)).kept_connections(8, Duration::from_secs(10));
        for _ in 0..2 {
            assert_eq!(call(&client).await, 200);
        }
        // Before the client is looked after.
        assert!(timeout(Duration::from_millis(20), call(&client)).await.is_err());
        assert_eq!(application.await.unwrap(), record(2, b"", 0));
    });
}
