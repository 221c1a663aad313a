//! The device that smoltcp sees: one frame that has come, and the frames that are to go.
//!
//! The memory of frames goes round: what has gone, and what the peer has acknowledged, is given
//! back to [`SpareFrames`]. A frame of a full segment is too long for the quick lists of the C
//! library's allocator, and each segment takes two: one until it is acknowledged, and its copy that
//! goes to the wire.

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// The longest packet.
pub(crate) const LONGEST_PACKET: usize = 1500;
/// The longest frame: the packet and the Ethernet header.
const LONGEST: usize = LONGEST_PACKET + 14;
/// The allocator is quick for frames that are shorter.
const SHORT: usize = 1000;

/// The frames that are kept for later ones at most.
const SPARE: usize = 256;

#[derive(Debug, Default)]
pub(crate) struct Frames {
    pub(crate) came: Option<Vec<u8>>,
    pub(crate) to_go: Vec<Vec<u8>>,
    pub(crate) spare: SpareFrames,
}

/// The memory of frames that are not needed any more.
#[derive(Debug, Default)]
pub(crate) struct SpareFrames(Vec<Vec<u8>>);

impl SpareFrames {
    /// Keeps the memory of a frame.
    pub(crate) fn keep(&mut self, frame: Vec<u8>) {
        if self.0.len() < SPARE && frame.capacity() >= LONGEST {
            self.0.push(frame);
        }
    }

    /// An empty frame with room for a long one.
    fn empty(&mut self) -> Vec<u8> {
        let mut frame = self.0.pop().unwrap_or_else(|| Vec::with_capacity(LONGEST));
        frame.clear();
        frame
    }

    /// A copy of a frame.
    pub(crate) fn copy(&mut self, frame: &[u8]) -> Vec<u8> {
        if frame.len() < SHORT {
            return frame.to_vec();
        }
        let mut copy = self.empty();
        copy.extend_from_slice(frame);
        copy
    }
}

/// A frame that has come.
pub(crate) struct FrameThatCame(Vec<u8>);

/// Room for a frame that is to go.
pub(crate) struct ToGo<'a>(&'a mut Vec<Vec<u8>>, &'a mut SpareFrames);

impl RxToken for FrameThatCame {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for ToGo<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut frame = if length < SHORT { Vec::new() } else { self.1.empty() };
        frame.resize(length, 0);
        let result = write(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Device for Frames {
    type RxToken<'a> = FrameThatCame;
    type TxToken<'a> = ToGo<'a>;

    fn receive(&mut self, _: Instant) -> Option<(FrameThatCame, ToGo<'_>)> {
        Some((FrameThatCame(self.came.take()?), ToGo(&mut self.to_go, &mut self.spare)))
    }

    fn transmit(&mut self, _: Instant) -> Option<ToGo<'_>> {
        Some(ToGo(&mut self.to_go, &mut self.spare))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut can = DeviceCapabilities::default();
        can.medium = Medium::Ethernet;
        can.max_transmission_unit = LONGEST;
        can
    }
}
