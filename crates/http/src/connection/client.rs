//! The client of a connection: its stream, and its address as the log has it.
//!
//! The files of `connection` reach the socket through it. `room` is the rule for slow clients: a
//! client is given up when it has acknowledged nothing for a time, not when its socket has had no
//! room.

use selvedge_core::now;
use selvedge_io::net::Stream;
use std::io;
use std::net::IpAddr;
use std::time::Duration;

/// The other end of a connection.
pub(crate) struct ClientSide {
    pub(super) stream: Stream,
    /// The address for the log, if it is not that of the stream.
    named: Option<Box<Option<IpAddr>>>,
}

impl ClientSide {
    /// `peer` is the address for the log.
    pub(crate) fn new(stream: Stream, peer: Option<IpAddr>) -> ClientSide {
        let named = (peer != stream.peer_ip()).then(|| Box::new(peer));
        ClientSide { stream, named }
    }

    /// The address for the log.
    #[inline]
    pub(crate) fn peer(&self) -> Option<IpAddr> {
        self.named.as_deref().copied().unwrap_or_else(|| self.stream.peer_ip())
    }

    /// Waits until the stream takes more bytes.
    ///
    /// # Errors
    /// `TimedOut` if the client has acknowledged nothing for as long as `patience`. Room alone is
    /// no measure: the kernel's buffers are so large that a client may read steadily and no room
    /// come for longer than that.
    pub(super) async fn room(&self, patience: Duration) -> io::Result<()> {
        let before = self.stream.unacknowledged().unwrap_or(0);
        let due = now() + patience;
        self.stream.set_write_deadline(Some(due));
        // It ends when there is room, and when the time is up.
        self.stream.writable().await?;
        let progress = || self.stream.unacknowledged().is_ok_and(|after| after < before);
        if now() < due || progress() { Ok(()) } else { Err(io::ErrorKind::TimedOut.into()) }
    }
}
