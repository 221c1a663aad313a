//! The UDP sockets of a stack.

use super::{OwnSocket, StackEngine, TimerOwner};
use crate::waiters::SocketWaiters;
use smoltcp::socket::udp;
use smoltcp::time::Instant;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Waker;

/// The bytes of the buffer of a socket in each direction.
const BUFFER: usize = 16 << 10;

impl StackEngine {
    /// Binds a socket. A port that the stack picks is one of which the wire `takes` the datagrams.
    pub(crate) fn bind(
        &mut self,
        address: SocketAddr,
        takes: impl Fn(SocketAddr) -> bool,
    ) -> io::Result<SocketAddr> {
        let picks = address.port() == 0;
        let address = self
            .free_address(address, |engine, at| engine.datagrams.contains_key(&at) || picks && !takes(at))?;
        let buffer = || {
            let bytes = vec![0; BUFFER];
            udp::PacketBuffer::new(vec![udp::PacketMetadata::EMPTY; 64], bytes)
        };
        let mut socket = udp::Socket::new(buffer(), buffer());
        // The port is not 0, and the socket is new: these are all its conditions.
        let bound = socket.bind(address.port());
        debug_assert!(bound.is_ok());
        let seat = self.seat(socket);
        self.datagrams.insert(address, seat);
        Ok(address)
    }

    pub(crate) fn with_udp<R>(
        &mut self,
        address: SocketAddr,
        now: Instant,
        f: impl FnOnce(&mut udp::Socket<'static>, &Arc<SocketWaiters>) -> R,
    ) -> Option<R> {
        let seat = self.datagrams.get_mut(&address)?;
        let waiters = seat.waiters.clone();
        let result = f(seat.set.get_mut(seat.handle), &waiters);
        self.turn_datagrams(address, now);
        Some(result)
    }

    pub(crate) fn unbind(&mut self, address: SocketAddr) {
        let Some(OwnSocket { timer, waiters, .. }) = self.datagrams.remove(&address) else { return };
        if let Some(at) = timer {
            self.timers.remove(&(at, TimerOwner::Datagrams(address)));
        }
        // Wakers that are left are dropped outside of the lock.
        Waker::from(waiters).wake();
    }
}
