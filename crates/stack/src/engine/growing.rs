//! Buffers that grow under load and shrink at rest.
//!
//! smoltcp's sockets keep the buffers that they are made with. So a connection gets a new socket
//! when nothing is in its buffers: the new socket hears the peer's first segment again, with other
//! numbers, and is then where the old one was. Its own numbers begin anywhere, so those in the
//! segments of the connection are shifted by a constant from then on.

use super::StackEngine;
use super::connections::{ConnectionStage, StackConnection};
use crate::flow::{Cargo, SegmentChange, SocketPair, StackSegment, as_segment, rewrite};
use smoltcp::iface::SocketSet;
use smoltcp::socket::tcp::State;
use smoltcp::time::{Duration, Instant};
use smoltcp::wire::TcpSeqNumber;
use std::mem;

/// How many times as large the buffers become.
const STEP: usize = 4;
/// How long a connection is at rest before its buffers shrink.
const REST: Duration = Duration::from_secs(10);

impl StackConnection {
    /// Whether nothing is in the buffers, and both ends are open.
    fn is_empty(&mut self) -> bool {
        let socket = self.seat.socket();
        socket.state() == State::Established && socket.send_queue() == 0 && socket.recv_queue() == 0
    }

    /// Keeps what a new socket has to hear first.
    pub(super) fn keep_opening(&mut self, head: StackSegment, frame: &[u8]) {
        let opening = matches!(self.stage, ConnectionStage::HalfOpen(_) | ConnectionStage::Connecting);
        let answers = head.acknowledges.is_none_or(|wanted| wanted == self.sent_to);
        if opening && answers && head.length == 1 && self.first.is_none() && self.options.grows() {
            self.first = Some(frame.into());
            self.reads_at = head.sequence + 1;
        }
    }

    /// Until when the buffers keep their size, if they are to shrink then.
    pub(super) fn shrinks_at(&mut self) -> Option<Instant> {
        let large = self.seat.socket().recv_capacity() > self.options.begins_with();
        let shrinks = large && self.first.is_some() && self.is_empty();
        shrinks.then(|| self.used.max(self.heard) + REST)
    }
}

impl StackEngine {
    /// Gives a connection larger buffers, if the peer or the program has filled more than half of
    /// those that it has, and they are empty now.
    pub(super) fn grow(&mut self, flow: SocketPair, now: Instant) {
        if let Some(connection) = self.connections.get_mut(&flow)
            && mem::take(&mut connection.was_full)
        {
            let size = connection.seat.socket().recv_capacity();
            if !self.resize(flow, size.saturating_mul(STEP), now)
                && let Some(connection) = self.connections.get_mut(&flow)
            {
                connection.was_full = size < connection.options.buffer;
            }
        }
    }

    /// Makes room for bytes that a thread is about to write. If that cannot be yet, but is when the
    /// peer has acknowledged what it has, returns true: the thread is to wait.
    pub(crate) fn make_room(&mut self, flow: SocketPair, bytes: usize, now: Instant) -> bool {
        let Some(connection) = self.connections.get_mut(&flow) else { return false };
        let socket = connection.seat.socket();
        let (size, queued) = (socket.send_capacity(), socket.send_queue());
        let opens = socket.state() == State::Established && socket.recv_queue() == 0;
        if connection.first.is_none() || bytes <= size - queued || size >= connection.options.buffer || !opens
        {
            return false;
        }
        if queued == 0 {
            self.resize(flow, bytes.max(size * STEP), now);
        }
        queued > 0
    }

    /// Gives buffers of this size to a connection with nothing in them; false if it cannot be.
    pub(super) fn resize(&mut self, flow: SocketPair, size: usize, now: Instant) -> bool {
        let Some(connection) = self.connections.get_mut(&flow) else { return false };
        let size = size.clamp(connection.options.begins_with(), connection.options.buffer);
        if !connection.is_empty() || size == connection.seat.socket().recv_capacity() {
            return false;
        }
        let Some(first) = &connection.first else { return false };
        let mut socket = connection.options.socket(size);
        if socket.listen(flow.local).is_err() {
            return false;
        }
        let mut set = SocketSet::new(Vec::with_capacity(1));
        let handle = set.add(socket);

        let reads_at = connection.reads_at;
        let window = (connection.room_to - connection.wanted) >> connection.shift;
        let window = window.min(0xFFFF) as u16;
        let came = self.frames.came.take();
        let gone = self.frames.to_go.len();
        let before = TcpSeqNumber(reads_at.0.wrapping_sub(1));
        self.frames.came = Some(as_segment(first, before, None, window));
        self.interface.poll(now, &mut self.frames, &mut set);
        let answers = self.frames.to_go.drain(gone..).collect::<Vec<_>>();
        let start = answers.iter().find_map(|frame| match Cargo::of(frame) {
            Cargo::Segment(_, head) if head.synchronizes => Some(head.sequence + 1),
            _ => None,
        });
        let mut fits = false;
        if let Some(start) = start {
            // The handshake ends; then the peer seems to ask whether the stack is there, so that
            // the answer tells it of the window.
            for number in [reads_at, before] {
                self.frames.came = Some(as_segment(first, number, Some(start), window));
                self.interface.poll(now, &mut self.frames, &mut set);
            }
            fits = set.get::<smoltcp::socket::tcp::Socket<'_>>(handle).state() == State::Established;
            if fits {
                connection.offset = connection.wanted.0.wrapping_sub(start.0);
                (connection.seat.set, connection.seat.handle) = (set, handle);
                let waker = connection.seat.waiters.clone().into();
                let socket = connection.seat.socket();
                socket.register_recv_waker(&waker);
                socket.register_send_waker(&waker);
                connection.shift_gone(&mut self.frames.to_go[gone..]);
                connection.note_sent(&mut self.frames.to_go[gone..]);
            }
        }
        if !fits {
            self.frames.to_go.truncate(gone);
        }
        self.frames.came = came;
        fits
    }
}

impl StackConnection {
    /// Gives the segments that are to go the numbers of the connection.
    pub(super) fn shift_gone(&mut self, frames: &mut [Vec<u8>]) {
        if self.offset == 0 {
            return;
        }
        for frame in frames {
            if let Cargo::Segment(_, head) = Cargo::of(frame) {
                let number = TcpSeqNumber(head.sequence.0.wrapping_add(self.offset));
                rewrite(frame, SegmentChange::Sequence(number));
            }
        }
    }

    /// Gives a segment that has come the numbers of the socket.
    pub(super) fn shift_came(&self, frame: Option<&mut Vec<u8>>) {
        if self.offset != 0
            && let Some(frame) = frame
            && let Cargo::Segment(_, StackSegment { acknowledges: Some(wanted), .. }) = Cargo::of(frame)
        {
            let number = TcpSeqNumber(wanted.0.wrapping_sub(self.offset));
            rewrite(frame, SegmentChange::Acknowledgement(number));
        }
    }
}
