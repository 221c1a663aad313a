//! The listeners of a stack, and the connections that no thread has accepted yet.

use super::StackEngine;
use super::connections::{ConnectionStage, ListenQueue, StackConnection};
use crate::flow::SocketPair;
use crate::tcp_options::TcpOptions;
use crate::waiters::SocketWaiters;
use smoltcp::time::Instant;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::task::Waker;

impl StackEngine {
    pub(crate) fn listen(
        &mut self,
        address: SocketAddr,
        options: Option<TcpOptions>,
    ) -> io::Result<SocketAddr> {
        let options = options.unwrap_or_else(|| self.options.tcp.clone());
        let address = self.free_address(address, |engine, at| engine.listeners.contains_key(&at))?;
        let waiters = SocketWaiters::new(&self.woken);
        let queue = ListenQueue { options, half_open: 0, ready: VecDeque::new(), waiters };
        self.listeners.insert(address, queue);
        Ok(address)
    }

    /// Makes the socket of a connection that a peer asks for; false if the listener has no room.
    pub(super) fn begin(&mut self, flow: SocketPair, listener: SocketAddr, now: Instant) -> bool {
        let Some(backlog) = self.listeners.get_mut(&listener) else { return false };
        let full = backlog.half_open + backlog.ready.len() >= self.options.backlog;
        if full || backlog.half_open >= self.options.half_open {
            return false;
        }
        backlog.half_open += 1;
        let options = backlog.options.clone();
        let mut socket = options.socket(options.begins_with());
        // The address has a port, and the socket is new: these are all its conditions.
        let listens = socket.listen(flow.local);
        debug_assert!(listens.is_ok());
        let connection =
            StackConnection::new(self.seat(socket), ConnectionStage::HalfOpen(listener), options, now);
        self.connections.insert(flow, connection);
        true
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
