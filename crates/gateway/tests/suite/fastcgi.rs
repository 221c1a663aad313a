//! FastCGI in both roles: this crate's client with this crate's responder, and the client with
//! applications that a test writes byte by byte.

use crate::scripts::{get, request, text_of};
use selvedge_client::Address;
use selvedge_core::spawn_local;
use selvedge_gateway::{ErrorLog, FastCgi, serve_fastcgi};
use selvedge_handler::{Body, Handler, Request, Response, StatusCode};
use selvedge_io::net::{TcpListener, UnixListener};
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

const APPLICATION: &str = "127.0.0.1:9000";

fn listen() -> TcpListener {
    TcpListener::bind(APPLICATION.parse().unwrap()).unwrap()
}

fn client() -> FastCgi {
    FastCgi::new(Address::tcp(APPLICATION)).kept_connections(0, Duration::ZERO)
}

/// Answers with what it was asked, and the body.
async fn echo(request: Request) -> Response {
    let line = format!("{} {} ", request.method(), request.uri());
    let mut body = request.into_body();
    Response::new(Body::produce(async move |mut out| {
        out.put(line).await;
        while let Some(piece) = body.next().await.transpose()? {
            out.put(piece).await;
        }
        Ok::<(), selvedge_handler::BodyError>(())
    }))
}

#[test]
fn a_request_and_its_answer_flow_both_ways() {
    simulate(0..8, || async {
        let application = spawn_local(serve_fastcgi(listen(), echo));
        for (method, body) in [("GET", 0), ("POST", 5), ("PUT", 300_000)] {
            let asked = request(method, "/a%20b?c=d", &[], vec![b'x'; body]);
            let answer = text_of(client().call(asked).await).await;
            let expected = format!("200  {method} /a%20b?c=d {}", "x".repeat(body));
            assert!(
                answer == expected,
                "{} bytes for {} bytes: {}",
                answer.len(),
                expected.len(),
                &answer[..40.min(answer.len())]
            );
        }
        let head = text_of(client().call(request("HEAD", "/", &[], "")).await).await;
        assert_eq!(head, "200  ");
        application.cancel();
        sleep(Duration::from_secs(1)).await;
    });
}

#[test]
fn fields_and_the_status_go_through() {
    async fn teapot(request: Request) -> Response {
        let own = request.headers()["x-own"].clone();
        let kind = request.headers()["content-type"].clone();
        Response::builder()
            .status(StatusCode::IM_A_TEAPOT)
            .header("x-own", own)
            .header("content-type", kind)
            .header("connection", "close")
            .body("short".into())
            .unwrap()
    }
    simulate(0..4, || async {
        let application = spawn_local(serve_fastcgi(listen(), teapot));
        let asked = request("POST", "/", &[("x-own", "warp"), ("content-type", "a/b")], "z");
        let answer = text_of(client().call(asked).await).await;
        assert_eq!(answer, "418 x-own=warp|content-type=a/b|content-length=5| short");
        application.cancel();
        sleep(Duration::from_secs(1)).await;
    });
}

/// Counts the connections.
struct Counting(TcpListener, Rc<Cell<u32>>);

impl selvedge_gateway::Accepts for Counting {
    async fn accept(&self) -> std::io::Result<selvedge_io::net::Stream> {
        let (stream, _) = self.0.accept().await?;
        self.1.set(self.1.get() + 1);
        Ok(stream.into())
    }
}

#[test]
fn a_connection_serves_several_requests() {
    simulate(0..8, || async {
        let accepted = Rc::new(Cell::new(0));
        let application = spawn_local(serve_fastcgi(Counting(listen(), accepted.clone()), echo));
        let client = client().kept_connections(4, Duration::from_secs(60));
        for _ in 0..5 {
            let asked = request("POST", "/", &[], "warp");
            assert_eq!(text_of(client.call(asked).await).await, "200  POST / warp");
        }
        assert_eq!(accepted.get(), 1);
        drop(client);
        application.cancel();
        sleep(Duration::from_secs(1)).await;
    });
}

