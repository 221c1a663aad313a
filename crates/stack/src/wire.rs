//! What a stack sends frames to and takes frames from: the trait [`Wire`].

pub(crate) mod flows;
pub(crate) mod loopback;
pub(crate) mod packet;
pub(crate) mod simulated;
mod sums;
pub(crate) mod tap;
mod virtio;

use crate::outgoing::OutgoingFrame;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;

/// What [`Wire::receive`] returns.
pub type Receiving<'a> = Pin<Box<dyn Future<Output = io::Result<Vec<Vec<u8>>>> + Send + 'a>>;

/// A device that carries Ethernet frames.
///
/// # Paper
/// [LZ07 §6]: the packet I/O that drives the event loop of the TCP stack.
pub trait Wire: Send + Sync + 'static {
    /// Sends a frame, or loses it. It never waits: as on every wire, what finds no room is lost,
    /// and TCP sends it again.
    fn send(&self, frame: &[u8]);

    /// Sends frames in order. A device that divides long segments gets each run of segments as one
    /// frame.
    fn send_all(&self, frames: &[OutgoingFrame]) {
        frames.iter().for_each(|frame| frame.for_each(|one| self.send(one)));
    }

    /// Waits until frames have come, and takes some of them: at least one. One thread calls it at
    /// a time.
    ///
    /// # Errors
    /// Those of the device. The stack then takes no more frames.
    fn receive(&self) -> Receiving<'_>;

    /// Whether the frames of a flow with these ends come here, and not to another stack that shares
    /// the device. A stack picks a port for which they do. Without a peer it is about datagrams
    /// from any peer.
    fn takes(&self, local: SocketAddr, peer: Option<SocketAddr>) -> bool {
        let _ = (local, peer);
        true
    }
}

impl<W: Wire + ?Sized> Wire for Box<W> {
    fn send(&self, frame: &[u8]) {
        (**self).send(frame);
    }

    fn send_all(&self, frames: &[OutgoingFrame]) {
        (**self).send_all(frames);
    }

    fn receive(&self) -> Receiving<'_> {
        (**self).receive()
    }

    fn takes(&self, local: SocketAddr, peer: Option<SocketAddr>) -> bool {
        (**self).takes(local, peer)
    }
}
