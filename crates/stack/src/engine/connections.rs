//! The connections of a stack and its listeners: their stages, from the first segment to the last
//! acknowledgement. `StackEngine` has the turns in which their sockets take and send segments.

use super::{OwnSocket, StackEngine, TimerOwner};
use crate::flow::SocketPair;
use crate::waiters::SocketWaiters;
use smoltcp::socket::tcp;
use smoltcp::time::{Duration, Instant};
use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

/// How long a peer that does not answer keeps a connection that no part of the program uses.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) struct StackConnection {
    pub(super) seat: OwnSocket,
    stage: ConnectionStage,
}

/// Which part of the program a connection belongs to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum ConnectionStage {
    /// To the listener with this address; the handshake goes on.
    HalfOpen(SocketAddr),
    /// To a listener, and the next `accept` there takes it; or to a `TcpStream`.
    Open,
    /// To no part: it lives until its last bytes are acknowledged.
    Orphan,
}

pub(super) struct ListenQueue {
    half_open: usize,
    ready: VecDeque<SocketPair>,
    pub(super) waiters: Arc<SocketWaiters>,
}

impl StackEngine {
    /// Makes the socket of a connection that a peer asks for; false if the listener has no room.
    pub(super) fn begin(&mut self, flow: SocketPair, listener: SocketAddr) -> bool {
        let Some(backlog) = self.listeners.get_mut(&listener) else { return false };
        let full = backlog.half_open + backlog.ready.len() >= self.options.backlog;
        if full || backlog.half_open >= self.options.half_open {
            return false;
        }
        backlog.half_open += 1;
        let mut socket = self.new_socket();
        // The address has a port, and the socket is new: these are all its conditions.
        let listens = socket.listen(flow.local);
        debug_assert!(listens.is_ok());
        let seat = self.seat(socket);
        self.connections.insert(flow, StackConnection { seat, stage: ConnectionStage::HalfOpen(listener) });
        true
    }

    fn new_socket(&self) -> tcp::Socket<'static> {
        let buffer = || tcp::SocketBuffer::new(vec![0; self.options.buffer]);
        let mut socket = tcp::Socket::new(buffer(), buffer());
        socket.set_timeout(Some(PATIENCE));
        socket
    }

    /// Moves a connection to its next stage.
    pub(super) fn settle(&mut self, flow: SocketPair) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        let state = connection.seat.set.get::<tcp::Socket<'_>>(connection.seat.handle).state();
        match (connection.stage, state) {
            (ConnectionStage::HalfOpen(_), tcp::State::SynReceived) => {}
            (ConnectionStage::HalfOpen(listener), tcp::State::Closed | tcp::State::Listen) => {
                self.forget(flow);
                if let Some(backlog) = self.listeners.get_mut(&listener) {
                    backlog.half_open -= 1;
                }
            }
            (ConnectionStage::HalfOpen(listener), _) => {
                connection.stage = ConnectionStage::Open;
                connection.seat.socket().set_timeout(None);
                if let Some(backlog) = self.listeners.get_mut(&listener) {
                    backlog.half_open -= 1;
                    backlog.ready.push_back(flow);
                    Waker::from(backlog.waiters.clone()).wake();
                }
            }
            (ConnectionStage::Orphan, tcp::State::Closed) => self.forget(flow),
            (ConnectionStage::Open | ConnectionStage::Orphan, _) => {}
        }
    }

    fn forget(&mut self, flow: SocketPair) {
        if let Some(StackConnection { seat, .. }) = self.connections.remove(&flow)
            && let Some(at) = seat.timer
        {
            self.timers.remove(&(at, TimerOwner::Connection(flow)));
        }
    }

    /// Does something with the socket of a connection, and lets it send.
    pub(crate) fn with_tcp<R>(
        &mut self,
        flow: SocketPair,
        now: Instant,
        f: impl FnOnce(&mut tcp::Socket<'static>, &Arc<SocketWaiters>) -> R,
    ) -> Option<R> {
        let seat = &mut self.connections.get_mut(&flow)?.seat;
        let waiters = seat.waiters.clone();
        let result = f(seat.socket(), &waiters);
        self.turn(TimerOwner::Connection(flow), now);
        Some(result)
    }

    /// Begins a connection to a peer.
    pub(crate) fn connect(&mut self, peer: SocketAddr, now: Instant) -> io::Result<SocketPair> {
        let unreachable = || {
            let message = format!("{peer}: the stack has no address of this family");
            io::Error::new(io::ErrorKind::AddrNotAvailable, message)
        };
        let local = self.interface.get_source_address(&peer.ip().into()).ok_or_else(unreachable)?;
        let local = self.free_port(local.into(), |engine, local| {
            engine.connections.contains_key(&SocketPair { local, peer })
                || engine.bound(&engine.listeners, local).is_some()
        })?;
        let mut socket = self.new_socket();
        let refused = |error| io::Error::new(io::ErrorKind::InvalidInput, format!("{peer}: {error}"));
        socket.connect(self.interface.context(), peer, local).map_err(refused)?;
        let (flow, seat) = (SocketPair { local, peer }, self.seat(socket));
        self.connections.insert(flow, StackConnection { seat, stage: ConnectionStage::Open });
        self.turn(TimerOwner::Connection(flow), now);
        Ok(flow)
    }

    /// A `TcpStream` has gone. A reset tells the peer if bytes of it were not read.
    pub(crate) fn release(&mut self, flow: SocketPair, now: Instant) {
        let Some(connection) = self.connections.get_mut(&flow) else { return };
        connection.stage = ConnectionStage::Orphan;
        let socket = connection.seat.socket();
        if socket.can_recv() {
            socket.abort();
        } else {
            socket.close();
        }
        socket.set_timeout(Some(PATIENCE));
        self.turn(TimerOwner::Connection(flow), now);
    }

    pub(crate) fn listen(&mut self, address: SocketAddr) -> io::Result<SocketAddr> {
        let address = self.free_address(address, |engine, at| engine.listeners.contains_key(&at))?;
        let waiters = SocketWaiters::new(&self.woken);
        self.listeners.insert(address, ListenQueue { half_open: 0, ready: VecDeque::new(), waiters });
        Ok(address)
    }

    /// The next connection of a listener; if there is none, the waker waits for it.
    pub(crate) fn accept(&mut self, listener: SocketAddr, waker: &Waker) -> Option<SocketPair> {
        let backlog = self.listeners.get_mut(&listener)?;
        let flow = backlog.ready.pop_front();
        if flow.is_none() {
            backlog.waiters.add(waker);
        }
        flow
    }

    /// A `TcpListener` has gone: its connections that no thread has accepted are reset.
    pub(crate) fn unlisten(&mut self, listener: SocketAddr, now: Instant) {
        let ready = self.listeners.remove(&listener).map(|backlog| backlog.ready);
        let unaccepted =
            self.connections.iter().filter(|(_, c)| c.stage == ConnectionStage::HalfOpen(listener));
        let mut flows: Vec<SocketPair> = unaccepted.map(|(flow, _)| *flow).collect();
        flows.extend(ready.into_iter().flatten());
        for flow in flows {
            if let Some(connection) = self.connections.get_mut(&flow) {
                connection.stage = ConnectionStage::Orphan;
                connection.seat.socket().abort();
            }
            self.turn(TimerOwner::Connection(flow), now);
        }
    }
}