#[test]
fn a_unix_socket_is_an_application_too() {
    simulate(0..4, || async {
        let application = spawn_local(serve_fastcgi(UnixListener::bind("/run/app.sock").unwrap(), echo));
        let client = FastCgi::new(Address::unix("/run/app.sock")).kept_connections(0, Duration::ZERO);
        assert_eq!(text_of(client.call(get("/x")).await).await, "200  GET /x ");
        application.cancel();
        sleep(Duration::from_secs(1)).await;
    });
}

#[test]
fn a_handler_that_does_not_read_the_body_answers_all_the_same() {
    async fn deaf(_: Request) -> &'static str {
        "ok"
    }
    simulate(0..8, || async {
        let application = spawn_local(serve_fastcgi(listen(), deaf));
        let client = client().kept_connections(4, Duration::from_secs(60));
        for _ in 0..3 {
            let asked = request("POST", "/", &[], vec![b'x'; 100_000]);
            assert!(text_of(client.call(asked).await).await.ends_with("| ok"));
        }
        drop(client);
        application.cancel();
        sleep(Duration::from_secs(1)).await;
    });
}

#[test]
fn a_client_that_goes_away_has_the_handler_dropped() {
    struct Told(Rc<Cell<bool>>);
    impl Drop for Told {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    simulate(0..8, || async {
        let dropped = Rc::new(Cell::new(false));
        let handler = {
            let dropped = dropped.clone();
            move |_: Request| {
                let told = Told(dropped.clone());
                async move {
                    sleep(Duration::from_secs(3600)).await;
                    drop(told);
                    "late"
                }
            }
        };
        let application = spawn_local(serve_fastcgi(listen(), handler));
        let asking = spawn_local(async { client().call(get("/")).await.status() });
        sleep(Duration::from_secs(2)).await;
        assert!(!dropped.get());
        asking.cancel();
        sleep(Duration::from_secs(2)).await;
        assert!(dropped.get());
        application.cancel();
        sleep(Duration::from_secs(1)).await;
    });
}

/// A record with its padding.
pub(crate) fn record(kind: u8, content: &[u8], padding: u8) -> Vec<u8> {
    let length = (content.len() as u16).to_be_bytes();
    let head = [1, kind, 0, 1, length[0], length[1], padding, 0];
    [&head[..], content, &vec![0; usize::from(padding)]].concat()
}

const END: [u8; 8] = [0; 8];

/// The answer of an application that says `said` after the request, and closes.
async fn says(said: Vec<u8>) -> (String, Vec<String>) {
    let listener = listen();
    let application = spawn_local(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut all = Vec::new();
        // The end of the input is the last record of a request without a body.
        while !all.ends_with(&record(5, b"", 0)) {
            let mut buffer = [0; 1000];
            let read = stream.read(&mut buffer).await.unwrap();
            all.extend_from_slice(&buffer[..read]);
        }
        stream.write_all(&said).await.unwrap();
    });
    let logged = Arc::new(Mutex::new(Vec::new()));
    let log = logged.clone();
    let log = ErrorLog::new(move |_, line| log.lock().unwrap().push(line.to_owned()));
    let answer = text_of(client().error_log(log).call(get("/")).await).await;
    application.await.unwrap();
    let logged = logged.lock().unwrap().clone();
    (answer, logged)
}

#[test]
fn records_with_padding_and_error_output_between() {
    simulate(0..8, || async {
        let said = [
            record(6, b"Content-Ty", 3),
            record(7, b"warning: we", 0),
            record(6, b"pe: a/b\r\n\r\nwa", 255),
            record(7, b"ft\n", 1),
            record(6, b"rp", 0),
            record(6, b"", 0),
            record(7, b"", 8),
            record(3, &END, 0),
        ];
        let (answer, logged) = says(said.concat()).await;
        assert_eq!(answer, "200 content-type=a/b| warp");
        assert_eq!(logged, ["warning: weft"]);
    });
}

