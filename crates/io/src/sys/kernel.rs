//! The calls that a test's kernel answers instead of the real kernel. [`KernelCalls`] is the trait
//! of such a kernel.
//!
//! The door knows such a kernel only by these traits. So a program that never names the [simulated
//! kernel](crate::sim) contains none of its code, because only the installer refers to it.

use super::{DatagramOption, SocketOption};
use rustix::event::epoll::{Event, EventFlags};
use rustix::fs::{OFlags, ResolveFlags};
use rustix::io::{ReadWriteFlags, Result};
use rustix::net::{AddressFamily, Shutdown, SocketAddrAny};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, RawFd};
use std::time::Duration;

/// All calls that go to such a kernel. A method without a comment does the same as the system call
/// of its name.
pub(crate) trait KernelCalls:
    SocketCalls + DatagramCalls + PipeCalls + FileCalls + SignalCalls + EpollCalls
{
    /// Closes a descriptor, if it belongs to this kernel.
    fn close(&mut self, fd: RawFd);

    /// Another descriptor of the same open file.
    fn duplicate(&mut self, fd: RawFd) -> Result<RawFd>;

    /// Decides whether the call that follows is interrupted before it has done anything. If so, it
    /// fails with `EINTR`.
    fn interrupt(&mut self) -> Result<()>;
}

/// The calls on stream sockets.
pub(crate) trait SocketCalls {
    fn socket(&mut self, family: AddressFamily) -> Result<RawFd>;
    fn socket_pair(&mut self) -> Result<(RawFd, RawFd)>;
    fn set_option(&mut self, fd: RawFd, option: SocketOption) -> Result<()>;
    fn bind(&mut self, fd: RawFd, address: &SocketAddrAny) -> Result<()>;
    fn listen(&mut self, fd: RawFd, backlog: i32) -> Result<()>;
    fn accept(&mut self, fd: RawFd) -> Result<(RawFd, Option<SocketAddrAny>)>;
    fn connect(&mut self, fd: RawFd, address: &SocketAddrAny) -> Result<()>;
    /// The outcome of a connection that was under way. The outer result is the outcome of the
    /// question itself.
    fn socket_error(&mut self, fd: RawFd) -> Result<Result<()>>;
    fn local_address(&mut self, fd: RawFd) -> Result<SocketAddrAny>;
    fn peer_address(&mut self, fd: RawFd) -> Result<Option<SocketAddrAny>>;
    /// At most `room` bytes.
    fn recv(&mut self, fd: RawFd, room: usize) -> Result<Vec<u8>>;
    fn send(&mut self, fd: RawFd, bytes: &[u8]) -> Result<usize>;
    /// The number of bytes that were sent and not acknowledged.
    fn unacknowledged(&mut self, fd: RawFd) -> Result<usize>;
    fn shutdown(&mut self, fd: RawFd, how: Shutdown) -> Result<()>;
}

/// The calls on datagram sockets.
pub(crate) trait DatagramCalls {
    fn datagram_socket(&mut self, family: AddressFamily) -> Result<RawFd>;
    fn datagram_pair(&mut self) -> Result<(RawFd, RawFd)>;
    fn set_datagram_option(&mut self, fd: RawFd, option: DatagramOption) -> Result<()>;
    /// At most `room` bytes of a datagram, with its sender. With `peek` the datagram stays in the
    /// socket.
    fn receive_from(
        &mut self,
        fd: RawFd,
        room: usize,
        peek: bool,
    ) -> Result<(Vec<u8>, Option<SocketAddrAny>)>;
    fn send_to(&mut self, fd: RawFd, bytes: &[u8], to: &SocketAddrAny) -> Result<usize>;
}

/// The calls on pipes and FIFOs.
pub(crate) trait PipeCalls {
    /// The end to read from, and the end to write to.
    fn pipe(&mut self) -> Result<(RawFd, RawFd)>;
    /// At most `room` bytes.
    fn read(&mut self, fd: RawFd, room: usize) -> Result<Vec<u8>>;
    fn write(&mut self, fd: RawFd, bytes: &[u8]) -> Result<usize>;
}

