//! Buffers that grow under load.

use crate::{address, carry, options};
use selvedge_core::{now, spawn};
use selvedge_io::time::sleep;
use selvedge_sim::simulate;
use selvedge_stack::{SimulatedWire, Stack, TcpListener, TcpOptions, TcpStream, Weather};
use std::sync::Arc;
use std::time::Duration;

const WAY: Duration = Duration::from_millis(20);
const LENGTH: usize = 200_000;

/// Both ends of a connection over a way of 20 ms, and the threads that carry its frames.
async fn connection(tcp: &TcpOptions) -> (Arc<TcpStream>, Arc<TcpStream>) {
    let (left, right) = SimulatedWire::pair(1, Weather::default());
    let (near, far) = SimulatedWire::pair(2, Weather::default());
    let (client, server) = (Stack::start(options(1), left), Stack::start(options(2), near));
    let (right, far) = (Arc::new(right), Arc::new(far));
    drop((spawn(carry(right.clone(), far.clone(), WAY)), spawn(carry(far, right, WAY))));
    let at = address("10.0.0.2:80");
    let listener = TcpListener::bind_with_options(&server, at, tcp.clone()).unwrap();
    let stream = TcpStream::connect_with_options(&client, at, tcp.clone()).await.unwrap();
    let (accepted, _) = listener.accept().await.unwrap();
    (Arc::new(stream), Arc::new(accepted))
}

/// How long it takes until all bytes have come, in one direction and then in the other.
async fn exchange(left: &Arc<TcpStream>, right: &Arc<TcpStream>) -> Duration {
    let before = now();
    for (from, to) in [(left, right), (right, left)] {
        let from = from.clone();
        let writing = spawn(async move { from.write_all(&[7; LENGTH]).await.unwrap() });
        to.read_exact(&mut vec![0; LENGTH]).await.unwrap();
        writing.await.unwrap();
    }
    now().since(before)
}

#[test]
fn a_loaded_connection_becomes_fast() {
    simulate(0..3, || async {
        let growing = TcpOptions::new().first_buffer(1 << 10).buffer(60_000);
        let (left, right) = connection(&growing).await;
        let first = exchange(&left, &right).await;
        let second = exchange(&left, &right).await;

        let (left, right) = connection(&growing.clone().buffer(1 << 10)).await;
        let small = exchange(&left, &right).await;
        let (left, right) = connection(&growing.clone().first_buffer(60_000)).await;
        let large = exchange(&left, &right).await;
        assert!(second <= first && first < 3 * large, "{first:?}, {second:?}, large {large:?}");
        assert!(10 * first < small, "{first:?}, small {small:?}");
    });
}

#[test]
fn a_connection_goes_on_after_each_rest() {
    simulate(0..3, || async {
        let (left, right) = connection(&TcpOptions::new().buffer(60_000)).await;
        for rest in [1, 11, 70, 1000] {
            exchange(&left, &right).await;
            sleep(Duration::from_secs(rest)).await;
        }
        drop(left);
        assert_eq!(right.read(&mut [0; 8]).await.unwrap(), 0);
    });
}

/// A buffer as large as each write would be empty before the next one, and never grow.
#[test]
fn writes_as_large_as_the_buffer_make_it_grow() {
    simulate(0..3, || async {
        let growing = TcpOptions::new().first_buffer(4 << 10).buffer(60_000);
        let (left, right) = connection(&growing).await;
        let before = now();
        let writing = spawn(async move {
            for _ in 0..LENGTH / 4000 {
                left.write_all(&[7; 4000]).await.unwrap();
            }
            left
        });
        right.read_exact(&mut vec![0; LENGTH]).await.unwrap();
        drop(writing.await.unwrap());
        // Fifty round trips of 40 ms otherwise.
        assert!(now().since(before) < 40 * 2 * WAY, "{:?}", now().since(before));
    });
}
