//! `Operation`: a request to the kernel about a file, with all memory that the kernel reads and
//! writes meanwhile; and `Opened`, the descriptor that `File` shares with its operations.
//!
//! `file.rs`, `options.rs` and `mod.rs` make operations, `queue.rs` keeps them until they are done,
//! and `uring.rs` gives them to a ring. `perform` is the other way: an OS thread of the pool makes
//! the call, and may block. An operation must do the same on both ways, so a new kind needs an arm
//! in `perform`, in `Ring::supports` and `Ring::push`, and in `Carrier::take_in` if its outcome is
//! more than a number.

use super::buffer::Bytes;
use super::region::DiskRegion;
use crate::sys::{self, Call, Fd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags};
use rustix::io::{Errno, retry_on_intr};
use selvedge_core::observe::{Object, WaitReason};
use std::ffi::CString;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open file, its path, and its mode.
#[derive(Debug)]
pub(crate) struct Opened {
    /// `None` only while this is being dropped.
    fd: Option<Fd>,
    pub(super) path: PathBuf,
    /// Whether transfers bypass the page cache.
    pub(super) direct: bool,
    /// Whether each write goes to the file's end.
    pub(super) append: bool,
}

impl Opened {
    /// `flags` are the flags with which the file was opened.
    pub(super) fn new(fd: Fd, path: PathBuf, flags: OFlags) -> Opened {
        let (direct, append) = (flags.contains(OFlags::DIRECT), flags.contains(OFlags::APPEND));
        Opened { fd: Some(fd), path, direct, append }
    }
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("it is not dropped").as_fd()
    }
}

impl Drop for Opened {
    /// If this was the last reference to a removed file, closing it frees the file's blocks, which
    /// may take long.
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            super::queue::close_aside(fd);
        }
    }
}

/// A request to the kernel, with all memory that the kernel reads and writes meanwhile.
#[derive(Debug)]
pub(crate) enum Operation {
    Read(Transfer),
    Write(Transfer),
    Sync {
        file: Arc<Opened>,
        /// Whether the sync leaves out the times and other data that a reader does not need.
        data: bool,
    },
    Open(Box<Open>),
    /// An `Open` that has succeeded. Its descriptor is closed if no future takes it.
    Opened(Fd),
    Stat(Box<Stat>),
    /// The descriptor is `None` after the kernel has taken it.
    Close(Option<Fd>),
}

/// Bytes between a file and a buffer.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(super) file: Arc<Opened>,
    pub(super) bytes: Bytes,
    pub(super) offset: u64,
    /// The place in the buffer at which the transfer begins.
    pub(super) start: usize,
}

#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) path: CString,
    pub(crate) flags: OFlags,
    pub(crate) mode: Mode,
}

pub(crate) struct Stat {
    /// `None`: the file at `path`.
    pub(super) file: Option<Arc<Opened>>,
    pub(crate) path: CString,
    /// Whether a symbolic link at the end of the path is followed.
    pub(super) follow: bool,
    pub(crate) result: Statx,
}

impl fmt::Debug for Stat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stat").field("file", &self.file).field("path", &self.path).finish_non_exhaustive()
    }
}

/// The outcome of an operation: a number of bytes, or 0, or the negated number of an error.
pub(crate) type RawOutcome = i32;

/// The most bytes that one transfer moves. Further transfers move the rest.
const TRANSFER_MAX: usize = 0x7fff_f000;

/// The part of a buffer that is still to be filled or written.
fn part(bytes: &mut Bytes, start: usize) -> &mut [u8] {
    let bytes = &mut bytes.as_mut_slice()[start..];
    let length = bytes.len().min(TRANSFER_MAX);
    &mut bytes[..length]
}

impl Transfer {
    /// The part of the buffer that is still to be filled or written. The address of that part does
    /// not change when the `Transfer` moves.
    pub(crate) fn part(&mut self) -> &mut [u8] {
        part(&mut self.bytes, self.start)
    }

    /// Takes a buffer that is still to come from the region, if the region has a free block.
    pub(crate) fn come_from(&mut self, region: &DiskRegion) {
        self.bytes.come_from(region);
    }

    pub(crate) fn file(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }

    pub(crate) fn offset(&self) -> u64 {
        self.offset
    }
}

pub(crate) const STAT_MASK: StatxFlags = StatxFlags::BASIC_STATS.union(StatxFlags::BTIME);

impl Stat {
    pub(crate) fn new(file: Option<Arc<Opened>>, path: CString, follow: bool) -> Stat {
        // SAFETY: a `Statx` consists of numbers, for which zeros are valid.
        Stat { file, path, follow, result: unsafe { std::mem::zeroed() } }
    }

