//! Which socket a frame is for.

use smoltcp::wire::{
    ArpOperation, ArpPacket, EthernetFrame, EthernetProtocol, Icmpv4Message, Icmpv4Packet, Icmpv6Message,
    Icmpv6Packet, IpProtocol, Ipv4Packet, Ipv6Packet, TcpOption, TcpPacket, TcpSeqNumber, UdpPacket,
};
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

/// Both ends of a connection, seen from the stack.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct SocketPair {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cargo {
    /// A segment of TCP for, or of, this connection.
    Segment(SocketPair, StackSegment),
    /// A datagram of UDP for this address.
    Datagram { to: SocketAddr },
    /// A router, or the peer, tells that a segment with this sequence number cannot reach it.
    Unreachable { flow: SocketPair, sequence: TcpSeqNumber, why: ErrorKind },
    /// ARP, other ICMP, and what is malformed: smoltcp alone sees to it.
    Other,
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
    /// If it does, by how many bits later segments shift their windows.
    pub(crate) shift: Option<u8>,
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

/// What a segment's options say of its sender's windows.
fn shift(mut options: &[u8]) -> Option<u8> {
    loop {
        match TcpOption::parse(options).ok()? {
            (_, TcpOption::EndOfList) => return None,
            (_, TcpOption::WindowScale(shift)) => return Some(shift),
            (rest, _) => options = rest,
        }
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
                    synchronizes: segment.syn(),
                    shift: if segment.syn() { shift(segment.options()) } else { None },
                    resets: segment.rst(),
                };
                Some(Cargo::Segment(SocketPair { local, peer }, head))
            }
            IpProtocol::Udp => {
                let datagram = UdpPacket::new_checked(payload).ok()?;
                Some(Cargo::Datagram { to: SocketAddr::new(to, datagram.dst_port()) })
            }
            IpProtocol::Icmp => {
                let message = Icmpv4Packet::new_checked(payload).ok()?;
                if !message.verify_checksum() || message.msg_type() != Icmpv4Message::DstUnreachable {
                    return None;
                }
                let why = match message.msg_code() {
                    0 | 5 | 6 | 8 | 11 => ErrorKind::NetworkUnreachable,
                    2 | 3 => ErrorKind::ConnectionRefused,
                    // The packet was too long: the path has a smaller MTU.
                    4 => return None,
                    _ => ErrorKind::HostUnreachable,
                };
                // The message has only the beginning of the packet: its length is not that of the
                // header in it.
                let packet = Ipv4Packet::new_unchecked(message.data());
                let header = usize::from(*message.data().first()? & 15) * 4;
                if message.data().len() < 20 || packet.next_header() != IpProtocol::Tcp {
                    return None;
                }
                let addresses = (packet.src_addr().into(), packet.dst_addr().into());
                Cargo::told(message.data().get(header..)?, addresses, why)
            }
            IpProtocol::Icmpv6 => {
                let message = Icmpv6Packet::new_checked(payload).ok()?;
                if message.msg_type() != Icmpv6Message::DstUnreachable {
                    return None;
                }
                let (IpAddr::V6(source), IpAddr::V6(target)) = (from, to) else { return None };
                if !message.verify_checksum(&source, &target) {
                    return None;
                }
                let why = match message.msg_code() {
                    0 => ErrorKind::NetworkUnreachable,
                    4 => ErrorKind::ConnectionRefused,
                    _ => ErrorKind::HostUnreachable,
                };
                let packet = Ipv6Packet::new_unchecked(message.payload());
                if message.payload().len() < 40 || packet.next_header() != IpProtocol::Tcp {
                    return None;
                }
                let addresses = (packet.src_addr().into(), packet.dst_addr().into());
                Cargo::told(&message.payload()[40..], addresses, why)
            }
            _ => None,
        }
    }

    /// What an ICMP message tells of the segment that begins with `start`: its ports and its
    /// sequence number, which each such message has room for.
    fn told(start: &[u8], (local, peer): (IpAddr, IpAddr), why: ErrorKind) -> Option<Cargo> {
        let (&[a, b, c, d, e, f, g, h], _) = start.split_first_chunk()?;
        let local = SocketAddr::new(local, u16::from_be_bytes([a, b]));
        let peer = SocketAddr::new(peer, u16::from_be_bytes([c, d]));
        let sequence = TcpSeqNumber(i32::from_be_bytes([e, f, g, h]));
        Some(Cargo::Unreachable { flow: SocketPair { local, peer }, sequence, why })
    }
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

/// Sends the question in a frame to the address that it asks for, and not to the group of hosts
/// that may have it. smoltcp counts a stack with the address `::1` to no group.
pub(crate) fn ask_itself(frame: &mut [u8], address: Ipv6Addr) {
    let mut frame = EthernetFrame::new_unchecked(frame);
    let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
    packet.set_dst_addr(address);
    let from = packet.src_addr();
    Icmpv6Packet::new_unchecked(packet.payload_mut()).fill_checksum(&from, &address);
}

