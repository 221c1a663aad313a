//! Segments that the stack itself makes and changes. smoltcp makes all others.

use crate::flow::{OpeningOptions, SocketPair};
use smoltcp::phy::ChecksumCapabilities;
use smoltcp::wire::{
    EthernetFrame, EthernetProtocol, IpProtocol, IpRepr, Ipv4Packet, Ipv6Packet, TcpControl, TcpPacket,
    TcpRepr, TcpSeqNumber,
};
use std::net::{IpAddr, SocketAddr};

/// The bytes before the packet in an Ethernet frame.
pub(crate) const ETHERNET: usize = 14;
/// The place of a segment's marks in it.
pub(crate) const MARKS: usize = 13;

/// The packet with a segment that has no contents.
pub(crate) fn packet(from: SocketAddr, to: SocketAddr, segment: &TcpRepr<'_>) -> Vec<u8> {
    let (source, target) = (from.ip().into(), to.ip().into());
    let ip = IpRepr::new(source, target, IpProtocol::Tcp, segment.buffer_len(), 64);
    let sums = ChecksumCapabilities::default();
    let mut packet = vec![0; ip.buffer_len()];
    ip.emit(&mut packet[..], &sums);
    let start = ip.header_len();
    segment.emit(&mut TcpPacket::new_unchecked(&mut packet[start..]), &source, &target, &sums);
    packet
}

/// The frame with a packet, from and to these Ethernet addresses.
pub(crate) fn framed(packet: &[u8], from: &[u8], to: &[u8]) -> Vec<u8> {
    let kind = if packet[0] >> 4 == 4 { [8, 0] } else { [0x86, 0xDD] };
    [to, from, &kind, packet].concat()
}

/// The segment in a packet that [`packet`] or smoltcp has made.
pub(crate) fn segment_in(packet: &[u8]) -> TcpPacket<&[u8]> {
    TcpPacket::new_unchecked(&packet[if packet[0] >> 4 == 4 { 20 } else { 40 }..])
}

/// A segment of the connection's peer without contents, with these numbers and this window.
pub(crate) fn from_peer(
    flow: SocketPair,
    sequence: TcpSeqNumber,
    acknowledges: TcpSeqNumber,
    window: u16,
) -> TcpRepr<'static> {
    TcpRepr {
        src_port: flow.peer.port(),
        dst_port: flow.local.port(),
        control: TcpControl::None,
        seq_number: sequence,
        ack_number: Some(acknowledges),
        window_len: window,
        window_scale: None,
        max_seg_size: None,
        sack_permitted: false,
        sack_ranges: [None; 3],
        timestamp: None,
        payload: &[],
    }
}

/// A first segment of the connection's peer.
pub(crate) fn opening_of_peer(
    flow: SocketPair,
    sequence: TcpSeqNumber,
    opening: OpeningOptions,
    window: u16,
) -> TcpRepr<'static> {
    TcpRepr {
        control: TcpControl::Syn,
        ack_number: None,
        window_scale: opening.shift,
        max_seg_size: opening.largest,
        sack_permitted: opening.selects,
        ..from_peer(flow, sequence, TcpSeqNumber(0), window)
    }
}

/// A change of a segment.
#[derive(Clone, Copy, Debug)]
pub(crate) enum SegmentChange {
    Sequence(TcpSeqNumber),
    /// Its own number is ahead by this.
    SequenceBy(i32),
    /// What it acknowledges, if it does, is ahead by this.
    AcknowledgementBy(i32),
    Window(u16),
    /// It no longer ends its direction.
    WithoutEnd,
}

