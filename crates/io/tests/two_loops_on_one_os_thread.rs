//! A foreign executor runs on an OS thread that has an event loop, between the loop's turns.
//! Threads of both wait for the same socket. (The loop for foreign executors lasts for the process,
//! so this test has a file of its own.)

mod common;

use common::{ms, run_with};
use futures::executor::block_on;
use selvedge_io::EventLoop;
use selvedge_io::net::UnixStream;
use selvedge_io::time::timeout;
use std::os::fd::{AsFd, AsRawFd};
use std::time::Instant;

#[test]
fn a_socket_is_served_by_both() {
    let mut events = EventLoop::new().unwrap();
    // The loop remembers a file under the number that the socket will have.
    let (one, other) = UnixStream::pair().unwrap();
    let number = one.as_fd().as_raw_fd();
    run_with(&mut events, async move {
        let (mut a, mut b) = ([0], [0]);
        let both = futures::future::join(one.read(&mut a), other.read(&mut b));
        assert!(timeout(ms(1), both).await.is_err());
    });
    let (mut one, mut other) = UnixStream::pair().unwrap();
    assert_eq!(one.as_fd().as_raw_fd(), number);
    for _ in 0..3 {
        block_on(async {
            let read = async {
                one.read_exact(&mut [0]).await.unwrap();
                one.read_exact(&mut [0]).await.unwrap();
            };
            let write = async {
                other.write_all(b"x").await.unwrap();
                selvedge_io::time::sleep(ms(1)).await;
                other.write_all(b"x").await.unwrap();
            };
            futures::join!(read, write);
        });
        (one, other) = run_with(&mut events, async move {
            let read = async {
                one.read_exact(&mut [0; 2]).await.unwrap();
            };
            let write = async {
                selvedge_io::time::sleep(ms(1)).await;
                other.write_all(b"xx").await.unwrap();
            };
            let both = async { futures::join!(read, write) };
            let start = Instant::now();
            timeout(ms(5000), both).await.unwrap();
            assert!(start.elapsed() < ms(4000), "it is registered here too");
            (one, other)
        });
    }
}
