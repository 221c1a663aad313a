//! Calls on files, directories and names, and `FileStatus`.
//!
//! Most of these calls may take long, so operations of `fs` make them on OS threads of the blocking
//! pool (`fs/operation.rs`, `fs/names.rs`, `fs/tree.rs`). The others: `pread_cached` waits for no
//! disk, `fs/handle.rs` lends calls to programs that block by themselves (`status_at`, `write_on`,
//! `position`, `go_on_at`, `try_lock` and `unlock` are for it alone), `send_file` serves streams
//! (`net`), and `through_ring` only decides for `fs/disk.rs` what faults do to an operation that
//! goes to a ring. The simulated side is the trait `FileCalls` (`kernel.rs`).

use super::gate::{counting, make, on};
use super::interposed::{self, fate, is_interposed};
use super::kernel::{Known, NameChange};
use super::pipe::outside_simulation;
use super::{Call, Fd};
use rustix::fs::{
    AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, ResolveFlags, SeekFrom, Stat, Statx, StatxFlags,
    flock,
};
use rustix::io::{Errno, ReadWriteFlags, Result};
use rustix::path::Arg;
use std::ffi::{CStr, OsStr, OsString};
use std::io::IoSliceMut;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

/// Decides about a call that goes through a ring, not through a function of this module: the number
/// of bytes that it may transfer, or its error.
#[inline]
pub(crate) fn through_ring(call: Call) -> Result<usize> {
    if is_interposed() { fate(call) } else { Ok(usize::MAX) }
}

/// Opens a file at a path. A relative path begins in `directory`.
///
/// # Errors
/// Those of `openat`.
pub fn open(directory: impl AsFd, path: impl Arg, flags: OFlags, mode: Mode) -> Result<Fd> {
    let directory = directory.as_fd();
    path.into_with_c_str(|path| {
        let real = || Ok(rustix::fs::openat(directory, path, flags, mode)?.into());
        open_at(directory, path, flags, mode, ResolveFlags::empty(), real)
    })
}

/// Like [`open`], for a path that must stay within bounds.
///
/// A simulation knows `RESOLVE_BENEATH` and `RESOLVE_CACHED`; in it chance decides which files are
/// in memory.
///
/// # Errors
/// Those of `openat2`: `EAGAIN` if the file is not in memory and `RESOLVE_CACHED` asks for that.
pub fn open_within(
    directory: impl AsFd,
    path: impl Arg,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
) -> Result<Fd> {
    let directory = directory.as_fd();
    path.into_with_c_str(|path| {
        let real = || Ok(rustix::fs::openat2(directory, path, flags, mode, resolve)?.into());
        open_at(directory, path, flags, mode, resolve, real)
    })
}

#[inline]
fn open_at(
    directory: BorrowedFd<'_>,
    path: &CStr,
    flags: OFlags,
    mode: Mode,
    resolve: ResolveFlags,
    real: impl FnOnce() -> Result<Fd>,
) -> Result<Fd> {
    make(Call::Open, real, |kernel| {
        let opened =
            kernel.files()?.open(directory.as_raw_fd(), path.to_bytes(), flags, mode.bits(), resolve)?;
        Ok(Fd::simulated(opened))
    })
}

/// The status of an open file: all that the kernel keeps of a file except its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileStatus {
    /// The device that holds the file.
    pub device: u64,
    /// The file's number on the device.
    pub inode: u64,
    /// The file's kind and permissions.
    pub mode: u32,
    /// The file's length in bytes.
    pub len: u64,
    /// When the file's content last changed: seconds and nanoseconds of Unix time.
    pub modified: (i64, u32),
    /// When the file's content or status last changed: seconds and nanoseconds of Unix time.
    pub changed: (i64, u32),
}

/// The status of an open file.
///
/// # Errors
/// Those of `fstat`.
#[inline]
pub fn status(file: impl AsFd) -> Result<FileStatus> {
    let real = |file: BorrowedFd<'_>, _| Ok(FileStatus::of_real(rustix::fs::fstat(file)?));
    on(Call::Stat, file, real, |kernel, file, _| {
        Ok(FileStatus::of_simulated(kernel.files()?.stat(file, b"", true)?))
    })
}