    pub(crate) fn directory(&self) -> BorrowedFd<'_> {
        self.file.as_ref().map_or(CWD, |file| file.as_fd())
    }

    pub(crate) fn flags(&self) -> AtFlags {
        match (&self.file, self.follow) {
            (Some(_), _) => AtFlags::EMPTY_PATH,
            (None, true) => AtFlags::empty(),
            (None, false) => AtFlags::SYMLINK_NOFOLLOW,
        }
    }
}

/// The path in the form that the kernel takes.
pub(super) fn c_path(path: &Path) -> std::io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Makes a call again while signals interrupt it.
fn retry(call: impl FnMut() -> Result<usize, Errno>) -> RawOutcome {
    retry_on_intr(call).map_or_else(|error| -error.raw_os_error(), |n| n as RawOutcome)
}

impl Operation {
    /// Performs the operation at once. This may block.
    pub(super) fn perform(&mut self) -> RawOutcome {
        match self {
            Operation::Read(Transfer { file, bytes, offset, start }) => {
                retry(|| sys::pread(&*file, part(bytes, *start), *offset))
            }
            Operation::Write(Transfer { file, bytes, offset, start }) => {
                retry(|| sys::pwrite(&*file, part(bytes, *start), *offset))
            }
            Operation::Sync { file, data } => retry(|| sys::sync(&*file, *data).map(|()| 0)),
            Operation::Open(open) => {
                let mut opened = None;
                let outcome = retry(|| {
                    opened = Some(sys::open(CWD, &*open.path, open.flags, open.mode)?);
                    Ok(0)
                });
                if let Some(fd) = opened {
                    *self = Operation::Opened(fd);
                }
                outcome
            }
            Operation::Stat(stat) => {
                let stat = &mut **stat;
                let mut result = None;
                let outcome = retry(|| {
                    result = Some(sys::stat(stat.directory(), &stat.path, stat.flags(), STAT_MASK)?);
                    Ok(0)
                });
                stat.result = result.unwrap_or(stat.result);
                outcome
            }
            Operation::Close(fd) => {
                drop(fd.take());
                0
            }
            Operation::Opened(_) => 0,
        }
    }

    /// The operation's kind and object, for the observer.
    pub(super) fn reason(&self) -> WaitReason {
        let path = |path: &CString| Object::Name(path.to_string_lossy().into());
        let part = |transfer: &Transfer| Object::Part {
            fd: transfer.file.as_fd().as_raw_fd(),
            offset: transfer.offset,
            length: transfer.bytes.len().saturating_sub(transfer.start) as u64,
        };
        let (call, object) = match self {
            Operation::Read(transfer) => ("read", part(transfer)),
            Operation::Write(transfer) => ("write", part(transfer)),
            Operation::Sync { file, data } => {
                (if *data { "fdatasync" } else { "fsync" }, Object::Descriptor(file.as_fd().as_raw_fd()))
            }
            Operation::Open(open) => ("open", path(&open.path)),
            Operation::Stat(stat) => match &stat.file {
                Some(file) => ("stat", Object::Descriptor(file.as_fd().as_raw_fd())),
                None => ("stat", path(&stat.path)),
            },
            Operation::Opened(_) => ("open", Object::None),
            Operation::Close(_) => ("close", Object::None),
        };
        WaitReason { call, object }
    }

    /// The kind of the operation's system call, if faults can change the call.
    pub(super) fn call(&self) -> Option<Call> {
        match self {
            Operation::Read(_) => Some(Call::Pread),
            Operation::Write(_) => Some(Call::Pwrite),
            Operation::Sync { .. } => Some(Call::Sync),
            Operation::Open(_) => Some(Call::Open),
            Operation::Stat(_) => Some(Call::Stat),
            Operation::Opened(_) | Operation::Close(_) => None,
        }
    }

    /// Performs a read of bytes that are in memory already; `None` if it would have to wait for the
    /// disk.
    pub(super) fn perform_cached(&mut self) -> Option<RawOutcome> {
        let Operation::Read(Transfer { file, bytes, offset, start }) = self else { return None };
        // A direct read waits for the disk in spite of the flag.
        if file.direct {
            return None;
        }
        let part = part(bytes, *start);
        let wanted = part.len();
        match sys::pread_cached(&*file, part, *offset) {
            // A short read may be at the end of the file or at the end of the bytes in memory.
            // `preadv2` of Linux 5.9 and 5.10 may return 0 before the end (its manual, BUGS).
            Ok(n) if n == wanted => Some(n as RawOutcome),
            _ => None,
        }
    }
}
