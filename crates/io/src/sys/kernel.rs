//! The traits by which this layer calls another kernel: a simulated one in place of the real one,
//! or one beside it.
//!
//! The functions of [`sys`](super) call them for an OS thread that has such a kernel
//! ([`install`](super::interposed::install),
//! [`install_beside`](super::interposed::install_beside)). `selvedge-sim` implements all of them,
//! and `selvedge-stack` those about streams. This layer knows another kernel by these traits alone,
//! so the linker leaves the simulation out of a program that does not name it.
//!
//! The module is public for these two crates, and hidden because it is no promise to programs: each
//! system call that this layer learns adds a method, which breaks every other implementation. The
//! three crates have the same version, and change together.
//!
//! The traits are safe to implement. A kernel returns bytes and events as vectors, and this layer
//! checks each descriptor's number that a kernel makes (`Fd::simulated`).

use super::option::{DatagramOption, SocketOption};
use rustix::event::epoll::{Event, EventFlags};
use rustix::fs::{OFlags, ResolveFlags};
use rustix::io::{Errno, ReadWriteFlags, Result};
use rustix::net::{AddressFamily, Shutdown, SocketAddrAny};
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

/// All calls that go to another kernel. A method does what the system call of its name does, if its
/// documentation says nothing else. The calls on objects that a kernel does not have fail with
/// `EOPNOTSUPP`.
pub trait KernelCalls: SocketCalls + EpollCalls {
    /// Closes a descriptor, if it is one of this kernel's.
    fn close(&mut self, fd: RawFd);

    /// One more descriptor of the same open file.
    fn duplicate(&mut self, fd: RawFd) -> Result<RawFd>;

    /// Fails with `EINTR` if a signal interrupts the call that follows before it has any effect.
    fn interrupt(&mut self) -> Result<()>;

    fn datagrams(&mut self) -> Result<&mut dyn DatagramCalls> {
        Err(Errno::OPNOTSUPP)
    }

    fn pipes(&mut self) -> Result<&mut dyn PipeCalls> {
        Err(Errno::OPNOTSUPP)
    }

    fn files(&mut self) -> Result<&mut dyn FileCalls> {
        Err(Errno::OPNOTSUPP)
    }

    fn signals(&mut self) -> Result<&mut dyn SignalCalls> {
        Err(Errno::OPNOTSUPP)
    }
}

