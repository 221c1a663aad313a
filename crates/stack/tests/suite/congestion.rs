//! Congestion control by choice.

use crate::{address, carry, options};
use selvedge_core::{now, spawn};
use selvedge_sim::simulate;
use selvedge_stack::{Congestion, SimulatedWire, Stack, TcpListener, TcpOptions, TcpStream, Weather};
use std::sync::Arc;
use std::time::Duration;

const WAY: Duration = Duration::from_millis(50);

/// How long 60 KB take on a way of 50 ms, which loses this many of a thousand frames.
async fn transfer(control: Congestion, lost: u32) -> Duration {
    let (left, right) = SimulatedWire::pair(1, Weather::default());
    let (near, far) = SimulatedWire::pair(2, Weather { lost, ..Weather::default() });
    let (client, server) = (Stack::start(options(1), left), Stack::start(options(2), near));
    let (right, far) = (Arc::new(right), Arc::new(far));
    let between = [spawn(carry(right.clone(), far.clone(), WAY)), spawn(carry(far, right, WAY))];

    let at = address("10.0.0.2:80");
    let tcp = TcpOptions::new().congestion(control).buffer(65_000).first_buffer(65_000);
    let listener = TcpListener::bind_with_options(&server, at, tcp.clone()).unwrap();
    let sending = spawn(async move {
        let (stream, _) = listener.accept().await.unwrap();
        stream.write_all(&[7; 60_000]).await.unwrap();
    });
    let stream = TcpStream::connect_with_options(&client, at, tcp).await.unwrap();
    let before = now();
    stream.read_exact(&mut [0; 60_000]).await.unwrap();
    let took = now().since(before);
    sending.await.unwrap();
    between.iter().for_each(|thread| thread.cancel());
    took
}

#[test]
fn control_begins_slowly_and_its_absence_does_not() {
    simulate(0..5, || async {
        let at_once = transfer(Congestion::Unlimited, 0).await;
        assert!(at_once < 4 * WAY, "{at_once:?}");
        for control in [Congestion::Reno, Congestion::Cubic, Congestion::Bbr] {
            let slowly = transfer(control, 0).await;
            // 10, 20 and 40 segments.
            assert!(slowly > at_once + 3 * WAY, "{control:?}: {slowly:?} and {at_once:?}");
            assert!(slowly < at_once + 6 * WAY, "{control:?}: {slowly:?} and {at_once:?}");
        }
    });
}

#[test]
fn each_control_gets_through_loss() {
    simulate(0..20, || async {
        for control in [Congestion::Unlimited, Congestion::Reno, Congestion::Cubic, Congestion::Bbr] {
            let took = transfer(control, 50).await;
            assert!(took < Duration::from_secs(120), "{control:?}: {took:?}");
        }
    });
}
