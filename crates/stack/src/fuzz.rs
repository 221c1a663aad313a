//! What the fuzz target runs: any frames, times and uses of sockets, on a stack without threads. It
//! panics if an invariant does not hold. `fuzz/fuzz_targets` has the target. The module is public
//! and hidden for that.

use crate::engine::{SocketTurn, StackEngine};
use crate::flow::{Cargo, SocketPair};
use crate::options::StackOptions;
use crate::tcp_options::{Congestion, TcpOptions};
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::{TcpPacket, TcpSeqNumber};
use std::net::{IpAddr, SocketAddr};

const OWN: [u8; 4] = [10, 0, 0, 2];
const PEER: [u8; 4] = [10, 0, 0, 1];
const LISTENER: u16 = 80;
const BACKLOG: usize = 4;

/// A stack with a listener and a UDP socket, and what a peer knows of it.
struct FuzzedStack {
    engine: StackEngine,
    now: Instant,
    open: Vec<SocketPair>,
    /// What the stack said last to each port of the peer: where it goes on, and what it wants.
    said: [(TcpSeqNumber, TcpSeqNumber); 4],
}

/// Frames, times and uses of sockets as `data` says. Returns how many connections were accepted.
///
/// # Panics
/// If an invariant does not hold.
pub fn frames(data: &[u8]) -> usize {
    let control = if data.len().is_multiple_of(2) { Congestion::Cubic } else { Congestion::Bbr };
    let tcp = TcpOptions::new().buffer(512).congestion(control);
    let options = StackOptions::new().seed(1).backlog(BACKLOG).half_open(2).tcp(tcp);
    let options = options.address(OWN.into(), 24).expect("an address of a host");
    let mut stack = FuzzedStack {
        engine: StackEngine::new(options, Instant::ZERO),
        now: Instant::from_secs(1),
        open: Vec::new(),
        said: [(TcpSeqNumber(0), TcpSeqNumber(0)); 4],
    };
    let at = |port| SocketAddr::new(OWN.into(), port);
    stack.engine.listen(at(LISTENER), None).expect("a free port");
    stack.engine.bind(at(53), |_| true).expect("a free port");
    // The stack knows the peer's Ethernet address.
    let arp = [&[0, 1, 8, 0, 6, 4, 0, 1, 2, 0, 0, 0, 0, 9], &PEER[..], &[0; 6], &OWN[..]].concat();
    stack.come(ethernet([8, 6], &arp));

    let (mut rest, mut accepted) = (data, 0);
    while let [kind, length, more @ ..] = rest {
        let (piece, after) = more.split_at(usize::from(*length).min(more.len()));
        let open = stack.open.len();
        stack.act(kind & 7, piece);
        accepted += usize::from(stack.open.len() > open);
        stack.engine.check();
        rest = after;
    }
    stack.end();
    accepted
}

fn ethernet(kind: [u8; 2], payload: &[u8]) -> Vec<u8> {
    [&[2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 9], &kind[..], payload].concat()
}

/// A packet of the peer for the stack.
fn packet(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let length = (20 + payload.len() as u16).to_be_bytes();
    let mut ip = [&[0x45, 0], &length[..], &[0, 0, 0, 0, 64, protocol, 0, 0], &PEER, &OWN].concat();
    smoltcp::wire::Ipv4Packet::new_unchecked(&mut ip[..]).fill_checksum();
    ethernet([8, 0], &[&ip[..], payload].concat())
}

impl FuzzedStack {
    fn act(&mut self, kind: u8, piece: &[u8]) {
        match (kind, piece) {
            (0, _) => self.come(piece.to_vec()),
            (1, _) => self.come(ethernet([8, 0], piece)),
            (2, [protocol, payload @ ..]) => self.come(packet(*protocol, payload)),
            (3, [port, flags, offset, window, payload @ ..]) => {
                self.segment(*port, *flags, *offset, *window, payload);
            }
            (4, [time, ..]) => self.pass(Duration::from_millis(1 << (time % 20))),
            (5, _) => {
                let listener = SocketAddr::new(OWN.into(), LISTENER);
                self.open.extend(self.engine.accept(listener, &mut None));
            }
            (6, [which, bytes @ ..]) => self.exchange(usize::from(*which), bytes),
            (7, [which, ..]) if !self.open.is_empty() => {
                let flow = self.open.swap_remove(usize::from(*which) % self.open.len());
                self.engine.release(flow, self.now);
            }
            _ => {}
        }
        self.take_gone();
    }

    /// A segment that mostly fits to what the stack has said: `offset` tells how far it does not.
    fn segment(&mut self, port: u8, flags: u8, offset: u8, window: u8, payload: &[u8]) {
        let (goes_on, wants) = self.said[usize::from(port % 4)];
        let sequence = wants + usize::from(offset & 15);
        let acknowledges = goes_on + usize::from(offset >> 4);
        let mut tcp = vec![0xC3, port % 4, 0, LISTENER as u8];
        tcp.extend(sequence.0.to_be_bytes());
        tcp.extend(acknowledges.0.to_be_bytes());
        tcp.extend([0x50 | window & 0x10, flags, window, window, 0, 0, 0, 0]);
        tcp.extend(payload);
        let mut segment = TcpPacket::new_unchecked(&mut tcp[..]);
        segment.fill_checksum(&IpAddr::from(PEER).into(), &IpAddr::from(OWN).into());
        self.come(packet(6, &tcp));
    }

    fn exchange(&mut self, which: usize, bytes: &[u8]) {
        let Some(&flow) = self.open.get(which % self.open.len().max(1)) else { return };
        self.engine.with_tcp(flow, SocketTurn::Now, self.now, |socket, _, _| {
            let _ = (socket.recv_slice(&mut [0; 100]), socket.send_slice(bytes));
        });
    }

    fn come(&mut self, frame: Vec<u8>) {
        self.engine.take(frame, self.now);
        self.engine.loop_back(self.now);
    }

    fn pass(&mut self, time: Duration) {
        self.now += time;
        self.engine.expire(self.now);
    }

    /// Notes what the stack has sent.
    fn take_gone(&mut self) {
        for frames in std::mem::take(&mut self.engine.frames.to_go) {
            frames.for_each(|frame| self.note_gone(frame));
        }
    }

    fn note_gone(&mut self, frame: &[u8]) {
        assert!((14..=1514).contains(&frame.len()), "a frame of {} bytes", frame.len());
        if let Cargo::Segment(SocketPair { local: peer, .. }, head) = Cargo::of(frame) {
            let wants = head.acknowledges.unwrap_or(TcpSeqNumber(0));
            self.said[usize::from(peer.port() % 4)] = (head.sequence + head.length, wants);
        }
    }

    /// Everything ends: no connection outlives its owner and its time limits.
    fn end(mut self) {
        for flow in std::mem::take(&mut self.open) {
            self.engine.release(flow, self.now);
        }
        self.engine.unlisten(SocketAddr::new(OWN.into(), LISTENER), self.now);
        for _ in 0..1000 {
            self.pass(Duration::from_secs(1));
            self.take_gone();
        }
        self.engine.check();
        assert_eq!(self.engine.count(), 0, "connections that never end");
    }
}