/// The calls on stream sockets.
pub trait SocketCalls {
    fn socket(&mut self, family: AddressFamily) -> Result<RawFd>;
    fn socket_pair(&mut self) -> Result<(RawFd, RawFd)>;
    fn set_option(&mut self, fd: RawFd, option: SocketOption) -> Result<()>;
    fn bind(&mut self, fd: RawFd, address: &SocketAddrAny) -> Result<()>;
    fn listen(&mut self, fd: RawFd, backlog: i32) -> Result<()>;
    fn accept(&mut self, fd: RawFd) -> Result<(RawFd, Option<SocketAddrAny>)>;
    fn connect(&mut self, fd: RawFd, address: &SocketAddrAny) -> Result<()>;
    /// How a connection that was under way has ended. The outer result is that of the call itself.
    fn socket_error(&mut self, fd: RawFd) -> Result<Result<()>>;
    fn local_address(&mut self, fd: RawFd) -> Result<SocketAddrAny>;
    fn peer_address(&mut self, fd: RawFd) -> Result<Option<SocketAddrAny>>;
    /// At most `room` bytes.
    fn recv(&mut self, fd: RawFd, room: usize) -> Result<Vec<u8>>;
    /// With `more` the rest of a message follows at once, and the kernel may wait for it.
    fn send(&mut self, fd: RawFd, bytes: &[u8], more: bool) -> Result<usize>;
    /// Sends to a socket from a file. The file may be one of the real kernel's.
    fn send_file(&mut self, socket: RawFd, file: BorrowedFd<'_>, from: u64, count: usize) -> Result<usize>;
    /// How many bytes were sent and not acknowledged.
    fn unacknowledged(&mut self, fd: RawFd) -> Result<usize>;
    fn shutdown(&mut self, fd: RawFd, how: Shutdown) -> Result<()>;
}

/// The calls on datagram sockets.
pub trait DatagramCalls {
    fn datagram_socket(&mut self, family: AddressFamily) -> Result<RawFd>;
    fn datagram_pair(&mut self) -> Result<(RawFd, RawFd)>;
    fn set_datagram_option(&mut self, fd: RawFd, option: DatagramOption) -> Result<()>;
    /// At most `room` bytes of a datagram, with its sender. With `peek` the datagram stays in the
    /// queue.
    fn receive_from(
        &mut self,
        fd: RawFd,
        room: usize,
        peek: bool,
    ) -> Result<(Vec<u8>, Option<SocketAddrAny>)>;
    fn send_to(&mut self, fd: RawFd, bytes: &[u8], to: &SocketAddrAny) -> Result<usize>;
}

/// The calls on pipes and FIFOs.
pub trait PipeCalls {
    /// The end to read from, and the end to write to.
    fn pipe(&mut self) -> Result<(RawFd, RawFd)>;
    /// At most `room` bytes.
    fn read(&mut self, fd: RawFd, room: usize) -> Result<Vec<u8>>;
    fn write(&mut self, fd: RawFd, bytes: &[u8]) -> Result<usize>;
}

/// The calls on files. A `directory` is the number of an open directory, or `AT_FDCWD`.
pub trait FileCalls {
    /// How long a call takes that can block.
    fn disk_delay(&mut self) -> Duration;
    /// Whether the kernel performs an operation although no thread waits for it any more.
    fn goes_on(&mut self) -> bool;
    fn open(
        &mut self,
        directory: RawFd,
        path: &[u8],
        flags: OFlags,
        permissions: u32,
        resolve: ResolveFlags,
    ) -> Result<RawFd>;
    /// Of the file at a path. If the path is empty, of the open file `directory` itself.
    fn stat(&mut self, directory: RawFd, path: &[u8], follow: bool) -> Result<Known>;
    fn pread(&mut self, fd: RawFd, buffer: &mut [u8], offset: u64, flags: ReadWriteFlags) -> Result<usize>;
    fn pwrite(&mut self, fd: RawFd, bytes: &[u8], offset: u64) -> Result<usize>;
    fn truncate(&mut self, fd: RawFd, len: u64) -> Result<()>;
    fn sync(&mut self, fd: RawFd) -> Result<()>;
    fn change_names(&mut self, change: NameChange<'_>) -> Result<()>;
    /// The names in a directory, each with the kind and permissions of its file.
    fn names(&mut self, path: &[u8]) -> Result<Vec<(Vec<u8>, u32)>>;
    fn read_link(&mut self, path: &[u8]) -> Result<Vec<u8>>;
    /// The path without symbolic links, from the root.
    fn canonical(&mut self, path: &[u8]) -> Result<Vec<u8>>;
}

/// The calls on signals.
pub trait SignalCalls {
    /// A descriptor that is readable while a signal of the mask is pending.
    fn subscribe(&mut self, mask: u64) -> Result<RawFd>;
    /// Takes the pending signal with the lowest number; `EAGAIN` if none is pending.
    fn take_signal(&mut self, fd: RawFd) -> Result<u32>;
    /// Makes the signal of a bit pending in the subscriptions to it; how many there are.
    fn raise(&mut self, bit: u64) -> usize;
}

/// The calls on epoll sets.
pub trait EpollCalls {
    fn epoll_create(&mut self) -> Result<RawFd>;
    fn epoll_add(&mut self, set: RawFd, fd: RawFd, data: u64, interest: EventFlags) -> Result<()>;
    fn epoll_modify(&mut self, set: RawFd, fd: RawFd, data: u64, interest: EventFlags) -> Result<()>;
    fn epoll_delete(&mut self, set: RawFd, fd: RawFd) -> Result<()>;
    /// At most `room` events. The kernel moves the clock on until there is an event, or for
    /// `timeout`.
    ///
    /// # Errors
    /// `EDEADLK` if the call would wait for ever.
    fn epoll_wait(&mut self, set: RawFd, room: usize, timeout: Option<Duration>) -> Result<Vec<Event>>;
    /// Whether a kernel beside the real one has events for a set of the real one.
    fn has_events(&mut self, set: RawFd) -> bool;
}

/// The facts about a file beside its content.
#[derive(Clone, Copy, Debug)]
pub struct Known {
    pub ino: u64,
    /// Kind and permissions.
    pub mode: u32,
    pub links: u32,
    pub len: u64,
    /// Units of 512 bytes.
    pub blocks: u64,
    /// Nanoseconds of Unix time.
    pub modified: u64,
    pub changed: u64,
    pub created: u64,
}

/// A change of the names on a disk, or of permissions.
#[derive(Clone, Copy, Debug)]
pub enum NameChange<'a> {
    CreateDirectory {
        path: &'a [u8],
        permissions: u32,
    },
    /// A name, or an empty directory.
    Remove {
        path: &'a [u8],
        directory: bool,
    },
    Rename {
        from: &'a [u8],
        to: &'a [u8],
    },
    Link {
        from: &'a [u8],
        to: &'a [u8],
    },
    CreateLink {
        target: &'a [u8],
        path: &'a [u8],
    },
    RemoveTree {
        path: &'a [u8],
    },
    SetPermissions {
        path: &'a [u8],
        permissions: u32,
    },
}
