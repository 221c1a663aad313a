//! Bodies in both directions, with trailers, interim answers, upgrades.

use crate::server::{URI, answer, listen, read_until};
use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode};
use http_body::{Body, Frame};
use selvedge_client::{Address, Client, OnInterim};
use selvedge_core::spawn_local;
use selvedge_io::net::UnixListener;
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

/// A body of unknown length: these pieces, and then these trailers.
struct Pieces(Vec<&'static str>, Option<HeaderMap>);

impl Body for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        if self.0.is_empty() {
            return Poll::Ready(self.1.take().map(|trailers| Ok(Frame::trailers(trailers))));
        }
        let piece = self.0.remove(0);
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(piece.as_bytes())))))
    }
}

#[test]
fn an_answer_of_every_framing_is_read() {
    for (text, content) in [
        ("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello"),
        ("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n", "hello"),
        ("HTTP/1.0 200 OK\r\n\r\nhello", "hello"),
        ("HTTP/1.1 204 No Content\r\n\r\n", ""),
    ] {
        simulate(0..8, move || async move {
            let listener = listen();
            let server = spawn_local(async move {
                let (stream, _) = listener.accept().await.unwrap();
                answer(&stream, text).await.unwrap()
            });
            let client = Client::builder().idle_connections_max(0).build();
            let got = client.get(format!("{URI}a?b")).header("x", "y").await.unwrap();
            assert_eq!(got.into_body().text(100).await.unwrap(), content);
            let asked = "GET /a?b HTTP/1.1\r\nhost: 127.0.0.1:80\r\nx: y\r\n\r\n";
            assert_eq!(server.await.unwrap(), asked);
        });
    }
}

#[test]
fn a_body_in_pieces_is_sent_in_chunks_with_its_trailers() {
    simulate(0..8, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let all = read_until(&stream, "\r\n0\r\nsum: 7\r\n\r\n").await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
            all
        });
        let trailers = HeaderMap::from_iter(
            [("sum", "7"), ("content-length", "1")]
                .map(|(name, value)| (name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap())),
        );
        let body = Pieces(vec!["warp", "", "weft and more"], Some(trailers));
        let client = Client::builder().idle_connections_max(0).build();
        client.send(Request::put(URI).body(body).unwrap()).await.unwrap();
        let sent = "PUT / HTTP/1.1\r\nhost: 127.0.0.1:80\r\ntransfer-encoding: chunked\r\n\r\n\
                    4\r\nwarp\r\nd\r\nweft and more\r\n0\r\nsum: 7\r\n\r\n";
        assert_eq!(server.await.unwrap(), sent);
    });
}

#[test]
fn a_server_may_answer_before_it_has_the_request() {
    simulate(0..20, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            answer(&stream, "HTTP/1.1 413 Too Large\r\nContent-Length: 4\r\n\r\nstop").await.unwrap();
            sleep(Duration::from_millis(50)).await;
        });
        let big = vec![b'x'; 1 << 20];
        let client = Client::builder().idle_connections_max(0).build();
        let got = client.post(URI).body(big).await.unwrap();
        assert_eq!(got.status(), StatusCode::PAYLOAD_TOO_LARGE);
        assert_eq!(got.into_body().text(100).await.unwrap(), "stop");
        server.await.unwrap();
    });
}

#[test]
fn request_and_answer_flow_at_the_same_time() {
    simulate(0..8, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let text = "HTTP/1.1 200 OK\r\nContent-Length: 300000\r\n\r\n";
            let head = answer(&stream, text).await.unwrap();
            let early = head.len() - head.find("\r\n\r\n").unwrap() - 4;
            stream.write_all(&vec![b'x'; early]).await.unwrap();
            // An echo: it reads no more than it can send back.
            let (mut left, mut buffer) = (300_000 - early, vec![0; 9000]);
            while left > 0 {
                let read = stream.read(&mut buffer).await.unwrap();
                stream.write_all(&buffer[..read]).await.unwrap();
                left -= read;
            }
        });
        let client = Client::builder().idle_connections_max(0).build();
        let got = client.post(URI).body(vec![b'x'; 300_000]).await.unwrap();
        assert_eq!(got.into_body().read_all(300_000).await.unwrap().len(), 300_000);
        server.await.unwrap();
    });
}

