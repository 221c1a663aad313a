//! The one door to the kernel: every system call that this crate makes on behalf of threads goes through a function here.
//!
//! Behind the door there is the kernel; in a test there may be something else before it:
//!
//! - [Faults](crate::sim::Faults) make a call fail, be interrupted, or do less than it was asked to.
//!
//! The functions are thin: they take and return what `rustix` does, and cost one load of a word that is never written while nothing is
//! disturbed, and one branch that is predicted. They are public for crates that make non-blocking calls of their own on the sockets of
//! this one; programs have no use for them.

use crate::sim::faults::{self, DISTURBED};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::Result;
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny, SocketFlags,
    SocketType, sockopt,
};
use std::fs::{File, Metadata, OpenOptions};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The kinds of system calls that go through the door.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Call {
    /// `socket`, of TCP and Unix.
    Socket,
    /// `socketpair`
    SocketPair,
    /// `setsockopt`
    SetOption,
    /// `getsockopt(SO_ERROR)`: what became of a `connect`.
    SocketError,
    /// `bind`
    Bind,
    /// `listen`
    Listen,
    /// `accept4`
    Accept,
    /// `connect`
    Connect,
    /// `getsockname`
    LocalAddress,
    /// `getpeername`
    PeerAddress,
    /// `recv`
    Recv,
    /// `send`
    Send,
    /// `sendmsg`
    SendMsg,
    /// `sendfile`
    SendFile,
    /// `shutdown`
    Shutdown,
    /// `fcntl(F_DUPFD_CLOEXEC)`
    Duplicate,
    /// `fcntl(F_GETFL)`
    GetFlags,
    /// `fcntl(F_SETFL)`
    SetFlags,
    /// `getaddrinfo`
    Resolve,
    /// `open`
    Open,
    /// `stat` and `fstat`
    Stat,
    /// `pread`, and `read` of a whole file.
    Pread,
    /// `pwrite`
    Pwrite,
    /// `epoll_create`
    EpollCreate,
    /// `epoll_ctl`
    EpollControl,
    /// `epoll_wait`
    EpollWait,
    /// `eventfd`
    Eventfd,
}

impl Call {
    /// All kinds.
    pub const ALL: [Call; 27] = [
        Call::Socket,
        Call::SocketPair,
        Call::SetOption,
        Call::SocketError,
        Call::Bind,
        Call::Listen,
        Call::Accept,
        Call::Connect,
        Call::LocalAddress,
        Call::PeerAddress,
        Call::Recv,
        Call::Send,
        Call::SendMsg,
        Call::SendFile,
        Call::Shutdown,
        Call::Duplicate,
        Call::GetFlags,
        Call::SetFlags,
        Call::Resolve,
        Call::Open,
        Call::Stat,
        Call::Pread,
        Call::Pwrite,
        Call::EpollCreate,
        Call::EpollControl,
        Call::EpollWait,
        Call::Eventfd,
    ];
}

/// An owned descriptor of the kernel behind the door. Dropping it closes it.
#[derive(Debug)]
pub struct Fd(RawFd);

impl Drop for Fd {
    #[inline]
    fn drop(&mut self) {
        // SAFETY: the number came from an `OwnedFd` that was given up for it, and is given up here.
        drop(unsafe { OwnedFd::from_raw_fd(self.0) });
    }
}

impl From<OwnedFd> for Fd {
    fn from(fd: OwnedFd) -> Fd {
        Fd(fd.into_raw_fd())
    }
}

impl From<Fd> for OwnedFd {
    fn from(fd: Fd) -> OwnedFd {
        let raw = fd.0;
        std::mem::forget(fd);
        // SAFETY: the number came from an `OwnedFd`, and the `Fd` that had it is gone without closing it.
        unsafe { OwnedFd::from_raw_fd(raw) }
    }
}

