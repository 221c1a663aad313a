//! A stream of bytes stays one on wires that lose, double, delay and reorder frames.

use crate::{address, options};
use selvedge_core::spawn;
use selvedge_sim::simulate;
use selvedge_stack::{Congestion, SimulatedWire, Stack, TcpListener, TcpOptions, TcpStream, Weather};
use std::cell::Cell;
use std::net::Shutdown;
use std::time::Duration;

const SEEDS: u64 = 1000;
/// The seeds with more bytes.
const MANY_SEEDS: u64 = 120;
const MODEL_SEEDS: u64 = 120;

/// The byte at `place` of the stream that `seed` determines.
fn byte(seed: u64, place: usize) -> u8 {
    (seed.wrapping_mul(31) as usize + place * 7 + place / 251) as u8
}

/// One echo with these options: the client writes, ends its half, and reads the same bytes and
/// the end.
async fn echo(seed: u64, tcp: TcpOptions) {
    echo_of(1 + (seed * 977 % 40_000) as usize, seed, tcp).await;
}

/// The same with this number of bytes.
async fn echo_of(length: usize, seed: u64, tcp: TcpOptions) {
    let weather = Weather {
        lost: (seed % 4) as u32 * 30,
        doubled: (seed % 3) as u32 * 50,
        delay: Duration::from_millis(seed % 5 * 10),
    };
    let (left, right) = SimulatedWire::pair(seed, weather);
    let client = Stack::start(options(1).tcp(tcp.clone()), left);
    let server = Stack::start(options(2).tcp(tcp), right);
    let at = address(if seed.is_multiple_of(2) { "10.0.0.2:7" } else { "[fd00::2]:7" });
    let listener = TcpListener::bind(&server, at).unwrap();
    let echoing = spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        let mut buffer = [0; 700];
        loop {
            match stream.read(&mut buffer).await.unwrap() {
                0 => break,
                read => stream.write_all(&buffer[..read]).await.unwrap(),
            }
        }
    });
    let stream = std::sync::Arc::new(TcpStream::connect(&client, at).await.unwrap());
    let writing = spawn({
        let stream = stream.clone();
        async move {
            let bytes: Vec<u8> = (0..length).map(|place| byte(seed, place)).collect();
            stream.write_all(&bytes).await.unwrap();
            stream.shutdown(Shutdown::Write).unwrap();
        }
    });
    let (mut came, mut buffer) = (0, [0; 900]);
    loop {
        let read = stream.read(&mut buffer).await.unwrap();
        if read == 0 {
            break;
        }
        for &is in &buffer[..read] {
            assert_eq!(is, byte(seed, came), "byte {came}");
            came += 1;
        }
    }
    assert_eq!(came, length);
    writing.await.unwrap();
    echoing.await.unwrap();
}

/// The options of the echo with this seed.
fn options_of(seed: u64) -> TcpOptions {
    let control = [Congestion::Cubic, Congestion::Reno, Congestion::Unlimited][(seed / 4 % 3) as usize];
    TcpOptions::new().congestion(control).buffer(600 + (seed % 7) as usize * 900)
}

#[test]
fn a_stream_is_a_stream_under_each_seed() {
    let next = Cell::new(0);
    simulate(0..SEEDS, || {
        let seed = next.replace(next.get() + 1);
        echo(seed, options_of(seed).first_buffer(1000))
    });
    assert_eq!(next.get(), SEEDS);
}

/// The same, and with many segments, under a model of the way: a rate holds segments up too.
#[test]
fn a_stream_is_one_under_a_model_and_each_seed() {
    let next = Cell::new(0);
    simulate(0..MODEL_SEEDS, || {
        let seed = next.replace(next.get() + 1);
        let options = options_of(seed).congestion(Congestion::Bbr);
        let (length, size) =
            [(40_000, 4000), (150_000, 20_000 << (seed % 4))][usize::from(seed.is_multiple_of(8))];
        echo_of(length, seed, options.buffer(size).first_buffer(1000))
    });
    assert_eq!(next.get(), MODEL_SEEDS);
}

/// Dozens of segments are on their way at once, so the peer selects.
#[test]
fn a_stream_with_many_segments_is_one_under_each_seed() {
    let next = Cell::new(0);
    simulate(0..MANY_SEEDS, || {
        let seed = next.replace(next.get() + 1);
        let size = 20_000 << (seed % 4);
        echo_of(150_000, seed, options_of(seed).buffer(size).first_buffer(size))
    });
    assert_eq!(next.get(), MANY_SEEDS);
}

/// Two peers that repeat something at once, an old window after a new one, an end that is lost with
/// three acknowledgements after it, and an end behind too many bytes: smoltcp alone waits for ever,
/// or loses bytes. The buffers have their full size from the beginning.
#[test]
fn a_stream_ends_after_rare_losses() {
    let full = |options: TcpOptions| options.first_buffer(usize::MAX);
    for (seed, buffer) in [(30, 6096), (63, 4096)] {
        let options = full(TcpOptions::new().buffer(buffer));
        simulate(seed..seed + 1, || echo(seed, options.clone()));
    }
    for seed in [546, 686, 1431, 7571, 15065] {
        simulate(seed..seed + 1, || echo(seed, full(options_of(seed))));
    }
}
