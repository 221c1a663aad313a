//! A stack that talks with itself.

use crate::{address, options};
use selvedge_core::spawn;
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{
    Loopback, SimulatedWire, Stack, StackOptions, TcpListener, TcpStream, UdpSocket, Weather, Wire,
};
use std::io::ErrorKind;
use std::time::Duration;

fn local_options() -> StackOptions {
    let loopback = StackOptions::new().address([127, 0, 0, 1].into(), 8).unwrap();
    loopback.address("::1".parse().unwrap(), 128).unwrap().seed(1)
}

/// A client and a server on the same stack, which sends itself `length` bytes and back.
async fn talk(stack: &Stack, at: &str, length: usize) {
    let listener = TcpListener::bind(stack, address(at)).unwrap();
    let echoing = spawn(async move {
        let (stream, peer) = listener.accept().await.unwrap();
        assert_eq!(stream.local_addr().unwrap().ip(), peer.ip());
        let mut buffer = [0; 3000];
        while let read @ 1.. = stream.read(&mut buffer).await.unwrap() {
            stream.write_all(&buffer[..read]).await.unwrap();
        }
    });
    let stream = TcpStream::connect(stack, address(at)).await.unwrap();
    let bytes: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
    for piece in bytes.chunks(10_000) {
        stream.write_all(piece).await.unwrap();
        let mut back = vec![0; piece.len()];
        stream.read_exact(&mut back).await.unwrap();
        assert_eq!(back, piece);
    }
    drop(stream);
    echoing.await.unwrap();

    let socket = UdpSocket::bind(stack, address(at)).unwrap();
    let other =
        UdpSocket::bind(stack, std::net::SocketAddr::new(socket.local_addr().unwrap().ip(), 0)).unwrap();
    other.send_to(b"warp", address(at)).await.unwrap();
    let (read, from) = socket.recv_from(&mut [0; 8]).await.unwrap();
    assert_eq!((read, from), (4, other.local_addr().unwrap()));
}

#[test]
fn a_stack_without_others_talks_with_itself() {
    simulate(0..20, || async {
        let stack = Stack::start(local_options(), Loopback);
        for at in ["127.0.0.1:80", "[::1]:80"] {
            talk(&stack, at, 100_000).await;
        }
        let error = TcpStream::connect(&stack, address("127.0.0.1:81")).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionRefused);
    });
}

#[test]
fn what_a_stack_sends_to_itself_goes_to_no_wire() {
    simulate(0..5, || async {
        let (left, right) = SimulatedWire::pair(1, Weather::default());
        let stack = Stack::start(options(1), left);
        let listening = spawn(async move { right.receive().await.unwrap() });
        for at in ["10.0.0.1:80", "[fd00::1]:80"] {
            talk(&stack, at, 10_000).await;
        }
        sleep(Duration::from_secs(60)).await;
        assert!(!listening.is_finished(), "a frame came out");
        // What is for another does.
        let other = UdpSocket::bind(&stack, address("10.0.0.1:0")).unwrap();
        other.send_to(b"weft", address("10.0.0.2:9")).await.unwrap();
        assert_eq!(listening.await.unwrap().len(), 1);
    });
}

#[test]
fn a_listener_at_all_addresses_takes_the_stacks_own_connections() {
    simulate(0..5, || async {
        let both = options(1).address([127, 0, 0, 1].into(), 8).unwrap();
        let stack = Stack::start(both, Loopback);
        let listener = TcpListener::bind(&stack, address("0.0.0.0:80")).unwrap();
        for at in ["127.0.0.1:80", "10.0.0.1:80"] {
            let stream = TcpStream::connect(&stack, address(at)).await.unwrap();
            assert_eq!(stream.local_addr().unwrap().ip(), address(at).ip());
            listener.accept().await.unwrap();
        }
        let socket = UdpSocket::bind(&stack, address("0.0.0.0:0")).unwrap();
        let at = UdpSocket::bind(&stack, address("127.0.0.1:9")).unwrap();
        socket.send_to(b"warp", address("127.0.0.1:9")).await.unwrap();
        assert_eq!(at.recv_from(&mut [0; 8]).await.unwrap().1.ip(), address("127.0.0.1:9").ip());
    });
}
