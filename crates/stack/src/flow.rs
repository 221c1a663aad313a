//! Which socket a frame is for.

use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpProtocol, Ipv4Packet, Ipv6Packet, TcpPacket, UdpPacket,
};
use std::net::{IpAddr, SocketAddr};

/// Both ends of a connection, seen from the stack.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(crate) struct SocketPair {
    pub(crate) local: SocketAddr,
    pub(crate) peer: SocketAddr,
}

/// What a frame carries.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Cargo {
    /// A segment of TCP; `opens` says that it asks for a new connection.
    Segment { flow: SocketPair, opens: bool },
    /// A datagram of UDP for this address.
    Datagram { to: SocketAddr },
    /// ARP, ICMP, and what is malformed: smoltcp alone sees to it.
    Other,
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
                let opens = segment.syn() && !segment.ack() && !segment.rst();
                Some(Cargo::Segment { flow: SocketPair { local, peer }, opens })
            }
            IpProtocol::Udp => {
                let datagram = UdpPacket::new_checked(payload).ok()?;
                Some(Cargo::Datagram { to: SocketAddr::new(to, datagram.dst_port()) })
            }
            _ => None,
        }
    }
}
