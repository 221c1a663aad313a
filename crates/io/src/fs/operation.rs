//! The operations on files: what each owns, and how an OS thread that may block performs it.

use super::buffer::Bytes;
use super::region::Region;
use crate::sys::{self, Call, Fd};
use rustix::fs::{AtFlags, CWD, Mode, OFlags, Statx, StatxFlags};
use rustix::io::{Errno, retry_on_intr};
use selvedge_core::observe::{Errand, Object};
use std::ffi::CString;
use std::fmt;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// An open file, its path, and what has to be known of it.
#[derive(Debug)]
pub(crate) struct Opened {
    /// There until it is dropped.
    fd: Option<Fd>,
    pub(super) path: PathBuf,
    /// It bypasses the page cache.
    pub(super) direct: bool,
}

impl Opened {
    pub(super) fn new(fd: Fd, path: PathBuf, direct: bool) -> Opened {
        Opened { fd: Some(fd), path, direct }
    }
}

impl AsFd for Opened {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_ref().expect("it is not dropped").as_fd()
    }
}

impl Drop for Opened {
    /// The last reference to a file may be all that keeps its blocks: giving them back takes as
    /// long as it takes.
    fn drop(&mut self) {
        if let Some(fd) = self.fd.take() {
            super::queue::close_aside(fd);
        }
    }
}

/// What is asked of the kernel, with everything that the kernel reads and writes meanwhile.
#[derive(Debug)]
pub(crate) enum Operation {
    Read(Transfer),
    Write(Transfer),
    Sync {
        file: Arc<Opened>,
        /// Without the times and what else a reader does not need.
        data: bool,
    },
    Open(Box<Open>),
    /// An `Open` that has succeeded. Its descriptor is closed if no future takes it.
    Opened(Fd),
    Stat(Box<Stat>),
    /// The descriptor is gone once the kernel has got it.
    Close(Option<Fd>),
}

/// Bytes between a file and a buffer.
#[derive(Debug)]
pub(crate) struct Transfer {
    pub(super) file: Arc<Opened>,
    pub(super) bytes: Bytes,
    pub(super) offset: u64,
    /// Where in the buffer the transfer begins.
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

/// What an operation came to: a number of bytes, or 0, or the negated number of an error.
pub(crate) type RawOutcome = i32;

/// The most that one transfer moves; the rest is another's.
const TRANSFER_MAX: usize = 0x7fff_f000;

/// The part of a buffer that is still to be filled or written.
fn part(bytes: &mut Bytes, start: usize) -> &mut [u8] {
    let bytes = &mut bytes.as_mut_slice()[start..];
    let length = bytes.len().min(TRANSFER_MAX);
    &mut bytes[..length]
}

impl Transfer {
    /// The part of the buffer that is still to be filled or written. Its address does not change
    /// when this moves.
    pub(crate) fn part(&mut self) -> &mut [u8] {
        part(&mut self.bytes, self.start)
    }

    /// A buffer that is to come is taken from a region, if there is one in.
    pub(crate) fn come_from(&mut self, region: &Region) {
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
        // SAFETY: it consists of numbers.
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

/// The path as the kernel takes it.
pub(super) fn c_path(path: &Path) -> std::io::Result<CString> {
    use std::os::unix::ffi::OsStrExt;
    Ok(CString::new(path.as_os_str().as_bytes())?)
}

/// Does what a signal may have interrupted until it is done.
fn retry(call: impl FnMut() -> Result<usize, Errno>) -> RawOutcome {
    retry_on_intr(call).map_or_else(|error| -error.raw_os_error(), |n| n as RawOutcome)
}

impl Operation {
    /// Performs it here and now, however long it takes.
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
    pub(super) fn errand(&self) -> Errand {
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
        Errand { call, object }
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

    /// Performs a read of what is in memory already; `None` if it would have to wait for the disk.
    pub(super) fn perform_cached(&mut self) -> Option<RawOutcome> {
        let Operation::Read(Transfer { file, bytes, offset, start }) = self else { return None };
        // A direct read would wait for the disk whatever the flag says.
        if file.direct {
            return None;
        }
        let part = part(bytes, *start);
        let wanted = part.len();
        match sys::pread_cached(&*file, part, *offset) {
            // Short, it may be the end of the file, or of what is in memory.
            Ok(n) if n == wanted || n == 0 => Some(n as RawOutcome),
            _ => None,
        }
    }
}
