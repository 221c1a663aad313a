//! The listeners of a stack, and the connections that no thread has accepted yet.

use super::StackEngine;
use super::connections::ConnectionStage;
use crate::flow::{SocketPair, StackSegment};
use crate::tcp_options::TcpOptions;
use crate::waiters::SocketWaiters;
use smoltcp::time::Instant;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

/// The connections of a listener that no thread has accepted.
pub(super) struct ListenQueue {
    pub(super) options: Arc<TcpOptions>,
    pub(super) half_open: usize,
    pub(super) ready: VecDeque<SocketPair>,
    pub(super) waiters: Arc<SocketWaiters>,
}

impl ListenQueue {
    /// Whether it has as many connections as it may.
    pub(super) fn is_full(&self, backlog: usize) -> bool {
        self.half_open + self.ready.len() >= backlog
    }
}

/// What becomes of a segment for no connection that there is.
pub(super) enum Admission {
    /// There is a connection for it now.
    Begun,
    /// It is dropped, because its listener has no room. Its peer sends it again.
    Full,
    /// It is for no listener, or begins nothing: smoltcp answers it.
    None,
}

impl StackEngine {
    pub(crate) fn listen(
        &mut self,
        address: SocketAddr,
        options: Option<TcpOptions>,
    ) -> io::Result<SocketAddr> {
        let options = options.map_or_else(|| self.options.tcp.clone(), Arc::new);
        let address = self.free_address(address, |engine, at| engine.listeners.contains_key(&at))?;
        let waiters = SocketWaiters::new(&self.woken);
        let queue = ListenQueue { options, half_open: 0, ready: VecDeque::new(), waiters };
        self.listeners.insert(address, queue);
        Ok(address)
    }

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

    /// The next connection of a listener; if there is none, the waker waits for it.
    pub(crate) fn accept(&mut self, listener: SocketAddr, waker: &mut Option<Waker>) -> Option<SocketPair> {
        let backlog = self.listeners.get_mut(&listener)?;
        let flow = backlog.ready.pop_front();
        if flow.is_none() {
            backlog.waiters.add(waker);
        }
        flow
    }

    /// A `TcpListener` has gone: its connections that no thread has accepted are reset.
    pub(crate) fn unlisten(&mut self, listener: SocketAddr, now: Instant) {
        let ready = self.listeners.remove(&listener).map(|backlog| {
            // Their wakers are dropped outside of the lock.
            Waker::from(backlog.waiters).wake();
            backlog.ready
        });
        let unaccepted =
            self.connections.iter().filter(|(_, c)| c.stage == ConnectionStage::HalfOpen(listener));
        let mut flows: Vec<SocketPair> = unaccepted.map(|(flow, _)| *flow).collect();
        flows.extend(ready.into_iter().flatten());
        for flow in flows {
            if let Some(connection) = self.connections.get_mut(&flow) {
                connection.orphan(now);
                connection.seat.socket().abort();
            }
            self.turn(super::TimerOwner::Connection(flow), now);
        }
    }
}
