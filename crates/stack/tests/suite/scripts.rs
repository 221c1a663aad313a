//! The states of TCP, each brought about segment by segment by a peer that is no stack.

use crate::frames::{ACK, FIN, PSH, RST, SYN, Segment};
use crate::peer::{Peer, SECOND, open};
use crate::{address, options};
use selvedge_core::spawn;
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{Stack, TcpListener, TcpOptions, TcpStream};
use std::io::ErrorKind;
use std::net::Shutdown;

/// A peer to which the stack has sent its first segment, and the thread that connects.
async fn asked() -> (Peer, selvedge_core::JoinHandle<std::io::Result<TcpStream>>, Stack) {
    let (mut peer, stack) = Peer::new(7000);
    let (at, asking) = (peer.own.into(), stack.clone());
    let connecting = spawn(async move { TcpStream::connect(&asking, at).await });
    let first = peer.hears(SYN).await;
    peer.stack = first.from;
    (peer, connecting, stack)
}

#[test]
fn both_ends_open_at_once() {
    simulate(0..3, || async {
        let (mut peer, connecting, _stack) = asked().await;
        // Both first segments cross: neither acknowledges the other.
        peer.send(SYN, b"");
        let answer = peer.hears(SYN | ACK).await;
        assert_eq!((answer.acknowledges, answer.end()), (peer.next, peer.expects));
        peer.send(ACK, b"warp");
        let stream = connecting.await.unwrap().unwrap();
        let mut four = [0; 4];
        stream.read_exact(&mut four).await.unwrap();
        assert_eq!(&four, b"warp");
        stream.write_all(b"weft").await.unwrap();
        let mut came = peer.any().await.unwrap();
        while came.contents.is_empty() {
            came = peer.any().await.unwrap();
        }
        assert_eq!((came.sequence, &came.contents[..]), (peer.expects, &b"weft"[..]));
    });
}

#[test]
fn both_ends_close_at_once() {
    simulate(0..3, || async {
        let (mut peer, stream, _stack) = open().await;
        stream.shutdown(Shutdown::Write).unwrap();
        let before = peer.expects;
        peer.hears(FIN | ACK).await;
        // The peer's end does not acknowledge the stack's: they crossed.
        let after = std::mem::replace(&mut peer.expects, before);
        peer.send(FIN | ACK, b"");
        let answer = peer.hears(ACK).await;
        assert_eq!((answer.acknowledges, answer.sequence), (peer.next, after));
        assert_eq!(stream.read(&mut [0; 4]).await.unwrap(), 0);
        peer.send(ACK, b"");
        drop(stream);
        // The connection waits for a time, in which an end that comes again is acknowledged.
        sleep(SECOND).await;
        peer.came.clear();
        peer.next -= 1;
        peer.send(FIN | ACK, b"");
        assert_eq!(peer.hears(ACK).await.acknowledges, peer.next);
        sleep(20 * SECOND).await;
        assert!(peer.is_forgotten().await);
    });
}

#[test]
fn a_window_without_room_is_asked_and_opens() {
    simulate(0..3, || async {
        let (mut peer, stack) = Peer::new(7000);
        let listener = TcpListener::bind(&stack, address("10.0.0.2:80")).unwrap();
        peer.window = 4;
        let stream = peer.connect(&listener).await;
        stream.write_all(b"warpweft").await.unwrap();
        assert_eq!(peer.hears(ACK).await.contents, b"warp");
        peer.window = 0;
        peer.send(ACK, b"");
        // It asks with a byte, which finds no room, and asks again after a longer time.
        for _ in 0..3 {
            let asks = peer.any().await.unwrap();
            assert_eq!((asks.sequence, &asks.contents[..]), (peer.expects, &b"w"[..]));
            peer.send(ACK, b"");
        }
        peer.window = 100;
        peer.send(ACK, b"");
        let mut came = peer.any().await.unwrap();
        while came.contents.len() < 4 {
            came = peer.any().await.unwrap();
        }
        assert_eq!((came.sequence, &came.contents[..]), (peer.expects, &b"weft"[..]));
    });
}

