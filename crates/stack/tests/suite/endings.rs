//! How a stack ends: it sends what was written, or says how much it could not.

use crate::{address, options};
use selvedge_core::{now, spawn};
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{SimulatedWire, Stack, StackOptions, TcpListener, TcpOptions, TcpStream, Weather};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const LENGTH: usize = 15_000;

/// The options of a stack with buffers of 16 KiB from the beginning.
fn large(number: u8) -> StackOptions {
    options(number).tcp(TcpOptions::new().first_buffer(16 << 10))
}

fn two_stacks(seed: u64, weather: Weather) -> (Stack, Stack) {
    let (left, right) = SimulatedWire::pair(seed, weather);
    (Stack::start(large(1), left), Stack::start(large(2), right))
}

/// Reads to the end, and returns how many bytes came.
async fn drain(stream: &TcpStream) -> usize {
    let (mut came, mut buffer) = (0, [0; 4096]);
    while let Ok(read @ 1..) = stream.read(&mut buffer).await {
        came += read;
    }
    came
}

#[test]
fn a_stack_that_is_dropped_sends_what_was_written() {
    simulate(0..100, || async {
        let storm = Weather { lost: 150, doubled: 50, delay: Duration::from_millis(30) };
        let (client, server) = two_stacks(1, storm);
        let listener = TcpListener::bind(&server, address("10.0.0.2:80")).unwrap();
        let reading = spawn(async move { drain(&listener.accept().await.unwrap().0).await });
        let stream = TcpStream::connect(&client, address("10.0.0.2:80")).await.unwrap();
        stream.write_all(&[7; LENGTH]).await.unwrap();
        drop((stream, client));
        assert_eq!(reading.await.unwrap(), LENGTH);
    });
}

#[test]
fn the_end_of_a_stack_is_bounded() {
    simulate(0..5, || async {
        let (left, right) = SimulatedWire::pair(1, Weather::default());
        let client = Stack::start(large(1).linger(3 * SECOND), left);
        let server = Stack::start(large(2), right);
        let listener = TcpListener::bind(&server, address("10.0.0.2:80")).unwrap();
        let stream = TcpStream::connect(&client, address("10.0.0.2:80")).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        // It does not read, and its buffer is full.
        for _ in 0..2 {
            stream.write_all(&[7; LENGTH]).await.unwrap();
        }
        drop((stream, client));
        sleep(4 * SECOND).await;
        // The rest and the end never come.
        let reading = spawn(async move { drain(&accepted).await });
        sleep(100 * SECOND).await;
        assert!(!reading.is_finished());
        reading.cancel();
    });
}

#[test]
fn finish_waits_for_acknowledgements_and_counts_what_has_none() {
    simulate(0..5, || async {
        let (client, server) = two_stacks(1, Weather { delay: SECOND, ..Weather::default() });
        assert_eq!(client.finish(SECOND).await, 0, "there is nothing to wait for");
        let listener = TcpListener::bind(&server, address("10.0.0.2:80")).unwrap();
        let stream = TcpStream::connect(&client, address("10.0.0.2:80")).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        stream.write_all(&[7; LENGTH]).await.unwrap();
        assert_eq!(client.finish(60 * SECOND).await, 0);
        // The window has room for the difference only.
        stream.write_all(&[7; LENGTH]).await.unwrap();
        drop(stream);
        let before = now();
        let lost = client.finish(10 * SECOND).await;
        assert_eq!(now().since(before).as_secs(), 10);
        assert_eq!(lost as usize, 2 * LENGTH - (16 << 10));
        assert_eq!(drain(&accepted).await, 2 * LENGTH);
        assert_eq!(client.finish(60 * SECOND).await, 0);
    });
}

#[test]
fn finish_counts_what_a_reset_has_lost() {
    simulate(0..5, || async {
        let (client, server) = two_stacks(1, Weather::default());
        let listener = TcpListener::bind(&server, address("10.0.0.2:80")).unwrap();
        let stream = TcpStream::connect(&client, address("10.0.0.2:80")).await.unwrap();
        let (accepted, _) = listener.accept().await.unwrap();
        for _ in 0..2 {
            stream.write_all(&[7; LENGTH]).await.unwrap();
        }
        drop(stream);
        sleep(SECOND).await;
        // Its bytes were not read: it resets.
        drop(accepted);
        assert_eq!(client.finish(10 * SECOND).await as usize, 2 * LENGTH - (16 << 10));
    });
}