#[test]
fn an_application_that_breaks_off_or_speaks_nonsense() {
    let head = b"Content-Type: a/b\r\n\r\nwa";
    for (said, expected) in [
        (vec![], "502 "),
        (record(3, &END, 0), "502 "),
        (record(3, &[0, 0, 0, 0, 2, 0, 0, 0], 0), "503 "),
        (record(3, b"x", 0), "502 "),
        (b"HTTP/1.1 200 OK\r\n\r\n".to_vec(), "502 "),
        (record(6, b"no head\n\n", 0), "502 "),
        (record(6, b"Content-Type: a/b\r\n", 0), "502 "),
        (record(6, head, 0), "200 content-type=a/b| broken: the connection ended within the body"),
        (record(6, head, 9)[..30].to_vec(), "200 content-type=a/b| broken: "),
    ] {
        simulate(0..4, move || {
            let said = said.clone();
            async move {
                let (answer, logged) = says(said.clone()).await;
                assert!(answer.starts_with(expected), "{said:?}: {answer}");
                assert!(expected.starts_with("200") || logged.len() == 1, "{logged:?}");
            }
        });
    }
}

#[test]
fn no_application_and_a_slow_one() {
    simulate(0..4, || async {
        let quiet = || client().error_log(ErrorLog::new(|_, _| {}));
        assert_eq!(quiet().call(get("/")).await.status(), 502);
        let listener = listen();
        let application = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            sleep(Duration::from_secs(100)).await;
            drop(stream);
        });
        let start = selvedge_core::now();
        assert_eq!(quiet().read_limit(Duration::from_secs(7)).call(get("/")).await.status(), 504);
        assert_eq!(selvedge_core::now().since(start).as_secs(), 7);
        application.await.unwrap();
    });
}

/// A server that keeps no connection gets the whole answer, although the handler has not read the
/// body that is still on its way.
#[test]
fn an_answer_before_the_body_is_not_reset() {
    async fn deaf(_: Request) -> String {
        "x".repeat(200_000)
    }
    simulate(0..8, || async {
        let application = spawn_local(serve_fastcgi(listen(), deaf));
        let stream = selvedge_io::net::TcpStream::connect(APPLICATION.parse().unwrap()).await.unwrap();
        let params = b"\x0e\x04REQUEST_METHODPOST\x0e\x06CONTENT_LENGTH100000";
        let begin = [record(1, &[0, 1, 0, 0, 0, 0, 0, 0], 0), record(4, params, 0), record(4, b"", 0)];
        stream.write_all(&begin.concat()).await.unwrap();
        let body = async {
            for _ in 0..10 {
                sleep(Duration::from_millis(20)).await;
                if stream.write_all(&record(5, &[b'y'; 10_000], 0)).await.is_err() {
                    break;
                }
            }
            let _ = stream.shutdown(std::net::Shutdown::Write);
        };
        let ((), answer) = selvedge_scope::join((body, stream.read_to_end())).await;
        let content = answer.unwrap().iter().filter(|byte| **byte == b'x').count();
        assert!(content >= 200_000, "{content}");
        application.cancel();
        sleep(Duration::from_secs(5)).await;
    });
}

/// What a server sends behind the length that it has said is no part of the body: a proxy behind
/// the handler would send it as the beginning of another request.
#[test]
fn content_behind_the_length_is_not_in_the_body() {
    simulate(0..8, || async {
        let application = spawn_local(serve_fastcgi(listen(), echo));
        for pieces in [&["warpSURPLUS"][..], &["wa", "rpSURPLUS"], &["warp", "SURPLUS", "SURPLUS"]] {
            let stream = selvedge_io::net::TcpStream::connect(APPLICATION.parse().unwrap()).await.unwrap();
            let params = b"\x0e\x04REQUEST_METHODPOST\x0e\x01CONTENT_LENGTH4";
            let mut all =
                vec![record(1, &[0, 1, 0, 0, 0, 0, 0, 0], 0), record(4, params, 0), record(4, b"", 0)];
            all.extend(pieces.iter().map(|piece| record(5, piece.as_bytes(), 0)));
            all.push(record(5, b"", 0));
            stream.write_all(&all.concat()).await.unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            let answer = String::from_utf8_lossy(&stream.read_to_end().await.unwrap()).into_owned();
            assert!(!answer.contains("SURPLUS"), "{pieces:?}: {answer:?}");
            let content: String = answer.chars().filter(|letter| "warp".contains(*letter)).collect();
            assert!(content.ends_with("warp"), "{pieces:?}: {answer:?}");
        }
        application.cancel();
        sleep(Duration::from_secs(5)).await;
    });
}

