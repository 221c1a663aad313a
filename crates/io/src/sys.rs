//! The system-call layer: every system call that this crate makes on behalf of threads goes through
//! a function here.
//!
//! A function calls the real kernel, unless something stands before it:
//!
//! - [faults](crate::faults) make a call fail, be interrupted, or transfer less than it was asked
//!   to;
//! - a simulated kernel has sockets, an epoll set, a network and files of its own. It belongs to an
//!   OS thread, and its descriptors have numbers that no descriptor of the real kernel has;
//! - the count of the calls, if a program [asks for it](crate::calls).
//!
//! This layer knows a simulated kernel as `dyn KernelCalls` (`kernel.rs`), and faults as a function
//! (`interposed.rs`). So the linker leaves both out of a program that names neither.
//!
//! The functions are thin: they take and return what `rustix` does. While nothing stands before the
//! kernel, a function costs, beside its system call, one load of a word that is not written, and
//! one branch that the processor predicts. The functions are public for crates that make
//! non-blocking calls of their own on the sockets of this crate; programs have no use for them.

mod datagram;
mod file;
#[doc(hidden)]
pub mod interposed;
#[doc(hidden)]
pub mod kernel;
mod message;
mod path;
mod pipe;
mod signal;
mod stream;

pub use datagram::*;
pub use file::*;
pub(crate) use interposed::{COUNTED, INTERPOSED, ask, number};
use kernel::{KernelCalls, Known, NameChange};
pub use message::*;
pub use path::*;
pub use pipe::*;
pub(crate) use signal::*;
pub use stream::*;

use crate::calls::{self, Counting};
use interposed::{fate, is_interposed, is_only_counted};
use rustix::event::epoll::{self, CreateFlags, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};
use rustix::fs::OFlags;
use rustix::io::{Errno, Result};
use rustix::net::{
    AddressFamily, Protocol, RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketAddrAny, SocketFlags,
    SocketType, sockopt,
};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// The kinds of system calls that this layer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Call {
    /// `socket`, of TCP and Unix.
    Socket,
    /// `socketpair`
    SocketPair,
    /// `setsockopt`
    SetOption,
    /// `getsockopt`: the outcome of a `connect`, and the kind of a socket.
    SocketError,
    /// `ioctl(SIOCOUTQ)`: the bytes that were sent and not acknowledged.
    Unacknowledged,
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
    /// `recv`, and `recvmsg` on a Unix socket.
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
    /// `open` and `openat2`
    Open,
    /// `stat` and `fstat`
    Stat,
    /// `pread` and `preadv2`
    Pread,
    /// `pwrite`
    Pwrite,
    /// `ftruncate`
    Truncate,
    /// `fsync` and `fdatasync`
    Sync,
    /// `mkdir`
    MakeDirectory,
    /// `getdents`
    ReadDirectory,
    /// `unlink` and `rmdir`
    Unlink,
    /// `rename`
    Rename,
    /// `link`
    Link,
    /// `symlink`
    Symlink,
    /// `readlink`, and `realpath`, which makes several of them
    ReadLink,
    /// `chmod`
    ChangeMode,
    /// `epoll_create`
    EpollCreate,
    /// `epoll_ctl`
    EpollControl,
    /// `epoll_wait`
    EpollWait,
    /// `eventfd`
    Eventfd,
    /// `pipe2`
    Pipe,
    /// `read`, from a pipe or a standard stream.
    Read,
    /// `write`, to a pipe or a standard stream.
    Write,
    /// `fork`, `exec` and `pidfd_open`
    Spawn,
    /// `sigaction`
    SignalAction,
    /// `io_uring_setup`
    RingSetup,
    /// `io_uring_register`
    RingRegister,
    /// `io_uring_enter`
    RingEnter,
}

impl Call {
    /// All kinds.
    pub const ALL: [Call; 46] = [
        Call::Socket,
        Call::SocketPair,
        Call::SetOption,
        Call::SocketError,
        Call::Unacknowledged,
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
        Call::Truncate,
        Call::Sync,
        Call::MakeDirectory,
        Call::ReadDirectory,
        Call::Unlink,
        Call::Rename,
        Call::Link,
        Call::Symlink,
        Call::ReadLink,
        Call::ChangeMode,
        Call::EpollCreate,
        Call::EpollControl,
        Call::EpollWait,
        Call::Eventfd,
        Call::Pipe,
        Call::Read,
        Call::Write,
        Call::Spawn,
        Call::SignalAction,
        Call::RingSetup,
        Call::RingRegister,
        Call::RingEnter,
    ];
}

