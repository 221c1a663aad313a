//! A proxy between a real site and upstreams that a test writes, in simulated worlds.

use selvedge_client::{Address, Client};
use selvedge_core::spawn_local;
use selvedge_gateway::{Balance, Proxy, Upstreams};
use selvedge_http::{Config, Handler, Site};
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_io::time::sleep;
use selvedge_scope::join;
use selvedge_sim::simulate;
use std::io;
use std::time::Duration;

pub(crate) const UPSTREAM: &str = "127.0.0.1:8001";
const FRONT: &str = "127.0.0.1:80";

pub(crate) fn listen(address: &str) -> TcpListener {
    TcpListener::bind(address.parse().unwrap()).unwrap()
}

pub(crate) fn upstreams(ports: &[u16]) -> Upstreams {
    Upstreams::new(ports.iter().map(|port| Address::tcp(format!("127.0.0.1:{port}"))))
}

/// Reads until `end` has come, and returns all that was read.
pub(crate) async fn read_until(stream: &TcpStream, end: &str) -> io::Result<String> {
    let (mut all, mut buffer) = (Vec::new(), [0; 4000]);
    while !String::from_utf8_lossy(&all).contains(end) {
        match stream.read(&mut buffer).await? {
            0 => break,
            read => all.extend_from_slice(&buffer[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&all).into_owned())
}

/// Sends `request` to a site with `proxy`, and returns what comes back until the site closes.
pub(crate) async fn through(proxy: impl Handler, request: &str) -> String {
    let front = listen(FRONT);
    let server = spawn_local(async move {
        let (stream, address) = front.accept().await.unwrap();
        Site::with_handler(proxy, Config::default(), None).serve(stream.into(), Some(address.ip())).await;
    });
    let client = TcpStream::connect(FRONT.parse().unwrap()).await.unwrap();
    client.write_all(request.as_bytes()).await.unwrap();
    let answer = String::from_utf8_lossy(&client.read_to_end().await.unwrap()).into_owned();
    server.await.unwrap();
    let lines = answer.lines().filter(|line| !line.starts_with("Date: "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// A proxy that keeps no connections, so that none is left open at a test's end.
pub(crate) fn proxy(ports: &[u16]) -> Proxy {
    Proxy::new(upstreams(ports)).client(Client::builder().idle_connections_max(0).build())
}

/// Takes one request, which ends in `end`, answers it, and returns it.
async fn serve_one(listener: &TcpListener, end: &str, answer: &str) -> String {
    let (stream, _) = listener.accept().await.unwrap();
    let request = read_until(&stream, end).await.unwrap();
    stream.write_all(answer.as_bytes()).await.unwrap();
    request
}

#[test]
fn a_request_goes_through_cleaned_and_comes_back_cleaned() {
    simulate(0..8, || async {
        let upstream = listen(UPSTREAM);
        let answer = "HTTP/1.1 201 Made\r\nContent-Length: 4\r\nConnection: x-own\r\nX-Own: 1\r\n\
                      X-Other: 2\r\nKeep-Alive: 5\r\n\r\nweft";
        let request = "PUT /a?b HTTP/1.1\r\nHost: loom\r\nContent-Length: 4\r\n\
                       Connection: close, x-secret\r\nX-Secret: s\r\nX-Forwarded-For: 6.6.6.6\r\nAccept: c\r\n\r\nwarp";
        let (asked, got) =
            join((serve_one(&upstream, "warp", answer), through(proxy(&[8001]), request))).await;
        assert_eq!(
            asked,
            "PUT /a?b HTTP/1.1\r\nhost: loom\r\naccept: c\r\n\
             forwarded: for=127.0.0.1;host=\"loom\";proto=http\r\nx-forwarded-for: 127.0.0.1\r\n\
             x-forwarded-host: loom\r\nx-forwarded-proto: http\r\nvia: 1.1 selvedge\r\n\
             content-length: 4\r\n\r\nwarp"
        );
        assert_eq!(
            got,
            "HTTP/1.1 201 Created\nServer: selvedge\nx-other: 2\nvia: 1.1 selvedge\nContent-Length: 4\n\
             Connection: close\n\nweft\n"
        );
    });
}

#[test]
fn bodies_of_unknown_length_go_through_with_their_trailers() {
    simulate(0..8, || async {
        let upstream = listen(UPSTREAM);
        let answer = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nweft\r\n0\r\nSum: 4\r\n\r\n";
        let request = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTE: trailers\r\n\
                       Connection: close, te\r\n\r\n4\r\nwarp\r\n0\r\nCount: 1\r\n\r\n";
        let end = "count: 1\r\n\r\n";
        let (asked, got) = join((serve_one(&upstream, end, answer), through(proxy(&[8001]), request))).await;
        assert!(asked.ends_with("\r\n\r\n4\r\nwarp\r\n0\r\ncount: 1\r\n\r\n"), "{asked}");
        assert!(asked.contains("transfer-encoding: chunked\r\n") && asked.contains("connection: te\r\n"));
        assert!(got.ends_with("\n\n4\nweft\n0\nsum: 4\n\n"), "{got}");
    });
}

#[test]
fn large_bodies_flow_both_ways_at_once() {
    simulate(0..4, || async {
        let upstream = listen(UPSTREAM);
        let echo = spawn_local(async move {
            let (stream, _) = upstream.accept().await.unwrap();
            let (mut left, mut buffer) = (300_000, vec![0; 9000]);
            let head = read_until(&stream, "\r\n\r\n").await.unwrap();
            let early = head.len() - head.find("\r\n\r\n").unwrap() - 4;
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
            stream.write_all(&vec![b'x'; early]).await.unwrap();
            left -= early;
            while left > 0 {
                let read = stream.read(&mut buffer).await.unwrap();
                stream.write_all(&buffer[..read]).await.unwrap();
                left -= read;
            }
        });
        let front = listen(FRONT);
        let mut config = Config::default();
        config.handlers.body_bytes = 1 << 20;
        let server = spawn_local(async move {
            let (stream, _) = front.accept().await.unwrap();
            Site::with_handler(proxy(&[8001]), config, None).serve(stream.into(), None).await;
        });
        let client = TcpStream::connect(FRONT.parse().unwrap()).await.unwrap();
        let send = async {
            let head = format!(
                "POST / HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
                300_000
            );
            client.write_all(head.as_bytes()).await.unwrap();
            client.write_all(&vec![b'x'; 300_000]).await.unwrap();
        };
        let ((), got) = join((send, client.read_to_end())).await;
        let got = got.unwrap();
        let head = got.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap() + 4;
        assert_eq!(got.len() - head, 300_000);
        echo.await.unwrap();
        server.await.unwrap();
    });
}

#[test]
fn an_upgrade_is_copied_both_ways_until_both_have_ended() {
    simulate(0..8, || async {
        let upstream = listen(UPSTREAM);
        let server = spawn_local(async move {
            let (stream, _) = upstream.accept().await.unwrap();
            let head = read_until(&stream, "\r\n\r\n").await.unwrap();
            assert!(
                head.contains("upgrade: websocket\r\n") && head.contains("connection: upgrade\r\n"),
                "{head}"
            );
            assert!(head.contains("sec-websocket-key: k\r\n"));
            let switch =
                "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: upgrade\r\n\r\nhello";
            stream.write_all(switch.as_bytes()).await.unwrap();
            let said = read_until(&stream, "bye").await.unwrap();
            stream.write_all(b"and bye").await.unwrap();
            said
        });
        let front = listen(FRONT);
        let site = spawn_local(async move {
            let (stream, _) = front.accept().await.unwrap();
            Site::with_handler(proxy(&[8001]), Config::default(), None).serve(stream.into(), None).await;
        });
        let client = TcpStream::connect(FRONT.parse().unwrap()).await.unwrap();
        let asked = "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
                     Sec-WebSocket-Key: k\r\n\r\n";
        client.write_all(asked.as_bytes()).await.unwrap();
        let head = read_until(&client, "hello").await.unwrap();
        assert!(
            head.starts_with("HTTP/1.1 101 ") && head.to_lowercase().contains("upgrade: websocket\r\n"),
            "{head}"
        );
        client.write_all(b"warp, and bye").await.unwrap();
        assert_eq!(read_until(&client, "and bye").await.unwrap(), "and bye");
        client.shutdown(std::net::Shutdown::Write).unwrap();
        assert_eq!(server.await.unwrap(), "warp, and bye");
        site.await.unwrap();
    });
}

#[test]
fn interim_answers_go_through() {
    simulate(0..8, || async {
        let upstream = listen(UPSTREAM);
        let answer =
            "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let request = "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        let (_, got) =
            join((serve_one(&upstream, "\r\n\r\n", answer), through(proxy(&[8001]), request))).await;
        assert!(got.starts_with("HTTP/1.1 103 Early Hints\nlink: </a>\n\nHTTP/1.1 200 OK\n"), "{got}");
    });
}

#[test]
fn head_and_304_have_a_length_and_no_body() {
    simulate(0..4, || async {
        for (method, status) in [("HEAD", "200 OK"), ("GET", "304 Not Modified")] {
            let upstream = listen(UPSTREAM);
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 7\r\nETag: \"a\"\r\n\r\n");
            let request = format!("{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let (_, got) =
                join((serve_one(&upstream, "\r\n\r\n", &answer), through(proxy(&[8001]), &request))).await;
            assert!(
                got.starts_with(&format!("HTTP/1.1 {status}\n")) && got.contains("Content-Length: 7\n"),
                "{got}"
            );
        }
    });
}

#[test]
fn no_hop_is_left() {
    simulate(0..4, || async {
        let request = "OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 0\r\nConnection: close\r\n\r\n";
        assert!(through(proxy(&[8001]), request).await.starts_with("HTTP/1.1 204 "));
        let upstream = listen(UPSTREAM);
        let request = "OPTIONS / HTTP/1.1\r\nHost: a\r\nMax-Forwards: 2\r\nConnection: close\r\n\r\n";
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let (asked, _) =
            join((serve_one(&upstream, "\r\n\r\n", answer), through(proxy(&[8001]), request))).await;
        assert!(asked.contains("max-forwards: 1\r\n"), "{asked}");
    });
}

#[test]
fn a_prefix_and_a_host_are_replaced() {
    simulate(0..4, || async {
        let upstream = listen(UPSTREAM);
        let proxy =
            proxy(&[8001]).prefix("/app", "/").host("inner".parse().unwrap()).name("loom").trust_forwarded();
        let request =
            "GET /app/x?y HTTP/1.1\r\nHost: outer\r\nX-Forwarded-For: 10.0.0.1\r\nConnection: close\r\n\r\n";
        let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
        let (asked, _) = join((serve_one(&upstream, "\r\n\r\n", answer), through(proxy, request))).await;
        assert!(asked.starts_with("GET /x?y HTTP/1.1\r\nhost: inner\r\n"), "{asked}");
        assert!(
            asked.contains("x-forwarded-host: outer\r\n") && asked.contains("via: 1.1 loom\r\n"),
            "{asked}"
        );
        assert!(asked.contains("x-forwarded-for: 10.0.0.1, 127.0.0.1\r\n"), "{asked}");
    });
}

#[test]
fn a_watched_server_that_is_silent_gets_no_requests_until_it_answers() {
    simulate(0..8, || async {
        let upstreams = upstreams(&[8001, 8002]).policy(Balance::LeastConnections);
        let watching = spawn_local({
            let upstreams = upstreams.clone();
            let client = Client::builder().idle_connections_max(0).build();
            async move { upstreams.watch(&client, "/health", Duration::from_secs(5)).await }
        });
        let first = spawn_local(async {
            let listener = listen(UPSTREAM);
            for _ in 0..5 {
                let answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
                assert!(
                    serve_one(&listener, "\r\n\r\n", answer).await.starts_with("GET /health HTTP/1.1\r\n")
                );
            }
        });
        sleep(Duration::from_secs(3)).await;
        assert_eq!(upstreams.in_order(), 1, "no server listens at the second address");
        let second = listen("127.0.0.1:8002");
        let answer = "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n";
        serve_one(&second, "\r\n\r\n", answer).await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(upstreams.in_order(), 2, "it answers, if only that there is no such file");
        let answer = "HTTP/1.1 500 Broken\r\nContent-Length: 0\r\n\r\n";
        serve_one(&second, "\r\n\r\n", answer).await;
        sleep(Duration::from_secs(1)).await;
        assert_eq!(upstreams.in_order(), 1);
        watching.cancel();
        first.cancel();
    });
}
