//! Floods of first segments, and what becomes of true clients meanwhile.

use crate::frames::{ACK, SYN, Segment};
use crate::{address, carry, host, options};
use selvedge_core::spawn;
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{SimulatedWire, Stack, TcpListener, TcpOptions, TcpStream, Weather, Wire};
use std::net::{Ipv4Addr, SocketAddrV4};
use std::sync::Arc;
use std::time::Duration;

/// The first segments of a flood.
const FLOOD: u32 = 100_000;

/// A segment to the server from an address that does not exist: each `number` is another one.
fn spoofed(number: u32, flags: u8) -> Vec<u8> {
    let from = Ipv4Addr::new(10, 0, 0, 10 + (number % 200) as u8);
    let from = SocketAddrV4::new(from, 1024 + (number / 200) as u16);
    let to = SocketAddrV4::new(host(2).0, 80);
    let numbers = (number.wrapping_mul(0x9E37_79B9), number.wrapping_mul(0x85EB_CA6B));
    let segment = Segment::new(from, to, flags);
    Segment { sequence: numbers.0, acknowledges: numbers.1, ..segment }.frame([2, 0, 0, 0, 0, 66], host(2).1)
}

/// Sends what comes back, until the end.
async fn echo(listener: TcpListener) {
    while let Ok((stream, _)) = listener.accept().await {
        drop(spawn(async move {
            let mut buffer = [0; 4096];
            while let Ok(read @ 1..) = stream.read(&mut buffer).await {
                stream.write_all(&buffer[..read]).await.unwrap();
            }
        }));
    }
}

/// Sends `length` bytes to an echo and takes them back.
async fn ask(client: &Stack, at: &str, length: usize) {
    let stream = Arc::new(TcpStream::connect(client, address(at)).await.unwrap());
    let bytes: Vec<u8> = (0..length).map(|place| (place % 251) as u8).collect();
    let writing = spawn({
        let (stream, bytes) = (stream.clone(), bytes.clone());
        async move { stream.write_all(&bytes).await.unwrap() }
    });
    let mut back = vec![0; length];
    stream.read_exact(&mut back).await.unwrap();
    assert!(back == bytes);
    writing.await.unwrap();
}

#[test]
fn clients_come_through_a_flood_of_first_segments() {
    simulate(0..1, || async {
        let (left, right) = SimulatedWire::pair(1, Weather::default());
        let (near, far) = SimulatedWire::pair(2, Weather::default());
        let (client, server) = (Stack::start(options(1), left), Stack::start(options(2), near));
        let (right, far) = (Arc::new(right), Arc::new(far));
        let attacker = far.clone();
        drop(spawn(carry(right.clone(), far.clone(), Duration::ZERO)));
        drop(spawn(carry(far, right, Duration::ZERO)));
        drop(spawn(echo(TcpListener::bind(&server, address("10.0.0.2:80")).unwrap())));
        ask(&client, "10.0.0.2:80", 100).await;
        let flood = spawn(async move {
            for number in 0..FLOOD {
                attacker.send(&spoofed(number, SYN));
                if number % 500 == 0 {
                    // A guess of a cookie, too.
                    attacker.send(&spoofed(number, ACK));
                    sleep(Duration::from_millis(1)).await;
                }
            }
        });
        sleep(Duration::from_millis(50)).await;
        let mut during = 0;
        while !flood.is_finished() {
            ask(&client, "10.0.0.2:80", 3000).await;
            during += 1;
            sleep(Duration::from_millis(10)).await;
        }
        assert!(during >= 10, "{during} clients during the flood");
        ask(&client, "10.0.0.2:80", 50_000).await;
    });
}

#[test]
fn a_connection_by_a_cookie_is_like_any_other() {
    simulate(0..40, || async {
        let weather = Weather { lost: 50, doubled: 30, delay: Duration::from_millis(10) };
        let (left, right) = SimulatedWire::pair(1, weather);
        let client = Stack::start(options(1), left);
        // Each handshake is one by a cookie.
        let large = TcpOptions::new().buffer(200_000);
        let server = Stack::start(options(2).half_open(0), right);
        for (at, tcp) in [
            ("10.0.0.2:80", None),
            ("[fd00::2]:80", None),
            // Windows that are scaled.
            ("10.0.0.2:81", Some(large.clone())),
            ("[fd00::2]:81", Some(large)),
        ] {
            let server = spawn(echo(TcpListener::bind_with_options(&server, address(at), tcp).unwrap()));
            ask(&client, at, 40_000).await;
            server.cancel();
        }
    });
}

#[test]
fn a_full_backlog_makes_clients_with_cookies_wait() {
    simulate(0..5, || async {
        let (left, right) = SimulatedWire::pair(1, Weather::default());
        let client = Stack::start(options(1), left);
        let server = Stack::start(options(2).half_open(0).backlog(2), right);
        let listener = TcpListener::bind(&server, address("10.0.0.2:80")).unwrap();
        let mut threads = Vec::new();
        for number in 0..4_u8 {
            let client = client.clone();
            threads.push(spawn(async move {
                let stream = TcpStream::connect(&client, address("10.0.0.2:80")).await.unwrap();
                stream.write_all(&[number]).await.unwrap();
                stream
            }));
        }
        sleep(Duration::from_secs(5)).await;
        let (mut came, mut streams) = (Vec::new(), Vec::new());
        for _ in 0..4 {
            let (stream, _) = listener.accept().await.unwrap();
            let mut byte = [0];
            stream.read_exact(&mut byte).await.unwrap();
            came.extend(byte);
            streams.push(stream);
        }
        came.sort_unstable();
        assert_eq!(came, [0, 1, 2, 3]);
        for thread in threads {
            thread.await.unwrap();
        }
    });
}
