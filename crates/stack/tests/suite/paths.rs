//! Ways that carry shorter packets than the wire, and routers that say so.

use crate::frames::unreachable;
use crate::{address, options};
use selvedge_core::{now, spawn};
use selvedge_sim::simulate;
use selvedge_stack::{SimulatedWire, Stack, TcpListener, TcpOptions, TcpStream, Weather, Wire};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

const LENGTH: usize = 50_000;

/// What a router does with a packet that is too long.
#[derive(Clone, Copy)]
enum Router {
    Tells(u16),
    /// It tells of a sequence number that the stack has not sent.
    Lies,
}

/// Passes frames of IPv4 on that have packets of `most` bytes at most. It counts the others, and
/// does with them what `router` says.
async fn narrow(
    from: Arc<SimulatedWire>,
    to: Arc<SimulatedWire>,
    (most, router): (usize, Router),
    long: Arc<AtomicUsize>,
) {
    loop {
        for frame in from.receive().await.unwrap() {
            if frame.len() <= 14 + most {
                to.send(&frame);
                continue;
            }
            long.fetch_add(1, Relaxed);
            match router {
                Router::Tells(most) => from.send(&unreachable(&frame, 4, most)),
                Router::Lies => {
                    let mut other = frame.clone();
                    other[14 + 20 + 4] ^= 0x40;
                    from.send(&unreachable(&other, 4, 600));
                    // It passes the packet all the same.
                    to.send(&frame);
                }
            }
        }
    }
}

/// How long a transfer takes behind such a router, and how many packets were too long.
async fn transfer(most: usize, router: Router) -> (Duration, usize) {
    let (left, right) = SimulatedWire::pair(1, Weather::default());
    let (near, far) = SimulatedWire::pair(2, Weather::default());
    let (client, server) = (Stack::start(options(1), left), Stack::start(options(2), near));
    let (right, far, long) = (Arc::new(right), Arc::new(far), Arc::new(AtomicUsize::new(0)));
    let there = spawn(narrow(right.clone(), far.clone(), (most, router), long.clone()));
    let back = spawn(narrow(far, right, (1500, router), Arc::default()));
    let at = address("10.0.0.2:80");
    let full = TcpOptions::new().buffer(LENGTH).first_buffer(LENGTH);
    let listener = TcpListener::bind_with_options(&server, at, full.clone()).unwrap();
    let before = now();
    for _ in 0..2 {
        let client = client.clone();
        let full = full.clone();
        let sending = spawn(async move {
            let stream = TcpStream::connect_with_options(&client, at, full).await.unwrap();
            stream.write_all(&[7; LENGTH]).await.unwrap();
            stream.shutdown(std::net::Shutdown::Write).unwrap();
            stream
        });
        let (stream, _) = listener.accept().await.unwrap();
        stream.read_exact(&mut [0; LENGTH]).await.unwrap();
        assert_eq!(stream.read(&mut [0; 9]).await.unwrap(), 0);
        drop(sending.await.unwrap());
    }
    [there, back].iter().for_each(|thread| thread.cancel());
    (now().since(before), long.load(Relaxed))
}

#[test]
fn a_narrow_way_gets_shorter_segments() {
    simulate(0..5, || async {
        for (most, tells) in [(1000, 1000), (600, 600), (576, 0)] {
            let (took, long) = transfer(most, Router::Tells(tells)).await;
            // The second connection knows the way from its beginning.
            assert!(long > 0 && long < 20, "{long} packets were too long for {most}");
            assert!(took < Duration::from_secs(8), "{most}: {took:?}");
        }
    });
}

#[test]
fn a_stranger_cannot_make_segments_short() {
    simulate(0..5, || async {
        let (_, long) = transfer(1400, Router::Lies).await;
        assert!(long > 40, "{long} packets were longer than 1400 bytes");
    });
}
