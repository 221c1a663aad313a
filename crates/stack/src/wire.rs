//! What a stack sends frames to and takes frames from: the trait [`Wire`].

pub(crate) mod loopback;
pub(crate) mod packet;
pub(crate) mod simulated;
pub(crate) mod tap;

use std::io;
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

    /// Waits until frames have come, and takes some of them: at least one. One thread calls it at
    /// a time.
    ///
    /// # Errors
    /// Those of the device. The stack then takes no more frames.
    fn receive(&self) -> Receiving<'_>;
}