/// An owned descriptor, of the real kernel or of a simulated one. Dropping it closes it.
///
/// The descriptors of a simulated kernel are negative numbers: a system call with such a number
/// fails with `EBADF`, and touches no file.
#[derive(Debug)]
pub struct Fd(RawFd);

impl Fd {
    /// The descriptor of the simulated kernel with this number, which the kernel gives up for it.
    ///
    /// # Panics
    /// If the number is not one that [`number`] tells from real descriptors and from -1.
    fn simulated(raw: RawFd) -> Fd {
        assert!(number(raw).is_some(), "{raw} is no simulated descriptor");
        Fd(raw)
    }

    pub(crate) fn is_simulated(&self) -> bool {
        self.0 < 0
    }
}

impl Drop for Fd {
    #[inline]
    fn drop(&mut self) {
        if self.is_simulated() {
            return interposed::close(self.0);
        }
        // SAFETY: `From<OwnedFd>` took the number out of an `OwnedFd`, and this `Fd` alone has
        // owned it since.
        drop(unsafe { OwnedFd::from_raw_fd(self.0) });
    }
}

impl From<OwnedFd> for Fd {
    fn from(fd: OwnedFd) -> Fd {
        Fd(fd.into_raw_fd())
    }
}

impl From<Fd> for OwnedFd {
    /// # Panics
    /// If the descriptor is simulated, because no code outside the simulation can use it.
    fn from(fd: Fd) -> OwnedFd {
        assert!(!fd.is_simulated(), "a simulated descriptor cannot leave the simulation");
        let raw = fd.0;
        std::mem::forget(fd);
        // SAFETY: `From<OwnedFd>` took the number out of an `OwnedFd`. The `Fd` that owned it is
        // forgotten, so it does not close the number.
        unsafe { OwnedFd::from_raw_fd(raw) }
    }
}

impl AsFd for Fd {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: a real descriptor is open until `self` is dropped, because `From<OwnedFd>` took
        // it over. `Fd::simulated` has checked that a simulated number is no file's and not -1.
        unsafe { BorrowedFd::borrow_raw(self.0) }
    }
}

/// The index of a descriptor's number in a table of descriptors; `None` if no descriptor can have
/// the number.
#[inline]
pub(crate) fn index(fd: RawFd) -> Option<usize> {
    usize::try_from(fd).ok().or_else(|| number(fd))
}

/// Whether the calls of this OS thread go to a simulated kernel.
#[inline]
pub fn is_simulated() -> bool {
    is_interposed() && interposed::is_here()
}

/// How long a call that may block takes in the simulation of this OS thread. `None` if the OS
/// thread has no simulation; the caller then makes the call elsewhere.
#[inline]
pub(crate) fn simulated_delay() -> Option<Duration> {
    if !is_simulated() {
        return None;
    }
    interposed::with(|kernel| Ok(kernel.disk_delay())).ok()
}

/// Counts a call before which something [stands](is_interposed), if nothing but the count does.
#[inline]
fn only_counted(call: Call) -> Option<Counting> {
    is_only_counted().then(|| counting(call))
}

/// Counts and times a call until the guard is dropped, if the program has asked for it. It may be a
/// call that another module makes.
#[inline]
pub fn counting(call: Call) -> Counting {
    counting_as(call as usize)
}

/// Like [`counting`]. If the call `waits`, so that only an event ends it, it counts as a wait.
#[inline]
pub(crate) fn counting_wait(call: Call, waits: bool) -> Counting {
    counting_as(if waits { calls::WAIT } else { call as usize })
}

/// A call on a ring. If it `waits`, only an event ends it. The call has no simulated form, because
/// operations on a simulated disk go to no ring.
#[inline]
pub(crate) fn on_ring<T>(call: Call, waits: bool, real: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let _counting = counting_wait(call, waits);
    if is_interposed() {
        fate(call)?;
    }
    real()
}

