//! The device that smoltcp sees: one frame that has come, and the frames that it makes.
//!
//! The device takes *long* frames of IPv4: a socket gives all that it may send in one frame, of up
//! to 64 KiB. No segment has the checksum of TCP. `outgoing.rs` divides long frames, and makes the
//! sums, where the wire does not.
//!
//! The memory of frames goes round: [`SpareFrames`] gets what the peer has acknowledged. A frame of
//! a full segment is too long for the quick lists of the C library's allocator.

use crate::outgoing::{LONG, OutgoingFrame, PacketLength};
use smoltcp::phy::{Checksum, Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// The longest packet.
pub(crate) const LONGEST_PACKET: usize = 1500;
/// The longest frame on the wire: the packet and the Ethernet header.
const LONGEST: usize = LONGEST_PACKET + 14;
/// The allocator is quick for frames that are shorter.
const SHORT: usize = 1000;

/// The frames of each kind that are kept for later ones at most.
const SPARE: usize = 64;

#[derive(Debug, Default)]
pub(crate) struct Frames {
    pub(crate) came: Option<Vec<u8>>,
    /// What smoltcp has made, and no part of the stack has looked at.
    pub(crate) made: Vec<Vec<u8>>,
    pub(crate) to_go: Vec<OutgoingFrame>,
    pub(crate) spare: SpareFrames,
}

impl Frames {
    /// Sends what smoltcp has made as it is.
    pub(crate) fn send_made(&mut self) {
        let packets = PacketLength { longest: LONGEST_PACKET, segment: LONGEST_PACKET };
        self.to_go.extend(self.made.drain(..).map(|frame| OutgoingFrame::made(frame, packets)));
    }
}

/// The memory of frames that are not needed any more: of frames of one packet, and of longer ones.
/// A long one does not become a short one, because a socket keeps its frames as long as its peer
/// likes.
#[derive(Debug, Default)]
pub(crate) struct SpareFrames([Vec<Vec<u8>>; 2]);

impl SpareFrames {
    /// Keeps the memory of a frame.
    pub(crate) fn keep(&mut self, frame: Vec<u8>) {
        let kind = &mut self.0[usize::from(frame.capacity() > LONGEST)];
        if kind.len() < SPARE && frame.capacity() >= LONGEST {
            kind.push(frame);
        }
    }

    /// A frame of this length with any contents.
    fn frame(&mut self, length: usize) -> Vec<u8> {
        let kind = usize::from(length > LONGEST);
        let mut frame = match length < SHORT {
            true => Vec::new(),
            false => self.0[kind].pop().unwrap_or_else(|| Vec::with_capacity(length.max(LONGEST))),
        };
        // What is there already need not be cleared.
        frame.resize(length, 0);
        frame
    }
}

/// A frame that has come.
pub(crate) struct FrameThatCame(Vec<u8>);

/// Room for a frame that smoltcp makes.
pub(crate) struct FrameRoom<'a>(&'a mut Vec<Vec<u8>>, &'a mut SpareFrames);

impl RxToken for FrameThatCame {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for FrameRoom<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut frame = self.1.frame(length);
        let result = write(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Device for Frames {
    type RxToken<'a> = FrameThatCame;
    type TxToken<'a> = FrameRoom<'a>;

    fn receive(&mut self, _: Instant) -> Option<(FrameThatCame, FrameRoom<'_>)> {
        Some((FrameThatCame(self.came.take()?), FrameRoom(&mut self.made, &mut self.spare)))
    }

    fn transmit(&mut self, _: Instant) -> Option<FrameRoom<'_>> {
        Some(FrameRoom(&mut self.made, &mut self.spare))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut can = DeviceCapabilities::default();
        can.medium = Medium::Ethernet;
        can.max_transmission_unit = LONGEST;
        can.checksum.tcp = Checksum::Rx;
        // smoltcp 0.14 drops a long packet of IPv6.
        can.segmentation.tcpv4 = Some(LONG);
        can
    }
}