/// A change of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SegmentChange {
    Sequence(TcpSeqNumber),
    Acknowledgement(TcpSeqNumber),
    Window(u16),
    /// It no longer ends its direction.
    WithoutEnd,
}

/// The segment in a frame, which [`Cargo::of`] has found there.
fn within_frame<R>(frame: &mut [u8], change: impl FnOnce(&mut [u8], IpAddr, IpAddr) -> R) -> Option<R> {
    let mut frame = EthernetFrame::new_unchecked(frame);
    match frame.ethertype() {
        EthernetProtocol::Ipv4 => {
            let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
            let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
            Some(change(packet.payload_mut(), from, to))
        }
        EthernetProtocol::Ipv6 => {
            let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
            let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
            Some(change(packet.payload_mut(), from, to))
        }
        _ => None,
    }
}

/// Changes the segment in a frame. Its checksum stays right, or wrong.
pub(crate) fn rewrite(frame: &mut [u8], change: SegmentChange) {
    within_frame(frame, |bytes, _, _| {
        let mut segment = TcpPacket::new_unchecked(bytes);
        let sum = segment.checksum();
        let (old, new) = match change {
            SegmentChange::Sequence(number) => {
                let old = segment.seq_number().0;
                segment.set_seq_number(number);
                (old as u32, number.0 as u32)
            }
            SegmentChange::Acknowledgement(number) => {
                let old = segment.ack_number().0;
                segment.set_ack_number(number);
                (old as u32, number.0 as u32)
            }
            SegmentChange::WithoutEnd => {
                segment.set_fin(false);
                (1, 0)
            }
            SegmentChange::Window(window) => {
                let old = segment.window_len();
                segment.set_window_len(window);
                (u32::from(old), u32::from(window))
            }
        };
        segment.set_checksum(adjusted(sum, old, new));
    });
}

/// The checksum after a change of two words, as RFC 1624 has it.
fn adjusted(sum: u16, old: u32, new: u32) -> u16 {
    let halves = |words: u32| (words >> 16) + (words & 0xFFFF);
    let mut total = u32::from(!sum) + halves(!old) + halves(new);
    while total > 0xFFFF {
        total = halves(total);
    }
    !(total as u16)
}

/// The frame with a first segment, made one with these numbers: again a first one that
/// acknowledges nothing, or a later one that acknowledges `acknowledges`.
pub(crate) fn as_segment(
    first: &[u8],
    sequence: TcpSeqNumber,
    acknowledges: Option<TcpSeqNumber>,
    window: u16,
) -> Vec<u8> {
    let mut frame = first.to_vec();
    within_frame(&mut frame, |bytes, from, to| {
        let mut segment = TcpPacket::new_unchecked(bytes);
        segment.set_seq_number(sequence);
        segment.set_syn(acknowledges.is_none());
        segment.set_ack(acknowledges.is_some());
        segment.set_ack_number(acknowledges.unwrap_or(TcpSeqNumber(0)));
        segment.set_window_len(window);
        segment.fill_checksum(&from.into(), &to.into());
    });
    frame
}

#[cfg(test)]
mod tests {
    use super::*;
    use smoltcp::wire::IpAddress;

    #[test]
    fn a_changed_segment_has_the_checksum_of_its_contents() {
        let (from, to) = ([10, 0, 0, 1], [10, 0, 0, 2]);
        let (from_address, to_address): (IpAddr, IpAddr) = (from.into(), to.into());
        let (from_smol, to_smol): (IpAddress, IpAddress) = (from_address.into(), to_address.into());
        for seed in 0..2000_u32 {
            let bytes = seed.wrapping_mul(0x9E37_79B9).to_be_bytes();
            let mut tcp =
                [&[0, 7, 0, 8], &bytes[..], &bytes, &[0x50, 17, bytes[1], bytes[2]], &[0; 4]].concat();
            TcpPacket::new_unchecked(&mut tcp[..]).fill_checksum(&from_smol, &to_smol);
            let ip = [&[0x45, 0, 0, 40, 0, 0, 0, 0, 64, 6, 0, 0], &from[..], &to].concat();
            let mut frame = [&[0; 12][..], &[8, 0], &ip[..], &tcp].concat();
            let number = TcpSeqNumber(seed.wrapping_mul(0x85EB_CA6B) as i32);
            let changes = [
                SegmentChange::Sequence(number),
                SegmentChange::Acknowledgement(number),
                SegmentChange::Window(seed as u16),
                SegmentChange::WithoutEnd,
            ];
            for change in changes {
                rewrite(&mut frame, change);
                let segment = TcpPacket::new_unchecked(&frame[34..]);
                assert!(segment.verify_checksum(&from_smol, &to_smol), "{seed}: {change:?}");
            }
            assert_eq!(TcpPacket::new_unchecked(&frame[34..]).seq_number(), number);
        }
    }
}
