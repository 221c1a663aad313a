//! Calls on sockets: creating stream sockets, `bind`, `listen`, `accept`, `connect`, addresses,
//! `recv`, `send`, `shutdown`, and setting the options in `SocketOption` (`option.rs`).
//!
//! The files of `net` make them, those on datagram sockets too. No call here waits: every socket is
//! in non-blocking mode, and `reactor` does the waiting. The `recv` functions come in three forms,
//! one for each kind of buffer: initialised bytes, spare capacity of a `Vec`, and uninitialised
//! bytes. The simulated side is the trait `SocketCalls` (`kernel.rs`).

use super::gate::{counting, make, on, only_counted};
use super::interposed::{self, fate, is_interposed};
use super::{Call, Fd, SocketOption};
use rustix::io::{Errno, Result};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny, SocketFlags,
    SocketType, sockopt,
};
use std::io::IoSlice;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// A stream socket in non-blocking mode.
///
/// # Errors
/// Those of `socket`.
pub fn socket(family: AddressFamily) -> Result<Fd> {
    let real = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?.into())
    };
    make(Call::Socket, real, |kernel| Ok(Fd::simulated(kernel.socket(family)?)))
}

/// Two Unix stream sockets in non-blocking mode, connected to each other.
///
/// # Errors
/// Those of `socketpair`.
pub fn socket_pair() -> Result<(Fd, Fd)> {
    let real = || {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        Ok((one.into(), other.into()))
    };
    make(Call::SocketPair, real, |kernel| {
        let (one, other) = kernel.socket_pair()?;
        Ok((Fd::simulated(one), Fd::simulated(other)))
    })
}

/// Sets an option of a socket.
///
/// # Errors
/// Those of `setsockopt`.
pub fn set_option(fd: impl AsFd, option: SocketOption) -> Result<()> {
    let real = |fd: BorrowedFd<'_>, _| match option {
        SocketOption::ReuseAddress(yes) => sockopt::set_socket_reuseaddr(fd, yes),
        SocketOption::ReusePort(yes) => sockopt::set_socket_reuseport(fd, yes),
        SocketOption::OnlyV6(yes) => sockopt::set_ipv6_v6only(fd, yes),
        SocketOption::NoDelay(yes) => sockopt::set_tcp_nodelay(fd, yes),
        SocketOption::Linger(time) => sockopt::set_socket_linger(fd, time),
    };
    on(Call::SetOption, fd, real, |kernel, fd, _| kernel.set_option(fd, option))
}

/// The outcome of a connection that was under way. The outer result is the outcome of the question
/// itself.
///
/// # Errors
/// Those of `getsockopt`.
pub fn socket_error(fd: impl AsFd) -> Result<Result<()>> {
    on(Call::SocketError, fd, |fd, _| sockopt::socket_error(fd), |kernel, fd, _| kernel.socket_error(fd))
}

/// The kind of a socket: its family, its type and its protocol.
///
/// # Errors
/// Those of `getsockopt`: `ENOTSOCK` if the descriptor is no socket.
pub(crate) fn socket_kind(fd: impl AsFd) -> Result<(AddressFamily, SocketType, Option<Protocol>)> {
    let real = |fd: BorrowedFd<'_>, _| {
        let protocol = sockopt::socket_protocol(fd)?;
        Ok((sockopt::socket_domain(fd)?, sockopt::socket_type(fd)?, protocol))
    };
    // The type of a simulated descriptor follows from the call that made it, so this question is
    // not simulated.
    on(Call::SocketError, fd, real, |_, _, _| Err(Errno::OPNOTSUPP))
}

/// Gives a socket its address.
///
/// # Errors
/// Those of `bind`.
pub fn bind(fd: impl AsFd, address: &SocketAddrAny) -> Result<()> {
    on(Call::Bind, fd, |fd, _| rustix::net::bind(fd, address), |kernel, fd, _| kernel.bind(fd, address))
}