/// The status of the file at a path, to which symbolic links are followed.
///
/// # Errors
/// Those of `stat`.
pub(crate) fn status_at(directory: impl AsFd, path: &CStr) -> Result<FileStatus> {
    let directory = directory.as_fd();
    if path.is_empty() {
        return Err(Errno::NOENT);
    }
    let real = || Ok(FileStatus::of_real(rustix::fs::statat(directory, path, AtFlags::empty())?));
    make(Call::Stat, real, |kernel| {
        Ok(FileStatus::of_simulated(kernel.files()?.stat(directory.as_raw_fd(), path.to_bytes(), true)?))
    })
}

impl FileStatus {
    #[inline]
    fn of_real(stat: Stat) -> FileStatus {
        FileStatus {
            device: stat.st_dev,
            inode: stat.st_ino,
            mode: stat.st_mode,
            len: stat.st_size as u64,
            modified: (stat.st_mtime, stat.st_mtime_nsec as u32),
            changed: (stat.st_ctime, stat.st_ctime_nsec as u32),
        }
    }

    fn of_simulated(known: Known) -> FileStatus {
        let Known { ino, mode, len, modified, changed, .. } = known;
        let stamp = |nanos: u64| ((nanos / NANOS) as i64, (nanos % NANOS) as u32);
        FileStatus {
            device: DEVICE,
            inode: ino,
            mode,
            len,
            modified: stamp(modified),
            changed: stamp(changed),
        }
    }
}

const NANOS: u64 = 1_000_000_000;
/// The device number of the simulated disk.
const DEVICE: u64 = 1;

/// The status of the file at a path, or of an open one.
///
/// # Errors
/// Those of `statx`.
pub(crate) fn stat(directory: impl AsFd, path: &CStr, flags: AtFlags, mask: StatxFlags) -> Result<Statx> {
    let directory = directory.as_fd();
    let real = || rustix::fs::statx(directory, path, flags, mask);
    let is_open = flags.contains(AtFlags::EMPTY_PATH);
    if is_open && directory.as_raw_fd() >= 0 {
        return on(Call::Stat, directory, |_, _| real(), |_, _, _| Err(Errno::BADF));
    }
    make(Call::Stat, real, |kernel| {
        let follow = !flags.contains(AtFlags::SYMLINK_NOFOLLOW);
        if path.is_empty() && !is_open {
            return Err(Errno::NOENT);
        }
        let known = kernel.files()?.stat(directory.as_raw_fd(), path.to_bytes(), follow)?;
        // SAFETY: a `Statx` consists of numbers, so all zeros are a valid value.
        let mut stat: Statx = unsafe { std::mem::zeroed() };
        stat.stx_mask = mask.bits();
        stat.stx_blksize = 4096;
        stat.stx_nlink = known.links;
        stat.stx_mode = known.mode as u16;
        stat.stx_ino = known.ino;
        stat.stx_size = known.len;
        stat.stx_blocks = known.blocks;
        stat.stx_dev_minor = DEVICE as u32;
        // A simulated disk does not record when a file is read.
        for (stamp, nanos) in [
            (&mut stat.stx_atime, known.created),
            (&mut stat.stx_btime, known.created),
            (&mut stat.stx_mtime, known.modified),
            (&mut stat.stx_ctime, known.changed),
        ] {
            stamp.tv_sec = (nanos / NANOS) as i64;
            stamp.tv_nsec = (nanos % NANOS) as u32;
        }
        Ok(stat)
    })
}

/// Reads from an offset of a file.
///
/// # Errors
/// Those of `pread`.
#[inline]
pub fn pread(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    read_at(file.as_fd(), buffer, offset, ReadWriteFlags::empty(), |file, part| {
        rustix::io::pread(file, part, offset)
    })
}

