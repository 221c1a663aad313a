//! The events to come: [`CalendarEntry`], which the kernel's calendar orders by time, and what
//! happens then ([`Happening`]). `network.rs` and `arrivals.rs` make them happen.

use super::id::Id;
use rustix::io::Errno;
use selvedge_core::Time;
use std::net::SocketAddr;

#[derive(Debug)]
pub(super) struct CalendarEntry {
    pub(super) at: Time,
    /// The order of entries with the same time.
    pub(super) number: u64,
    pub(super) what: Happening,
}

#[derive(Debug)]
pub(super) enum Happening {
    /// The request of `from` to be connected arrives.
    Knock { from: Id, tries: u32 },
    /// The client learns that it is connected.
    Connected { to: Id },
    /// The client learns that it is not going to be connected.
    Refused { to: Id, errno: Errno },
    /// Bytes arrive.
    Segment { to: Id, from: Id, bytes: Vec<u8> },
    /// The end of the peer's bytes arrives.
    End { to: Id },
    /// The connection breaks.
    Reset { to: Id },
    /// The stream may have room to send.
    Room { to: Id },
    /// A datagram arrives.
    Datagram { from: Id, to: SocketAddr, bytes: Vec<u8> },
    /// The sender of a datagram learns that no socket received it.
    Unreachable { from: Id, to: SocketAddr },
    /// The socket takes datagrams to send again.
    DatagramRoom { to: Id },
    /// A pipe takes bytes again.
    PipeRoom { pipe: Id },
}

impl PartialEq for CalendarEntry {
    fn eq(&self, other: &CalendarEntry) -> bool {
        self.number == other.number
    }
}

impl Eq for CalendarEntry {}

impl PartialOrd for CalendarEntry {
    fn partial_cmp(&self, other: &CalendarEntry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CalendarEntry {
    fn cmp(&self, other: &CalendarEntry) -> std::cmp::Ordering {
        (self.at, self.number).cmp(&(other.at, other.number))
    }
}