/// The segment in a frame; `None` if it has none.
fn within_frame<R>(frame: &mut [u8], change: impl FnOnce(&mut [u8], IpAddr, IpAddr) -> R) -> Option<R> {
    let mut frame = EthernetFrame::new_unchecked(frame);
    match frame.ethertype() {
        EthernetProtocol::Ipv4 => {
            let mut packet = Ipv4Packet::new_unchecked(frame.payload_mut());
            let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
            (packet.next_header() == IpProtocol::Tcp).then(|| change(packet.payload_mut(), from, to))
        }
        EthernetProtocol::Ipv6 => {
            let mut packet = Ipv6Packet::new_unchecked(frame.payload_mut());
            let (from, to) = (packet.src_addr().into(), packet.dst_addr().into());
            (packet.next_header() == IpProtocol::Tcp).then(|| change(packet.payload_mut(), from, to))
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
            SegmentChange::SequenceBy(ahead) => {
                let old = segment.seq_number().0;
                let new = old.wrapping_add(ahead);
                segment.set_seq_number(TcpSeqNumber(new));
                (old as u32, new as u32)
            }
            SegmentChange::AcknowledgementBy(ahead) => {
                let old = segment.ack_number().0;
                let new = if segment.ack() { old.wrapping_add(ahead) } else { old };
                segment.set_ack_number(TcpSeqNumber(new));
                (old as u32, new as u32)
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

/// Makes the checksum of the segment in a frame, if it has one.
pub(crate) fn fill_checksum(frame: &mut [u8]) {
    within_frame(frame, |bytes, from, to| {
        TcpPacket::new_unchecked(bytes).fill_checksum(&from.into(), &to.into());
    });
}

/// The frame with the heads of another one, but with this number, these contents and these marks.
pub(crate) fn with_contents(frame: &[u8], sequence: TcpSeqNumber, contents: &[u8], marks: u8) -> Vec<u8> {
    let mut part = [&frame[..heads(frame)], contents].concat();
    let length = part.len();
    set_packet_length(&mut part, length);
    let start = start(&part);
    part[start + MARKS] = marks;
    TcpPacket::new_unchecked(&mut part[start..]).set_seq_number(sequence);
    fill_checksum(&mut part);
    part
}

/// What stands in the heads of a segment that goes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SegmentHead {
    /// Both Ethernet addresses.
    pub(crate) hardware: [u8; 12],
    pub(crate) sequence: TcpSeqNumber,
    pub(crate) acknowledges: TcpSeqNumber,
    pub(crate) window: u16,
}

/// Puts these values into the heads of a frame. Its checksums are wrong then.
pub(crate) fn set_heads(frame: &mut [u8], head: &SegmentHead) {
    frame[..12].copy_from_slice(&head.hardware);
    let start = start(frame);
    let mut segment = TcpPacket::new_unchecked(&mut frame[start..]);
    segment.set_seq_number(head.sequence);
    segment.set_ack_number(head.acknowledges);
    segment.set_window_len(head.window);
}

/// Makes the head of the packet in a frame say that the frame is `length` bytes long. The contents
/// of the segment may be elsewhere.
pub(crate) fn set_packet_length(frame: &mut [u8], length: usize) {
    let start = start(frame);
    if is_four(frame) {
        let mut packet = Ipv4Packet::new_unchecked(&mut frame[ETHERNET..]);
        packet.set_total_len((length - ETHERNET) as u16);
        packet.fill_checksum();
    } else {
        let mut packet = Ipv6Packet::new_unchecked(&mut frame[ETHERNET..]);
        packet.set_payload_len((length - start) as u16);
    }
}

/// Whether the packet in a frame is one of IPv4.
pub(crate) fn is_four(frame: &[u8]) -> bool {
    frame[12..ETHERNET] == [8, 0]
}

/// Where the segment of a frame begins.
pub(crate) fn start(frame: &[u8]) -> usize {
    ETHERNET + if is_four(frame) { 20 } else { 40 }
}

/// How many bytes stand before the contents of the segment in a frame.
pub(crate) fn heads(frame: &[u8]) -> usize {
    let start = start(frame);
    start + usize::from(TcpPacket::new_unchecked(&frame[start..]).header_len())
}

/// The number of the segment in a frame.
pub(crate) fn number(frame: &[u8]) -> TcpSeqNumber {
    TcpPacket::new_unchecked(&frame[start(frame)..]).seq_number()
}

/// The marks of the segment in a frame: that it ends its direction, pushes, and so on.
pub(crate) fn marks(frame: &[u8]) -> u8 {
    frame[start(frame) + MARKS]
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
                SegmentChange::SequenceBy(number.0),
                SegmentChange::AcknowledgementBy(number.0),
                SegmentChange::Sequence(number),
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
