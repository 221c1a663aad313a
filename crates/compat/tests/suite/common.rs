//! What the tests of this crate share.
#![allow(dead_code, reason = "each test file uses its part")]

use selvedge_core::{round_robin_over, spawn_local};
use selvedge_io::EventLoop;
use selvedge_io::net::{TcpListener, TcpStream};
use std::future::Future;
use std::net::SocketAddr;
use std::time::Duration;

pub(crate) const fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Runs `main` in a scheduler with an event loop of its own. A test that hangs fails after a
/// minute.
pub(crate) fn run<F: Future + 'static>(main: F) -> F::Output {
    let main = async { selvedge_io::time::timeout(ms(60_000), main).await.expect("the test hangs") };
    round_robin_over(&mut EventLoop::new().unwrap(), main).unwrap()
}

/// Runs `main` on tokio, with two workers.
pub(crate) fn run_on_tokio<F>(main: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let tokio = tokio::runtime::Builder::new_multi_thread().worker_threads(2).build().unwrap();
    tokio
        .block_on(async { tokio::spawn(selvedge_io::time::timeout(ms(60_000), main)).await.unwrap() })
        .unwrap()
}

pub(crate) fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = listener.local_addr();
    (listener, address)
}

/// Two ends of a TCP connection, within a thread of ours.
pub(crate) async fn tcp_pair() -> (TcpStream, TcpStream) {
    let (listener, address) = listen();
    let one = spawn_local(async move { TcpStream::connect(address).await.unwrap() });
    let (other, _) = listener.accept().await.unwrap();
    (one.await.unwrap(), other)
}

/// Bytes that do not repeat soon, so that a piece lost or doubled is seen.
pub(crate) fn noise(length: usize) -> Vec<u8> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let next = |_| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 32) as u8
    };
    (0..length).map(next).collect()
}
