//! intruder: network intrusion detection. Each packet is one fragment of a flow. A detector takes a
//! packet, adds it to the fragments of its flow, and searches the text of a flow that is complete
//! for the signatures of known attacks. Three transactions a packet: take, assemble, take a flow.
//!
//! `child.rs` calls `intruder` with one of the maps of `maps.rs`, and `figures/src/stamp.rs`
//! gives the numbers.

use super::maps::{Map, Maps};
use super::numbers::Random;
use super::threads::{timed, together};
use crate::child::fault;
use selvedge_stm::{TQueue, TVar, Tried, Tx, atomically, atomically_blocking};
use std::sync::Arc;

/// The size of a run, as the options of STAMP have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Traffic {
    /// `-a`: the flows that are attacks, per cent.
    pub(crate) attacks: u64,
    /// `-l`: the most packets of a flow.
    pub(crate) longest: u64,
    /// `-n`: the number of flows.
    pub(crate) flows: u64,
}

/// The signatures of attacks. Each has a letter that the text of other flows does not have.
const SIGNATURES: [&[u8]; 8] =
    [b"overrun", b"smurf", b"root kit", b"worm", b"teardrop", b"synflood", b"xmas", b"trojan"];

/// Whether a signature begins with this letter.
#[inline(always)]
fn begins_signature(letter: u8) -> bool {
    const FIRST: [bool; 256] = {
        let (mut first, mut at) = ([false; 256], 0);
        while at < SIGNATURES.len() {
            first[SIGNATURES[at][0] as usize] = true;
            at += 1;
        }
        first
    };
    FIRST[letter as usize]
}

/// The letters of flows that are no attack: from `a` on.
const LETTERS: u64 = 12;

/// A fragment of a flow.
#[derive(Debug)]
struct Packet {
    flow: u64,
    /// The place in the flow.
    place: u64,
    /// The number of packets of the flow.
    count: u64,
    text: Vec<u8>,
}

/// All packets in the order of their arrival, and how many flows are attacks.
fn arrivals(traffic: &Traffic) -> (Vec<Packet>, u64) {
    let mut random = Random::new(0);
    let (mut packets, mut attacks) = (Vec::new(), 0);
    for flow in 0..traffic.flows {
        let count = 1 + random.below(traffic.longest);
        let length = 8 * count + random.below(64);
        let mut text: Vec<u8> = (0..length).map(|_| b'a' + random.below(LETTERS) as u8).collect();
        if random.below(100) < traffic.attacks {
            attacks += 1;
            let signature = SIGNATURES[random.below(SIGNATURES.len() as u64) as usize];
            let at = random.below(length - signature.len() as u64 + 1) as usize;
            text[at..at + signature.len()].copy_from_slice(signature);
        }
        for place in 0..count {
            let part = |number: u64| (number * length / count) as usize;
            let text = text[part(place)..part(place + 1)].to_vec();
            packets.push(Packet { flow, place, count, text });
        }
    }
    for last in (1..packets.len()).rev() {
        packets.swap(last, random.below(last as u64 + 1) as usize);
    }
    (packets, attacks)
}

/// The number of attacks that a run must find.
pub(crate) fn expected(traffic: &Traffic) -> u64 {
    arrivals(traffic).1
}

/// The numbers of a flow's packets, in the order of their places.
type Fragments = Arc<[u32]>;

/// The state that the detectors share.
struct Network<M: Maps> {
    packets: Vec<Packet>,
    arriving: TQueue<u32>,
    incomplete: M::MapOf<TVar<Vec<u32>>>,
    complete: TQueue<Fragments>,
}

impl<M: Maps> Network<M> {
    fn new(packets: Vec<Packet>) -> Network<M> {
        let arriving = TQueue::new();
        for number in 0..packets.len() as u32 {
            atomically_blocking(|tx| arriving.push(tx, number));
        }
        Network { packets, arriving, incomplete: Map::new(), complete: TQueue::new() }
    }

    /// Adds a packet to its flow.
    fn assemble(&self, tx: &Tx, number: u32) -> Tried<()> {
        let packet = &self.packets[number as usize];
        if packet.count == 1 {
            return self.complete.push(tx, Arc::new([number]));
        }
        let Some(fragments) = self.incomplete.find(tx, packet.flow)? else {
            return self.incomplete.insert(tx, packet.flow, TVar::new(vec![number]));
        };
        let before = fragments.read(tx)?;
        let at = before.partition_point(|&other| self.packets[other as usize].place < packet.place);
        let all = [&before[..at], &[number], &before[at..]].concat();
        if (all.len() as u64) < packet.count {
            fragments.write(tx, all);
            return Ok(());
        }
        self.incomplete.remove(tx, packet.flow)?;
        self.complete.push(tx, all.into())
    }

    /// Whether the flow is an attack. Its text is put together in `text`.
    fn is_attack(&self, fragments: &Fragments, text: &mut Vec<u8>) -> bool {
        text.clear();
        for &number in &**fragments {
            text.extend_from_slice(&self.packets[number as usize].text);
        }
        let is_signature = |rest: &[u8]| SIGNATURES.iter().any(|&signature| rest.starts_with(signature));
        (0..text.len()).any(|at| begins_signature(text[at]) && is_signature(&text[at..]))
    }
}

/// Detectors, which share the packets.
pub(in crate::child) fn intruder<M: Maps>(detectors: u64, traffic: Traffic) {
    let network = Arc::new(Network::<M>::new(arrivals(&traffic).0));
    let shared = network.clone();
    let found = timed(detectors, async move {
        let detector = |_| {
            let network = shared.clone();
            async move {
                let (mut flows, mut attacks, mut text) = (0, 0, Vec::new());
                while let Some(number) = atomically(|tx| network.arriving.try_pop(tx)).await {
                    atomically(|tx| network.assemble(tx, number)).await;
                    if let Some(fragments) = atomically(|tx| network.complete.try_pop(tx)).await {
                        flows += 1;
                        attacks += u64::from(network.is_attack(&fragments, &mut text));
                    }
                }
                (flows, attacks)
            }
        };
        together(detectors, detector).await
    });
    println!("flows {}", found.iter().map(|(flows, _)| flows).sum::<u64>());
    // A run that is to be wrong misses an attack.
    println!("attacks {}", found.iter().map(|(_, attacks)| attacks).sum::<u64>() - fault());
    println!("left {}", network.incomplete.entries().len());
}
