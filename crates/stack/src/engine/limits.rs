//! How long a connection waits for its peer, and what is lost when it waits no longer.
//!
//! smoltcp has a time limit too, but that one counts from the last segment also when there is
//! nothing to wait for: a connection that was at rest for longer would end as soon as it is used.

use super::StackEngine;
use super::connections::ConnectionStage;
use crate::flow::SocketPair;
use smoltcp::socket::tcp::{Socket, State};
use smoltcp::time::{Duration, Instant};
use std::io::ErrorKind;
use std::task::Waker;

/// How long a peer keeps a connection that has not ended its handshake.
const PATIENCE: Duration = Duration::from_secs(60);
/// How long a silent peer keeps a connection that no part of the program uses: two repetitions at
/// their longest distance.
const ORPHAN_SILENCE: Duration = Duration::from_secs(130);
/// How long one keeps it that answers, but takes nothing.
const ORPHAN: Duration = Duration::from_secs(10 * 60);

/// What the peer has not acknowledged: the bytes, and one more for the end.
fn unacknowledged(socket: &Socket<'static>) -> usize {
    match socket.state() {
        State::Closed | State::Listen | State::SynSent | State::SynReceived => 0,
        State::FinWait1 | State::Closing | State::LastAck => socket.send_queue() + 1,
        _ => socket.send_queue(),
    }
}

impl StackEngine {
    /// Notes what waits for the peer after a turn, and returns until when it waits.
    pub(super) fn wait_for_peer(&mut self, flow: SocketPair, before: State, now: Instant) -> Option<Instant> {
        let connection = self.connections.get_mut(&flow)?;
        let state = connection.seat.socket().state();
        let (waited, waits) = (connection.unacknowledged, unacknowledged(connection.seat.socket()));
        connection.unacknowledged = waits;
        let orphan = connection.stage == ConnectionStage::Orphan;
        if state == State::Closed && before != State::Closed && orphan && connection.ended.is_some() {
            self.lost += connection.seat.socket().send_queue() as u64;
        }
        // Something new waits after a rest, or the peer has taken something.
        if waited == 0 && waits > 0 || waits < waited {
            connection.since = now;
        }
        let options = &connection.options;
        let deadline = match connection.stage {
            _ if state == State::Closed => None,
            ConnectionStage::HalfOpen(_) => Some(connection.since + PATIENCE),
            ConnectionStage::Orphan => {
                let silence = connection.since.max(connection.heard) + ORPHAN_SILENCE;
                Some(silence.min(connection.since + ORPHAN))
            }
            ConnectionStage::Connecting => Some(connection.since + options.connect_limit),
            ConnectionStage::Open if waits > 0 => {
                options.peer_limit.map(|limit| connection.since.max(connection.heard) + limit)
            }
            ConnectionStage::Open if options.keep_alive.is_some() => {
                options.peer_limit.map(|limit| connection.heard + limit)
            }
            ConnectionStage::Open => None,
        };
        self.count_unsettled(waited, waits);
        deadline
    }

    /// The peer of a connection has not answered in time.
    pub(super) fn time_out(&mut self, flow: SocketPair, now: Instant) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        let waited = std::mem::take(&mut connection.unacknowledged);
        if connection.seat.socket().state() == State::SynSent {
            // No segment has gone: no host has told its Ethernet address.
            let no_host = connection.opening.is_none();
            connection.give_up(if no_host { ErrorKind::HostUnreachable } else { ErrorKind::TimedOut });
        } else {
            connection.seat.socket().abort();
            connection.ended = Some(ErrorKind::TimedOut);
            if connection.stage == ConnectionStage::Orphan {
                self.lost += connection.seat.socket().send_queue() as u64;
            }
            // The reset goes.
            connection.poll(&mut self.interface, &mut self.frames, now);
        }
        self.count_unsettled(waited, 0);
    }

    pub(super) fn count_unsettled(&mut self, before: usize, after: usize) {
        match (before, after) {
            (0, 1..) => self.unsettled += 1,
            (1.., 0) => {
                self.unsettled -= 1;
                if self.unsettled == 0 {
                    Waker::from(self.finishing.clone()).wake();
                }
            }
            _ => {}
        }
    }

    /// Whether no peer has anything to acknowledge, or none ever will. If one has, the thread with
    /// the waker waits for it.
    pub(crate) fn is_settled(&self, waker: &mut Option<Waker>) -> bool {
        let settled = self.unsettled == 0 || self.broken.is_some();
        if !settled {
            self.finishing.add(waker);
        }
        settled
    }

    /// The bytes that no peer has acknowledged: of connections without an owner that have failed,
    /// and of connections that still try.
    pub(crate) fn unacknowledged_bytes(&mut self) -> u64 {
        let trying = self.connections.values_mut().map(|connection| match connection.unacknowledged {
            0 => 0,
            _ => connection.seat.socket().send_queue() as u64,
        });
        self.lost + trying.sum::<u64>()
    }

    /// The program has dropped the stack: it goes on while there is something to send.
    pub(crate) fn end(&mut self, now: Instant) {
        let limit = self.options.linger.as_micros().min(1 << 50) as u64;
        self.ends_at = Some(now + Duration::from_micros(limit));
    }

    /// When there is something to do: a timer, or the end of a stack that the program has dropped.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        match self.ends_at {
            _ if !self.own_frames.is_empty() => Some(Instant::ZERO),
            Some(_) if self.is_over(Instant::ZERO) => Some(Instant::ZERO),
            ends_at => self.timers.first().map(|(at, _)| *at).into_iter().chain(ends_at).min(),
        }
    }

    /// Whether a stack that the program has dropped has nothing more to do.
    pub(crate) fn is_over(&self, now: Instant) -> bool {
        self.ends_at.is_some_and(|at| at <= now || self.unsettled == 0 || self.broken.is_some())
    }
}
