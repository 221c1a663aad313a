//! Servers that answer every connection with the bytes that it sends: two of ours, and tokio's.
//! They print their port and serve until they are killed. The figure in `figures/src/echo.rs`
//! starts them through `child.rs` and loads them by `load.rs`.
//!
//! `ours` may move threads between workers, and `ours_per_core` shares nothing between them. The
//! line with the port must come first, because the figure waits for it.

use super::fault;
use super::runtime::{Ours, Runtime, Tokio, Waits};
use selvedge_core::{spawn, spawn_local};
use selvedge_io::EventLoop;
use selvedge_io::net::{TcpListener, TcpStream};
use selvedge_sched::per_core;
use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Runs the program `name` with its numbers. `false` if it is no program about echo servers.
///
/// # Errors
/// The program could not run.
pub(super) fn run(name: &str, numbers: &[u64]) -> Result<bool, String> {
    match (name, numbers) {
        ("echo", &[w]) => ours(w),
        ("echo-per-core", &[w]) => ours_per_core(w),
        ("tokio-echo", &[w]) => tokio(w),
        _ => return Ok(false),
    }
    Ok(true)
}

/// Bytes that are read at once at most.
const BUFFER: usize = 1024;

fn anywhere() -> SocketAddr {
    (Ipv4Addr::LOCALHOST, 0).into()
}

fn say_port(address: SocketAddr) {
    println!("port {}", address.port());
    std::io::stdout().flush().expect("the parent process reads the port");
}

fn listen() -> TcpListener {
    let listener = TcpListener::bind(anywhere()).expect("a port is free");
    say_port(listener.local_addr());
    listener
}

async fn serve(stream: TcpStream) {
    let mut buffer = [0; BUFFER];
    if fault() == 1 {
        // One byte more than was sent.
        let _ = stream.write_all(&[0]).await;
    }
    while let Ok(read @ 1..) = stream.read(&mut buffer).await
        && stream.write_all(&buffer[..read]).await.is_ok()
    {}
}

/// Ours, with threads that may move between the workers.
fn ours(workers: u64) {
    Ours::run(workers as usize, Waits::World, async {
        let listener = listen();
        loop {
            let (stream, _) = listener.accept().await.expect("the port stays open");
            // Not forked: each fork would let all connections have their turn before the next is
            // accepted.
            drop(spawn(serve(stream)));
        }
    })
}

/// Ours, with a scheduler for each worker that shares nothing.
fn ours_per_core(workers: u64) {
    let first = listen();
    let listeners: Vec<_> = (1..workers).map(|_| first.share().expect("descriptors are left")).collect();
    let listeners = Mutex::new(std::iter::once(first).chain(listeners).collect::<Vec<_>>());
    let main = |_| {
        let listener = listeners.lock().expect("no panic under this lock").pop();
        let listener = listener.expect("there is one for each worker");
        async move {
            loop {
                let (stream, _) = listener.accept().await.expect("the port stays open");
                drop(spawn_local(serve(stream)));
            }
        }
    };
    let _: Vec<()> =
        per_core(workers as usize, |_| EventLoop::new(), main).expect("no worker fails, and none ends");
}

/// tokio.
fn tokio(workers: u64) {
    Tokio::run(workers as usize, Waits::World, async {
        let listener = tokio::net::TcpListener::bind(anywhere()).await.expect("a port is free");
        say_port(listener.local_addr().expect("it is bound"));
        loop {
            let (mut stream, _) = listener.accept().await.expect("the port stays open");
            stream.set_nodelay(true).expect("it is a TCP socket");
            tokio::spawn(async move {
                let mut buffer = [0; BUFFER];
                while let Ok(read @ 1..) = stream.read(&mut buffer).await
                    && stream.write_all(&buffer[..read]).await.is_ok()
                {}
            });
        }
    })
}
