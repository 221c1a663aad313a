//! How connections begin and end.

use crate::{address, two_stacks};
use selvedge_core::spawn;
use selvedge_io::time::{sleep, timeout};
use selvedge_sim::simulate;
use selvedge_stack::{TcpListener, TcpStream, Weather};
use std::io::ErrorKind;
use std::net::Shutdown;
use std::time::Duration;

/// Both ends of a connection.
async fn connection(at: &'static str) -> (TcpStream, TcpStream) {
    let (client, server) = two_stacks(1, Weather::default());
    let listener = TcpListener::bind(&server, address(at)).unwrap();
    let connecting = spawn(async move { TcpStream::connect(&client, listener_at(at)).await.unwrap() });
    let (accepted, peer) = listener.accept().await.unwrap();
    let connected = connecting.await.unwrap();
    assert_eq!(peer, connected.local_addr().unwrap());
    assert_eq!(accepted.local_addr().unwrap(), connected.peer_addr().unwrap());
    (connected, accepted)
}

/// A listener at all addresses is reached at the second stack's.
fn listener_at(at: &str) -> std::net::SocketAddr {
    address(&at.replace("0.0.0.0", "10.0.0.2").replace("[::]", "[fd00::2]"))
}

#[test]
fn both_families_and_all_addresses_are_served() {
    simulate(0..10, || async {
        for at in ["10.0.0.2:80", "[fd00::2]:80", "0.0.0.0:80", "[::]:80"] {
            let (left, right) = connection(at).await;
            left.write_all(b"warp").await.unwrap();
            let mut four = [0; 4];
            right.read_exact(&mut four).await.unwrap();
            assert_eq!(&four, b"warp");
        }
    });
}

#[test]
fn a_half_that_has_ended_leaves_the_other() {
    simulate(0..10, || async {
        let (left, right) = connection("10.0.0.2:80").await;
        left.shutdown(Shutdown::Write).unwrap();
        assert_eq!(right.read(&mut [0; 8]).await.unwrap(), 0);
        assert_eq!(left.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        right.write_all(b"weft").await.unwrap();
        drop(right);
        let mut eight = [0; 8];
        assert_eq!(left.read(&mut eight).await.unwrap(), 4);
        assert_eq!(left.read(&mut eight).await.unwrap(), 0);
    });
}

#[test]
fn a_stream_that_is_dropped_with_unread_bytes_resets() {
    simulate(0..10, || async {
        let (left, right) = connection("10.0.0.2:80").await;
        left.write_all(b"never read").await.unwrap();
        // One byte is read, so all have come.
        assert_eq!(right.read(&mut [0; 1]).await.unwrap(), 1);
        drop(right);
        let error = left.read(&mut [0; 8]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert!(left.write(b"more").await.is_err());
    });
}

#[test]
fn a_writer_waits_while_the_window_is_shut() {
    simulate(0..10, || async {
        let (left, right) = connection("10.0.0.2:80").await;
        // Neither both buffers together nor the reader take all of it.
        let writing = spawn(async move {
            left.write_all(&[7; 100_000]).await.unwrap();
            left.shutdown(Shutdown::Write).unwrap();
            // A stream that is dropped has its own time limit.
            left
        });
        sleep(Duration::from_secs(120)).await;
        assert!(!writing.is_finished());
        let (mut came, mut buffer) = (0, [0; 4096]);
        loop {
            match timeout(Duration::from_secs(60), right.read(&mut buffer)).await.unwrap().unwrap() {
                0 => break,
                read => came += read,
            }
        }
        assert_eq!(came, 100_000);
        drop(writing.await.unwrap());
    });
}

#[test]
fn a_stream_that_was_long_at_rest_ends_in_order() {
    simulate(0..10, || async {
        let (left, right) = connection("10.0.0.2:80").await;
        sleep(Duration::from_secs(3600)).await;
        drop(left);
        assert_eq!(right.read(&mut [0; 8]).await.unwrap(), 0);
    });
}