/// Makes a socket accept connections.
///
/// # Errors
/// Those of `listen`.
pub fn listen(fd: impl AsFd, backlog: i32) -> Result<()> {
    let real = |fd: BorrowedFd<'_>, _| rustix::net::listen(fd, backlog);
    on(Call::Listen, fd, real, |kernel, fd, _| kernel.listen(fd, backlog))
}

/// The next connection, in non-blocking mode.
///
/// # Errors
/// Those of `accept4`.
#[inline]
pub fn accept(fd: impl AsFd) -> Result<(Fd, Option<SocketAddrAny>)> {
    let real = |fd: BorrowedFd<'_>, _| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (fd, peer) = rustix::net::acceptfrom_with(fd, flags)?;
        Ok((fd.into(), peer))
    };
    on(Call::Accept, fd, real, |kernel, fd, _| {
        kernel.interrupt()?;
        let (fd, peer) = kernel.accept(fd)?;
        Ok((Fd::simulated(fd), peer))
    })
}

/// Begins to connect.
///
/// # Errors
/// Those of `connect`. After an interruption (`EINTR`) the connection is under way, as it is after
/// `EINPROGRESS`.
pub fn connect(fd: impl AsFd, address: &SocketAddrAny) -> Result<()> {
    let fd = fd.as_fd();
    let connect = || match fd.as_raw_fd() {
        raw if raw < 0 => interposed::with(|kernel| kernel.connect(raw, address)),
        _ => rustix::net::connect(fd, address),
    };
    if !is_interposed() {
        return connect();
    }
    let _counting = counting(Call::Connect);
    match fate(Call::Connect) {
        Ok(_) => connect(),
        Err(Errno::INTR) => match connect() {
            Ok(()) | Err(Errno::INPROGRESS) => Err(Errno::INTR),
            refused => refused,
        },
        Err(errno) => Err(errno),
    }
}

/// The address of a socket.
///
/// # Errors
/// Those of `getsockname`.
pub fn local_address(fd: impl AsFd) -> Result<SocketAddrAny> {
    let real = |fd: BorrowedFd<'_>, _| rustix::net::getsockname(fd);
    on(Call::LocalAddress, fd, real, |kernel, fd, _| kernel.local_address(fd))
}

/// The address of the socket at the other end.
///
/// # Errors
/// Those of `getpeername`.
pub fn peer_address(fd: impl AsFd) -> Result<Option<SocketAddrAny>> {
    let real = |fd: BorrowedFd<'_>, _| rustix::net::getpeername(fd);
    on(Call::PeerAddress, fd, real, |kernel, fd, _| kernel.peer_address(fd))
}

/// Receives the bytes that are there, without waiting.
///
/// # Errors
/// Those of `recv`.
#[inline]
pub fn recv(fd: impl AsFd, buffer: &mut [u8]) -> Result<usize> {
    if !is_interposed() {
        return Ok(rustix::net::recv(fd, buffer, RecvFlags::DONTWAIT)?.0);
    }
    if let Some(_counting) = only_counted(Call::Recv, &fd) {
        return Ok(rustix::net::recv(fd, buffer, RecvFlags::DONTWAIT)?.0);
    }
    let bytes = recv_interposed(fd.as_fd(), buffer.len())?;
    buffer[..bytes.len()].copy_from_slice(&bytes);
    Ok(bytes.len())
}

/// Like [`recv`], into memory that need not be initialised. If the call returns `n`, the first `n`
/// bytes are initialised.
///
/// # Errors
/// Those of `recv`.
#[inline]
pub fn recv_uninit(fd: impl AsFd, buffer: &mut [MaybeUninit<u8>]) -> Result<usize> {
    if !is_interposed() {
        let ((read, _), _) = rustix::net::recv(fd, buffer, RecvFlags::DONTWAIT)?;
        return Ok(read.len());
    }
    if let Some(_counting) = only_counted(Call::Recv, &fd) {
        let ((read, _), _) = rustix::net::recv(fd, buffer, RecvFlags::DONTWAIT)?;
        return Ok(read.len());
    }
    let bytes = recv_interposed(fd.as_fd(), buffer.len())?;
    for (place, byte) in buffer.iter_mut().zip(&bytes) {
        place.write(*byte);
    }
    Ok(bytes.len())
}

