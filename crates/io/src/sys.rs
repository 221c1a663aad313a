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

mod call;
mod datagram;
mod epoll;
mod fd;
mod file;
#[doc(hidden)]
pub mod interposed;
#[doc(hidden)]
pub mod kernel;
mod launch;
mod message;
mod path;
mod pipe;
mod signal;
mod socket;
mod stream;

pub use call::Call;
pub use datagram::*;
pub(crate) use epoll::*;
pub use fd::Fd;
pub(crate) use fd::index;
pub use file::*;
pub(crate) use interposed::{COUNTED, INTERPOSED, ask, number};
use kernel::{KernelCalls, Known, NameChange};
pub(crate) use launch::*;
pub use message::*;
pub use path::*;
pub use pipe::*;
pub(crate) use signal::*;
pub use socket::*;
pub use stream::*;

use crate::calls::{self, Counting};
use interposed::{fate, is_interposed, is_only_counted};
use rustix::fs::OFlags;
use rustix::io::{Errno, Result};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::atomic::Ordering;
use std::time::Duration;

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

/// Another descriptor of the same open file.
///
/// # Errors
/// Those of `fcntl(F_DUPFD_CLOEXEC)`.
pub fn duplicate(fd: impl AsFd) -> Result<Fd> {
    let real = |fd: BorrowedFd<'_>, _| Ok(rustix::io::fcntl_dupfd_cloexec(fd, 0)?.into());
    on(Call::Duplicate, fd, real, |kernel, fd, _| Ok(Fd::simulated(kernel.duplicate(fd)?)))
}

/// Marks the descriptor with this number, so that the kernel closes it in every program that the
/// process starts. It is for descriptors that another program has passed to this process, and that
/// are used by copies.
///
/// # Errors
/// The number is no descriptor's, and those of `fcntl(F_SETFD)`.
pub fn close_on_exec(number: RawFd) -> Result<()> {
    if number < 0 {
        return Err(Errno::BADF);
    }
    // SAFETY: the number is not -1, as the line above has checked. The borrow lasts for one call,
    // which sets a flag and fails for a number that is not open.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::CLOEXEC)
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

/// Whether the simulation of this OS thread performs an operation on a file even though its thread
/// has given the operation up.
pub(crate) fn goes_on() -> bool {
    interposed::with(|kernel| Ok(kernel.goes_on())).unwrap_or(false)
}
