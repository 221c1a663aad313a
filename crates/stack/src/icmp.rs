//! What routers and peers tell by ICMP of segments that did not arrive.
//!
//! A message has the beginning of the packet that it is about. Anyone can send one, so the engine
//! believes it only if the sequence number in it fits.

use crate::flow::{Cargo, SocketPair};
use smoltcp::wire::{
    Icmpv4Message, Icmpv4Packet, Icmpv6Message, Icmpv6Packet, IpProtocol, Ipv4Packet, Ipv6Packet,
    TcpSeqNumber,
};
use std::io::ErrorKind;
use std::net::{IpAddr, SocketAddr};

/// What every way carries, if a router tells no number.
const SURELY: usize = 576;

/// What a message tells.
enum Told {
    Unreachable(ErrorKind),
    TooLong(usize),
}

/// A message of ICMP for IPv4.
pub(crate) fn of_four(bytes: &[u8]) -> Option<Cargo> {
    let message = Icmpv4Packet::new_checked(bytes).ok()?;
    if !message.verify_checksum() || message.msg_type() != Icmpv4Message::DstUnreachable {
        return None;
    }
    let told = match message.msg_code() {
        0 | 5 | 6 | 8 | 11 => Told::Unreachable(ErrorKind::NetworkUnreachable),
        2 | 3 => Told::Unreachable(ErrorKind::ConnectionRefused),
        4 => match u16::from_be_bytes([bytes[6], bytes[7]]) {
            0 => Told::TooLong(SURELY),
            most => Told::TooLong(most.into()),
        },
        _ => Told::Unreachable(ErrorKind::HostUnreachable),
    };
    // The message has only the beginning of the packet: its length is not that of the header in it.
    let packet = Ipv4Packet::new_unchecked(message.data());
    let header = usize::from(*message.data().first()? & 15) * 4;
    if message.data().len() < 20 || packet.next_header() != IpProtocol::Tcp {
        return None;
    }
    let addresses = (packet.src_addr().into(), packet.dst_addr().into());
    about(message.data().get(header..)?, addresses, told)
}

/// A message of ICMP for IPv6.
pub(crate) fn of_six(bytes: &[u8], from: IpAddr, to: IpAddr) -> Option<Cargo> {
    let message = Icmpv6Packet::new_checked(bytes).ok()?;
    let (IpAddr::V6(source), IpAddr::V6(target)) = (from, to) else { return None };
    if !message.verify_checksum(&source, &target) {
        return None;
    }
    let told = match (message.msg_type(), message.msg_code()) {
        (Icmpv6Message::NeighborAdvert, _) => return Some(Cargo::Neighbor),
        (Icmpv6Message::PktTooBig, _) => Told::TooLong(message.pkt_too_big_mtu() as usize),
        (Icmpv6Message::DstUnreachable, 0) => Told::Unreachable(ErrorKind::NetworkUnreachable),
        (Icmpv6Message::DstUnreachable, 4) => Told::Unreachable(ErrorKind::ConnectionRefused),
        (Icmpv6Message::DstUnreachable, _) => Told::Unreachable(ErrorKind::HostUnreachable),
        _ => return None,
    };
    let packet = Ipv6Packet::new_unchecked(message.payload());
    if message.payload().len() < 40 || packet.next_header() != IpProtocol::Tcp {
        return None;
    }
    let addresses = (packet.src_addr().into(), packet.dst_addr().into());
    about(&message.payload()[40..], addresses, told)
}

/// What a message tells of the segment that begins with `start`: its ports and its sequence number,
/// which each such message has room for.
fn about(start: &[u8], (local, peer): (IpAddr, IpAddr), told: Told) -> Option<Cargo> {
    let (&[a, b, c, d, e, f, g, h], _) = start.split_first_chunk()?;
    let local = SocketAddr::new(local, u16::from_be_bytes([a, b]));
    let peer = SocketAddr::new(peer, u16::from_be_bytes([c, d]));
    let (flow, sequence) = (SocketPair { local, peer }, TcpSeqNumber(i32::from_be_bytes([e, f, g, h])));
    Some(match told {
        Told::Unreachable(why) => Cargo::Unreachable { flow, sequence, why },
        Told::TooLong(most) => Cargo::TooLong { flow, sequence, most },
    })
}
