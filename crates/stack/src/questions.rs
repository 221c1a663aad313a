//! Questions for Ethernet addresses: by ARP for IPv4, by neighbour solicitation for IPv6.

use crate::segments::ETHERNET;
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    ArpOperation, ArpPacket, EthernetFrame, EthernetProtocol, Icmpv6Message, Icmpv6Packet, Icmpv6Repr,
    IpProtocol, Ipv6Packet, Ipv6Repr, NdiscNeighborFlags, NdiscRepr,
};
use std::net::{IpAddr, Ipv6Addr};

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
