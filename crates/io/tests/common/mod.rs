//! Functions that the tests of this crate share.
#![allow(dead_code, reason = "each test file uses its part")]

pub(crate) mod disk;

use selvedge_core::{round_robin_over, spawn};
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
    run_with(&mut EventLoop::new().unwrap(), main)
}

/// Runs `main` until it has ended, and cancels the threads that are left.
pub(crate) fn run_with<F: Future + 'static>(events: &mut EventLoop, main: F) -> F::Output {
    round_robin_over(events, main).unwrap()
}

pub(crate) fn listen() -> TcpListener {
    TcpListener::bind(localhost(0)).unwrap()
}

pub(crate) fn localhost(port: u16) -> SocketAddr {
    SocketAddr::from(([127, 0, 0, 1], port))
}

/// The two ends of a TCP connection.
pub(crate) async fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = listen();
    let address = listener.local_addr();
    let one = spawn(async move { TcpStream::connect(address).await.unwrap() });
    let (other, _) = listener.accept().await.unwrap();
    (one.await.unwrap(), other)
}

pub(crate) fn open_descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}
