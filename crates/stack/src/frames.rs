//! The device that smoltcp sees: one frame that has come, and the frames that are to go.

use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::time::Instant;

/// The longest packet.
pub(crate) const LONGEST_PACKET: usize = 1500;
/// The longest frame: the packet and the Ethernet header.
const LONGEST: usize = LONGEST_PACKET + 14;

#[derive(Debug, Default)]
pub(crate) struct Frames {
    pub(crate) came: Option<Vec<u8>>,
    pub(crate) to_go: Vec<Vec<u8>>,
}

/// A frame that has come.
pub(crate) struct FrameThatCame(Vec<u8>);

/// Room for a frame that is to go.
pub(crate) struct ToGo<'a>(&'a mut Vec<Vec<u8>>);

impl RxToken for FrameThatCame {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

impl TxToken for ToGo<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, length: usize, write: F) -> R {
        let mut frame = vec![0; length];
        let result = write(&mut frame);
        self.0.push(frame);
        result
    }
}

impl Device for Frames {
    type RxToken<'a> = FrameThatCame;
    type TxToken<'a> = ToGo<'a>;

    fn receive(&mut self, _: Instant) -> Option<(FrameThatCame, ToGo<'_>)> {
        Some((FrameThatCame(self.came.take()?), ToGo(&mut self.to_go)))
    }

    fn transmit(&mut self, _: Instant) -> Option<ToGo<'_>> {
        Some(ToGo(&mut self.to_go))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut can = DeviceCapabilities::default();
        can.medium = Medium::Ethernet;
        can.max_transmission_unit = LONGEST;
        can
    }
}