#[test]
fn a_parameter_of_ones_own_replaces_that_of_the_request() {
    async fn own(request: Request) -> String {
        let values = request.headers().get_all("x-own").iter();
        values.map(|value| format!("<{}>", value.to_str().unwrap())).collect()
    }
    simulate(0..4, || async {
        let application = spawn_local(serve_fastcgi(listen(), own));
        let client = client().variable("HTTP_X_OWN", "first").variable("HTTP_X_OWN", "linen");
        let answer = text_of(client.call(request("GET", "/", &[("x-own", "forged")], "")).await).await;
        assert!(answer.ends_with("| <linen>"), "{answer}");
        application.cancel();
        sleep(Duration::from_secs(1)).await;
    });
}

/// Eight clients ask without a pause, and the application has a process for each. The first answers
/// take longer than the patience before any time is usual, so some connections are closed then.
#[test]
fn an_application_with_enough_processes_keeps_its_connections() {
    async fn slow(_: Request) -> &'static str {
        sleep(Duration::from_millis(20)).await;
        "ok"
    }
    simulate(0..8, || async {
        let accepted = Rc::new(Cell::new(0));
        let application = spawn_local(serve_fastcgi(Counting(listen(), accepted.clone()), slow));
        let client = FastCgi::new(Address::tcp(APPLICATION));
        let clients: Vec<_> = (0..8)
            .map(|_| {
                let client = client.clone();
                spawn_local(async move {
                    for _ in 0..50 {
                        assert!(text_of(client.call(get("/")).await).await.ends_with("ok"));
                    }
                })
            })
            .collect();
        for asking in clients {
            asking.await.unwrap();
        }
        assert!(accepted.get() <= 40, "{} connections for 400 requests", accepted.get());
        drop(client);
        application.cancel();
        sleep(Duration::from_secs(2)).await;
    });
}

/// An application with one process, as PHP-FPM has them: it serves a connection until that is
/// closed, and only then the next one.
async fn one_process(listener: TcpListener) {
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let mut all = Vec::new();
        loop {
            let mut buffer = [0; 1000];
            let Ok(read @ 1..) = stream.read(&mut buffer).await else { break };
            all.extend_from_slice(&buffer[..read]);
            if all.ends_with(&record(5, b"", 0)) {
                all.clear();
                sleep(Duration::from_millis(20)).await;
                let said = [record(6, b"Content-Type: a/b\r\n\r\nwarp", 0), record(3, &END, 0)].concat();
                stream.write_all(&said).await.unwrap();
            }
        }
    }
}

/// A kept connection holds the only process, and no request waits for it for long: neither one of
/// the same handler, nor one of another worker, whether the first is idle or busy.
#[test]
fn kept_connections_starve_no_request() {
    simulate(0..8, || async {
        let application = spawn_local(one_process(listen()));
        let worker = || FastCgi::new(Address::tcp(APPLICATION));
        let ask = |client: &FastCgi| {
            let client = client.clone();
            spawn_local(async move {
                let start = selvedge_core::now();
                let answer = text_of(client.call(get("/")).await).await;
                (answer, selvedge_core::now().since(start))
            })
        };
        let (first, second) = (worker(), worker());
        let together: Vec<_> = (0..6).map(|_| ask(&first)).collect();
        for asked in together {
            let (answer, took) = asked.await.unwrap();
            assert_eq!(answer, "200 content-type=a/b| warp");
            assert!(took < Duration::from_secs(1), "{took:?}");
        }
        // The first worker has a connection that is idle, and then one that is always busy.
        ask(&first).await.unwrap();
        assert!(ask(&second).await.unwrap().1 < Duration::from_secs(2));
        let busy = spawn_local({
            let first = first.clone();
            async move {
                loop {
                    text_of(first.call(get("/")).await).await;
                }
            }
        });
        sleep(Duration::from_millis(500)).await;
        let (answer, took) = ask(&second).await.unwrap();
        assert!(answer.starts_with("200 ") && took < Duration::from_secs(3), "{took:?}");
        busy.cancel();
        application.cancel();
        sleep(Duration::from_secs(2)).await;
    });
}
