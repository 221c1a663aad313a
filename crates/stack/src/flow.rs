//! Which socket a frame is for: [`Cargo::of`] tells it. `icmp.rs` reads what routers tell.

use crate::icmp;
use crate::segments::ETHERNET;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, EthernetFrame, EthernetProtocol, Icmpv6Message, Icmpv6Packet, Icmpv6Repr,
    IpProtocol, Ipv4Packet, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr, TcpOption, TcpPacket,
    TcpSeqNumber, UdpPacket,
};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

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

/// The IP address in a frame that asks for the Ethernet address to it.
pub(crate) fn asked_for(frame: &[u8]) -> Option<IpAddr> {
    let frame = EthernetFrame::new_checked(frame).ok()?;
    match frame.ethertype() {
        EthernetProtocol::Arp => {
            let question = ArpPacket::new_checked(frame.payload()).ok()?;
            let address: [u8; 4] = question.target_protocol_addr().try_into().ok()?;
            (question.operation() == ArpOperation::Request).then(|| address.into())
        }
        EthernetProtocol::Ipv6 => {
            let packet = Ipv6Packet::new_checked(frame.payload()).ok()?;
            if packet.next_header() != IpProtocol::Icmpv6 {
                return None;
            }
            let question = Icmpv6Packet::new_checked(packet.payload()).ok()?;
            (question.msg_type() == Icmpv6Message::NeighborSolicit).then(|| question.target_addr().into())
        }
        _ => None,
    }
}

/// A frame that tells what the question for an Ethernet address in another frame does, and asks
/// nothing: the addresses of the host that asks.
pub(crate) fn told_by_question(frame: &[u8]) -> Option<Vec<u8>> {
    let head = frame.get(..ETHERNET)?;
    let ethernet = EthernetFrame::new_checked(frame).ok()?;
    match ethernet.ethertype() {
        EthernetProtocol::Arp => {
            let mut told = frame.to_vec();
            let mut packet = ArpPacket::new_checked(&mut told[ETHERNET..]).ok()?;
            (packet.operation() == ArpOperation::Request)
                .then(|| packet.set_operation(ArpOperation::Reply))?;
            Some(told)
        }
        EthernetProtocol::Ipv6 => {
            let packet = Ipv6Packet::new_checked(ethernet.payload()).ok()?;
            let (from, to, sums) = (packet.src_addr(), packet.dst_addr(), ChecksumCapabilities::default());
            (packet.next_header() == IpProtocol::Icmpv6).then_some(())?;
            let question = Icmpv6Packet::new_checked(packet.payload()).ok()?;
            let Ok(Icmpv6Repr::Ndisc(NdiscRepr::NeighborSolicit {
                target_addr: asked,
                lladdr: Some(lladdr),
            })) = Icmpv6Repr::parse(&from, &to, &question, &sums)
            else {
                return None;
            };
            let (flags, target_addr) = (NdiscNeighborFlags::OVERRIDE, from);
            let advert = NdiscRepr::NeighborAdvert { flags, target_addr, lladdr: Some(lladdr) };
            let advert = Icmpv6Repr::Ndisc(advert);
            let ip = Ipv6Repr {
                src_addr: from,
                dst_addr: asked,
                next_header: IpProtocol::Icmpv6,
                payload_len: advert.buffer_len(),
                hop_limit: 255,
            };
            let mut told = [head, &vec![0; ip.buffer_len() + advert.buffer_len()]].concat();
            let mut packet = Ipv6Packet::new_unchecked(&mut told[ETHERNET..]);
            ip.emit(&mut packet);
            advert.emit(&from, &asked, &mut Icmpv6Packet::new_unchecked(packet.payload_mut()), &sums);
            Some(told)
        }
        _ => None,
    }
}

/// Sends the question in a frame to the address that it asks for, and not to the group of hosts
/// that may have it. smoltcp counts a stack with the address `::1` to no group.
pub(crate) fn ask_itself(frame: &mut [u8], address: Ipv6Addr) {
    let mut frame = EthernetFrame::new_unchecked(frame);
    let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
    packet.set_dst_addr(address);
    let from = packet.src_addr();
    Icmpv6Packet::new_unchecked(packet.payload_mut()).fill_checksum(&from, &address);
}