impl AsFd for Fd {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: it is open until this is dropped.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

/// Where a table of descriptors that are waited for has the one with this number; `None` if no descriptor has it.
#[inline]
pub(crate) fn index(fd: RawFd) -> Option<usize> {
    usize::try_from(fd).ok()
}

/// Makes a call, unless it is disturbed. `real` makes it, for at most so many bytes.
#[inline(always)]
fn through<T>(call: Call, real: impl FnOnce(usize) -> Result<T>) -> Result<T> {
    if DISTURBED.load(Ordering::Relaxed) == 0 {
        return real(usize::MAX);
    }
    let limit = disturb(call)?;
    real(limit)
}

/// As [`through`], for calls that speak of [`io::Error`].
#[inline(always)]
fn through_io<T>(call: Call, real: impl FnOnce(usize) -> io::Result<T>) -> io::Result<T> {
    if DISTURBED.load(Ordering::Relaxed) == 0 {
        return real(usize::MAX);
    }
    let limit = disturb(call)?;
    real(limit)
}

/// How many bytes the call may transfer.
#[cold]
#[inline(never)]
fn disturb(call: Call) -> Result<usize> {
    faults::of(call)
}

/// A stream socket in non-blocking mode.
///
/// # Errors
/// Those of `socket`.
pub fn socket(family: AddressFamily) -> Result<Fd> {
    through(Call::Socket, |_| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        Ok(rustix::net::socket_with(family, SocketType::STREAM, flags, None)?.into())
    })
}

/// Two Unix stream sockets in non-blocking mode, connected to each other.
///
/// # Errors
/// Those of `socketpair`.
pub fn socket_pair() -> Result<(Fd, Fd)> {
    through(Call::SocketPair, |_| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (one, other) = rustix::net::socketpair(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        Ok((one.into(), other.into()))
    })
}

/// What a socket can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SocketOption {
    /// `SO_REUSEADDR`
    ReuseAddress(bool),
    /// `SO_REUSEPORT`
    ReusePort(bool),
    /// `IPV6_V6ONLY`
    OnlyV6(bool),
    /// `TCP_NODELAY`
    NoDelay(bool),
    /// `SO_LINGER`
    Linger(Option<Duration>),
}

/// Sets an option of a socket.
///
/// # Errors
/// Those of `setsockopt`.
pub fn set_option(fd: impl AsFd, option: SocketOption) -> Result<()> {
    through(Call::SetOption, |_| match option {
        SocketOption::ReuseAddress(yes) => sockopt::set_socket_reuseaddr(fd, yes),
        SocketOption::ReusePort(yes) => sockopt::set_socket_reuseport(fd, yes),
        SocketOption::OnlyV6(yes) => sockopt::set_ipv6_v6only(fd, yes),
        SocketOption::NoDelay(yes) => sockopt::set_tcp_nodelay(fd, yes),
        SocketOption::Linger(time) => sockopt::set_socket_linger(fd, time),
    })
}

/// What became of a connection that was under way: the outer result is that of the question.
///
/// # Errors
/// Those of `getsockopt`.
pub fn socket_error(fd: impl AsFd) -> Result<Result<()>> {
    through(Call::SocketError, |_| sockopt::socket_error(fd))
}

/// Gives a socket its address.
///
/// # Errors
/// Those of `bind`.
pub fn bind(fd: impl AsFd, address: &SocketAddrAny) -> Result<()> {
    through(Call::Bind, |_| rustix::net::bind(fd, address))
}

/// Makes a socket one that connections come in at.
///
/// # Errors
/// Those of `listen`.
pub fn listen(fd: impl AsFd, backlog: i32) -> Result<()> {
    through(Call::Listen, |_| rustix::net::listen(fd, backlog))
}

/// The next connection, in non-blocking mode.
///
/// # Errors
/// Those of `accept4`.
#[inline]
pub fn accept(fd: impl AsFd) -> Result<(Fd, Option<SocketAddrAny>)> {
    through(Call::Accept, |_| {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let (fd, peer) = rustix::net::acceptfrom_with(fd, flags)?;
        Ok((fd.into(), peer))
    })
}

/// Begins to connect.
///
/// # Errors
/// Those of `connect`.
pub fn connect(fd: impl AsFd, address: &SocketAddrAny) -> Result<()> {
    through(Call::Connect, |_| rustix::net::connect(fd, address))
}

