//! The system-call layer: every system call that this crate makes on behalf of threads goes through
//! a function here.
//!
//! A function calls the real kernel, unless something stands before it:
//!
//! - [faults](crate::faults) make a call fail, be interrupted, or transfer less than it was asked
//!   to;
//! - a simulated kernel has sockets, an epoll set, a network and files of its own. It belongs to an
//!   OS thread, and its descriptors have numbers that no descriptor of the real kernel has;
//! - a kernel beside the real one has sockets of its own, and their descriptors have such numbers
//!   too;
//! - the count of the calls, if a program [asks for it](crate::calls).
//!
//! This layer knows another kernel as `dyn KernelCalls` (`kernel.rs`), and faults as a function
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
mod gate;
#[doc(hidden)]
pub mod interposed;
#[doc(hidden)]
pub mod kernel;
mod launch;
mod message;
mod option;
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
pub use gate::{counting, is_simulated};
pub(crate) use gate::{goes_on, on_ring, simulated_delay};
pub(crate) use interposed::{COUNTED, INTERPOSED, ask};
pub(crate) use launch::*;
pub use message::*;
pub use option::{DatagramOption, SocketOption};
pub use path::*;
pub use pipe::*;
pub(crate) use signal::*;
pub use socket::*;
pub use stream::*;

use gate::on;
use interposed::{fate, is_interposed};
use rustix::fs::OFlags;
use rustix::io::{Errno, Result};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, ToSocketAddrs};
use std::os::fd::{AsFd, BorrowedFd, RawFd};

/// The owner of a descriptor that a kernel beside the real one has just made.
///
/// # Panics
/// If the number is that of a real descriptor.
pub(crate) fn beside(raw: RawFd) -> Fd {
    Fd::simulated(raw)
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
