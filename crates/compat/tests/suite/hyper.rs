//! hyper's server and client on our threads.
#![cfg(feature = "hyper")]

use crate::common::{listen, ms, noise, run, run_on_tokio};
use http_body_util::{BodyExt, Empty, Full, StreamBody};
use hyper::body::{Bytes, Frame, Incoming};
use hyper::client::conn::{http1 as client_http1, http2 as client_http2};
use hyper::server::conn::{http1, http2};
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use selvedge_compat::Compat;
use selvedge_compat::hyper::{Clock, Spawn, SpawnLocal};
use selvedge_core::{Time, spawn_local};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::{sleep, timeout};
use std::cell::Cell;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// How long a head may take. Long enough for a machine that does much else.
const HEAD: Duration = ms(500);

type Body = http_body_util::combinators::UnsyncBoxBody<Bytes, hyper::Error>;

fn full(bytes: impl Into<Bytes>) -> Body {
    Full::new(bytes.into()).map_err(|never| match never {}).boxed_unsync()
}

/// What the servers of these tests serve.
async fn site(request: Request<Incoming>) -> Result<Response<Body>, hyper::Error> {
    Ok(match (request.method(), request.uri().path()) {
        (_, "/hello") => Response::new(full("hello")),
        (_, "/slow") => {
            sleep(ms(20)).await;
            Response::new(full("at last"))
        }
        (_, "/never") => std::future::pending().await,
        // What comes goes back, as it comes.
        (&Method::POST, "/echo") => Response::new(request.into_body().boxed_unsync()),
        (_, "/large") => Response::new(full(noise(4_000_000))),
        (_, "/beats") => {
            let beats = futures::stream::unfold(0, |i| async move {
                sleep(ms(2)).await;
                (i < 5).then(|| (Ok(Frame::data(Bytes::from(format!("beat {i}\n")))), i + 1))
            });
            Response::new(StreamBody::new(beats).boxed_unsync())
        }
        _ => {
            let mut response = Response::new(full(""));
            *response.status_mut() = StatusCode::NOT_FOUND;
            response
        }
    })
}

/// Serves HTTP/1, a thread for each connection; how each ends is counted.
async fn serve(listener: TcpListener, good: Rc<Cell<usize>>, bad: Rc<Cell<usize>>) {
    let mut http = http1::Builder::new();
    http.timer(Clock).header_read_timeout(HEAD);
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        let connection = http.serve_connection(Compat::new(stream), service_fn(site));
        let (good, bad) = (good.clone(), bad.clone());
        drop(spawn_local(async move {
            let ends = if connection.await.is_ok() { good } else { bad };
            ends.set(ends.get() + 1);
        }));
    }
}

/// A server that runs for as long as the test, and counts: connections that ended well, and others.
fn server() -> (SocketAddr, Rc<Cell<usize>>, Rc<Cell<usize>>) {
    let (listener, address) = listen();
    let (good, bad) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    drop(spawn_local(serve(listener, good.clone(), bad.clone())));
    (address, good, bad)
}

async fn client(address: SocketAddr) -> client_http1::SendRequest<Body> {
    let stream = Compat::new(TcpStream::connect(address).await.unwrap());
    let (client, connection) = client_http1::handshake(stream).await.unwrap();
    drop(spawn_local(connection));
    client
}

fn get(path: &str) -> Request<Body> {
    Request::get(path).header("host", "localhost").body(full("")).unwrap()
}

fn post(path: &str, body: Body) -> Request<Body> {
    Request::post(path).header("host", "localhost").body(body).unwrap()
}

async fn bytes(response: Response<Incoming>) -> Bytes {
    response.into_body().collect().await.unwrap().to_bytes()
}

/// All that comes until the server closes.
async fn rest(stream: &TcpStream) -> String {
    let mut received = Vec::with_capacity(1 << 16);
    while stream.read_to_spare(&mut received).await.unwrap() > 0 {}
    String::from_utf8(received).unwrap()
}

#[test]
fn many_requests_on_one_connection() {
    run(async {
        let (address, good, bad) = server();
        let mut client = client(address).await;
        for i in 0..300 {
            let (path, answer) = if i % 100 == 0 { ("/slow", "at last") } else { ("/hello", "hello") };
            assert_eq!(bytes(client.send_request(get(path)).await.unwrap()).await, answer);
        }
        assert_eq!(client.send_request(get("/nothing")).await.unwrap().status(), StatusCode::NOT_FOUND);
        drop(client);
        while good.get() == 0 {
            sleep(ms(1)).await;
        }
        assert_eq!((good.get(), bad.get()), (1, 0));
    });
}

