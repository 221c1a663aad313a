//! A wire in memory, which loses, doubles, delays and reorders frames as a seed says.

use super::{Receiving, Wire};
use selvedge_core::{Time, now};
use selvedge_io::time::sleep_until;
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

/// How bad a [`SimulatedWire`] is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Weather {
    /// The frames of a thousand that are lost.
    pub lost: u32,
    /// The frames of a thousand that come twice.
    pub doubled: u32,
    /// The longest way of a frame. Each frame takes a time between 0 and this one, so frames
    /// overtake one another.
    pub delay: Duration,
}

/// One end of a wire in memory.
///
/// With the same seed and the same frames at the same times it does the same, so a program in a
/// simulated world can be run again.
#[derive(Debug)]
pub struct SimulatedWire {
    outgoing: Arc<Mutex<WireDirection>>,
    incoming: Arc<Mutex<WireDirection>>,
}

/// The frames on their way in one direction.
#[derive(Debug)]
struct WireDirection {
    weather: Weather,
    random: u64,
    sent: u64,
    frames: BTreeMap<(Time, u64), Vec<u8>>,
    receiver: Option<Waker>,
}

impl SimulatedWire {
    /// Both ends of a new wire.
    pub fn pair(seed: u64, weather: Weather) -> (SimulatedWire, SimulatedWire) {
        let way = |random| {
            let frames = BTreeMap::new();
            Arc::new(Mutex::new(WireDirection { weather, random, sent: 0, frames, receiver: None }))
        };
        let (there, back) = (way(seed), way(!seed));
        let left = SimulatedWire { outgoing: there.clone(), incoming: back.clone() };
        (left, SimulatedWire { outgoing: back, incoming: there })
    }
}

impl WireDirection {
    /// The next number of the sequence SplitMix64.
    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.random ^ (self.random >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn happens(&mut self, of_a_thousand: u32) -> bool {
        self.random() % 1000 < u64::from(of_a_thousand)
    }

    fn send(&mut self, frame: &[u8]) {
        if self.happens(self.weather.lost) {
            return;
        }
        let copies = 1 + u32::from(self.happens(self.weather.doubled));
        for _ in 0..copies {
            let longest = self.weather.delay.as_nanos() as u64;
            let comes = Time::from_nanos(now().as_nanos() + self.random() % (longest + 1));
            self.frames.insert((comes, self.sent), frame.to_vec());
            self.sent += 1;
        }
    }

    fn first(&self) -> Option<Time> {
        self.frames.first_key_value().map(|((comes, _), _)| *comes)
    }

    fn arrived(&mut self) -> Vec<Vec<u8>> {
        let later = self.frames.split_off(&(now(), u64::MAX));
        std::mem::replace(&mut self.frames, later).into_values().collect()
    }
}

impl Wire for SimulatedWire {
    fn send(&self, frame: &[u8]) {
        let receiver = {
            let mut way = self.outgoing.lock().unwrap();
            way.send(frame);
            way.receiver.take()
        };
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }

    fn receive(&self) -> Receiving<'_> {
        Box::pin(async {
            loop {
                let next = {
                    let mut way = self.incoming.lock().unwrap();
                    let frames = way.arrived();
                    if !frames.is_empty() {
                        return Ok(frames);
                    }
                    way.first()
                };
                let arrival = async {
                    match next {
                        Some(at) => sleep_until(at).await,
                        None => std::future::pending().await,
                    }
                };
                let mut arrival = pin!(arrival);
                poll_fn(|cx| {
                    {
                        let mut way = self.incoming.lock().unwrap();
                        if way.first() != next {
                            return Poll::Ready(());
                        }
                        way.receiver = Some(cx.waker().clone());
                    }
                    arrival.as_mut().poll(cx)
                })
                .await;
            }
        })
    }
}