/// The address of a socket.
///
/// # Errors
/// Those of `getsockname`.
pub fn local_address(fd: impl AsFd) -> Result<SocketAddrAny> {
    through(Call::LocalAddress, |_| rustix::net::getsockname(fd))
}

/// The address of the socket at the other end.
///
/// # Errors
/// Those of `getpeername`.
pub fn peer_address(fd: impl AsFd) -> Result<Option<SocketAddrAny>> {
    through(Call::PeerAddress, |_| rustix::net::getpeername(fd))
}

/// Receives what is there, without waiting.
///
/// # Errors
/// Those of `recv`.
#[inline]
pub fn recv(fd: impl AsFd, buffer: &mut [u8]) -> Result<usize> {
    through(Call::Recv, |limit| {
        let room = buffer.len().min(limit);
        Ok(rustix::net::recv(fd, &mut buffer[..room], RecvFlags::DONTWAIT)?.0)
    })
}

/// As [`recv`], into memory that need not be initialised: as much of it as is returned is, from the start.
///
/// # Errors
/// Those of `recv`.
#[inline]
pub fn recv_uninit(fd: impl AsFd, buffer: &mut [MaybeUninit<u8>]) -> Result<usize> {
    through(Call::Recv, |limit| {
        let room = buffer.len().min(limit);
        let ((read, _), _) = rustix::net::recv(fd, &mut buffer[..room], RecvFlags::DONTWAIT)?;
        Ok(read.len())
    })
}

/// Receives what is there behind what is in a vector, within its capacity, without waiting.
///
/// # Errors
/// Those of `recv`.
#[inline]
pub fn recv_to_spare(fd: impl AsFd, buffer: &mut Vec<u8>) -> Result<usize> {
    through(Call::Recv, |limit| match limit {
        usize::MAX => {
            Ok(rustix::net::recv(fd, rustix::buffer::spare_capacity(buffer), RecvFlags::DONTWAIT)?.0)
        }
        _ => {
            let mut some = vec![0; limit.min(buffer.capacity() - buffer.len())];
            let (read, _) = rustix::net::recv(fd, &mut some[..], RecvFlags::DONTWAIT)?;
            buffer.extend_from_slice(&some[..read]);
            Ok(read)
        }
    })
}

/// Sends what there is room for, without waiting and without SIGPIPE. With `more`, the rest of a message follows at once
/// (`MSG_MORE`).
///
/// # Errors
/// Those of `send`.
#[inline]
pub fn send(fd: impl AsFd, bytes: &[u8], more: bool) -> Result<usize> {
    through(Call::Send, |limit| {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        let flags = if more { flags | SendFlags::MORE } else { flags };
        rustix::net::send(fd, &bytes[..bytes.len().min(limit)], flags)
    })
}

/// Sends what there is room for of the concatenation of `parts`, as [`send`] does.
///
/// # Errors
/// Those of `sendmsg`.
#[inline]
pub fn send_vectored(fd: impl AsFd, parts: &[IoSlice<'_>]) -> Result<usize> {
    through(Call::SendMsg, |limit| {
        let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
        match limit {
            usize::MAX => rustix::net::sendmsg(fd, parts, &mut SendAncillaryBuffer::default(), flags),
            _ => {
                let all: Vec<u8> = parts.iter().flat_map(|part| part.iter().copied()).collect();
                rustix::net::send(fd, &all[..all.len().min(limit)], flags)
            }
        }
    })
}

/// Sends at most `count` bytes of a file from `offset` on, which is moved.
///
/// # Errors
/// Those of `sendfile`.
#[inline]
pub fn send_file(fd: impl AsFd, file: impl AsFd, offset: &mut u64, count: usize) -> Result<usize> {
    through(Call::SendFile, |limit| rustix::fs::sendfile(fd, file, Some(offset), count.min(limit)))
}

/// Closes one direction of a connection, or both.
///
/// # Errors
/// Those of `shutdown`.
pub fn shutdown(fd: impl AsFd, how: Shutdown) -> Result<()> {
    through(Call::Shutdown, |_| rustix::net::shutdown(fd, how))
}

/// Another descriptor of the same open file.
///
/// # Errors
/// Those of `fcntl(F_DUPFD_CLOEXEC)`.
pub fn duplicate(fd: impl AsFd) -> Result<Fd> {
    through(Call::Duplicate, |_| Ok(rustix::io::fcntl_dupfd_cloexec(fd, 0)?.into()))
}

/// Puts an open file into non-blocking mode.
///
/// # Errors
/// Those of `fcntl(F_GETFL)` and `fcntl(F_SETFL)`.
pub fn set_nonblocking(fd: impl AsFd) -> Result<()> {
    let flags = through(Call::GetFlags, |_| rustix::fs::fcntl_getfl(&fd))?;
    if flags.contains(OFlags::NONBLOCK) {
        return Ok(());
    }
    through(Call::SetFlags, |_| rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK))
}

