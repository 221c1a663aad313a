//! What goes from a connection's socket to the wire: the poll of the socket, and what its segments
//! become. Segments with contents wait in the connection's [recovery](super::recovery); all others
//! go at once.

use super::connections::StackConnection;
use super::says::StackSays;
use crate::flow::{Cargo, StackSegment};
use crate::frames::Frames;
use crate::segments::{SegmentChange, divided, rewrite};
use smoltcp::iface::Interface;
use smoltcp::socket::tcp::State;
use smoltcp::time::Instant;
use smoltcp::wire::TcpSeqNumber;

/// Puts a copy of a frame among the frames that go, divided if it is too long for the way to the
/// peer.
fn put(frame: &[u8], path: u16, frames: &mut Frames) {
    if frame.len() > usize::from(path) + 14 {
        frames.to_go.extend(divided(frame, path.into()));
    } else {
        frames.to_go.push(frames.spare.copy(frame));
    }
}

impl StackConnection {
    /// Lets the socket take the frame that has come and send what it has to send, and returns when
    /// it has more to do.
    pub(super) fn poll(
        &mut self,
        interface: &mut Interface,
        frames: &mut Frames,
        now: Instant,
    ) -> Option<Instant> {
        self.shift_came(frames.came.as_mut());
        let gone = frames.to_go.len();
        let next = self.seat.poll(interface, frames, now);
        self.shift_gone(&mut frames.to_go[gone..]);
        let said = self.says;
        let mut waits = None;
        for mut frame in frames.to_go.split_off(gone) {
            match Cargo::of(&frame) {
                Cargo::Segment(flow, head) if self.note_sent(&mut frame, &head, now) => {
                    self.recovery.take(frame, &head, self.wanted, now);
                    waits = Some(flow);
                }
                _ => frames.to_go.push(frame),
            }
        }
        if self.seat.socket().state() == State::Closed {
            self.recovery.end();
        }
        let (says, path) = (self.says, self.path);
        self.recovery.release(now, |frame| {
            if let Some(says) = says {
                says.put_into(frame);
            }
            put(frame, path, frames);
        });
        // A segment that waits must not hold up what it says.
        if let (Some(flow), Some(says)) = (waits, says)
            && frames.to_go.len() == gone
            && !says.agrees(said)
        {
            let sequence = self.recovery.held_from().unwrap_or(self.sent_to);
            frames.to_go.push(says.alone(flow, sequence));
        }
        next
    }

    /// Notes a segment that the socket sends, and returns whether it waits in the recovery.
    ///
    /// One without contents gets at least the number that the peer waits for, and at most that of
    /// the first segment that waits. smoltcp gives it the number that it sends next. While it
    /// repeats what was lost this is an old one, and the peer drops such a segment with the
    /// acknowledgement in it. If both peers repeat something, neither takes an acknowledgement of
    /// the other, and both repeat for ever.
    fn note_sent(&mut self, frame: &mut [u8], head: &StackSegment, now: Instant) -> bool {
        let end = head.sequence + head.length;
        if head.synchronizes {
            self.own_shift = head.opening.shift.unwrap_or(0);
        }
        if let Some(reads) = head.acknowledges {
            let shift = if head.synchronizes { 0 } else { self.own_shift };
            self.offered_to = reads + (usize::from(head.window) << shift);
        }
        self.says = StackSays::of(frame, head).or(self.says);
        if self.opening.is_none() {
            (self.opening, self.opened) = (Some(head.sequence), Some(now));
            (self.sent_to, self.wanted, self.room_to) = (end, head.sequence, head.sequence);
        } else if head.length > 0 {
            self.sent_to = self.sent_to.max(end);
            if head.synchronizes {
                self.opened = None;
                return false;
            }
            // An old byte asks whether the peer is there, and one that it has no room for, whether
            // it has room.
            let asks = end <= self.wanted || head.sequence >= self.room_to && !head.ends;
            return !asks;
        } else {
            self.place_between(frame, head, end);
        }
        false
    }

    /// Gives a segment without contents a number that the peer takes.
    fn place_between(&mut self, frame: &mut [u8], head: &StackSegment, end: TcpSeqNumber) {
        let closed = self.seat.socket().state() == State::Closed;
        match self.recovery.held_from() {
            Some(held) if end > held => rewrite(frame, SegmentChange::Sequence(held)),
            _ if end < self.wanted && (closed || !head.resets) => {
                rewrite(frame, SegmentChange::Sequence(self.wanted));
            }
            _ => {}
        }
    }
}
