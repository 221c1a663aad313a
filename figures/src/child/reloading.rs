//! The client of the figure about reloads. It has a server reload ten times a second, and counts
//! what fails meanwhile: requests, WebSockets, downloads. `child.rs` calls [`session`].

use rustix::process::{Pid, Signal, kill_process};
use selvedge_core::{now, round_robin_over, spawn_local};
use selvedge_io::EventLoop;
use selvedge_io::net::TcpStream;
use selvedge_io::time::{sleep, timeout};
use selvedge_web::{Message, WebSocket};
use std::cell::Cell;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::time::Duration;

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(10);

/// The time between two reloads.
const PERIOD: Duration = Duration::from_millis(100);

/// What was counted.
#[derive(Default)]
struct SessionCounts {
    failed: Cell<u64>,
    closed: Cell<u64>,
    requests: Cell<u64>,
    over: Cell<bool>,
}

fn add(count: &Cell<u64>) {
    count.set(count.get() + 1);
}

/// Reloads process `process`, which listens at `port`, for some time. `peer` is the port of the
/// application behind it.
///
/// # Errors
/// The application behind gives no WebSocket, or the server is not there from the beginning.
pub(super) fn session(port: u64, process: u64, peer: u64, milliseconds: u64) -> Result<(), String> {
    let mut events = EventLoop::new().map_err(|error| error.to_string())?;
    let process = Pid::from_raw(process as i32).ok_or("no process")?;
    let address = |port: u64| SocketAddr::from((Ipv4Addr::LOCALHOST, port as u16));
    let main = async move {
        let at = |what: &'static str| move |error: io::Error| format!("{what}: {error}");
        // Past the server: the application is there, so a WebSocket that ends is the server's.
        let mut past = open(address(peer)).await.map_err(at("the application behind"))?;
        exchange(&mut past).await.map_err(at("the application behind"))?;
        let mut first = open(address(port)).await.map_err(at("the server"))?;
        exchange(&mut first).await.map_err(at("the server"))?;
        let counts = Rc::new(SessionCounts::default());
        let mut threads = Vec::new();
        let server = address(port);
        for number in 0..8 {
            threads.push(spawn_local(kept(server, counts.clone(), number)));
        }
        threads.push(spawn_local(one_by_one(server, counts.clone())));
        for _ in 0..16 {
            threads.push(spawn_local(socket(server, counts.clone())));
        }
        for _ in 0..4 {
            threads.push(spawn_local(download(server, counts.clone())));
        }
        let until = now() + Duration::from_millis(milliseconds);
        let mut reloads = 0;
        while now() < until {
            kill_process(process, Signal::HUP).map_err(|errno| format!("the server is gone: {errno}"))?;
            reloads += 1;
            sleep(PERIOD).await;
        }
        counts.over.set(true);
        for thread in threads {
            thread.await.map_err(|error| error.to_string())?;
        }
        exchange(&mut past).await.map_err(at("the application behind"))?;
        println!("failed {}", counts.failed.get());
        println!("closed {}", counts.closed.get());
        println!("requests {}", counts.requests.get());
        println!("reloads {reloads}");
        Ok::<(), String>(())
    };
    round_robin_over(&mut events, main).map_err(|error| error.to_string())?
}

/// Requests on one connection, as long as the server keeps it.
async fn kept(server: SocketAddr, counts: Rc<SessionCounts>, number: u64) {
    let mut connection = None;
    while !counts.over.get() {
        let stream = match connection.take() {
            Some(stream) => stream,
            None => match TcpStream::connect(server).await {
                Ok(stream) => stream,
                Err(_) => {
                    add(&counts.failed);
                    continue;
                }
            },
        };
        match timeout(PATIENCE, ask(&stream, "keep-alive")).await {
            Ok(Ok(keeps)) => {
                add(&counts.requests);
                connection = keeps.then_some(stream);
            }
            _ => add(&counts.failed),
        }
        sleep(Duration::from_micros(500 + 100 * number)).await;
    }
}

/// Requests on a connection each.
async fn one_by_one(server: SocketAddr, counts: Rc<SessionCounts>) {
    while !counts.over.get() {
        let once = async {
            let stream = TcpStream::connect(server).await?;
            ask(&stream, "close").await
        };
        match timeout(PATIENCE, once).await {
            Ok(Ok(_)) => add(&counts.requests),
            _ => add(&counts.failed),
        }
    }
}

/// Asks for the small file. Whether the server keeps the connection.
async fn ask(stream: &TcpStream, connection: &str) -> io::Result<bool> {
    let path = crate::web::SMALL.path;
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: {connection}\r\n\r\n");
    stream.write_all(request.as_bytes()).await?;
    let mut reply = Vec::with_capacity(4096);
    loop {
        if stream.read_to_spare(&mut reply).await? == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let Some(end) = reply.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        if reply.len() < end + 4 + crate::web::SMALL.bytes {
            continue;
        }
        let head = String::from_utf8_lossy(&reply[..end]).to_ascii_lowercase();
        return match head.starts_with("http/1.1 200 ") {
            true => Ok(!head.contains("connection: close")),
            false => Err(io::Error::other(head)),
        };
    }
}

async fn open(server: SocketAddr) -> io::Result<WebSocket> {
    let stream = TcpStream::connect(server).await?;
    WebSocket::connect(stream, "localhost", "/echo").await.map_err(io::Error::other)
}

/// A message there and back.
async fn exchange(socket: &mut WebSocket) -> io::Result<()> {
    socket.send(Message::text("warp")).await.map_err(io::Error::other)?;
    match timeout(PATIENCE, socket.next()).await {
        Ok(Ok(Some(Message::Text(text)))) if text.as_str() == "warp" => Ok(()),
        _ => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}

/// A WebSocket with a message now and then.
async fn socket(server: SocketAddr, counts: Rc<SessionCounts>) {
    let mut connection = None;
    while !counts.over.get() {
        let mut socket = match connection.take() {
            Some(socket) => socket,
            None => match open(server).await {
                Ok(socket) => socket,
                Err(_) => {
                    add(&counts.failed);
                    continue;
                }
            },
        };
        match exchange(&mut socket).await {
            Ok(()) => connection = Some(socket),
            Err(_) => add(&counts.closed),
        }
        sleep(Duration::from_millis(50)).await;
    }
}

/// Downloads of a large file, slowly.
async fn download(server: SocketAddr, counts: Rc<SessionCounts>) {
    while !counts.over.get() {
        if slowly(server, &counts).await.is_err() {
            add(&counts.closed);
        }
    }
}

async fn slowly(server: SocketAddr, counts: &SessionCounts) -> io::Result<()> {
    let stream = TcpStream::connect(server).await?;
    let request = b"GET /large.bin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
    stream.write_all(request).await?;
    let (mut piece, mut all) = (vec![0; 64 << 10], 0);
    while !counts.over.get() {
        match timeout(PATIENCE, stream.read(&mut piece)).await?? {
            // The head is a part of it.
            0 if all > 64 << 20 => return Ok(()),
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => all += read,
        }
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}
