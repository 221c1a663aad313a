//! An open file or directory for programs that make their own calls on it. The web server looks up
//! names below its root and reads files with it (`http`'s `document_root.rs` and
//! `connection/outgoing.rs`).
//!
//! The methods of `Handle` go straight to `sys/file.rs`, not through the queue of operations: each
//! is one system call on the caller's OS thread.

use crate::sys::{self, Fd};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::PathBuf;

/// The device, number, kind, length and times of an open file.
pub use crate::sys::FileStatus;

/// An open file or directory, and the calls on it that an OS thread makes itself.
///
/// Each method is one system call. A call that has to wait for the disk blocks the OS thread, so
/// make it in [`blocking`](crate::blocking); or give it the flag with which it fails in place of
/// waiting: [`ResolveFlags::CACHED`] for a look-up, [`read_cached_at`](Self::read_cached_at) for a
/// read. [`File`](super::File) has the operations that a thread awaits.
///
/// Dropping the handle closes the file.
#[derive(Debug)]
pub struct Handle(Fd);

impl Handle {
    /// Opens the file at `path`. A relative path begins in `directory`.
    ///
    /// # Errors
    /// Those of `openat`.
    pub fn open(directory: impl AsFd, path: impl Arg, flags: OFlags) -> Result<Handle, Errno> {
        sys::open(directory, path, flags, Mode::empty()).map(Handle)
    }

    /// As [`open`](Self::open), for a path that leads to a file within the bounds that `resolve`
    /// names.
    ///
    /// # Errors
    /// Those of `openat2`. With [`ResolveFlags::CACHED`], `EAGAIN` if the look-up has to wait for
    /// the disk.
    pub fn open_within(
        directory: impl AsFd,
        path: impl Arg,
        flags: OFlags,
        resolve: ResolveFlags,
    ) -> Result<Handle, Errno> {
        sys::open_within(directory, path, flags, Mode::empty(), resolve).map(Handle)
    }

    /// The status of the file.
    ///
    /// # Errors
    /// Those of `fstat`.
    #[inline]
    pub fn status(&self) -> Result<FileStatus, Errno> {
        sys::status(&self.0)
    }

    /// Reads from byte `offset` of the file on, and returns the number of bytes read; 0 at its end.
    ///
    /// # Errors
    /// Those of `pread`.
    pub fn read_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        sys::pread(&self.0, buffer, offset)
    }

    /// As [`read_at`](Self::read_at), but reads only bytes that are in memory.
    ///
    /// # Errors
    /// Those of `preadv2`: `EAGAIN` if the first byte is not in memory.
    pub fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Errno> {
        sys::pread_cached(&self.0, buffer, offset)
    }

    /// Another handle for the same open file.
    ///
    /// # Errors
    /// Those of `fcntl`.
    pub fn duplicate(&self) -> Result<Handle, Errno> {
        sys::duplicate(&self.0).map(Handle)
    }

    /// The absolute path of the open file at `file`, without symbolic links, as `/proc` names it.
    /// The path of a file that was removed does not lead to that file.
    ///
    /// # Errors
    /// Those of `readlink`: `ENOENT` without `/proc` and in a simulated world.
    pub fn path_of(file: impl AsFd) -> Result<PathBuf, Errno> {
        sys::path_of(file)
    }
}

impl AsFd for Handle {
    #[inline]
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