#[test]
fn a_reset_ends_an_attempt_only_if_it_knows_the_number() {
    simulate(0..3, || async {
        let (mut peer, connecting, _stack) = asked().await;
        let right = peer.segment(RST | ACK, b"");
        peer.put(&Segment { acknowledges: peer.expects.wrapping_add(1), ..right.clone() });
        peer.put(&Segment { flags: RST, ..right.clone() });
        // The first segment comes again: the attempt goes on.
        peer.hears(SYN).await;
        assert!(!connecting.is_finished());
        peer.put(&right);
        assert_eq!(connecting.await.unwrap().unwrap_err().kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn a_reset_ends_a_handshake_and_leaves_the_listener() {
    simulate(0..3, || async {
        let (mut peer, stack) = Peer::new(7000);
        let listener = TcpListener::bind(&stack, address("10.0.0.2:80")).unwrap();
        peer.send(SYN, b"");
        peer.hears(SYN | ACK).await;
        peer.send(RST, b"");
        sleep(SECOND).await;
        assert!(peer.is_forgotten().await);
        peer.own.set_port(4001);
        let stream = peer.connect(&listener).await;
        assert_eq!(stream.peer_addr().unwrap(), peer.own.into());
    });
}

/// The states of an open connection and after.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Reached {
    Established,
    FinWait1,
    FinWait2,
    Closing,
    CloseWait,
    LastAck,
    TimeWait,
}

/// Brings a connection to a state.
async fn reach(state: Reached) -> (Peer, TcpStream, Stack) {
    let (mut peer, stream, stack) = open().await;
    let stack_ends =
        matches!(state, Reached::FinWait1 | Reached::FinWait2 | Reached::Closing | Reached::TimeWait);
    if stack_ends {
        stream.shutdown(Shutdown::Write).unwrap();
        let before = peer.expects;
        peer.hears(FIN | ACK).await;
        let after = peer.expects;
        match state {
            Reached::FinWait2 => peer.send(ACK, b""),
            Reached::Closing => {
                peer.expects = before;
                peer.send(FIN | ACK, b"");
                peer.hears(ACK).await;
                peer.expects = after;
            }
            Reached::TimeWait => {
                peer.send(FIN | ACK, b"");
                peer.hears(ACK).await;
            }
            _ => {}
        }
    } else if state != Reached::Established {
        peer.send(FIN | ACK, b"");
        peer.hears(ACK).await;
        if state == Reached::LastAck {
            stream.shutdown(Shutdown::Write).unwrap();
            peer.hears(FIN | ACK).await;
        }
    }
    sleep(SECOND / 10).await;
    peer.came.clear();
    (peer, stream, stack)
}

#[test]
fn a_reset_ends_a_connection_in_each_state() {
    simulate(0..2, || async {
        let states = [
            Reached::Established,
            Reached::FinWait1,
            Reached::FinWait2,
            Reached::Closing,
            Reached::CloseWait,
            Reached::LastAck,
            Reached::TimeWait,
        ];
        for state in states {
            let (mut peer, stream, stack) = reach(state).await;
            // One that is far out of the window changes nothing.
            peer.put(&Segment { sequence: peer.next.wrapping_add(1 << 30), ..peer.segment(RST, b"") });
            sleep(SECOND / 10).await;
            peer.came.clear();
            let resets = peer.segment(RST, b"");
            peer.put(&resets);
            sleep(SECOND / 10).await;
            let read = stream.read(&mut [0; 4]).await;
            match state {
                Reached::Established | Reached::FinWait1 | Reached::FinWait2 => {
                    assert_eq!(read.unwrap_err().kind(), ErrorKind::ConnectionReset, "{state:?}");
                }
                // The peer's end has come before the reset.
                _ => assert_eq!(read.unwrap(), 0, "{state:?}"),
            }
            drop(stream);
            sleep(SECOND).await;
            assert!(peer.is_forgotten().await, "{state:?}");
            drop(stack);
        }
    });
}

#[test]
fn a_reset_out_of_the_window_is_no_reset() {
    simulate(0..2, || async {
        let (mut peer, stream, _stack) = open().await;
        for distance in [1 << 20, 1 << 30, u32::MAX - 10] {
            peer.put(&Segment { sequence: peer.next.wrapping_add(distance), ..peer.segment(RST, b"") });
        }
        sleep(SECOND).await;
        peer.send(ACK | PSH, b"warp");
        let mut four = [0; 4];
        stream.read_exact(&mut four).await.unwrap();
        assert_eq!(&four, b"warp");
    });
}

/// The numbers of a peer pass zero: in the handshake, in the bytes, and at the end.
#[test]
fn numbers_that_wrap_are_in_order() {
    simulate(0..2, || async {
        for before in [0, 1, 2, 500, 1500, 2999, 3000, 3001] {
            let tcp = TcpOptions::new().first_buffer(8 << 10);
            let (mut peer, stack) = Peer::of(0_u32.wrapping_sub(before), options(2).tcp(tcp));
            let listener = TcpListener::bind(&stack, address("10.0.0.2:80")).unwrap();
            let stream = peer.connect(&listener).await;
            let bytes: Vec<u8> = (0..3000).map(|place| (place % 251) as u8).collect();
            let reading = spawn(async move {
                let mut came = vec![0; 3000];
                stream.read_exact(&mut came).await.unwrap();
                assert_eq!(stream.read(&mut [0; 4]).await.unwrap(), 0);
                came
            });
            // The pieces come in pairs, the later one first.
            for pair in bytes.chunks(600) {
                let start = peer.next;
                let (first, second) = pair.split_at(300);
                peer.next = start.wrapping_add(300);
                peer.send(ACK | PSH, second);
                let after = std::mem::replace(&mut peer.next, start);
                peer.send(ACK | PSH, first);
                peer.next = after;
                while peer.any().await.unwrap().acknowledges != after {}
            }
            peer.send(FIN | ACK, b"");
            assert_eq!(reading.await.unwrap(), bytes);
        }
    });
}

/// The bytes before the stack's numbers pass zero, at most: about one in 2,000 first numbers is as
/// near.
const NEAR: u32 = 2 << 20;

/// The stack's numbers pass zero: the test looks for a seed with a first number that is near.
#[test]
fn the_stacks_own_numbers_that_wrap_are_in_order() {
    simulate(0..1, || async {
        for seed in 0.. {
            assert!(seed < 50_000, "no first number is near");
            let (mut peer, stack) = Peer::of(7000, options(2).seed(seed));
            let listener = TcpListener::bind(&stack, address("10.0.0.2:80")).unwrap();
            peer.send(SYN, b"");
            if peer.hears(SYN | ACK).await.sequence < 0_u32.wrapping_sub(NEAR) {
                continue;
            }
            peer.send(ACK, b"");
            let (stream, _) = listener.accept().await.unwrap();
            let length = NEAR as usize + 100_000;
            let writing = spawn(async move {
                let bytes: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
                stream.write_all(&bytes).await.unwrap();
                stream
            });
            let (mut came, first) = (0, peer.expects);
            while came < length {
                let segment = peer.any().await.unwrap();
                if segment.sequence == peer.expects && !segment.contents.is_empty() {
                    let right = (came..).map(|place| (place % 251) as u8).take(segment.contents.len());
                    assert!(segment.contents.iter().copied().eq(right), "byte {came}");
                    came += segment.contents.len();
                    peer.expects = segment.end();
                    peer.send(ACK, b"");
                }
            }
            assert!(peer.expects < first, "the numbers have passed zero");
            drop(writing.await.unwrap());
            break;
        }
    });
}
