//! Buffers that grow under load and shrink at rest.
//!
//! smoltcp's sockets keep the buffers that they are made with. So a connection gets a new socket
//! when nothing is in its buffers: `workshop.rs` brings it to where the old one was. Its own
//! numbers begin anywhere, so those in the segments of the connection are shifted by a constant
//! from then on.
//!
//! A connection *at rest* has no buffer for writing. It gets one before a thread writes, and before
//! its socket takes a segment of the peer with contents: both buffers are empty then, and both ends
//! open, so a socket at rest never has to send anything but acknowledgements and its end.

use super::StackEngine;
use super::connections::{ConnectionStage, StackConnection};
use super::workshop::{Standing, before};
use crate::flow::{SocketPair, StackSegment};
use crate::segments::{SegmentChange, framed, from_peer, packet, rewrite};
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::time::{Duration, Instant};
use std::mem;

/// How many times as large the buffers become.
const STEP: usize = 4;
/// How long a connection is at rest before its buffers shrink.
const REST: Duration = Duration::from_secs(10);
/// The times at which that happens, so that not each segment moves a timer.
const GRAIN: i64 = 4_000_000;

impl StackConnection {
    /// Whether nothing is in the buffers, and both ends are open.
    fn is_empty(&mut self) -> bool {
        let socket = self.seat.socket();
        socket.state() == State::Established && socket.send_queue() == 0 && socket.recv_queue() == 0
    }

    /// Whether it has no buffer for writing.
    pub(super) fn is_at_rest(&mut self) -> bool {
        self.seat.socket().send_capacity() == 0
    }

    /// Keeps what a new socket has to hear first.
    pub(super) fn keep_opening(&mut self, head: StackSegment) {
        let opening = matches!(self.stage, ConnectionStage::HalfOpen(_) | ConnectionStage::Connecting);
        let answers = head.acknowledges.is_none_or(|wanted| wanted == self.sent_to);
        if opening && answers && head.length == 1 && !self.knows_peer {
            self.knows_peer = true;
            self.first = Some(head.opening).filter(|_| self.options.grows());
            self.reads_at = head.sequence + 1;
            self.recovery.open(head.opening);
        }
    }

    /// Until when the buffers keep their size, if they are to shrink then.
    pub(super) fn rests_at(&mut self) -> Option<Instant> {
        let rests = self.first.is_some() && !self.is_at_rest() && self.is_empty();
        rests.then(|| {
            let micros = (self.used.max(self.heard) + REST).total_micros();
            Instant::from_micros((micros / GRAIN + 1) * GRAIN)
        })
    }
}

impl StackEngine {
    /// Gives a connection larger buffers, if the peer or the program has filled more than half of
    /// its present ones, and they are empty now.
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
        if connection.first.is_none() || size >= connection.options.buffer || !opens {
            return false;
        }
        if queued == 0 {
            // A writer that has waited for this fills the buffer faster than the peer takes it.
            if mem::take(&mut connection.wants_room) || bytes > size {
                self.resize(flow, bytes.max(size * STEP), now);
            }
            return false;
        }
        connection.wants_room = bytes > size - queued;
        connection.wants_room
    }

    /// Gives a connection at rest the buffers that it began with.
    pub(super) fn leave_rest(&mut self, flow: SocketPair, now: Instant) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        let socket = connection.options.socket(connection.options.begins_with());
        self.replace(flow, socket, now);
    }

    /// Takes the buffers from a connection at rest, as far as it can be without.
    pub(super) fn rest(&mut self, flow: SocketPair, now: Instant) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        connection.recovery.forget();
        let socket = connection.options.resting_socket();
        if self.replace(flow, socket, now) {
            self.tell_window(flow, now);
        }
    }

    /// Gives buffers of this size to a connection with nothing in them; false if it cannot be.
    fn resize(&mut self, flow: SocketPair, size: usize, now: Instant) -> bool {
        let Some(connection) = self.connections.get_mut(&flow) else { return false };
        let size = size.clamp(connection.options.begins_with(), connection.options.buffer);
        let has = (connection.seat.socket().recv_capacity(), connection.seat.socket().send_capacity());
        if has == (size, size) {
            return false;
        }
        let socket = connection.options.socket(size);
        let fits = self.replace(flow, socket, now);
        if fits {
            self.tell_window(flow, now);
        }
        fits
    }

    /// Gives another socket to a connection with nothing in its buffers; false if it cannot be.
    fn replace(&mut self, flow: SocketPair, socket: Socket<'static>, now: Instant) -> bool {
        let Some(connection) = self.connections.get_mut(&flow) else { return false };
        let Some(opening) = connection.first.filter(|_| connection.is_empty()) else { return false };
        let standing = Standing { opening, reads_at: connection.reads_at, window: connection.peers_window() };
        let Some(made) = self.workshop.establish(flow, socket, standing, now) else { return false };
        connection.offset = connection.wanted.0.wrapping_sub(made.start.0);
        (connection.seat.set, connection.seat.handle) = (made.set, made.handle);
        let waker = connection.seat.waiters.clone().into();
        let socket = connection.seat.socket();
        socket.register_recv_waker(&waker);
        socket.register_send_waker(&waker);
        true
    }

    /// Tells the peer of the room that there is: the peer seems to ask whether the stack is there.
    fn tell_window(&mut self, flow: SocketPair, now: Instant) {
        let hardware = self.options.hardware.0;
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        let (reads_at, wanted) = (before(connection.reads_at), connection.wanted);
        let asks =
            packet(flow.peer, flow.local, &from_peer(flow, reads_at, wanted, connection.peers_window()));
        // Any host may be the sender.
        let asks = framed(&asks, &[2, 0, 0, 0, 0, 0], &hardware);
        let came = self.frames.came.replace(asks);
        connection.poll(&mut self.interface, &mut self.frames, now);
        self.frames.came = came;
    }
}

impl StackConnection {
    /// The room that the peer has, in its units.
    pub(super) fn peers_window(&self) -> u16 {
        ((self.room_to - self.wanted) >> self.shift).min(0xFFFF) as u16
    }
}

impl StackConnection {
    /// Gives the segments that are to go the numbers of the connection.
    pub(super) fn shift_gone(&mut self, frames: &mut [Vec<u8>]) {
        for frame in frames {
            rewrite(frame, SegmentChange::SequenceBy(self.offset));
        }
    }

    /// Gives a segment that has come the numbers of the socket.
    pub(super) fn shift_came(&self, frame: Option<&mut Vec<u8>>) {
        if let Some(frame) = frame {
            rewrite(frame, SegmentChange::AcknowledgementBy(self.offset.wrapping_neg()));
        }
    }
}
