//! What goes from a connection's socket to the wire: the poll of the socket, and what its segments
//! become. Segments with contents wait in the connection's [recovery](super::recovery); all others
//! go at once.

use super::connections::StackConnection;
use super::flight::FlightSegment;
use super::says::StackSays;
use crate::flow::{Cargo, StackSegment};
use crate::frames::Frames;
use crate::outgoing::{OutgoingFrame, PacketLength};
use crate::segments::{SegmentChange, rewrite};
use smoltcp::iface::Interface;
use smoltcp::socket::tcp::State;
use smoltcp::time::Instant;
use smoltcp::wire::TcpSeqNumber;
use std::mem;

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
        self.shift_gone(&mut frames.made);
        let said = self.says;
        let mut waits = None;
        let packets = PacketLength { longest: self.path.into(), segment: self.recovery.segment() };
        let mut made = mem::take(&mut frames.made);
        for mut frame in made.drain(..) {
            match Cargo::of(&frame) {
                Cargo::Segment(flow, head) if self.note_sent(&mut frame, &head, now) => {
                    self.recovery.take(frame, &head, self.wanted, now);
                    waits = Some(flow);
                }
                _ => frames.to_go.push(OutgoingFrame::made(frame, packets)),
            }
        }
        frames.made = made;
        if self.seat.socket().state() == State::Closed {
            self.recovery.end();
        }
        // There is something to say before a segment waits: its frame said it.
        let says = self.says;
        self.recovery.release(now, |segment| {
            let (FlightSegment { start, contents, .. }, Some(says)) = (segment, says) else { return };
            let run = frames.to_go[gone..].last_mut();
            if !run.is_some_and(|run| run.append(*start, contents)) {
                frames.to_go.push(OutgoingFrame::segment(&says.head(*start), contents, packets));
            }
        });
        // A segment that waits must not hold up what it says.
        if let (Some(flow), Some(says)) = (waits, says)
            && frames.to_go.len() == gone
            && !says.agrees(said)
        {
            let sequence = self.recovery.held_from().unwrap_or(self.sent_to);
            frames.to_go.push(OutgoingFrame::whole(says.alone(flow, sequence)));
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
