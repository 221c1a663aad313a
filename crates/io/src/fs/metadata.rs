//! `Metadata` and `FileType`: the answer of the kernel about a file, in the standard library's
//! words.
//!
//! `fs::metadata`, `fs::symlink_metadata` and `File::metadata` return it. `status` makes it from
//! the `Statx` of a finished `Operation::Stat`. `FileType` is also the kind of a `DirEntry`
//! (`directory.rs`).

use super::answer::result;
use super::operation::{Opened, Operation, Stat, c_path};
use super::operation_future::OperationFuture;
use rustix::fs::{FileType as Kind, Statx, StatxFlags, StatxTimestamp};
use std::fmt;
use std::fs::Permissions;
use std::hash::{Hash, Hasher};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The data that a file system keeps about a file beside its content, as [`std::fs::Metadata`] and
/// [`MetadataExt`](std::os::unix::fs::MetadataExt) name them.
#[derive(Clone)]
pub struct Metadata {
    stat: Statx,
}

impl Metadata {
    fn new(stat: Statx) -> Metadata {
        Metadata { stat }
    }

    /// The length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "the length of a file, not of a container")]
    pub fn len(&self) -> u64 {
        self.stat.stx_size
    }

    /// The kind of the file.
    pub fn file_type(&self) -> FileType {
        FileType::of(Kind::from_raw_mode(self.mode()))
    }

    /// The permissions of the file.
    pub fn permissions(&self) -> Permissions {
        Permissions::from_mode(self.mode())
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.file_type().is_file()
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.file_type().is_dir()
    }

    /// Whether it is a symbolic link; only [`symlink_metadata`](super::symlink_metadata) finds one.
    pub fn is_symlink(&self) -> bool {
        self.file_type().is_symlink()
    }

    /// The kind and the permissions, as `stat(2)` packs them.
    pub fn mode(&self) -> u32 {
        self.stat.stx_mode.into()
    }

    /// The device of the file.
    pub fn dev(&self) -> u64 {
        rustix::fs::makedev(self.stat.stx_dev_major, self.stat.stx_dev_minor)
    }

    /// The file's number on the device.
    pub fn ino(&self) -> u64 {
        self.stat.stx_ino
    }

    /// The number of names that the file has.
    pub fn nlink(&self) -> u64 {
        self.stat.stx_nlink.into()
    }

    /// The owner of the file.
    pub fn uid(&self) -> u32 {
        self.stat.stx_uid
    }

    /// The group of the file.
    pub fn gid(&self) -> u32 {
        self.stat.stx_gid
    }

    /// The room that the file takes, in units of 512 bytes.
    pub fn blocks(&self) -> u64 {
        self.stat.stx_blocks
    }

    /// The time of the last change of the content.
    ///
    /// # Errors
    /// None on Linux. A `Result` is what the standard library's method of this name returns.
    pub fn modified(&self) -> io::Result<SystemTime> {
        Ok(time(self.stat.stx_mtime))
    }

    /// The time of the last read of the content, as far as the file system records it.
    ///
    /// # Errors
    /// None on Linux. A `Result` is what the standard library's method of this name returns.
    pub fn accessed(&self) -> io::Result<SystemTime> {
        Ok(time(self.stat.stx_atime))
    }

    /// The time at which the file was created.
    ///
    /// # Errors
    /// `Unsupported` if the file system does not record it.
    pub fn created(&self) -> io::Result<SystemTime> {
        match StatxFlags::from_bits_retain(self.stat.stx_mask).contains(StatxFlags::BTIME) {
            true => Ok(time(self.stat.stx_btime)),
            false => Err(io::Error::new(io::ErrorKind::Unsupported, "the time of creation is not recorded")),
        }
    }
}

/// The status of an open file, or of the one at a path.
pub(super) async fn status(file: Option<Arc<Opened>>, path: &Path, follow: bool) -> io::Result<Metadata> {
    let path = if file.is_some() { Default::default() } else { c_path(path)? };
    let stat = Box::new(Stat::new(file, path, follow));
    match OperationFuture::new(Operation::Stat(stat)).await {
        (outcome, Operation::Stat(stat)) => result(outcome).map(|_| Metadata::new(stat.result)),
        (_, other) => unreachable!("a status was asked for, not {other:?}"),
    }
}

/// The kind of a file, as [`std::fs::FileType`] and
/// [`FileTypeExt`](std::os::unix::fs::FileTypeExt) name them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct FileType(Kind);

impl FileType {
    pub(super) fn of(kind: Kind) -> FileType {
        FileType(kind)
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.0 == Kind::RegularFile
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.0 == Kind::Directory
    }

    /// Whether it is a symbolic link.
    pub fn is_symlink(&self) -> bool {
        self.0 == Kind::Symlink
    }

    /// Whether it is a pipe with a name.
    pub fn is_fifo(&self) -> bool {
        self.0 == Kind::Fifo
    }

    /// Whether it is a Unix socket.
    pub fn is_socket(&self) -> bool {
        self.0 == Kind::Socket
    }

    /// Whether it is a device that is read and written in blocks, such as a disk.
    pub fn is_block_device(&self) -> bool {
        self.0 == Kind::BlockDevice
    }

    /// Whether it is a device that is read and written by bytes, such as a terminal.
    pub fn is_char_device(&self) -> bool {
        self.0 == Kind::CharacterDevice
    }
}

impl Hash for FileType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_raw_mode().hash(state);
    }
}

impl fmt::Debug for FileType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

fn time(stamp: StatxTimestamp) -> SystemTime {
    let seconds = Duration::from_secs(stamp.tv_sec.unsigned_abs());
    let whole = if stamp.tv_sec < 0 { UNIX_EPOCH - seconds } else { UNIX_EPOCH + seconds };
    whole + Duration::from_nanos(stamp.tv_nsec.into())
}

impl fmt::Debug for Metadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Metadata")
            .field("len", &self.len())
            .field("mode", &format_args!("{:o}", self.mode()))
            .field("modified", &time(self.stat.stx_mtime))
            .finish_non_exhaustive()
    }
}