/// Reads the bytes at an offset of a file that are in memory.
///
/// # Errors
/// Those of `preadv2`: `EAGAIN` if no byte is in memory; `EINVAL` for the offset that `preadv2`
/// would take for the file's position.
#[inline]
pub fn pread_cached(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Result<usize> {
    read_at(file.as_fd(), buffer, offset, ReadWriteFlags::NOWAIT, |file, part| match offset {
        u64::MAX => Err(Errno::INVAL),
        _ => rustix::io::preadv2(file, &mut [IoSliceMut::new(part)], offset, ReadWriteFlags::NOWAIT),
    })
}

/// As [`pread_cached`], for an attempt in front of an operation that reads the same bytes. `None`
/// if that operation has to decide: in a simulated world, and where calls are counted or made to
/// fail.
#[inline]
pub(crate) fn pread_ahead_of(file: impl AsFd, buffer: &mut [u8], offset: u64) -> Option<Result<usize>> {
    (!is_interposed()).then(|| pread_cached(file, buffer, offset))
}

#[inline(always)]
fn read_at(
    file: BorrowedFd<'_>,
    buffer: &mut [u8],
    offset: u64,
    flags: ReadWriteFlags,
    real: impl FnOnce(BorrowedFd<'_>, &mut [u8]) -> Result<usize>,
) -> Result<usize> {
    if !is_interposed() {
        return real(file, buffer);
    }
    let _counting = counting(Call::Pread);
    let limit = fate(Call::Pread)?;
    let room = buffer.len().min(limit);
    let part = &mut buffer[..room];
    match file.as_raw_fd() {
        raw if raw < 0 => {
            Ok(interposed::with(|kernel| kernel.files()?.pread(raw, part, offset, flags))?.min(room))
        }
        _ => real(file, part),
    }
}

/// Writes at an offset of a file.
///
/// # Errors
/// Those of `pwrite`.
pub(crate) fn pwrite(file: impl AsFd, bytes: &[u8], offset: u64) -> Result<usize> {
    let real =
        |file: BorrowedFd<'_>, limit| rustix::io::pwrite(file, &bytes[..bytes.len().min(limit)], offset);
    on(Call::Pwrite, file, real, |kernel, file, limit| {
        kernel.files()?.pwrite(file, &bytes[..bytes.len().min(limit)], offset)
    })
}

/// Writes where an open file goes on: at its end if it was opened to append, else at the position
/// of its descriptor. A simulated file has no position and goes on at its end.
///
/// # Errors
/// Those of `write`.
pub(crate) fn write_on(file: impl AsFd, bytes: &[u8]) -> Result<usize> {
    let part = |limit: usize| &bytes[..bytes.len().min(limit)];
    let real = |file: BorrowedFd<'_>, limit| {
        outside_simulation()?;
        rustix::io::write(file, part(limit))
    };
    on(Call::Write, file, real, |kernel, file, limit| {
        let known = kernel.files()?.stat(file, b"", true)?;
        match FileType::from_raw_mode(known.mode) {
            FileType::Fifo => kernel.pipes()?.write(file, part(limit)),
            _ => kernel.files()?.pwrite(file, part(limit), known.len),
        }
    })
}

/// The position of a descriptor, at which [`write_on`] has ended.
///
/// # Errors
/// Those of `lseek`.
pub(crate) fn position(file: impl AsFd) -> Result<u64> {
    let real = |file: BorrowedFd<'_>, _| rustix::fs::tell(file);
    on(Call::Seek, file, real, |kernel, file, _| {
        let known = kernel.files()?.stat(file, b"", true)?;
        match FileType::from_raw_mode(known.mode) {
            FileType::Fifo => Err(Errno::SPIPE),
            _ => Ok(known.len),
        }
    })
}

/// Moves the position of a descriptor to an offset. A simulated file has no position.
///
/// # Errors
/// Those of `lseek`.
pub(crate) fn go_on_at(file: impl AsFd, offset: u64) -> Result<()> {
    let real = |file: BorrowedFd<'_>, _| rustix::fs::seek(file, SeekFrom::Start(offset)).map(drop);
    on(Call::Seek, file, real, |_, _, _| Ok(()))
}

/// Locks a file against other programs that lock it, if none of them has done so. A simulation is
/// one program, so there the lock is free.
///
/// # Errors
/// Those of `flock`.
pub(crate) fn try_lock(file: impl AsFd) -> Result<bool> {
    let real = |file: BorrowedFd<'_>, _| match flock(file, FlockOperation::NonBlockingLockExclusive) {
        Err(Errno::WOULDBLOCK) => Ok(false),
        locked => locked.map(|()| true),
    };
    on(Call::Lock, file, real, |_, _, _| Ok(true))
}

