//! What a listener does with a segment for no connection that there is: it makes the connection, or
//! it answers with a cookie and makes the connection when the cookie comes back (`cookies.rs`).

use super::StackEngine;
use super::connections::ConnectionStage;
use super::cookies::SIZES;
use super::listen_queue::Admission;
use super::workshop::{Standing, before};
use crate::flow::{SocketPair, StackSegment};
use crate::outgoing::OutgoingFrame;
use crate::segments::{framed, packet};
use smoltcp::time::Instant;
use smoltcp::wire::{EthernetFrame, TcpControl, TcpRepr};
use std::net::SocketAddr;

impl StackEngine {
    /// Sees to a segment for no connection that there is.
    pub(super) fn admit(&mut self, flow: SocketPair, head: &StackSegment, now: Instant) -> Admission {
        let to = self.frames.came.as_deref().and_then(|frame| frame.get(..6));
        // A packet socket takes frames for other hosts too.
        if to != Some(&self.options.hardware.0) || !self.interface.has_ip_addr(flow.local.ip()) {
            return Admission::None;
        }
        match self.bound(&self.listeners, flow.local) {
            Some(listener) if head.opens() => self.begin(flow, head, listener, now),
            Some(listener) => self.begin_by_cookie(flow, head, listener, now),
            None => Admission::None,
        }
    }

    /// Makes the socket of a connection that a peer asks for. If too many of the listener have not
    /// ended their handshakes, the peer gets a cookie instead.
    fn begin(
        &mut self,
        flow: SocketPair,
        head: &StackSegment,
        listener: SocketAddr,
        now: Instant,
    ) -> Admission {
        let Some(backlog) = self.listeners.get_mut(&listener) else { return Admission::None };
        if backlog.half_open >= self.options.half_open && backlog.ready.len() < self.options.backlog {
            self.answer_with_cookie(flow, head, listener, now);
            return Admission::Full;
        }
        if backlog.is_full(self.options.backlog) {
            return Admission::Full;
        }
        backlog.half_open += 1;
        let options = backlog.options.clone();
        let mut socket = options.socket(options.begins_with());
        // The address has a port, and the socket is new: these are all its conditions.
        let listens = socket.listen(flow.local);
        debug_assert!(listens.is_ok());
        let stage = ConnectionStage::HalfOpen(listener);
        let connection = self.connection_of(flow, (self.seat(socket), stage), options, now);
        self.connections.insert(flow, connection);
        Admission::Begun
    }

    /// Answers the first segment in `frames.came` with a cookie. The answer goes to the Ethernet
    /// address from which the segment comes: a question for it would be state.
    pub(super) fn answer_with_cookie(
        &mut self,
        flow: SocketPair,
        head: &StackSegment,
        listener: SocketAddr,
        now: Instant,
    ) {
        let Some(backlog) = self.listeners.get(&listener) else { return };
        let (window, shift) = backlog.options.first_window();
        let Some(frame) = self.frames.came.as_deref() else { return };
        let to = EthernetFrame::new_unchecked(frame).src_addr();
        if !to.is_unicast() {
            return;
        }
        let answer = TcpRepr {
            src_port: flow.local.port(),
            dst_port: flow.peer.port(),
            control: TcpControl::Syn,
            seq_number: self.cookies.issue(flow, head, now),
            ack_number: Some(head.sequence + 1),
            window_len: window,
            window_scale: head.opening.shift.map(|_| shift),
            max_seg_size: Some(if flow.local.is_ipv4() { SIZES[3] } else { SIZES[2] }),
            sack_permitted: head.opening.selects,
            sack_ranges: [None; 3],
            timestamp: None,
            payload: &[],
        };
        let answer = packet(flow.local, flow.peer, &answer);
        let answer = framed(&answer, &self.options.hardware.0, &to.0);
        self.frames.to_go.push(OutgoingFrame::whole(answer));
    }

    /// Makes the connection of a peer that brings a cookie back; smoltcp sees to other segments.
    pub(super) fn begin_by_cookie(
        &mut self,
        flow: SocketPair,
        head: &StackSegment,
        listener: SocketAddr,
        now: Instant,
    ) -> Admission {
        let Some(opening) = self.cookies.verify(flow, head, now) else {
            // A client that has a cookie may have lost its acknowledgement, or sent more than one
            // segment, of which the first comes later, or again.
            let goes_on = head.acknowledges.is_some() && head.length > 0 && !head.synchronizes;
            let waits = goes_on && !head.resets && self.cookies.are_out(now);
            return if waits { Admission::Full } else { Admission::None };
        };
        let Some(backlog) = self.listeners.get(&listener) else { return Admission::None };
        // Connections that are half open do not count: they may be those of a flood.
        if backlog.ready.len() >= self.options.backlog {
            return Admission::Full;
        }
        let options = backlog.options.clone();
        let socket = options.socket(options.begins_with());
        let standing = Standing { opening, reads_at: head.sequence, window: head.window };
        let Some(made) = self.workshop.establish(flow, socket, standing, now) else { return Admission::Full };
        let seat = self.seat_of(made.set, made.handle);
        let stage = ConnectionStage::HalfOpen(listener);
        let mut connection = self.connection_of(flow, (seat, stage), options, now);
        connection.stand(standing, before(head.acknowledges.unwrap_or(made.start)), made.start);
        self.connections.insert(flow, connection);
        if let Some(backlog) = self.listeners.get_mut(&listener) {
            backlog.half_open += 1;
        }
        Admission::Begun
    }
}
