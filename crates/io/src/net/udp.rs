//! `UdpSocket`: datagrams between hosts. Programs use it; nothing in this crate does.
//!
//! Each call goes through `NonBlocking`, and each datagram is one system call (`sys/datagram.rs`).
//! A short read of a datagram proves nothing, so no call notes the socket as drained unless it
//! would have blocked.

use super::tcp::address_of;
use crate::NonBlocking;
use crate::error::doing;
use crate::sys::{self, DatagramOption, Fd, SocketOption};
use rustix::net::{AddressFamily, SocketAddrAny};
use selvedge_core::Time;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};

/// A UDP socket.
///
/// All methods take `&self`, so that one thread may receive while another sends. A datagram is sent
/// and received whole. If a datagram is longer than the receiver's buffer, the rest of it is lost.
///
/// # Examples
/// ```
/// use selvedge::round_robin_over;
/// use selvedge::{EventLoop, net::UdpSocket};
///
/// round_robin_over(&mut EventLoop::new()?, async {
///     let one = UdpSocket::bind("127.0.0.1:0".parse().unwrap())?;
///     let other = UdpSocket::bind("127.0.0.1:0".parse().unwrap())?;
///     one.send_to(b"hello", other.local_addr()?).await?;
///     let mut buffer = [0; 64];
///     let (length, from) = other.recv_from(&mut buffer).await?;
///     assert_eq!((&buffer[..length], from), (&b"hello"[..], one.local_addr()?));
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Paper
/// [LZ07 Figure 11]: blocking calls built from non-blocking ones.
#[derive(Debug)]
pub struct UdpSocket {
    io: NonBlocking<Fd>,
}

impl UdpSocket {
    /// A socket at an address. For port 0 the system chooses the port.
    ///
    /// # Errors
    /// With the address in the message: in use, not of this host, not permitted.
    pub fn bind(address: SocketAddr) -> io::Result<UdpSocket> {
        UdpSocket::bind_with(address, |_| Ok(()))
    }

    /// A socket at an address that other sockets may be bound to as well, if all of them are made
    /// this way: for example the members of a multicast group on one host.
    ///
    /// # Errors
    /// As for [`bind`](Self::bind).
    pub fn bind_shared(address: SocketAddr) -> io::Result<UdpSocket> {
        UdpSocket::bind_with(address, |fd| {
            sys::set_option(fd, SocketOption::ReuseAddress(true))?;
            sys::set_option(fd, SocketOption::ReusePort(true))
        })
    }

    fn bind_with(
        address: SocketAddr,
        prepare: impl FnOnce(&Fd) -> rustix::io::Result<()>,
    ) -> io::Result<UdpSocket> {
        let bind = || -> io::Result<UdpSocket> {
            let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
            let fd = sys::datagram_socket(family)?;
            prepare(&fd)?;
            sys::bind(&fd, &SocketAddrAny::from(address))?;
            Ok(UdpSocket { io: NonBlocking::assume(fd) })
        };
        bind().map_err(doing(format_args!("bind {address}")))
    }

    /// Sets the address that [`send`](Self::send) sends to. From then on the socket receives from
    /// this address only. The call sends nothing.
    ///
    /// # Errors
    /// With the address in the message: of another family, unreachable.
    pub fn connect(&self, address: SocketAddr) -> io::Result<()> {
        sys::set_peer(&self.io, &SocketAddrAny::from(address))
            .map_err(io::Error::from)
            .map_err(doing(format_args!("connect to {address}")))
    }