/// Gives the lock of [`try_lock`] back.
///
/// # Errors
/// Those of `flock`.
pub(crate) fn unlock(file: impl AsFd) -> Result<()> {
    let real = |file: BorrowedFd<'_>, _| flock(file, FlockOperation::Unlock);
    on(Call::Lock, file, real, |_, _, _| Ok(()))
}

/// Sets the length of a file.
///
/// # Errors
/// Those of `ftruncate`.
pub(crate) fn truncate(file: impl AsFd, len: u64) -> Result<()> {
    let real = |file: BorrowedFd<'_>, _| rustix::fs::ftruncate(file, len);
    on(Call::Truncate, file, real, |kernel, file, _| kernel.files()?.truncate(file, len))
}

/// Waits until a file's content is on the disk.
///
/// # Errors
/// Those of `fsync`.
pub(crate) fn sync(file: impl AsFd, only_data: bool) -> Result<()> {
    let real = |file: BorrowedFd<'_>, _| match only_data {
        true => rustix::fs::fdatasync(file),
        false => rustix::fs::fsync(file),
    };
    on(Call::Sync, file, real, |kernel, file, _| kernel.files()?.sync(file))
}

/// Sends at most `count` bytes of a file from `offset` on, and moves `offset`.
///
/// # Errors
/// Those of `sendfile`.
#[inline]
pub fn send_file(fd: impl AsFd, file: impl AsFd, offset: &mut u64, count: usize) -> Result<usize> {
    let from = *offset;
    let real = |fd: BorrowedFd<'_>, limit| rustix::fs::sendfile(fd, &file, Some(offset), count.min(limit));
    let sent = on(Call::SendFile, fd, real, |kernel, fd, limit| {
        kernel.interrupt()?;
        kernel.send_file(fd, file.as_fd(), from, count.min(limit))
    })?;
    if *offset == from {
        *offset += sent as u64;
    }
    Ok(sent)
}

/// Makes a change of names: the `real` call, or `change` in a simulation.
fn change_names(call: Call, change: NameChange<'_>, real: impl FnOnce() -> Result<()>) -> Result<()> {
    make(call, real, |kernel| kernel.files()?.change_names(change))
}

/// Creates a directory.
///
/// # Errors
/// Those of `mkdir`.
pub(crate) fn create_directory(path: &CStr, mode: Mode) -> Result<()> {
    let real = || rustix::fs::mkdirat(CWD, path, mode);
    let change = NameChange::CreateDirectory { path: path.to_bytes(), permissions: mode.bits() };
    change_names(Call::MakeDirectory, change, real)
}

/// Whether a directory is at a path.
pub(crate) fn is_directory(path: &CStr) -> bool {
    let status = stat(CWD, path, AtFlags::empty(), StatxFlags::TYPE);
    status.is_ok_and(|status| FileType::from_raw_mode(status.stx_mode.into()) == FileType::Directory)
}

/// Removes a name, or an empty directory.
///
/// # Errors
/// Those of `unlink`, or of `rmdir`.
pub(crate) fn remove(path: &CStr, directory: bool) -> Result<()> {
    let flags = if directory { AtFlags::REMOVEDIR } else { AtFlags::empty() };
    let real = || rustix::fs::unlinkat(CWD, path, flags);
    change_names(Call::Unlink, NameChange::Remove { path: path.to_bytes(), directory }, real)
}

/// Renames a file.
///
/// # Errors
/// Those of `rename`.
pub(crate) fn rename(from: &CStr, to: &CStr) -> Result<()> {
    let real = || rustix::fs::renameat(CWD, from, CWD, to);
    let change = NameChange::Rename { from: from.to_bytes(), to: to.to_bytes() };
    change_names(Call::Rename, change, real)
}

