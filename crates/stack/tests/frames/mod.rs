//! Frames with segments of IPv4 that a test makes and reads itself: a peer that is no stack.
#![allow(dead_code, unreachable_pub, reason = "each test file uses its part")]

use std::net::{Ipv4Addr, SocketAddrV4};

pub const FIN: u8 = 1;
pub const SYN: u8 = 2;
pub const RST: u8 = 4;
pub const PSH: u8 = 8;
pub const ACK: u8 = 16;

/// A segment with the addresses around it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Segment {
    pub from: SocketAddrV4,
    pub to: SocketAddrV4,
    pub sequence: u32,
    pub acknowledges: u32,
    pub flags: u8,
    pub window: u16,
    pub options: Vec<u8>,
    pub contents: Vec<u8>,
}

impl Segment {
    /// One without contents and options.
    pub fn new(from: SocketAddrV4, to: SocketAddrV4, flags: u8) -> Segment {
        let (options, contents) = (Vec::new(), Vec::new());
        Segment { from, to, sequence: 0, acknowledges: 0, flags, window: 60_000, options, contents }
    }

    /// The sequence number after it.
    pub fn end(&self) -> u32 {
        let ends = u32::from(self.flags & SYN != 0) + u32::from(self.flags & FIN != 0);
        self.sequence.wrapping_add(self.contents.len() as u32).wrapping_add(ends)
    }

    /// The frame with it, between these Ethernet addresses.
    pub fn frame(&self, source: [u8; 6], target: [u8; 6]) -> Vec<u8> {
        let (from, to) = (self.from.ip().octets(), self.to.ip().octets());
        let mut tcp = [self.from.port().to_be_bytes(), self.to.port().to_be_bytes()].concat();
        tcp.extend([self.sequence.to_be_bytes(), self.acknowledges.to_be_bytes()].concat());
        tcp.extend([(5 + self.options.len() as u8 / 4) << 4, self.flags]);
        tcp.extend(self.window.to_be_bytes());
        tcp.extend([0; 4]);
        tcp.extend_from_slice(&self.options);
        tcp.extend_from_slice(&self.contents);
        let length = (tcp.len() as u16).to_be_bytes();
        let sum = checksum(&[&from[..], &to, &[0, 6], &length, &tcp].concat());
        tcp[16..18].copy_from_slice(&sum);
        let length = (20 + tcp.len() as u16).to_be_bytes();
        let mut ip = [&[0x45, 0], &length[..], &[0, 0, 0x40, 0, 64, 6, 0, 0], &from, &to].concat();
        let sum = checksum(&ip);
        ip[10..12].copy_from_slice(&sum);
        [&target[..], &source, &[8, 0], &ip, &tcp].concat()
    }

    /// The segment in a frame; `None` if it has none, or one with a wrong checksum.
    pub fn of(frame: &[u8]) -> Option<Segment> {
        let ip = frame.get(14..).filter(|_| frame[12..14] == [8, 0])?;
        let ip = &ip[..usize::from(u16::from_be_bytes([ip[2], ip[3]]))];
        if ip[0] != 0x45 || ip[9] != 6 || checksum(&ip[..20]) != [0, 0] {
            return None;
        }
        let (tcp, length) = (&ip[20..], (ip.len() as u16 - 20).to_be_bytes());
        if checksum(&[&ip[12..20], &[0, 6], &length, tcp].concat()) != [0, 0] {
            return None;
        }
        let word = |at: usize| u32::from_be_bytes(tcp[at..at + 4].try_into().unwrap());
        let half = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let address = |at: usize| Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]);
        let head = usize::from(tcp[12] >> 4) * 4;
        Some(Segment {
            from: SocketAddrV4::new(address(12), half(0)),
            to: SocketAddrV4::new(address(16), half(2)),
            sequence: word(4),
            acknowledges: word(8),
            flags: tcp[13],
            window: half(14),
            options: tcp[20..head].to_vec(),
            contents: tcp[head..].to_vec(),
        })
    }
}

/// The checksum of IP over `bytes`.
pub fn checksum(bytes: &[u8]) -> [u8; 2] {
    let words = bytes.chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xFFFF {
        sum = (sum >> 16) + (sum & 0xFFFF);
    }
    (!(sum as u16)).to_be_bytes()
}

/// A router's message to the sender of the packet of IPv4 in `frame`: "unreachable" with this code,
/// and the longest packet of the way.
pub fn unreachable(frame: &[u8], code: u8, most: u16) -> Vec<u8> {
    let told = &frame[14..14 + 28];
    let mut icmp = [&[3, code, 0, 0, 0, 0], &most.to_be_bytes()[..], told].concat();
    let sum = checksum(&icmp);
    icmp[2..4].copy_from_slice(&sum);
    let head = [0x45, 0, 0, (20 + icmp.len()) as u8, 0, 0, 0, 0, 64, 1, 0, 0];
    let mut ip = [&head[..], &frame[30..34], &frame[26..30]].concat();
    let sum = checksum(&ip);
    ip[10..12].copy_from_slice(&sum);
    [&frame[6..12], &frame[..6], &[8, 0], &ip, &icmp].concat()
}

/// The answer to a question for the Ethernet address of `address`, if `frame` is one: it is at
/// `hardware`.
pub fn told_address(frame: &[u8], address: Ipv4Addr, hardware: [u8; 6]) -> Option<Vec<u8>> {
    if frame[12..14] != [8, 6] || frame[21] != 1 || frame[38..42] != address.octets() {
        return None;
    }
    let arp = [&[0, 1, 8, 0, 6, 4, 0, 2], &hardware[..], &address.octets(), &frame[22..32]].concat();
    Some([&frame[6..12], &hardware, &[8, 6], &arp].concat())
}