#[test]
fn interim_answers_are_told_and_100_releases_the_body() {
    simulate(0..8, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let head = read_until(&stream, "\r\n\r\n").await.unwrap();
            assert!(head.ends_with("expect: 100-continue\r\ncontent-length: 4\r\n\r\n"), "{head}");
            stream.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n").await.unwrap();
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await.unwrap();
            assert_eq!(read_until(&stream, "warp").await.unwrap(), "warp");
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
        });
        let told = Arc::new(Mutex::new(Vec::new()));
        let teller = told.clone();
        let on_interim = OnInterim::new(move |status, fields| {
            teller.lock().unwrap().push((status, fields["link"].clone()));
        });
        let client = Client::builder().idle_connections_max(0).build();
        let request = client.post(URI).header("expect", "100-continue").extension(on_interim);
        assert_eq!(request.body("warp").await.unwrap().status(), StatusCode::OK);
        assert_eq!(told.lock().unwrap()[..], [(StatusCode::EARLY_HINTS, "</a>".parse().unwrap())]);
        server.await.unwrap();
    });
}

#[test]
fn a_body_that_the_server_does_not_ask_for_is_sent_after_a_while_or_never() {
    simulate(0..8, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            read_until(&stream, "\r\n\r\nwarp").await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await.unwrap();
            drop(stream);
            let (stream, _) = listener.accept().await.unwrap();
            answer(&stream, "HTTP/1.1 403 No\r\nContent-Length: 0\r\n\r\n").await.unwrap();
            read_until(&stream, "warp").await.unwrap()
        });
        let client = Client::builder().idle_connections_max(0).build();
        for status in [StatusCode::OK, StatusCode::FORBIDDEN] {
            let got = client.post(URI).header("expect", "100-continue").body("warp").await.unwrap();
            assert_eq!(got.status(), status);
            drop(got);
        }
        assert_eq!(server.await.unwrap(), "", "the connection is closed without the body");
    });
}

#[test]
fn an_upgrade_hands_over_the_connection_and_what_came_early() {
    simulate(0..8, || async {
        let listener = listen();
        let server = spawn_local(async move {
            let (stream, _) = listener.accept().await.unwrap();
            let head = answer(
                &stream,
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\nearly",
            );
            assert!(head.await.unwrap().ends_with("upgrade: echo\r\nconnection: upgrade\r\n\r\n"));
            assert_eq!(read_until(&stream, "late").await.unwrap(), "late");
        });
        let got = Client::new().get(URI).header("upgrade", "echo").await.unwrap();
        assert_eq!(got.status(), StatusCode::SWITCHING_PROTOCOLS);
        let upgraded = got.into_body().into_upgraded().unwrap();
        let mut early = upgraded.early.to_vec();
        while early != b"early" {
            let mut buffer = [0; 10];
            let read = upgraded.stream.read(&mut buffer).await.unwrap();
            early.extend_from_slice(&buffer[..read]);
        }
        upgraded.stream.write_all(b"late").await.unwrap();
        server.await.unwrap();
    });
}

#[test]
fn a_unix_socket_is_an_address() {
    simulate(0..4, || async {
        let listener = UnixListener::bind("/run/app.sock").unwrap();
        let server = spawn_local(async move {
            let stream = listener.accept().await.unwrap();
            let mut buffer = [0; 100];
            let read = stream.read(&mut buffer).await.unwrap();
            stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await.unwrap();
            String::from_utf8_lossy(&buffer[..read]).into_owned()
        });
        let client = Client::builder().via(Address::unix("/run/app.sock")).idle_connections_max(0).build();
        let got = client.get("http://app/x").await.unwrap();
        assert_eq!(got.into_body().text(10).await.unwrap(), "ok");
        assert!(server.await.unwrap().starts_with("GET /x HTTP/1.1\r\nhost: app\r\n"));
    });
}
