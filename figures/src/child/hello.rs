//! Servers of HTTP that answer each request with one line: hyper on our threads and sockets, by
//! `selvedge-compat`, and hyper on tokio, by its own `hyper-util`. They print their port and serve
//! until they are killed. The figure in `figures/src/echo.rs` starts them through `child.rs`
//! and loads them by `load.rs`, which asks for [`REQUEST`] and compares the replies.
//!
//! Both run the same service with the same settings of hyper.

use super::fault;
use super::runtime::{Ours, Runtime, Tokio, Waits};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use selvedge_compat::Compat;
use selvedge_core::spawn;
use selvedge_io::net::TcpListener;
use std::convert::Infallible;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};

/// Runs the program `name` with its numbers. `false` if it is no program about servers of one line.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("hello", &[w]) => ours(w, fault()),
        ("tokio-hello", &[w]) => theirs(w, fault()),
        _ => return Ok(false),
    }
    Ok(true)
}

/// The request.
pub(super) const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n";
/// The body of a reply.
const HELLO: &str = "Hello, World!";

/// The reply without its last `lost` bytes, of which a server without a fault has none.
async fn hello(_: Request<Incoming>, lost: u64) -> Result<Response<Full<Bytes>>, Infallible> {
    let body = &HELLO.as_bytes()[..HELLO.len() - lost as usize];
    Ok(Response::new(Full::new(Bytes::from_static(body))))
}

/// The head of a reply, and what has come behind it. `None` while the head is not complete.
fn parts(reply: &[u8]) -> Option<(&str, &[u8])> {
    const END: &[u8] = b"\r\n\r\n";
    let end = reply.windows(END.len()).position(|window| window == END)?;
    Some((std::str::from_utf8(&reply[..end]).ok()?, &reply[end + END.len()..]))
}

/// Whether a reply is there with as many bytes behind its head as its head says.
pub(super) fn is_whole(reply: &[u8]) -> bool {
    let length = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.eq_ignore_ascii_case("content-length").then(|| value.trim().parse::<usize>().ok())?
    };
    parts(reply).is_some_and(|(head, body)| head.lines().find_map(length).is_some_and(|n| body.len() >= n))
}

/// Whether a whole reply is the right reply to [`REQUEST`].
pub(super) fn is_right(reply: &[u8]) -> bool {
    parts(reply)
        .is_some_and(|(head, body)| head.starts_with("HTTP/1.1 200 OK\r\n") && body == HELLO.as_bytes())
}

fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn say_port(address: SocketAddr) {
    println!("port {}", address.port());
    std::io::stdout().flush().expect("the parent process reads the port");
}

/// hyper on threads of ours, which may move between the workers.
fn ours(workers: u64, lost: u64) {
    Ours::run(workers as usize, Waits::World, async move {
        let listener = TcpListener::bind(anywhere()).expect("a port is free");
        say_port(listener.local_addr());
        loop {
            let (stream, _) = listener.accept().await.expect("the port stays open");
            let service = service_fn(move |request| hello(request, lost));
            let connection = http1::Builder::new().serve_connection(Compat::new(stream), service);
            // The client ends a connection with an error when it ends.
            drop(spawn(async move { drop(connection.await) }));
        }
    })
}

/// hyper on tokio.
fn theirs(workers: u64, lost: u64) {
    Tokio::run(workers as usize, Waits::World, async move {
        let listener = tokio::net::TcpListener::bind(anywhere()).await.expect("a port is free");
        say_port(listener.local_addr().expect("it is bound"));
        loop {
            let (stream, _) = listener.accept().await.expect("the port stays open");
            stream.set_nodelay(true).expect("it is a TCP socket");
            let service = service_fn(move |request| hello(request, lost));
            let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
            tokio::spawn(async move { drop(connection.await) });
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_whole_and_right() {
        let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 13\r\ndate: now\r\n\r\nHello, World!";
        assert!(is_whole(reply) && is_right(reply));
        assert!((0..reply.len()).all(|length| !is_whole(&reply[..length])));
        let other = b"HTTP/1.1 200 OK\r\ncontent-length: 12\r\n\r\nHello, World";
        assert!(is_whole(other) && !is_right(other));
        let error = b"HTTP/1.1 500 Oh\r\ncontent-length: 13\r\n\r\nHello, World!";
        assert!(is_whole(error) && !is_right(error));
    }
}