    /// Sends a datagram to an address, and returns its length.
    ///
    /// # Errors
    /// With the address in the message: too long (65,507 bytes at most), unreachable, not permitted
    /// (a broadcast address without [`set_broadcast`](Self::set_broadcast)); `TimedOut` after the
    /// [write deadline](Self::set_write_deadline). The report that no socket took an earlier
    /// datagram may come as an error of a later call.
    pub async fn send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        let address = SocketAddrAny::from(to);
        let sent = self.io.write_with(|fd| Ok(sys::send_to(fd, bytes, &address)?)).await;
        sent.map_err(doing(format_args!("send to {to}")))
    }

    /// Receives the next datagram. Returns how many of its bytes are in `buffer`, and the sender's
    /// address.
    ///
    /// # Errors
    /// Those of `recvfrom`; `TimedOut` after the [read deadline](Self::set_read_deadline).
    pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(buffer, false).await
    }

    /// Like [`recv_from`](Self::recv_from), but leaves the datagram in the socket for the next
    /// call.
    ///
    /// # Errors
    /// As for [`recv_from`](Self::recv_from).
    pub async fn peek_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        self.receive(buffer, true).await
    }

    async fn receive(&self, buffer: &mut [u8], peek: bool) -> io::Result<(usize, SocketAddr)> {
        let (length, from) = self.io.read_with(|fd| Ok(sys::receive_from(fd, &mut *buffer, peek)?)).await?;
        Ok((length, address_of(from)?))
    }

    /// Sends a datagram to the address that the socket is [connected](Self::connect) to, and
    /// returns its length.
    ///
    /// # Errors
    /// Those of `send`: `ConnectionRefused` if no socket took an earlier datagram; `TimedOut` after
    /// the [write deadline](Self::set_write_deadline).
    pub fn send(&self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> {
        self.io.write_with(|fd| Ok(sys::send(fd, bytes, false)?))
    }

    /// Receives the next datagram from the address that the socket is [connected](Self::connect)
    /// to, and returns how many of its bytes are in `buffer`.
    ///
    /// # Errors
    /// Those of `recv`: `ConnectionRefused` if no socket took a datagram that this socket sent;
    /// `TimedOut` after the [read deadline](Self::set_read_deadline).
    pub fn recv(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        self.io.read_with(|fd| Ok(sys::recv(fd, &mut *buffer)?))
    }

    /// Sends without waiting.
    ///
    /// # Errors
    /// As for [`send_to`](Self::send_to); `WouldBlock` when there is no room.
    pub fn try_send_to(&self, bytes: &[u8], to: SocketAddr) -> io::Result<usize> {
        Ok(sys::send_to(&self.io, bytes, &SocketAddrAny::from(to))?)
    }

    /// Receives without waiting.
    ///
    /// # Errors
    /// Those of `recvfrom`; `WouldBlock` when no datagram is there.
    pub fn try_recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, SocketAddr)> {
        let (length, from) = sys::receive_from(&self.io, buffer, false)?;
        Ok((length, address_of(from)?))
    }

    /// Waits until a datagram may have come. The result is a hint: see [`NonBlocking::readable`].
    ///
    /// # Errors
    /// `TimedOut` after the [read deadline](Self::set_read_deadline).
    pub fn readable(&self) -> impl Future<Output = io::Result<()>> {
        self.io.readable()
    }

    /// The socket's own address, with the port that the system chose if port 0 was asked for.
    ///
    /// # Errors
    /// None for a socket that is bound.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        address_of(Some(sys::local_address(&self.io)?))
    }

    /// The address that the socket is [connected](Self::connect) to.
    ///
    /// # Errors
    /// `NotConnected` if the socket is not connected.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        address_of(sys::peer_address(&self.io)?)
    }

    /// Sets whether the socket may send to a broadcast address.
    ///
    /// # Errors
    /// None for an open socket.
    pub fn set_broadcast(&self, yes: bool) -> io::Result<()> {
        self.set(DatagramOption::Broadcast(yes))
    }

    /// Sets how many routers a datagram passes at most (IPv4).
    ///
    /// # Errors
    /// `InvalidInput` for more than 255, or 0.
    pub fn set_ttl(&self, hops: u32) -> io::Result<()> {
        self.set(DatagramOption::Ttl(hops))
    }

    /// Joins a multicast group, on the interface with an address (`0.0.0.0`: the system chooses).
    /// From now on the socket receives the group's datagrams.
    ///
    /// # Errors
    /// With the group in the message: no multicast address, no such interface.
    pub fn join_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.set(DatagramOption::JoinV4(group, interface)).map_err(doing(format_args!("join {group}")))
    }

    /// Leaves the group: the socket no longer receives the group's datagrams.
    ///
    /// # Errors
    /// With the group in the message: the socket has not joined the group.
    pub fn leave_multicast_v4(&self, group: Ipv4Addr, interface: Ipv4Addr) -> io::Result<()> {
        self.set(DatagramOption::LeaveV4(group, interface)).map_err(doing(format_args!("leave {group}")))
    }

    /// Joins a multicast group, on the interface with an index (0: the system chooses). From now on
    /// the socket receives the group's datagrams.
    ///
    /// # Errors
    /// With the group in the message: no multicast address, no such interface.
    pub fn join_multicast_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        self.set(DatagramOption::JoinV6(group, interface)).map_err(doing(format_args!("join {group}")))
    }

    /// Leaves the group: the socket no longer receives the group's datagrams.
    ///
    /// # Errors
    /// With the group in the message: the socket has not joined the group.
    pub fn leave_multicast_v6(&self, group: Ipv6Addr, interface: u32) -> io::Result<()> {
        self.set(DatagramOption::LeaveV6(group, interface)).map_err(doing(format_args!("leave {group}")))
    }

    /// Sets how many networks a multicast datagram passes at most. 1, the default, keeps it in the
    /// sender's network.
    ///
    /// # Errors
    /// `InvalidInput` for more than 255.
    pub fn set_multicast_ttl(&self, hops: u32) -> io::Result<()> {
        match self.local_addr()? {
            SocketAddr::V4(_) => self.set(DatagramOption::MulticastTtlV4(hops)),
            SocketAddr::V6(_) => self.set(DatagramOption::MulticastHopsV6(hops)),
        }
    }

    /// Sets whether members of a group on this host receive the datagrams that this socket sends to
    /// the group. By default they do.
    ///
    /// # Errors
    /// None for an open socket.
    pub fn set_multicast_loop(&self, yes: bool) -> io::Result<()> {
        match self.local_addr()? {
            SocketAddr::V4(_) => self.set(DatagramOption::MulticastLoopV4(yes)),
            SocketAddr::V6(_) => self.set(DatagramOption::MulticastLoopV6(yes)),
        }
    }

    /// Sets the point in time after which receiving fails with `TimedOut`: see
    /// [`NonBlocking::set_read_deadline`].
    pub fn set_read_deadline(&self, deadline: Option<Time>) {
        self.io.set_read_deadline(deadline);
    }

    /// Sets the point in time after which sending fails with `TimedOut`: see
    /// [`NonBlocking::set_write_deadline`].
    pub fn set_write_deadline(&self, deadline: Option<Time>) {
        self.io.set_write_deadline(deadline);
    }

    fn set(&self, option: DatagramOption) -> io::Result<()> {
        Ok(sys::set_datagram_option(&self.io, option)?)
    }
}

impl AsFd for UdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}
