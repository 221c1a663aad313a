//! Calls that only datagram sockets have, UDP and Unix: creating them, `recvfrom`, `sendto`, and
//! setting the options in `DatagramOption` (`option.rs`).
//!
//! `net/udp.rs` and `net/unix_datagram.rs` make them. Calls that stream sockets have too (`bind`,
//! `connect`, `recv`, `send`) are in `socket.rs`. The simulated side is the trait `DatagramCalls`
//! (`kernel.rs`).

use super::gate::{make, on};
use super::interposed::is_interposed;
use super::{Call, DatagramOption, Fd, connect};
use rustix::io::{Errno, Result};
use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketAddrAny, SocketFlags, SocketType, recvfrom, sendto, sockopt,
};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// A datagram socket in non-blocking mode.
///
/// # Errors
/// Those of `socket`.
pub fn datagram_socket(family: AddressFamily) -> Result<Fd> {
    let real = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(rustix::net::socket_with(family, SocketType::DGRAM, flags, None)?.into())
    };
    make(Call::Socket, real, |kernel| Ok(Fd::simulated(kernel.datagrams()?.datagram_socket(family)?)))
}

/// Two Unix datagram sockets in non-blocking mode, connected to each other.
///
/// # Errors
/// Those of `socketpair`.
pub fn datagram_pair() -> Result<(Fd, Fd)> {
    let real = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::DGRAM, flags, None)?;
        Ok((one.into(), other.into()))
    };
    make(Call::SocketPair, real, |kernel| {
        let (one, other) = kernel.datagrams()?.datagram_pair()?;
        Ok((Fd::simulated(one), Fd::simulated(other)))
    })
}

/// Sets the address that a datagram socket sends to and receives from. The call is repeated when it
/// is interrupted, because it never waits.
///
/// # Errors
/// Those of `connect`, except for `EINTR`.
pub fn set_peer(fd: impl AsFd, address: &SocketAddrAny) -> Result<()> {
    rustix::io::retry_on_intr(|| connect(&fd, address))
}

/// Receives the next datagram, without waiting. Returns the number of its bytes that fitted into
/// `buffer`, and the sender's address. With `peek` the datagram stays in the socket.
///
/// # Errors
/// Those of `recvfrom`.
#[inline]
pub fn receive_from(fd: impl AsFd, buffer: &mut [u8], peek: bool) -> Result<(usize, Option<SocketAddrAny>)> {
    if is_interposed() && fd.as_fd().as_raw_fd() < 0 {
        return receive_simulated(fd.as_fd(), buffer, peek);
    }
    let real = |fd: BorrowedFd<'_>, _| {
        let flags = if peek { RecvFlags::DONTWAIT | RecvFlags::PEEK } else { RecvFlags::DONTWAIT };
        let (received, _, from) = recvfrom(fd, buffer, flags)?;
        Ok((received, from))
    };
    on(Call::Recv, fd, real, |_, _, _| Err(Errno::BADF))
}

#[cold]
fn receive_simulated(
    fd: BorrowedFd<'_>,
    buffer: &mut [u8],
    peek: bool,
) -> Result<(usize, Option<SocketAddrAny>)> {
    let unreal = |_: BorrowedFd<'_>, _| Err(Errno::BADF);
    on(Call::Recv, fd, unreal, |kernel, fd, _| {
        kernel.interrupt()?;
        let (bytes, from) = kernel.datagrams()?.receive_from(fd, buffer.len(), peek)?;
        buffer[..bytes.len()].copy_from_slice(&bytes);
        Ok((bytes.len(), from))
    })
}

/// Sends a datagram to an address, without waiting.
///
/// # Errors
/// Those of `sendto`.
#[inline]
pub fn send_to(fd: impl AsFd, bytes: &[u8], to: &SocketAddrAny) -> Result<usize> {
    let real = |fd: BorrowedFd<'_>, _| sendto(fd, bytes, SendFlags::NOSIGNAL | SendFlags::DONTWAIT, to);
    on(Call::Send, fd, real, |kernel, fd, _| {
        kernel.interrupt()?;
        kernel.datagrams()?.send_to(fd, bytes, to)
    })
}

/// Sets an option of a datagram socket.
///
/// # Errors
/// Those of `setsockopt`.
pub fn set_datagram_option(fd: impl AsFd, option: DatagramOption) -> Result<()> {
    let real = |fd: BorrowedFd<'_>, _| match option {
        DatagramOption::Broadcast(yes) => sockopt::set_socket_broadcast(fd, yes),
        DatagramOption::Ttl(hops) => sockopt::set_ip_ttl(fd, hops),
        DatagramOption::JoinV4(group, interface) => sockopt::set_ip_add_membership(fd, &group, &interface),
        DatagramOption::LeaveV4(group, interface) => sockopt::set_ip_drop_membership(fd, &group, &interface),
        DatagramOption::JoinV6(group, interface) => sockopt::set_ipv6_add_membership(fd, &group, interface),
        DatagramOption::LeaveV6(group, interface) => sockopt::set_ipv6_drop_membership(fd, &group, interface),
        DatagramOption::MulticastTtlV4(hops) => sockopt::set_ip_multicast_ttl(fd, hops),
        DatagramOption::MulticastHopsV6(hops) => sockopt::set_ipv6_multicast_hops(fd, hops),
        DatagramOption::MulticastLoopV4(yes) => sockopt::set_ip_multicast_loop(fd, yes),
        DatagramOption::MulticastLoopV6(yes) => sockopt::set_ipv6_multicast_loop(fd, yes),
    };
    on(Call::SetOption, fd, real, |kernel, fd, _| kernel.datagrams()?.set_datagram_option(fd, option))
}
