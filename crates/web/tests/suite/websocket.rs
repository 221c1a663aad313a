//! WebSockets and events over a connection.

use selvedge_core::{Time, round_robin_over, spawn_local};
use selvedge_handler::{Duplex, Upgraded};
use selvedge_http::{Config, Site};
use selvedge_io::EventLoop;
use selvedge_io::net::UnixStream;
use selvedge_sim::World;
use selvedge_web::testing::{TestRequest, ask};
use selvedge_web::{Message, Response, Router, WebSocket, WebSocketUpgrade};
use std::cell::Cell;
use std::io;
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

async fn echo(upgrade: WebSocketUpgrade) -> Response {
    upgrade.protocols(&["loom", "chat"]).message_bytes_max(100_000).on_upgrade(async |mut socket| {
        while let Ok(Some(message)) = socket.next().await {
            if message == Message::text("bye") {
                let _ = socket.close().await;
                return;
            }
            socket.send(message).await.unwrap();
        }
    })
}

const REQUEST: &[u8] = b"GET /echo HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: x, chat\r\n\r\n";

/// Runs `client` with a WebSocket to [`echo`].
fn with_socket<T: 'static>(client: impl AsyncFnOnce(WebSocket) -> T + 'static) -> T {
    let main = async {
        let site = Site::with_handler(Router::new().get("/echo", echo), Config::default(), None);
        let (stream, server) = UnixStream::pair().unwrap();
        let server = spawn_local(site.serve(server.into(), None));
        stream.write_all(REQUEST).await.unwrap();
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            assert_eq!(stream.read(&mut byte).await.unwrap(), 1);
            head.push(byte[0]);
        }
        let head = String::from_utf8(head).unwrap();
        assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
        // The example of RFC 6455 §1.3.
        assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"), "{head}");
        assert!(head.contains("sec-websocket-protocol: chat\r\n"), "{head}");
        let result = client(WebSocket::client(Upgraded::of_stream(Default::default(), stream))).await;
        server.await.unwrap();
        result
    };
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap()
}

#[test]
fn messages_come_back_in_order() {
    with_socket(async |mut socket| {
        let long = "x".repeat(100_000);
        for text in ["warp", "", &long] {
            socket.send(text).await.unwrap();
            assert_eq!(socket.next().await.unwrap(), Some(Message::text(text)));
        }
        let bytes = Message::binary(vec![0, 255, 7]);
        socket.send(bytes.clone()).await.unwrap();
        socket.send(Message::Ping("a ping".into())).await.unwrap();
        assert_eq!(socket.next().await.unwrap(), Some(bytes));
        socket.close().await.unwrap();
    });
}

#[test]
fn the_server_closes_with_a_farewell() {
    with_socket(async |mut socket| {
        socket.send("bye").await.unwrap();
        assert_eq!(socket.next().await.unwrap(), None);
    });
}

#[test]
fn a_message_beyond_its_limit_closes_the_connection() {
    with_socket(async |mut socket| {
        socket.send("x".repeat(100_001)).await.unwrap();
        assert!(matches!(socket.next().await, Ok(None) | Err(_)));
    });
}

#[test]
fn a_request_that_asks_for_no_socket_is_told_so() {
    let main = async {
        let router = Router::new().get("/echo", echo);
        let plain = ask(&router, TestRequest::get("/echo")).await;
        assert_eq!((plain.status(), plain.header("upgrade")), (426, Some("websocket")));
        let asks =
            || TestRequest::get("/echo").header("connection", "upgrade").header("upgrade", "WebSocket");
        let old = ask(&router, asks().header("sec-websocket-version", "8")).await;
        assert_eq!((old.status(), old.header("sec-websocket-version")), (400, Some("13")));
        assert_eq!(ask(&router, asks().header("sec-websocket-version", "13")).await.status(), 400);
    };
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap();
}

/// A connection to a peer that sends nothing more. It takes bytes when `takes` says so.
struct Quiet {
    takes: Rc<Cell<bool>>,
}

impl Duplex for Quiet {
    fn poll_read(&self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
        Poll::Pending
    }

    fn poll_write(&self, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        if self.takes.get() { Poll::Ready(Ok(bytes.len())) } else { Poll::Pending }
    }

    fn poll_finish(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[test]
fn a_wait_that_is_given_up_while_a_pong_goes_out_loses_no_message() {
    let takes = Rc::new(Cell::new(false));
    let ping_and_text = b"\x89\x01p\x81\x04warp";
    let quiet = Quiet { takes: takes.clone() };
    let mut socket = WebSocket::client(Upgraded::new(ping_and_text.as_slice().into(), quiet));
    let cx = &mut Context::from_waker(Waker::noop());
    for _ in 0..3 {
        assert!(pin!(socket.next()).poll(cx).is_pending());
    }
    takes.set(true);
    let Poll::Ready(message) = pin!(socket.next()).poll(cx) else { panic!("the text is there") };
    assert_eq!(message.unwrap(), Some(Message::text("warp")));
}

#[test]
fn a_peer_that_does_not_agree_to_a_close_is_left() {
    let main = async {
        let quiet = Quiet { takes: Rc::new(Cell::new(true)) };
        let start = Time::now();
        let closed = WebSocket::client(Upgraded::new(Default::default(), quiet)).close().await;
        assert!(Time::now() >= start + Duration::from_secs(5));
        assert!(Time::now() < start + Duration::from_secs(6));
        closed.unwrap_err().to_string()
    };
    let error = World::new(1).run(main).unwrap().output;
    assert!(error.contains("timed out"), "{error}");
}