#[inline]
fn counting_as(kind: usize) -> Counting {
    Counting::begin(kind, INTERPOSED.load(Ordering::Relaxed) & COUNTED != 0)
}

/// A call on a descriptor: makes the `real` or the `simulated` call, for at most as many bytes as
/// faults allow.
#[inline(always)]
fn on<T>(
    call: Call,
    fd: impl AsFd,
    real: impl FnOnce(BorrowedFd<'_>, usize) -> Result<T>,
    simulated: impl FnOnce(&mut dyn KernelCalls, RawFd, usize) -> Result<T>,
) -> Result<T> {
    let fd = fd.as_fd();
    if !is_interposed() {
        return real(fd, usize::MAX);
    }
    let _counting = counting(call);
    let limit = fate(call)?;
    match fd.as_raw_fd() {
        raw if raw < 0 => interposed::with(|kernel| simulated(kernel, raw, limit)),
        _ => real(fd, limit),
    }
}

/// A call that makes a descriptor: makes the `real` or the `simulated` call.
fn make<T>(
    call: Call,
    real: impl FnOnce() -> Result<T>,
    simulated: impl FnOnce(&mut dyn KernelCalls) -> Result<T>,
) -> Result<T> {
    if !is_interposed() {
        return real();
    }
    let _counting = counting(call);
    fate(call)?;
    if interposed::is_here() { interposed::with(simulated) } else { real() }
}

/// A call that a simulated kernel does not know: in a simulation it fails with `OPNOTSUPP`.
fn through<T, E: From<Errno>>(
    call: Call,
    real: impl FnOnce(usize) -> std::result::Result<T, E>,
) -> std::result::Result<T, E> {
    if !is_interposed() {
        return real(usize::MAX);
    }
    let _counting = counting(call);
    let limit = fate(call)?;
    if interposed::is_here() { Err(Errno::OPNOTSUPP.into()) } else { real(limit) }
}

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

/// The options of a socket.
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
    if let Some(_counting) = only_counted(Call::Recv) {
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
    if let Some(_counting) = only_counted(Call::Recv) {
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
    if let Some(_counting) = only_counted(Call::Recv) {
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
        kernel.send(fd, &bytes[..bytes.len().min(limit)])
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
        kernel.send(fd, &joined(parts, limit))
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

/// Another descriptor of the same open file.
///
/// # Errors
/// Those of `fcntl(F_DUPFD_CLOEXEC)`.
pub fn duplicate(fd: impl AsFd) -> Result<Fd> {
    let real = |fd: BorrowedFd<'_>, _| Ok(rustix::io::fcntl_dupfd_cloexec(fd, 0)?.into());
    on(Call::Duplicate, fd, real, |kernel, fd, _| Ok(Fd::simulated(kernel.duplicate(fd)?)))
}

/// Puts an open file into non-blocking mode.
///
/// # Errors
/// Those of `fcntl(F_GETFL)` and `fcntl(F_SETFL)`.
pub fn set_nonblocking(fd: impl AsFd) -> Result<()> {
    let get = |fd: BorrowedFd<'_>, _| rustix::fs::fcntl_getfl(fd);
    // Simulated sockets have no other mode.
    let flags = on(Call::GetFlags, &fd, get, |_, _, _| Ok(OFlags::NONBLOCK))?;
    if flags.contains(OFlags::NONBLOCK) {
        return Ok(());
    }
    let set = |fd: BorrowedFd<'_>, _| rustix::fs::fcntl_setfl(fd, flags | OFlags::NONBLOCK);
    on(Call::SetFlags, fd, set, |_, _, _| Ok(()))
}

/// The addresses of `host:port`. The call may take long. In a simulation every name stands for this
/// host.
///
/// # Errors
/// Those of `getaddrinfo`.
pub fn resolve(host_and_port: &str) -> io::Result<Vec<SocketAddr>> {
    let _counting = counting(Call::Resolve);
    if is_interposed() {
        fate(Call::Resolve)?;
        if interposed::is_here() {
            let port = host_and_port.rsplit_once(':').and_then(|(_, port)| port.parse().ok());
            let port: u16 = port.ok_or(io::ErrorKind::InvalidInput)?;
            return Ok(vec![(Ipv4Addr::LOCALHOST, port).into()]);
        }
    }
    Ok(host_and_port.to_socket_addrs()?.collect())
}

/// A subscription to signals in the simulation of this OS thread; `None` if the OS thread has no
/// simulation.
pub(crate) fn simulated_signals(mask: u64) -> Option<Result<Fd>> {
    is_simulated().then(|| interposed::with(|kernel| Ok(Fd::simulated(kernel.subscribe(mask)?))))
}

/// The number of the lowest signal that has come in for a simulated subscription and has not been
/// taken.
///
/// # Errors
/// `EAGAIN` if there is none.
pub(crate) fn take_simulated_signal(subscription: &Fd) -> Result<u32> {
    interposed::with(|kernel| kernel.take_signal(subscription.0))
}

/// Whether the simulation of this OS thread performs an operation on a file even though its thread
/// has given the operation up.
pub(crate) fn goes_on() -> bool {
    interposed::with(|kernel| Ok(kernel.goes_on())).unwrap_or(false)
}

/// A new epoll set.
pub(crate) fn epoll_create() -> Result<Fd> {
    let real = || Ok(epoll::create(CreateFlags::CLOEXEC)?.into());
    make(Call::EpollCreate, real, |kernel| Ok(Fd::simulated(kernel.epoll_create()?)))
}

/// Puts a descriptor into an epoll set.
pub(crate) fn epoll_add(set: &Fd, fd: impl AsFd, data: u64, flags: EventFlags) -> Result<()> {
    let fd = fd.as_fd();
    let real = |set: BorrowedFd<'_>, _| epoll::add(set, fd, EventData::new_u64(data), flags);
    on(Call::EpollControl, set, real, |kernel, set, _| kernel.epoll_add(set, fd.as_raw_fd(), data, flags))
}

/// Changes the registration of a descriptor that is in an epoll set already.
pub(crate) fn epoll_modify(set: &Fd, fd: impl AsFd, data: u64, flags: EventFlags) -> Result<()> {
    let fd = fd.as_fd();
    let real = |set: BorrowedFd<'_>, _| epoll::modify(set, fd, EventData::new_u64(data), flags);
    on(Call::EpollControl, set, real, |kernel, set, _| kernel.epoll_modify(set, fd.as_raw_fd(), data, flags))
}

/// Takes a descriptor out of an epoll set.
pub(crate) fn epoll_delete(set: &Fd, fd: impl AsFd) -> Result<()> {
    let fd = fd.as_fd();
    let real = |set: BorrowedFd<'_>, _| epoll::delete(set, fd);
    on(Call::EpollControl, set, real, |kernel, set, _| kernel.epoll_delete(set, fd.as_raw_fd()))
}

/// Waits for events, and returns those that have come.
#[inline]
pub(crate) fn epoll_wait<'a>(
    set: &Fd,
    events: &'a mut [MaybeUninit<Event>],
    timeout: Option<&Timespec>,
) -> Result<&'a [Event]> {
    if !is_interposed() {
        return Ok(&*epoll::wait(set, events, timeout)?.0);
    }
    let waits = timeout.is_none_or(|timeout| (timeout.tv_sec, timeout.tv_nsec) != (0, 0));
    let _counting = counting_wait(Call::EpollWait, waits);
    fate(Call::EpollWait)?;
    if !set.is_simulated() {
        return Ok(&*epoll::wait(set, events, timeout)?.0);
    }
    let timeout = timeout.map(|t| Duration::new(t.tv_sec as u64, t.tv_nsec as u32));
    let taken = interposed::with(|kernel| {
        kernel.interrupt()?;
        kernel.epoll_wait(set.0, events.len(), timeout)
    })?;
    Ok(events[..taken.len()].write_copy_of_slice(&taken))
}

/// A new eventfd in non-blocking mode. In a simulation it is a real eventfd too; there no call
/// waits for it.
pub(crate) fn eventfd() -> Result<OwnedFd> {
    let _counting = counting(Call::Eventfd);
    if is_interposed() {
        fate(Call::Eventfd)?;
    }
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)
}
