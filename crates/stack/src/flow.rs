//! Which socket a frame is for: [`Cargo::of`] tells it. `icmp.rs` reads what routers tell.

use crate::icmp;
use smoltcp::wire::{
    ArpOperation, ArpPacket, EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, Ipv6Packet, TcpOption,
    TcpPacket, TcpSeqNumber, UdpPacket,
};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

/// Both ends of a connection, seen from the stack.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(crate) struct SocketPair {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cargo {
    /// A segment of TCP for, or of, this connection.
    Segment(SocketPair, StackSegment),
    /// A datagram of UDP for an address, and where it comes from.
    Datagram { to: SocketAddr, from: SocketAddr },
    /// A router, or the peer, tells that a segment with this sequence number cannot reach it.
    Unreachable { flow: SocketPair, sequence: TcpSeqNumber, why: ErrorKind },
    /// A router tells that the packet of the segment with this sequence number is too long for the
    /// way behind it, which carries `most` bytes.
    TooLong { flow: SocketPair, sequence: TcpSeqNumber, most: usize },
    /// A host tells its Ethernet address.
    Neighbor,
    /// Questions for Ethernet addresses, other ICMP, and what is malformed: smoltcp alone sees to
    /// it.
    Other,
}

/// What a first segment says of its sender, in its options.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct OpeningOptions {
    /// The most bytes that a segment to the sender may have.
    pub(crate) largest: Option<u16>,
    /// By how many bits its later segments shift their windows.
    pub(crate) shift: Option<u8>,
    /// Whether it understands selective acknowledgements.
    pub(crate) selects: bool,
}

/// What a connection has to know of a segment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct StackSegment {
    pub(crate) sequence: TcpSeqNumber,
    pub(crate) acknowledges: Option<TcpSeqNumber>,
    /// How many sequence numbers it takes.
    pub(crate) length: usize,
    /// The room that the sender has after what it acknowledges, in its units.
    pub(crate) window: u16,
    /// It begins a direction of a connection.
    pub(crate) synchronizes: bool,
    /// If it does, its options.
    pub(crate) opening: OpeningOptions,
    /// The numbers after what it acknowledges that the sender has: from the first to that after the
    /// last.
    pub(crate) selected: [Option<(TcpSeqNumber, TcpSeqNumber)>; 3],
    /// It ends its direction.
    pub(crate) ends: bool,
    /// It ends a connection.
    pub(crate) resets: bool,
}

impl StackSegment {
    /// Whether it asks for a new connection.
    pub(crate) fn opens(&self) -> bool {
        self.synchronizes && self.acknowledges.is_none() && !self.resets
    }
}

impl OpeningOptions {
    /// Those in the options of a segment, up to the first one that is malformed.
    fn of(mut options: &[u8]) -> OpeningOptions {
        let mut found = OpeningOptions::default();
        while let Ok((rest, option)) = TcpOption::parse(options) {
            match option {
                TcpOption::EndOfList => break,
                TcpOption::MaxSegmentSize(largest) => found.largest = Some(largest),
                TcpOption::WindowScale(shift) => found.shift = Some(shift.min(14)),
                TcpOption::SackPermitted => found.selects = true,
                _ => {}
            }
            options = rest;
        }
        found
    }
}

impl Cargo {
    pub(crate) fn of(frame: &[u8]) -> Cargo {
        Cargo::read(frame).unwrap_or(Cargo::Other)
    }

    fn read(frame: &[u8]) -> Option<Cargo> {
        let frame = EthernetFrame::new_checked(frame).ok()?;
        match frame.ethertype() {
            EthernetProtocol::Ipv4 => {
                let packet = Ipv4Packet::new_checked(frame.payload()).ok()?;
                let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
                Cargo::within(packet.next_header(), packet.payload(), from, to)
            }
            EthernetProtocol::Ipv6 => {
                let packet = Ipv6Packet::new_checked(frame.payload()).ok()?;
                let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
                Cargo::within(packet.next_header(), packet.payload(), from, to)
            }
            EthernetProtocol::Arp => {
                let packet = ArpPacket::new_checked(frame.payload()).ok()?;
                (packet.operation() == ArpOperation::Reply).then_some(Cargo::Neighbor)
            }
            _ => None,
        }
    }

    fn within(protocol: IpProtocol, payload: &[u8], from: IpAddr, to: IpAddr) -> Option<Cargo> {
        match protocol {
            IpProtocol::Tcp => {
                let segment = TcpPacket::new_checked(payload).ok()?;
                let local = SocketAddr::new(to, segment.dst_port());
                let peer = SocketAddr::new(from, segment.src_port());
                let head = StackSegment {
                    sequence: segment.seq_number(),
                    acknowledges: segment.ack().then(|| segment.ack_number()),
                    length: segment.segment_len(),
                    ends: segment.fin(),
                    window: segment.window_len(),
                    selected: selected(&segment),
                    synchronizes: segment.syn(),
                    opening: match segment.syn() {
                        true => OpeningOptions::of(segment.options()),
                        false => OpeningOptions::default(),
                    },
                    resets: segment.rst(),
                };
                Some(Cargo::Segment(SocketPair { local, peer }, head))
            }
            IpProtocol::Udp => {
                let datagram = UdpPacket::new_checked(payload).ok()?;
                let from = SocketAddr::new(from, datagram.src_port());
                Some(Cargo::Datagram { to: SocketAddr::new(to, datagram.dst_port()), from })
            }
            IpProtocol::Icmp => icmp::of_four(payload),
            IpProtocol::Icmpv6 => icmp::of_six(payload, from, to),
            _ => None,
        }
    }
}

/// The parts that a segment acknowledges selectively.
fn selected(segment: &TcpPacket<&[u8]>) -> [Option<(TcpSeqNumber, TcpSeqNumber)>; 3] {
    if segment.syn() || segment.options().is_empty() {
        return [None; 3];
    }
    let number = |number: u32| TcpSeqNumber(number as i32);
    let parts = segment.selective_ack_ranges().unwrap_or([None; 3]);
    parts.map(|part| part.map(|(first, after)| (number(first), number(after))))
}
