//! Transfers over a way that loses segments, and how long they take.

use crate::frames::Segment;
use crate::{address, options};
use selvedge_core::{now, spawn};
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{Receiving, SimulatedWire, Stack, TcpListener, TcpOptions, TcpStream, Weather, Wire};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::Duration;

/// The time of a frame on its way, and the bytes of a transfer.
const WAY: Duration = Duration::from_millis(5);
const LENGTH: usize = 1 << 20;

/// Carries frames from one wire to another, in order and each in the same time.
async fn carry_in_order(from: Arc<SimulatedWire>, to: Arc<SimulatedWire>) {
    let mut before = spawn(async {});
    loop {
        let frames = from.receive().await.unwrap();
        let to = to.clone();
        before = spawn(async move {
            sleep(WAY).await;
            // Threads that sleep until the same time wake in any order.
            before.await.unwrap();
            frames.iter().for_each(|frame| to.send(frame));
        });
    }
}

/// A wire that counts the bytes in the segments that are sent.
struct CountedWire(SimulatedWire, Arc<AtomicUsize>);

impl Wire for CountedWire {
    fn send(&self, frame: &[u8]) {
        self.1.fetch_add(Segment::of(frame).map_or(0, |segment| segment.contents.len()), Relaxed);
        self.0.send(frame);
    }

    fn receive(&self) -> Receiving<'_> {
        self.0.receive()
    }
}

/// How long a transfer takes when this many of a thousand frames are lost in each direction, and
/// how many bytes are sent for it.
async fn transfer(seed: u64, lost: u32) -> (Duration, usize) {
    let (left, right) = SimulatedWire::pair(1, Weather::default());
    let (near, far) = SimulatedWire::pair(seed, Weather { lost, ..Weather::default() });
    let sent = Arc::new(AtomicUsize::new(0));
    let near = CountedWire(near, sent.clone());
    let (client, server) = (Stack::start(options(1), left), Stack::start(options(2), near));
    let (right, far) = (Arc::new(right), Arc::new(far));
    let between = [spawn(carry_in_order(right.clone(), far.clone())), spawn(carry_in_order(far, right))];
    let at = address("10.0.0.2:80");
    let tcp = TcpOptions::new().buffer(0xFFFF).first_buffer(0xFFFF);
    let listener = TcpListener::bind_with_options(&server, at, tcp.clone()).unwrap();
    let sending = spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        stream.write_all(&[7; LENGTH]).await.unwrap();
    });
    let stream = TcpStream::connect_with_options(&client, at, tcp).await.unwrap();
    let before = now();
    stream.read_exact(&mut vec![0; LENGTH]).await.unwrap();
    let took = now().since(before);
    sending.await.unwrap();
    between.iter().for_each(|thread| thread.cancel());
    (took, sent.load(Relaxed))
}

const SEEDS: u32 = 5;

/// The mean time over some seeds, and the mean of the bytes that went again.
async fn transfers(lost: u32) -> (Duration, usize) {
    let (mut time, mut again) = (Duration::ZERO, 0);
    for seed in 0..SEEDS {
        let (took, sent) = transfer(seed.into(), lost).await;
        time += took / SEEDS;
        again += (sent - LENGTH) / SEEDS as usize;
    }
    println!("{lost} of a thousand lost: {time:?} for {LENGTH} bytes, and {again} of them again");
    (time, again)
}

#[test]
fn losses_are_repaired_soon_and_nothing_else_goes_again() {
    simulate(0..1, || async {
        // A window of 64 KiB and a round trip of 10 ms make 160 ms, after a slow start.
        for (lost, longest, most) in [(0, 400, 0), (1, 500, 4), (10, 1000, 20), (50, 3000, 90)] {
            let (took, again) = transfers(lost).await;
            assert!(took < Duration::from_millis(longest), "{lost} lost: {took:?}");
            assert!(again <= LENGTH * most / 1000, "{lost} lost: {again} bytes");
        }
    });
}