/// Gives a file an additional name.
///
/// # Errors
/// Those of `link`.
pub(crate) fn link(from: &CStr, to: &CStr) -> Result<()> {
    let real = || rustix::fs::linkat(CWD, from, CWD, to, AtFlags::empty());
    change_names(Call::Link, NameChange::Link { from: from.to_bytes(), to: to.to_bytes() }, real)
}

/// Creates a symbolic link.
///
/// # Errors
/// Those of `symlink`.
pub(crate) fn symlink(target: &CStr, path: &CStr) -> Result<()> {
    let real = || rustix::fs::symlinkat(target, CWD, path);
    let change = NameChange::CreateLink { target: target.to_bytes(), path: path.to_bytes() };
    change_names(Call::Symlink, change, real)
}

/// Removes a directory with everything below it, or a symbolic link. No link is followed. All the
/// system calls count as one call.
///
/// # Errors
/// Those of `open`, `getdents`, `unlink` and `rmdir`.
pub(crate) fn remove_tree(path: &CStr) -> Result<()> {
    let real = || std::fs::remove_dir_all(as_path(path)).map_err(number_of);
    change_names(Call::Unlink, NameChange::RemoveTree { path: path.to_bytes() }, real)
}

/// Sets the permissions of the file at a path.
///
/// # Errors
/// Those of `chmod`.
pub(crate) fn set_mode(path: &CStr, mode: Mode) -> Result<()> {
    let real = || rustix::fs::chmodat(CWD, path, mode, AtFlags::empty());
    let change = NameChange::SetPermissions { path: path.to_bytes(), permissions: mode.bits() };
    change_names(Call::ChangeMode, change, real)
}

/// The path that the symbolic link at a path holds.
///
/// # Errors
/// Those of `readlink`.
pub(crate) fn read_link(path: &CStr) -> Result<PathBuf> {
    let real = || {
        let target = rustix::fs::readlinkat(CWD, path, Vec::new())?;
        Ok(OsString::from_vec(target.into_bytes()).into())
    };
    make(Call::ReadLink, real, |kernel| {
        Ok(OsString::from_vec(kernel.files()?.read_link(path.to_bytes())?).into())
    })
}

/// The path of a file without symbolic links, from the root.
///
/// # Errors
/// Those of `realpath`.
pub(crate) fn canonical(path: &CStr) -> Result<PathBuf> {
    let real = || std::fs::canonicalize(as_path(path)).map_err(number_of);
    make(Call::ReadLink, real, |kernel| {
        Ok(OsString::from_vec(kernel.files()?.canonical(path.to_bytes())?).into())
    })
}

fn as_path(path: &CStr) -> &Path {
    Path::new(OsStr::from_bytes(path.to_bytes()))
}

/// The error number of a standard library's error. The standard library has made a system call.
fn number_of(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::IO)
}

/// The names in a directory, except for `.` and `..`, in any order, each with the kind of the file
/// that it names.
///
/// # Errors
/// Those of `open`, `getdents` and `stat`. `stat` is called only where the file system does not
/// tell a name's kind.
pub(crate) fn read_directory(path: &CStr) -> Result<Vec<(OsString, FileType)>> {
    let real = || {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::openat(CWD, path, flags, Mode::empty())?;
        let mut names = Vec::new();
        for entry in rustix::fs::Dir::read_from(&directory)? {
            let entry = entry?;
            let name = entry.file_name();
            if name == c"." || name == c".." {
                continue;
            }
            let kind = match entry.file_type() {
                FileType::Unknown => {
                    match rustix::fs::statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW) {
                        Ok(stat) => FileType::from_raw_mode(stat.st_mode),
                        Err(Errno::NOENT) => continue, // removed meanwhile
                        Err(error) => return Err(error),
                    }
                }
                kind => kind,
            };
            names.push((OsString::from_vec(name.to_bytes().to_vec()), kind));
        }
        Ok(names)
    };
    make(Call::ReadDirectory, real, |kernel| {
        let named = kernel.files()?.names(path.to_bytes())?.into_iter();
        Ok(named.map(|(name, mode)| (OsString::from_vec(name), FileType::from_raw_mode(mode))).collect())
    })
}