/// The addresses of `host:port`. It may take long.
///
/// # Errors
/// Those of `getaddrinfo`.
pub fn resolve(host_and_port: &str) -> io::Result<Vec<SocketAddr>> {
    through_io(Call::Resolve, |_| Ok(host_and_port.to_socket_addrs()?.collect()))
}

/// Opens a file. It may take long.
///
/// # Errors
/// Those of `open`.
pub fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    through_io(Call::Open, |_| options.open(path))
}

/// The status of the file at a path. It may take long.
///
/// # Errors
/// Those of `stat`.
pub fn stat(path: &Path) -> io::Result<Metadata> {
    through_io(Call::Stat, |_| path.metadata())
}

/// The status of an open file. It may take long.
///
/// # Errors
/// Those of `fstat`.
pub fn fstat(file: &File) -> io::Result<Metadata> {
    through_io(Call::Stat, |_| file.metadata())
}

/// Reads from a place in a file. It may take long.
///
/// # Errors
/// Those of `pread`.
pub fn pread(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    through_io(Call::Pread, |limit| {
        let room = buffer.len().min(limit);
        file.read_at(&mut buffer[..room], offset)
    })
}

/// Writes to a place in a file. It may take long.
///
/// # Errors
/// Those of `pwrite`.
pub fn pwrite(file: &File, bytes: &[u8], offset: u64) -> io::Result<usize> {
    through_io(Call::Pwrite, |limit| file.write_at(&bytes[..bytes.len().min(limit)], offset))
}

/// The whole content of the file at a path. It may take long.
///
/// # Errors
/// Those of `open` and `read`.
pub fn read_whole(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path, OpenOptions::new().read(true))?;
    let mut content = Vec::new();
    through_io(Call::Pread, |_| io::Read::read_to_end(&mut file, &mut content))?;
    Ok(content)
}

/// A new epoll set.
///
/// # Errors
/// Those of `epoll_create1`.
pub(crate) fn epoll_create() -> Result<Fd> {
    through(Call::EpollCreate, |_| Ok(epoll::create(CreateFlags::CLOEXEC)?.into()))
}

/// Puts a descriptor into an epoll set.
pub(crate) fn epoll_add(set: &Fd, fd: impl AsFd, data: u64, flags: EventFlags) -> Result<()> {
    through(Call::EpollControl, |_| epoll::add(set, fd, EventData::new_u64(data), flags))
}

/// Takes a descriptor out of an epoll set.
pub(crate) fn epoll_delete(set: &Fd, fd: impl AsFd) -> Result<()> {
    through(Call::EpollControl, |_| epoll::delete(set, fd))
}

/// Waits for events; the first so many of `events` are them.
#[inline]
pub(crate) fn epoll_wait<'a>(
    set: &Fd,
    events: &'a mut [MaybeUninit<Event>],
    timeout: Option<&Timespec>,
) -> Result<&'a [Event]> {
    through(Call::EpollWait, |_| Ok(&*epoll::wait(set, events, timeout)?.0))
}

/// A new eventfd in non-blocking mode.
pub(crate) fn eventfd() -> Result<OwnedFd> {
    through(Call::Eventfd, |_| rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK))
}