/// Appends the bytes that are there to a vector, within its capacity, without waiting.
///
/// # Errors
/// Those of `recv`.
#[inline]
pub fn recv_to_spare(fd: impl AsFd, buffer: &mut Vec<u8>) -> Result<usize> {
    if !is_interposed() {
        return Ok(rustix::net::recv(fd, rustix::buffer::spare_capacity(buffer), RecvFlags::DONTWAIT)?.0);
    }
    if let Some(_counting) = only_counted(Call::Recv, &fd) {
        return Ok(rustix::net::recv(fd, rustix::buffer::spare_capacity(buffer), RecvFlags::DONTWAIT)?.0);
    }
    let bytes = recv_interposed(fd.as_fd(), buffer.capacity() - buffer.len())?;
    buffer.extend_from_slice(&bytes);
    Ok(bytes.len())
}

#[cold]
fn recv_interposed(fd: BorrowedFd<'_>, room: usize) -> Result<Vec<u8>> {
    let real = |fd: BorrowedFd<'_>, limit| {
        let mut bytes = vec![0; room.min(limit)];
        let (read, _) = rustix::net::recv(fd, &mut bytes[..], RecvFlags::DONTWAIT)?;
        bytes.truncate(read);
        Ok(bytes)
    };
    on(Call::Recv, fd, real, |kernel, fd, limit| {
        kernel.interrupt()?;
        kernel.recv(fd, room.min(limit))
    })
}

/// Sends as many bytes as there is room for, without waiting and without SIGPIPE. `more` says that
/// the rest of a message follows at once (`MSG_MORE`).
///
/// # Errors
/// Those of `send`.
#[inline]
pub fn send(fd: impl AsFd, bytes: &[u8], more: bool) -> Result<usize> {
    let real = |fd: BorrowedFd<'_>, limit| {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let flags = if more { flags | SendFlags::MORE } else { flags };
        rustix::net::send(fd, &bytes[..bytes.len().min(limit)], flags)
    };
    on(Call::Send, fd, real, |kernel, fd, limit| {
        kernel.interrupt()?;
        kernel.send(fd, &bytes[..bytes.len().min(limit)], more)
    })
}

/// Sends as many bytes of the concatenation of `parts` as there is room for, like [`send`].
///
/// # Errors
/// Those of `sendmsg`.
#[inline]
pub fn send_vectored(fd: impl AsFd, parts: &[IoSlice<'_>]) -> Result<usize> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    let real = |fd: BorrowedFd<'_>, limit| match limit {
        usize::MAX => rustix::net::sendmsg(fd, parts, &mut SendAncillaryBuffer::default(), flags),
        _ => rustix::net::send(fd, &joined(parts, limit), flags),
    };
    on(Call::SendMsg, fd, real, |kernel, fd, limit| {
        kernel.interrupt()?;
        kernel.send(fd, &joined(parts, limit), false)
    })
}

/// The first `limit` bytes of the concatenation of `parts`.
#[cold]
fn joined(parts: &[IoSlice<'_>], limit: usize) -> Vec<u8> {
    let mut all = Vec::new();
    for part in parts {
        all.extend_from_slice(&part[..part.len().min(limit - all.len())]);
    }
    all
}

/// Closes one direction of a connection, or both.
///
/// # Errors
/// Those of `shutdown`.
pub fn shutdown(fd: impl AsFd, how: Shutdown) -> Result<()> {
    let real = |fd: BorrowedFd<'_>, _| rustix::net::shutdown(fd, how);
    on(Call::Shutdown, fd, real, |kernel, fd, _| kernel.shutdown(fd, how))
}