#[test]
fn what_a_socket_sees() {
    run(async {
        let (address, ..) = server();
        let stream = TcpStream::connect(address).await.unwrap();
        // Two in one packet, the third in pieces, and the last closes.
        stream
            .write_all(b"GET /hello HTTP/1.1\r\nhost: x\r\n\r\nGET /slow HTTP/1.1\r\nhost: x\r\n\r\n")
            .await
            .unwrap();
        for piece in ["GET /be", "ats HTTP/1.1\r\nho", "st: x\r\n\r\n"] {
            stream.write_all(piece.as_bytes()).await.unwrap();
            sleep(ms(3)).await;
        }
        stream.write_all(b"GET /hello HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").await.unwrap();
        let answer = rest(&stream).await;
        assert_eq!(answer.matches("HTTP/1.1 200 OK\r\n").count(), 4, "{answer}");
        let [one, two, three] = ["hello", "at last", "beat 4\n"].map(|text| answer.find(text).unwrap());
        assert!(one < two && two < three && answer.ends_with("hello"), "{answer}");
    });
}

#[test]
fn large_bodies_both_ways() {
    run(async {
        let (address, ..) = server();
        let mut client = client(address).await;
        let large = noise(4_000_000);
        assert!(bytes(client.send_request(get("/large")).await.unwrap()).await == large);
        // The answer begins before the request has ended: both directions are full at once.
        assert!(bytes(client.send_request(post("/echo", full(large.clone()))).await.unwrap()).await == large);
        // Of unknown length, in chunks.
        let chunks =
            large.chunks(100_001).map(|c| Ok(Frame::data(Bytes::copy_from_slice(c)))).collect::<Vec<_>>();
        let chunked = StreamBody::new(futures::stream::iter(chunks)).boxed_unsync();
        assert!(bytes(client.send_request(post("/echo", chunked)).await.unwrap()).await == large);
        assert_eq!(bytes(client.send_request(get("/hello")).await.unwrap()).await, "hello");
    });
}

#[test]
fn a_hundred_clients_at_once() {
    run(async {
        let (address, good, bad) = server();
        let clients = (0..100).map(|_| {
            spawn_local(async move {
                let mut client = client(address).await;
                for path in ["/hello", "/beats", "/slow", "/hello"] {
                    assert!(!bytes(client.send_request(get(path)).await.unwrap()).await.is_empty());
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.unwrap();
        }
        while good.get() < 100 {
            sleep(ms(1)).await;
        }
        assert_eq!(bad.get(), 0);
    });
}

#[test]
fn a_head_that_does_not_come_is_timed_out_by_our_clock() {
    run(async {
        let (address, good, bad) = server();
        // hyper's time-out runs anew for each head: a connection lives longer than that.
        let mut steady = client(address).await;
        let start = Time::now();
        for _ in 0..8 {
            sleep(ms(80)).await;
            assert_eq!(bytes(steady.send_request(get("/hello")).await.unwrap()).await, "hello");
        }
        assert!(Time::now().since(start) > HEAD);
        let stream = TcpStream::connect(address).await.unwrap();
        let start = Time::now();
        stream.write_all(b"GET /hello HTT").await.unwrap();
        let answer = rest(&stream).await;
        let waited = Time::now().since(start);
        assert!(waited >= HEAD && waited < ms(20_000), "{waited:?}");
        assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
        while bad.get() == 0 {
            sleep(ms(1)).await;
        }
        drop((good, steady));
    });
}

#[test]
fn a_client_that_gives_up_cancels_what_it_asked_for() {
    struct Gone(Rc<Cell<bool>>);
    impl Drop for Gone {
        fn drop(&mut self) {
            self.0.set(true);
        }
    }
    run(async {
        let (listener, address) = listen();
        let gone = Rc::new(Cell::new(false));
        let guard = gone.clone();
        drop(spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let never = service_fn(move |_| {
                let guard = Gone(guard.clone());
                async move {
                    let _guard = guard;
                    std::future::pending::<Result<Response<Body>, Infallible>>().await
                }
            });
            let _ = http1::Builder::new().serve_connection(Compat::new(stream), never).await;
        }));
        let mut client = client(address).await;
        assert!(timeout(ms(20), client.send_request(get("/"))).await.is_err());
        assert!(!gone.get());
        drop(client);
        while !gone.get() {
            sleep(ms(1)).await;
        }
    });
}

#[test]
fn a_server_that_is_dropped_closes_its_connections() {
    run(async {
        let (listener, address) = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let connection = http1::Builder::new().serve_connection(Compat::new(stream), service_fn(site));
            // It is dropped in the middle of its second request.
            timeout(ms(30), connection).await.is_err()
        });
        let mut client = client(address).await;
        assert_eq!(bytes(client.send_request(get("/hello")).await.unwrap()).await, "hello");
        assert!(client.send_request(get("/never")).await.is_err());
        assert!(server.await.unwrap());
    });
}

#[test]
fn it_stops_gracefully() {
    run(async {
        let (listener, address) = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let connection = http1::Builder::new().serve_connection(Compat::new(stream), service_fn(site));
            let mut connection = std::pin::pin!(connection);
            if timeout(ms(10), connection.as_mut()).await.is_err() {
                connection.as_mut().graceful_shutdown();
                connection.await.unwrap();
            }
        });
        let mut client = client(address).await;
        // Under way when the server is told to stop.
        assert_eq!(bytes(client.send_request(get("/slow")).await.unwrap()).await, "at last");
        server.await.unwrap();
        assert!(client.send_request(get("/hello")).await.is_err());
    });
}

