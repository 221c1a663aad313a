//! The listeners of a stack, and the connections that no thread has accepted yet.

use super::StackEngine;
use super::connections::ConnectionStage;
use super::listen_queue::ListenQueue;
use crate::flow::SocketPair;
use crate::tcp_options::TcpOptions;
use crate::waiters::SocketWaiters;
use smoltcp::time::Instant;
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

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
