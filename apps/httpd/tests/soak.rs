//! Two minutes of everything clients do, at once: memory and descriptors stay what they were after
//! the first part.
//!
//! Ignored by default. `SOAK_SECONDS` sets how long it takes:
//! `SOAK_SECONDS=30 cargo test --release -p selvedge-httpd --test soak -- --ignored`

mod common;

use common::{Client, Server, bytes, ms, serve, site};
use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

const GET: &str = "GET /ten.txt HTTP/1.1\r\nHost: a\r\n\r\n";
const BIG: &str = "GET /big.bin HTTP/1.1\r\nHost: a\r\n\r\n";

/// One thing that a client does; `n` counts up.
fn act(server: &Server, n: u64, big: &[u8]) {
    let mut client = server.connect();
    match n % 10 {
        0 | 1 => (0..50).for_each(|_| assert_eq!(client.ask(GET).status, 200)),
        2 => {
            client.send(GET.repeat(100));
            (0..100).for_each(|_| assert_eq!(client.reply().body, b"0123456789"));
        }
        3 => assert!(client.ask(BIG).body == big),
        4 => {
            client.send(GET.repeat(3));
            client.stream.shutdown(Shutdown::Write).unwrap();
            (0..3).for_each(|_| assert_eq!(client.reply().status, 200));
            client.assert_end();
        }
        5 => {
            client.send(BIG);
            reset(&client);
        }
        6 => {
            client.send(&GET[..n as usize % GET.len()]);
            reset(&client);
        }
        7 => {
            client.send("nonsense\r\n\r\n");
            client.send(GET.repeat(100));
            assert_eq!(client.reply().status, 400);
        }
        8 => {
            // Half a body, and gone.
            client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n12345");
            assert_eq!(client.reply().status, 405);
        }
        _ => {
            let name = n * 7919 % 3000;
            assert_eq!(client.ask(&format!("GET /{name} HTTP/1.1\r\nHost: a\r\n\r\n")).status, 404);
        }
    }
}

fn reset(client: &Client) {
    rustix::net::sockopt::set_socket_linger(&client.stream, Some(Duration::ZERO)).unwrap();
}

#[test]
#[ignore = "takes two minutes"]
fn memory_and_descriptors_stay_constant() {
    let seconds = std::env::var("SOAK_SECONDS").map_or(120, |text| text.parse().unwrap());
    let site = site();
    let log = tempfile::tempdir().unwrap();
    let log = log.path().join("log");
    let options = ["--workers", "2", "--validity", "0.2", "--log", log.to_str().unwrap()];
    let server = serve(site.path(), &options);
    let big = bytes(3_000_000);
    let (done, acts) = (AtomicBool::new(false), AtomicU64::new(0));
    // Resident bytes and descriptors, often.
    let mut samples: Vec<(u64, usize)> = Vec::new();
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                while !done.load(Relaxed) {
                    act(&server, acts.fetch_add(1, Relaxed), &big);
                }
            });
        }
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(seconds) {
            std::thread::sleep(ms(250));
            samples.push((server.resident(), server.descriptors()));
        }
        done.store(true, Relaxed);
    });
    let most = |part: &[(u64, usize)]| {
        let resident = part.iter().map(|sample| sample.0).max().unwrap();
        (resident, part.iter().map(|sample| sample.1).max().unwrap())
    };
    let (first, rest) = samples.split_at(samples.len() / 4);
    let (early, late) = (most(first), most(rest));
    println!(
        "{} acts; resident and descriptors at most: {early:?} in the first quarter, {late:?} later",
        acts.load(Relaxed)
    );
    assert!(late.0 < early.0 + early.0 / 4 + (1 << 20), "memory grows: {early:?}, {late:?}");
    assert!(late.1 <= early.1 + 16, "descriptors grow: {early:?}, {late:?}");
    // And when all are gone, nothing is left of them.
    std::thread::sleep(ms(4000));
    let at_rest = server.descriptors();
    assert!(at_rest < 40, "{at_rest} descriptors at rest");
    assert_eq!(server.get("/ten.txt").status, 200);
}
