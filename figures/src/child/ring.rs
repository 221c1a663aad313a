//! Rings of the thread figures: a token goes [`around`] the stations, and [`station`] is one over
//! the hand-made MVar. `ours.rs` and `tokio_peer.rs` call them.

use super::clock::Times;
use super::handmade::HandMade;
use std::fmt::Debug;

/// Sends the token off, waits until all stations of the ring have ended, and prints the time of one
/// hop. Gives the results of the stations.
pub(super) async fn around<T, E: Debug>(
    hops: u64,
    start: impl Future<Output = ()>,
    stations: Vec<impl Future<Output = Result<T, E>>>,
) -> Vec<T> {
    let mut ends = Vec::new();
    let first = Times::now();
    start.await;
    for station in stations {
        ends.push(station.await.expect("a station does not panic"));
    }
    first.print_until(Times::now(), hops);
    ends
}

/// A station of a ring over the hand-made MVar: the same code under both runtimes.
pub(super) async fn station(from: HandMade<u64>, to: HandMade<u64>, rounds: u64) {
    for _ in 0..rounds {
        let token = from.take().await;
        to.put(token + 1).await;
    }
}
