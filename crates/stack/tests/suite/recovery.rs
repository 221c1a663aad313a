//! Transfers over a way that loses segments, and how long they take.

use crate::{address, options};
use selvedge_core::{now, spawn};
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{SimulatedWire, Stack, TcpListener, TcpOptions, TcpStream, Weather, Wire};
use std::sync::Arc;
use std::time::Duration;

/// The time of a frame on its way, and the bytes of a transfer.
const WAY: Duration = Duration::from_millis(5);
const LENGTH: usize = 1 << 20;

/// Carries frames from one wire to another, each in the same time, so that they stay in order.
async fn carry_in_order(from: Arc<SimulatedWire>, to: Arc<SimulatedWire>) {
    loop {
        let frames = from.receive().await.unwrap();
        let to = to.clone();
        drop(spawn(async move {
            sleep(WAY).await;
            frames.iter().for_each(|frame| to.send(frame));
        }));
    }
}

/// How long a transfer takes when this many of a thousand frames are lost in its direction.
async fn transfer(seed: u64, lost: u32) -> Duration {
    let (left, right) = SimulatedWire::pair(1, Weather::default());
    let (near, far) = SimulatedWire::pair(seed, Weather { lost, ..Weather::default() });
    let (client, server) = (Stack::start(options(1), left), Stack::start(options(2), near));
    let (right, far) = (Arc::new(right), Arc::new(far));
    let between = [spawn(carry_in_order(right.clone(), far.clone())), spawn(carry_in_order(far, right))];
    let at = address("10.0.0.2:80");
    let tcp = TcpOptions::new().buffer(0xFFFF).first_buffer(0xFFFF);
    let listener = TcpListener::bind_with(&server, at, tcp.clone()).unwrap();
    let sending = spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        stream.write_all(&[7; LENGTH]).await.unwrap();
    });
    let stream = TcpStream::connect_with(&client, at, tcp).await.unwrap();
    let before = now();
    stream.read_exact(&mut vec![0; LENGTH]).await.unwrap();
    let took = now().since(before);
    sending.await.unwrap();
    between.iter().for_each(|thread| thread.cancel());
    took
}

/// The sum over some seeds.
async fn transfers(lost: u32) -> Duration {
    let mut sum = Duration::ZERO;
    for seed in 0..5 {
        sum += transfer(seed, lost).await;
    }
    println!("{lost} of a thousand lost: {:?} for {LENGTH} bytes", sum / 5);
    sum / 5
}

#[test]
fn losses_are_repaired_without_waiting_for_a_timer() {
    simulate(0..1, || async {
        // A window of 64 KiB and a round trip of 10 ms make 160 ms, after a slow start.
        let mut took = Vec::new();
        for lost in [0, 1, 10, 50] {
            took.push(transfers(lost).await.as_millis());
        }
        assert!(took[0] < 500 && took[1] < 800 && took[2] < 2000 && took[3] < 6000, "{took:?} ms");
    });
}
