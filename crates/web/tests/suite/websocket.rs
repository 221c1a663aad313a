//! WebSockets and events over a connection.

use selvedge_core::{round_robin_with, spawn_local};
use selvedge_handler::Upgraded;
use selvedge_http::{Config, Site};
use selvedge_io::EventLoop;
use selvedge_io::net::UnixStream;
use selvedge_web::testing::{TestRequest, ask};
use selvedge_web::{Message, Response, Router, WebSocket, WebSocketUpgrade};

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
    round_robin_with(&mut EventLoop::new().unwrap(), main).unwrap()
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
    round_robin_with(&mut EventLoop::new().unwrap(), main).unwrap();
}
