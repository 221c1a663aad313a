//! What a turn of a socket does: it takes the frame that has come, sends what it has to send, and
//! ends if it has waited too long.

use super::{StackEngine, TimerOwner};
use crate::flow::{SocketPair, StackSegment};
use smoltcp::socket::tcp::State;
use smoltcp::time::Instant;
use std::io::ErrorKind;
use std::net::SocketAddr;

impl StackEngine {
    pub(super) fn turn_datagrams(&mut self, address: SocketAddr, now: Instant) {
        let owner = TimerOwner::Datagrams(address);
        let Some(seat) = self.datagrams.get_mut(&address) else { return self.drop_timers(owner) };
        let next = seat.poll(&mut self.interface, &mut self.frames, now);
        self.frames.send_made();
        seat.set_timer(&mut self.timers, owner, next);
    }

    pub(super) fn turn_connection(&mut self, flow: SocketPair, came: Option<StackSegment>, now: Instant) {
        let owner = TimerOwner::Connection(flow);
        let rests = self.connections.get_mut(&flow).is_some_and(|connection| connection.is_at_rest());
        if rests && came.is_some_and(|head| head.length > 0) {
            self.leave_rest(flow, now);
        }
        let Some(connection) = self.connections.get_mut(&flow) else { return self.drop_timers(owner) };
        if let Some(head) = came {
            connection.heard = now;
            connection.note_heard(head, &mut self.frames, now);
        }
        connection.recovery.expire(now);
        let before = connection.seat.socket().state();
        let next = connection.poll(&mut self.interface, &mut self.frames, now);
        let socket = connection.seat.socket();
        connection.was_full |= socket.recv_queue() * 2 > socket.recv_capacity();
        if before != State::Closed && connection.seat.socket().state() == State::Closed {
            let refused = matches!(before, State::SynSent | State::SynReceived);
            let why = if refused { ErrorKind::ConnectionRefused } else { ErrorKind::ConnectionReset };
            connection.ended = came.is_some_and(|head| head.resets).then_some(why);
        }
        let deadline = self.wait_for_peer(flow, before, now);
        if deadline.is_some_and(|at| at <= now) {
            self.time_out(flow, now);
        }
        let mut rests_at = self.connections.get_mut(&flow).and_then(|connection| connection.rests_at());
        if rests_at.is_some_and(|at| at <= now) {
            self.rest(flow, now);
            rests_at = None;
        }
        if let Some(connection) = self.connections.get_mut(&flow) {
            let deadline = deadline.filter(|at| *at > now);
            let repairs_at = connection.recovery.next_at();
            let next = [next, deadline, rests_at, repairs_at].into_iter().flatten().min();
            connection.seat.set_timer(&mut self.timers, owner, next);
        }
        self.settle(flow, now);
    }

    /// The socket has gone, and its timer goes too.
    fn drop_timers(&mut self, owner: TimerOwner) {
        self.timers.retain(|(_, other)| *other != owner);
    }
}