/// The calls on files. A `directory` is an open directory, or `AT_FDCWD`.
pub(crate) trait FileCalls {
    /// How long a call that may block takes.
    fn disk_delay(&mut self) -> Duration;
    /// Whether the kernel performs an operation even though its thread has given the operation up.
    fn goes_on(&mut self) -> bool;
    fn open(
        &mut self,
        directory: RawFd,
        path: &[u8],
        flags: OFlags,
        permissions: u32,
        resolve: ResolveFlags,
    ) -> Result<RawFd>;
    /// The status of the file at a path; of the open file itself, if the path is empty.
    fn stat(&mut self, directory: RawFd, path: &[u8], follow: bool) -> Result<Known>;
    fn pread(&mut self, fd: RawFd, buffer: &mut [u8], offset: u64, flags: ReadWriteFlags) -> Result<usize>;
    fn pwrite(&mut self, fd: RawFd, bytes: &[u8], offset: u64) -> Result<usize>;
    fn truncate(&mut self, fd: RawFd, len: u64) -> Result<()>;
    fn sync(&mut self, fd: RawFd) -> Result<()>;
    fn change_names(&mut self, change: NameChange<'_>) -> Result<()>;
    /// The names in a directory, each with the kind and the permissions of the file that it names.
    fn names(&mut self, path: &[u8]) -> Result<Vec<(Vec<u8>, u32)>>;
    fn read_link(&mut self, path: &[u8]) -> Result<Vec<u8>>;
    /// The path without symbolic links, from the root.
    fn canonical(&mut self, path: &[u8]) -> Result<Vec<u8>>;
    /// Sends bytes of a file, which may be a real file, to a socket.
    fn send_file(&mut self, socket: RawFd, file: BorrowedFd<'_>, from: u64, count: usize) -> Result<usize>;
}

/// The calls on signals.
pub(crate) trait SignalCalls {
    /// A descriptor that is readable while a signal of the mask has come in.
    fn subscribe(&mut self, mask: u64) -> Result<RawFd>;
    /// Takes the lowest signal that has come in, and returns its number; `EAGAIN` if none has come
    /// in.
    fn take_signal(&mut self, fd: RawFd) -> Result<u32>;
    /// Raises the signal of a bit. Returns the number of subscriptions that were told.
    fn raise(&mut self, bit: u64) -> usize;
}

/// The calls on epoll sets.
pub(crate) trait EpollCalls {
    fn epoll_create(&mut self) -> Result<RawFd>;
    fn epoll_add(&mut self, set: RawFd, fd: RawFd, data: u64, interest: EventFlags) -> Result<()>;
    fn epoll_modify(&mut self, set: RawFd, fd: RawFd, data: u64, interest: EventFlags) -> Result<()>;
    fn epoll_delete(&mut self, set: RawFd, fd: RawFd) -> Result<()>;
    /// Writes events, from the first place on, and returns how many. Moves the clock on until there
    /// is an event, or for `timeout`.
    ///
    /// # Errors
    /// `EDEADLK` if there is no timeout and no event can ever come.
    fn epoll_wait(
        &mut self,
        set: RawFd,
        events: &mut [MaybeUninit<Event>],
        timeout: Option<Duration>,
    ) -> Result<usize>;
}

/// The status of a file: all that the kernel keeps of a file except its content.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    pub(crate) ino: u64,
    /// Kind and permissions.
    pub(crate) mode: u32,
    pub(crate) links: u32,
    pub(crate) len: u64,
    /// The number of blocks of 512 bytes.
    pub(crate) blocks: u64,
    /// The times are in nanoseconds of Unix time.
    pub(crate) modified: u64,
    pub(crate) changed: u64,
    pub(crate) created: u64,
}

/// A change of the names on a disk, or of the permissions of a named file.
#[derive(Clone, Copy, Debug)]
pub(crate) enum NameChange<'a> {
    CreateDirectory {
        path: &'a [u8],
        permissions: u32,
    },
    /// Removes a name, or an empty directory.
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