/// hyper runs each HTTP/2 stream on the executor.
#[test]
fn http_2_with_an_executor_of_threads() {
    run(async {
        let (listener, address) = listen();
        drop(spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let mut http = http2::Builder::new(SpawnLocal);
            http.timer(Clock).keep_alive_interval(ms(5)).keep_alive_timeout(ms(5_000));
            http.serve_connection(Compat::new(stream), service_fn(site)).await.unwrap();
        }));
        let stream = Compat::new(TcpStream::connect(address).await.unwrap());
        let (client, connection) =
            client_http2::Builder::new(SpawnLocal).timer(Clock).handshake::<_, Body>(stream).await.unwrap();
        drop(spawn_local(connection));
        let large = noise(1_000_000);
        let requests = (0..50).map(|i| {
            let (mut client, large) = (client.clone(), large.clone());
            spawn_local(async move {
                match i % 3 {
                    0 => assert_eq!(bytes(client.send_request(get("/slow")).await.unwrap()).await, "at last"),
                    1 => assert_eq!(bytes(client.send_request(get("/hello")).await.unwrap()).await, "hello"),
                    _ => {
                        let echo = client.send_request(post("/echo", full(large.clone()))).await.unwrap();
                        assert!(bytes(echo).await == large);
                    }
                }
            })
        });
        for request in requests.collect::<Vec<_>>() {
            request.await.unwrap();
        }
    });
}

#[test]
fn send_futures_on_the_executor_that_may_move_them() {
    run(async {
        let (listener, address) = listen();
        drop(spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let hello =
                service_fn(|_| async { Ok::<_, Infallible>(Response::new(Full::<Bytes>::from("hello"))) });
            http2::Builder::new(Spawn).serve_connection(Compat::new(stream), hello).await.unwrap();
        }));
        let stream = Compat::new(TcpStream::connect(address).await.unwrap());
        let (mut client, connection) =
            client_http2::handshake::<_, _, Empty<Bytes>>(Spawn, stream).await.unwrap();
        drop(spawn_local(connection));
        for _ in 0..10 {
            let answer = client.send_request(Request::get("/").body(Empty::new()).unwrap()).await.unwrap();
            assert_eq!(bytes(answer).await, "hello");
        }
    });
}

/// The adapters and the clock need no scheduler of ours.
#[test]
fn the_same_server_on_tokio() {
    run_on_tokio(async {
        let (listener, address) = listen();
        let served = Arc::new(AtomicUsize::new(0));
        let counter = served.clone();
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let mut http = http1::Builder::new();
                http.timer(Clock).header_read_timeout(HEAD);
                let counter = counter.clone();
                let connection = http.serve_connection(
                    Compat::new(stream),
                    service_fn(move |request| {
                        counter.fetch_add(1, Ordering::Relaxed);
                        site(request)
                    }),
                );
                tokio::spawn(connection);
            }
        });
        let clients = (0..20).map(|_| async move {
            let stream = Compat::new(TcpStream::connect(address).await.unwrap());
            let (mut client, connection) = client_http1::handshake(stream).await.unwrap();
            tokio::spawn(connection);
            for path in ["/hello", "/slow", "/beats"] {
                // The connection's task may still run behind the end of the last answer.
                client.ready().await.unwrap();
                assert!(!bytes(client.send_request(get(path)).await.unwrap()).await.is_empty());
            }
        });
        futures::future::join_all(clients).await;
        assert_eq!(served.load(Ordering::Relaxed), 60);
        let stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(b"GET ").await.unwrap();
        timeout(ms(5_000), rest(&stream)).await.expect("the head is timed out there too");
    });
}

#[test]
fn a_connection_served_by_hyper_and_asked_by_curl() {
    let (listener, address) = listen();
    // Without curl there is nothing to see; everything else in this file is seen without it.
    let curl = std::process::Command::new("curl")
        .args(["-sS", "--max-time", "20", "-d", "@-", &format!("http://{address}/echo")])
        .args(["--next", "-sS", "--max-time", "20", &format!("http://{address}/hello")])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn();
    let Ok(mut curl) = curl else { return };
    let large: String = "0123456789".repeat(50_000);
    let sent = large.clone();
    let mut input = curl.stdin.take().unwrap();
    let feeder = std::thread::spawn(move || std::io::Write::write_all(&mut input, sent.as_bytes()));
    let output = std::thread::spawn(move || curl.wait_with_output().unwrap());
    run(async move {
        let (good, bad) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        drop(spawn_local(serve(listener, good, bad.clone())));
        while !output.is_finished() {
            sleep(ms(5)).await;
        }
        feeder.join().unwrap().unwrap();
        let output = output.join().unwrap();
        assert!(output.status.success(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert!(text.strip_prefix(&large) == Some("hello"), "both bodies came whole");
        assert_eq!(bad.get(), 0);
    });
}
