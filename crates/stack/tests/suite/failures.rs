//! Why a connection cannot be made, and why one ends.

use crate::frames::{told_address, unreachable};
use crate::{address, carry, options, two_stacks};
use selvedge_core::{now, spawn};
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{SimulatedWire, Stack, StackOptions, TcpListener, TcpOptions, TcpStream, Weather, Wire};
use std::io::{Error, ErrorKind};
use std::sync::Arc;
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn a_port_without_a_listener_refuses_at_once() {
    simulate(0..10, || async {
        for peer in ["10.0.0.2:81", "[fd00::2]:81"] {
            let (client, _server) = two_stacks(1, Weather::default());
            let before = now();
            let error = TcpStream::connect(&client, address(peer)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
            assert!(now().since(before) < 5 * SECOND);
        }
    });
}

#[test]
fn an_address_without_a_host_is_unreachable() {
    simulate(0..2, || async {
        let (client, _server) = two_stacks(1, Weather::default());
        let before = now();
        let error = TcpStream::connect(&client, address("10.0.0.9:81")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::HostUnreachable);
        assert_eq!(now().since(before).as_secs(), 60);
    });
}

#[test]
fn a_network_without_a_gateway_is_unreachable_at_once() {
    simulate(0..2, || async {
        let (client, _server) = two_stacks(1, Weather::default());
        for peer in ["192.0.2.1:80", "[2001:db8::1]:80"] {
            let error = TcpStream::connect(&client, address(peer)).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::NetworkUnreachable);
        }
        let (left, _right) = SimulatedWire::pair(1, Weather::default());
        let four = Stack::start(StackOptions::new().address([10, 0, 0, 1].into(), 24).unwrap(), left);
        let error = TcpStream::connect(&four, address("[fd00::2]:80")).await.unwrap_err();
        assert!(matches!(error.kind(), ErrorKind::AddrNotAvailable | ErrorKind::NetworkUnreachable));
    });
}

#[test]
fn a_host_that_does_not_answer_times_out_in_the_time_it_has() {
    simulate(0..10, || async {
        let (left, right) = SimulatedWire::pair(1, Weather::default());
        let client = Stack::start(options(1), left);
        // It tells its Ethernet address, and drops each segment that asks for a connection.
        let server = Stack::start(options(2).backlog(0), right);
        let at = address("10.0.0.2:80");
        let _listener = TcpListener::bind(&server, at).unwrap();
        for seconds in [3, 20] {
            let before = now();
            let hasty = TcpOptions::new().connect_limit(seconds * SECOND);
            let error = TcpStream::connect_with_options(&client, at, hasty).await.unwrap_err();
            assert_eq!(error.kind(), ErrorKind::TimedOut);
            assert_eq!(now().since(before).as_secs(), u64::from(seconds));
        }
    });
}

/// Answers ARP at one end of a wire, as the host 2, and each segment with what `f` makes of it.
async fn router(wire: SimulatedWire, f: impl Fn(&[u8]) -> Option<Vec<u8>>) {
    loop {
        for frame in wire.receive().await.unwrap() {
            if let Some(told) = told_address(&frame, [10, 0, 0, 2].into(), [2, 0, 0, 0, 0, 2]) {
                wire.send(&told);
            } else if frame[12..14] == [8, 0]
                && let Some(answer) = f(&frame)
            {
                wire.send(&answer);
            }
        }
    }
}

/// What `connect` says when a router answers its first segment like this.
async fn connect_through(f: impl Fn(&[u8]) -> Option<Vec<u8>> + Send + 'static) -> (Error, Duration) {
    let (left, right) = SimulatedWire::pair(1, Weather::default());
    let client = Stack::start(options(1), left);
    let answering = spawn(router(right, f));
    let before = now();
    let error = TcpStream::connect(&client, address("10.0.0.2:80")).await.unwrap_err();
    answering.cancel();
    (error, now().since(before))
}

