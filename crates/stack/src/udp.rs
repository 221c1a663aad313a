//! Datagrams of a stack.

use crate::stack::{Stack, broken};
use smoltcp::socket::udp::{SendError, Socket, UdpMetadata};
use smoltcp::wire::IpEndpoint;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::{Context, Poll};

/// A UDP socket of a [`Stack`].
pub struct UdpSocket {
    stack: Stack,
    address: SocketAddr,
}

impl UdpSocket {
    /// Takes datagrams at an address of the stack, or at the unspecified one for all addresses of
    /// its family. With the port 0 the stack picks one.
    ///
    /// # Errors
    /// `AddrInUse`, and `AddrNotAvailable` if the address is not the stack's.
    pub fn bind(stack: &Stack, address: SocketAddr) -> io::Result<UdpSocket> {
        let address = stack.operate(|engine, _| engine.bind(address, |at| stack.takes(at, None)))?;
        Ok(UdpSocket { stack: stack.clone(), address })
    }

    fn attempt<R>(
        &self,
        cx: &mut Context<'_>,
        f: impl FnOnce(&mut Socket<'static>) -> Option<io::Result<R>>,
    ) -> Poll<io::Result<R>> {
        self.stack.poll(cx, |engine, now, waker| {
            let result = engine.with_udp(self.address, now, |socket, waiters| {
                let result = f(socket);
                if result.is_none() {
                    waiters.add(waker);
                    let waker = waiters.clone().into();
                    socket.register_recv_waker(&waker);
                    socket.register_send_waker(&waker);
                }
                result
            });
            match (result.flatten(), engine.broken) {
                (Some(result), _) => Some(result),
                (None, kind) => kind.map(|kind| Err(broken(kind))),
            }
        })
    }

    /// Sends a datagram, and waits while the buffer is full.
    ///
    /// # Errors
    /// `InvalidInput` if the datagram is longer than 1452 bytes, which every packet has room for,
    /// or if it can go to no such address; and those of a missing way, as
    /// [`TcpStream::connect`](crate::TcpStream::connect) has them.
    pub async fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        if bytes.len() > 1452 {
            let message = format!("{to}: a datagram of {} bytes is too long", bytes.len());
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        let mut meta = UdpMetadata::from(IpEndpoint::from(to));
        meta.local_address = Some(match self.address.ip() {
            all if all.is_unspecified() => self.stack.operate(|engine, _| engine.source_for(to))?.into(),
            own => own.into(),
        });
        poll_fn(|cx| {
            self.attempt(cx, |socket| match socket.send_slice(bytes, meta) {
                Ok(()) => Some(Ok(bytes.len())),
                Err(SendError::BufferFull) => None,
                Err(error) => {
                    Some(Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{to}: {error}"))))
                }
            })
        })
        .await
    }

    /// Waits for a datagram. What does not fit into `buffer` is an error, and is lost.
    ///
    /// # Errors
    /// `InvalidInput` if the datagram is longer than `buffer`.
    pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        poll_fn(|cx| {
            self.attempt(cx, |socket| {
                if !socket.can_recv() {
                    return None;
                }
                Some(match socket.recv_slice(buffer) {
                    Ok((length, from)) => {
                        let peer = from.endpoint;
                        Ok((length, SocketAddr::new(peer.addr.into(), peer.port)))
                    }
                    Err(error) => Err(io::Error::new(io::ErrorKind::InvalidInput, error.to_string())),
                })
            })
        })
        .await
    }

    /// The address, with the port that was picked.
    ///
    /// # Errors
    /// None; the result is that of the kernel's sockets.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.address)
    }
}

impl Drop for UdpSocket {
    fn drop(&mut self) {
        self.stack.operate(|engine, _| engine.unbind(self.address));
    }
}

impl fmt::Debug for UdpSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("stack::UdpSocket").field(&self.address).finish()
    }
}
