//! An open file or directory for programs that make their own calls on it. The web server looks up
//! names below its root and reads files with it (`http`'s `document_root.rs` and
//! `connection/outgoing.rs`), and appends to its access log (`http`'s `access_log.rs`).
//!
//! The methods of `Handle` go straight to `sys/file.rs`, not through the queue of operations: each
//! is one system call on the caller's OS thread.

use crate::sys::{self, Fd};
use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;
use rustix::path::Arg;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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

    /// As [`open`](Self::open), for `flags` that create the file if it is not there. The new file
    /// has the permissions `mode`, less the permissions that the process's mask takes away.
    ///
    /// # Errors
    /// Those of `openat`.
    pub fn create(directory: impl AsFd, path: impl Arg, flags: OFlags, mode: u32) -> Result<Handle, Errno> {
        sys::open(directory, path, flags, Mode::from_raw_mode(mode)).map(Handle)
    }

    /// The status of the file.
    ///
    /// # Errors
    /// Those of `fstat`.
    #[inline]
    pub fn status(&self) -> Result<FileStatus, Errno> {
        sys::status(&self.0)
    }

    /// The status of the file at `path`, which is not opened. A relative path begins in
    /// `directory`. Symbolic links are followed.
    ///
    /// # Errors
    /// Those of `stat`.
    pub fn status_at(directory: impl AsFd, path: impl Arg) -> Result<FileStatus, Errno> {
        path.into_with_c_str(|path| sys::status_at(directory, path))
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

    /// Writes the beginning of `bytes` where the open file goes on, and returns the number of bytes
    /// written. A file that was opened to append goes on at its end, another file at the position
    /// that all descriptors of this open file share. A pipe or a terminal gets the bytes next.
    ///
    /// In a simulated world an open file has no position: every file goes on at its end.
    ///
    /// # Errors
    /// Those of `write`.
    pub fn write_on(&self, bytes: &[u8]) -> Result<usize, Errno> {
        sys::write_on(&self.0, bytes)
    }

    /// The position at which [`write_on`](Self::write_on) has ended last, as an offset in bytes. In
    /// a simulated world it is the file's length.
    ///
    /// # Errors
    /// Those of `lseek`: `ESPIPE` for a pipe or a terminal.
    pub fn position(&self) -> Result<u64, Errno> {
        sys::position(&self.0)
    }

    /// Makes the file `len` bytes long. If the file was not opened to append, it goes on at its new
    /// end.
    ///
    /// # Errors
    /// Those of `ftruncate` and `lseek`.
    pub fn cut(&self, len: u64) -> Result<(), Errno> {
        sys::truncate(&self.0, len)?;
        sys::go_on_at(&self.0, len)
    }

    /// Locks the file against other programs that lock it, until [`unlock`](Self::unlock) or until
    /// the last descriptor of this open file is closed. `false` if another open file has the lock.
    ///
    /// A simulated world is one program, so there the lock is always free.
    ///
    /// # Errors
    /// Those of `flock`.
    pub fn try_lock(&self) -> Result<bool, Errno> {
        sys::try_lock(&self.0)
    }

    /// Gives the lock of [`try_lock`](Self::try_lock) back.
    ///
    /// # Errors
    /// Those of `flock`.
    pub fn unlock(&self) -> Result<(), Errno> {
        sys::unlock(&self.0)
    }

    /// Gives a file another name, as [`rename`](super::rename) does.
    ///
    /// # Errors
    /// Those of `rename`.
    pub fn rename(from: impl Arg, to: impl Arg) -> Result<(), Errno> {
        from.into_with_c_str(|from| to.into_with_c_str(|to| sys::rename(from, to)))
    }

    /// Removes the name of a file, as [`remove_file`](super::remove_file) does.
    ///
    /// # Errors
    /// Those of `unlink`.
    pub fn remove(path: impl Arg) -> Result<(), Errno> {
        path.into_with_c_str(|path| sys::remove(path, false))
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

impl From<OwnedFd> for Handle {
    fn from(fd: OwnedFd) -> Handle {
        Handle(fd.into())
    }
}

impl From<Handle> for OwnedFd {
    /// # Panics
    /// If the handle is one of a simulated world, because no code outside that world can use it.
    fn from(handle: Handle) -> OwnedFd {
        handle.0.into()
    }
}
