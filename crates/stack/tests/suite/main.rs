//! The tests of this crate over simulated wires, and over devices of the kernel, in one program.

#[path = "../frames/mod.rs"]
mod frames;

mod any_frames;
mod bad_networks;
mod bottlenecks;
mod congestion;
mod connections;
mod datagrams;
mod descriptors;
mod devices;
mod endings;
mod failures;
mod floods;
mod flows;
mod growing;
mod limits;
mod looping;
mod paths;
mod peer;
mod recovery;
mod scripts;
mod selective;
mod wakers;

use selvedge_io::time::sleep;
use selvedge_stack::{SimulatedWire, Stack, StackOptions, Weather, Wire};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The options of the stack with this number, which determines its addresses.
fn options(number: u8) -> StackOptions {
    let options = StackOptions::new().hardware([2, 0, 0, 0, 0, number]).seed(u64::from(number));
    let options = options.address([10, 0, 0, number].into(), 24).unwrap();
    options.address([0xfd00, 0, 0, 0, 0, 0, 0, u16::from(number)].into(), 64).unwrap()
}

/// Two stacks with a wire between them.
fn two_stacks(seed: u64, weather: Weather) -> (Stack, Stack) {
    let (left, right) = SimulatedWire::pair(seed, weather);
    (Stack::start(options(1), left), Stack::start(options(2), right))
}

fn address(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// The host with this number on the wire of the tests, and its Ethernet address.
fn host(number: u8) -> (std::net::Ipv4Addr, [u8; 6]) {
    ([10, 0, 0, number].into(), [2, 0, 0, 0, 0, number])
}

/// Carries frames from one wire to another; each takes this time.
async fn carry(from: Arc<SimulatedWire>, to: Arc<SimulatedWire>, way: Duration) {
    loop {
        let frames = from.receive().await.unwrap();
        let to = to.clone();
        drop(selvedge_core::spawn(async move {
            if !way.is_zero() {
                sleep(way).await;
            }
            frames.iter().for_each(|frame| to.send(frame));
        }));
    }
}
