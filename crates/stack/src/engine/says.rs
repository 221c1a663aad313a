//! [`StackSays`]: what all segments of a socket say of what has come.

use crate::flow::{SocketPair, StackSegment};
use crate::segments::{SegmentHead, framed, from_peer, packet};
use smoltcp::wire::TcpSeqNumber;

/// What a socket says in each segment: the Ethernet addresses, what it acknowledges, and its
/// window. A segment that waits, or goes again, says what the socket says then.
#[derive(Clone, Copy, Debug)]
pub(super) struct StackSays {
    hardware: [u8; 12],
    acknowledges: TcpSeqNumber,
    window: u16,
}

impl StackSays {
    /// What the segment in a frame says, if it is none of the handshake.
    pub(super) fn of(frame: &[u8], head: &StackSegment) -> Option<StackSays> {
        let acknowledges = head.acknowledges.filter(|_| !head.synchronizes)?;
        let hardware = frame.first_chunk().copied()?;
        Some(StackSays { hardware, acknowledges, window: head.window })
    }

    /// Whether both say the same of what has come.
    pub(super) fn agrees(&self, other: Option<StackSays>) -> bool {
        other.is_some_and(|other| (other.acknowledges, other.window) == (self.acknowledges, self.window))
    }

    /// The heads of a segment with this number that says it.
    pub(super) fn head(&self, sequence: TcpSeqNumber) -> SegmentHead {
        let StackSays { hardware, acknowledges, window } = *self;
        SegmentHead { hardware, sequence, acknowledges, window }
    }

    /// The frame that says it without contents. `flow` is the connection seen from the peer.
    pub(super) fn alone(&self, flow: SocketPair, sequence: TcpSeqNumber) -> Vec<u8> {
        let segment = from_peer(flow, sequence, self.acknowledges, self.window);
        let (to, from) = self.hardware.split_at(6);
        framed(&packet(flow.peer, flow.local, &segment), from, to)
    }
}
