//! One device for several stacks, each of which gets its share of the flows.

use super::{Receiving, Wire};
use crate::flow::{Cargo, SocketPair};
use crate::outgoing::OutgoingFrame;
use crate::questions::told_by_question;
use std::fmt;
use std::future::poll_fn;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::mem;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};

/// A stack's share of a device. A program with several workers gives each of them a stack of its
/// own, with the same addresses, so that a connection stays with one worker and its lock is never
/// waited for.
///
/// A flow is a hash of both addresses and ports away from its stack. A device with several queues
/// ([`Tap::open_queues`](crate::Tap::open_queues)) has one for each stack; if the kernel puts a
/// frame into the queue of another one, that one hands it over. Datagrams to a port that a stack
/// has picked itself come to it from all peers. Questions for Ethernet addresses, pings and the
/// like go to the first stack. What such a question tells of the host that asks, and what answers
/// tell, goes to all: smoltcp asks for one address a second at most.
///
/// # Paper
/// [LZ07 §6] has one stack. A stack for each processor, with flows spread by a hash, is mTCP's.
///
/// # Examples
/// ```
/// use selvedge::stack::{FlowWire, SimulatedWire, Stack, StackOptions, TcpListener, Weather};
///
/// # fn main() -> Result<(), selvedge::SchedulerError> {
/// selvedge::run(async {
///     let (_left, right) = SimulatedWire::pair(7, Weather::default());
///     let options = StackOptions::new().address([10, 0, 0, 2].into(), 24).unwrap();
///     // In a server each worker starts one of them.
///     for wire in FlowWire::share(vec![right], 2) {
///         let stack = Stack::start(options.clone(), wire);
///         TcpListener::bind(&stack, "10.0.0.2:80".parse().unwrap()).unwrap();
///     }
/// })
/// # }
/// ```
pub struct FlowWire {
    shares: Arc<FlowShares>,
    index: usize,
}

/// All shares of a device.
struct FlowShares {
    queues: Vec<Box<dyn Wire>>,
    hash: RandomState,
    handed: Vec<Mutex<HandedFrames>>,
}

/// The frames for a stack that others have taken from the device.
#[derive(Default)]
struct HandedFrames {
    frames: Vec<Vec<u8>>,
    receiver: Option<Waker>,
}

/// The frames that wait for a stack at most. What comes then is lost, as on every wire.
const MOST: usize = 4096;

/// Which stacks get a frame.
#[derive(Debug, Eq, PartialEq)]
enum Recipient {
    One(usize),
    All,
    /// The first one, and all hear of the host that asks in it.
    First,
}

impl FlowWire {
    /// The shares of `stacks` stacks in a device with these queues, which are as many as the
    /// stacks, or fewer.
    ///
    /// # Panics
    /// If there is no queue, or if there are more queues than stacks.
    pub fn share(queues: Vec<impl Wire>, stacks: usize) -> Vec<FlowWire> {
        assert!((1..=stacks).contains(&queues.len()), "{} queues for {stacks} stacks", queues.len());
        let queues = queues.into_iter().map(|queue| Box::new(queue) as Box<dyn Wire>).collect();
        let handed = (0..stacks).map(|_| Mutex::default()).collect();
        let shares = Arc::new(FlowShares { queues, hash: RandomState::new(), handed });
        (0..stacks).map(|index| FlowWire { shares: shares.clone(), index }).collect()
    }

    /// Where its frames go out.
    fn queue(&self) -> &dyn Wire {
        &*self.shares.queues[self.index % self.shares.queues.len()]
    }
}

impl FlowShares {
    fn one(&self, key: impl std::hash::Hash) -> usize {
        (self.hash.hash_one(key) % self.handed.len() as u64) as usize
    }

    fn of_flow(&self, flow: SocketPair) -> usize {
        self.one((flow.local, flow.peer))
    }

    fn of_datagrams(&self, to: SocketAddr, from: Option<SocketAddr>) -> usize {
        match from {
            Some(from) if to.port() < crate::engine::PICKED_PORT => self.one((to, from)),
            _ => self.one(to.port()),
        }
    }

    fn recipient(&self, frame: &[u8]) -> Recipient {
        match Cargo::of(frame) {
            Cargo::Segment(flow, _) | Cargo::Unreachable { flow, .. } | Cargo::TooLong { flow, .. } => {
                Recipient::One(self.of_flow(flow))
            }
            Cargo::Datagram { to, from } => Recipient::One(self.of_datagrams(to, Some(from))),
            Cargo::Neighbor => Recipient::All,
            Cargo::Other => Recipient::First,
        }
    }

    fn hand(&self, to: usize, frame: Vec<u8>) {
        let receiver = {
            let mut handed = self.handed[to].lock().unwrap();
            if handed.frames.len() == MOST {
                return;
            }
            handed.frames.push(frame);
            handed.receiver.take()
        };
        if let Some(receiver) = receiver {
            receiver.wake();
        }
    }

    /// Keeps the frames for the stack `index`, and hands the others over.
    fn sort(&self, index: usize, came: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let mut own = Vec::with_capacity(came.len());
        let mut give = |to: usize, frame| match to == index {
            true => own.push(frame),
            false => self.hand(to, frame),
        };
        for frame in came {
            match self.recipient(&frame) {
                Recipient::One(to) => give(to, frame),
                Recipient::All => (0..self.handed.len()).for_each(|to| give(to, frame.clone())),
                Recipient::First => {
                    if let Some(told) = told_by_question(&frame) {
                        (1..self.handed.len()).for_each(|to| give(to, told.clone()));
                    }
                    give(0, frame);
                }
            }
        }
        own
    }
}

impl Wire for FlowWire {
    fn send(&self, frame: &[u8]) {
        self.queue().send(frame);
    }

    fn send_all(&self, frames: &[OutgoingFrame]) {
        self.queue().send_all(frames);
    }

    fn receive(&self) -> Receiving<'_> {
        Box::pin(async {
            let FlowWire { shares, index } = self;
            loop {
                let mut device = shares.queues.get(*index).map(|queue| queue.receive());
                let own = poll_fn(|cx| {
                    {
                        let mut handed = shares.handed[*index].lock().unwrap();
                        if !handed.frames.is_empty() {
                            return Poll::Ready(Ok(mem::take(&mut handed.frames)));
                        }
                        handed.receiver = Some(cx.waker().clone());
                    }
                    match &mut device {
                        Some(device) => device.as_mut().poll(cx).map_ok(|came| shares.sort(*index, came)),
                        None => Poll::Pending,
                    }
                });
                let own: io::Result<Vec<Vec<u8>>> = own.await;
                if !own.as_ref().is_ok_and(Vec::is_empty) {
                    return own;
                }
            }
        })
    }

    fn takes(&self, local: SocketAddr, peer: Option<SocketAddr>) -> bool {
        let owner = match peer {
            Some(peer) => self.shares.of_flow(SocketPair { local, peer }),
            None => self.shares.of_datagrams(local, None),
        };
        owner == self.index
    }
}

impl fmt::Debug for FlowWire {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stacks = self.shares.handed.len();
        f.debug_struct("FlowWire").field("index", &self.index).field("stacks", &stacks).finish()
    }
}