#[test]
fn a_routers_message_ends_an_attempt() {
    simulate(0..2, || async {
        let codes = [
            (0, ErrorKind::NetworkUnreachable),
            (1, ErrorKind::HostUnreachable),
            (3, ErrorKind::ConnectionRefused),
            (13, ErrorKind::HostUnreachable),
        ];
        for (code, kind) in codes {
            let (error, took) = connect_through(move |frame| Some(unreachable(frame, code, 0))).await;
            assert_eq!(error.kind(), kind, "code {code}");
            assert!(took < 5 * SECOND);
        }
        // A stranger does not know the sequence number; and a long packet is no reason to end.
        let forged = |frame: &[u8]| {
            let mut frame = frame.to_vec();
            frame[14 + 20 + 7] ^= 1;
            Some(unreachable(&frame, 1, 0))
        };
        assert_eq!(connect_through(forged).await.0.kind(), ErrorKind::TimedOut);
        let long = |frame: &[u8]| Some(unreachable(frame, 4, 0));
        assert_eq!(connect_through(long).await.0.kind(), ErrorKind::TimedOut);
    });
}

/// A connection with a wire that is cut: its server has gone from the wire.
async fn cut_off(options_of_it: TcpOptions) -> (TcpStream, Stack) {
    let (left, right) = SimulatedWire::pair(1, Weather::default());
    let (near, far) = SimulatedWire::pair(2, Weather::default());
    let client = Stack::start(options(1), left);
    let server = Stack::start(options(2), near);
    // Between the two ends stand threads, which go away.
    let (right, far) = (Arc::new(right), Arc::new(far));
    let between =
        [spawn(carry(right.clone(), far.clone(), Duration::ZERO)), spawn(carry(far, right, Duration::ZERO))];
    let listener = TcpListener::bind(&server, address("10.0.0.2:80")).unwrap();
    let stream =
        TcpStream::connect_with_options(&client, address("10.0.0.2:80"), options_of_it).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    stream.write_all(b"warp").await.unwrap();
    accepted.read_exact(&mut [0; 4]).await.unwrap();
    sleep(SECOND).await;
    between.iter().for_each(|thread| thread.cancel());
    (stream, client)
}

#[test]
fn a_silent_peer_ends_a_stream_in_the_time_it_has() {
    simulate(0..10, || async {
        let (stream, _client) = cut_off(TcpOptions::new().peer_limit(Some(30 * SECOND))).await;
        sleep(100 * SECOND).await;
        let before = now();
        stream.write_all(b"weft").await.unwrap();
        assert_eq!(stream.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        assert_eq!(now().since(before).as_secs(), 30);
        assert_eq!(stream.write(b"weft").await.unwrap_err().kind(), ErrorKind::TimedOut);
    });
}

#[test]
fn a_stream_at_rest_ends_only_with_keep_alive() {
    simulate(0..10, || async {
        let limited = TcpOptions::new().peer_limit(Some(30 * SECOND));
        let (stream, _client) = cut_off(limited.clone().keep_alive(Some(10 * SECOND))).await;
        let before = now();
        assert_eq!(stream.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::TimedOut);
        assert!((20..=41).contains(&now().since(before).as_secs()), "{:?}", now().since(before));

        let (stream, _client) = cut_off(limited).await;
        let read = selvedge_io::time::timeout(1000 * SECOND, stream.read(&mut [0; 4])).await;
        assert!(read.is_err(), "it waits");
        stream.set_keep_alive(Some(10 * SECOND)).unwrap();
        assert_eq!(stream.read(&mut [0; 4]).await.unwrap_err().kind(), ErrorKind::TimedOut);
    });
}

#[test]
fn a_peer_that_answers_keeps_a_stream_at_rest_alive() {
    simulate(0..5, || async {
        let (client, server) = two_stacks(1, Weather { lost: 100, ..Weather::default() });
        let alive = TcpOptions::new().keep_alive(Some(SECOND)).peer_limit(Some(20 * SECOND));
        let listener =
            TcpListener::bind_with_options(&server, address("10.0.0.2:80"), alive.clone()).unwrap();
        let stream = TcpStream::connect_with_options(&client, address("10.0.0.2:80"), alive).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        sleep(200 * SECOND).await;
        stream.write_all(b"warp").await.unwrap();
        accepted.read_exact(&mut [0; 4]).await.unwrap();
    });
}
