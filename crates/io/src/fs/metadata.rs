//! `Metadata` and `FileKind`: the answer of the kernel about a file, in the standard library's
//! words.
//!
//! `fs::metadata`, `fs::symlink_metadata` and `File::metadata` return it, made from the `Statx` of
//! a finished `Operation::Stat`. `FileKind` is also the kind of a `DirEntry` (`names.rs`).

use rustix::fs::{FileType, Statx, StatxTimestamp};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The data that a file system keeps about a file beside its content.
#[derive(Clone)]
pub struct Metadata {
    stat: Statx,
}

impl Metadata {
    pub(super) fn new(stat: Statx) -> Metadata {
        Metadata { stat }
    }

    /// The length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "the length of a file, not of a container")]
    pub fn len(&self) -> u64 {
        self.stat.stx_size
    }

    /// The kind of the file.
    pub fn kind(&self) -> FileKind {
        FileKind::of(FileType::from_raw_mode(self.mode()))
    }

    /// Whether it is a regular file.
    pub fn is_file(&self) -> bool {
        self.kind() == FileKind::File
    }

    /// Whether it is a directory.
    pub fn is_dir(&self) -> bool {
        self.kind() == FileKind::Directory
    }

    /// Whether it is a symbolic link; only [`symlink_metadata`](super::symlink_metadata) finds one.
    pub fn is_symlink(&self) -> bool {
        self.kind() == FileKind::Symlink
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
    pub fn modified(&self) -> SystemTime {
        time(self.stat.stx_mtime)
    }

    /// The time of the last read of the content, as far as the file system records it.
    pub fn accessed(&self) -> SystemTime {
        time(self.stat.stx_atime)
    }
}

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum FileKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A pipe with a name.
    Fifo,
    /// A Unix socket.
    Socket,
    /// A device, or any other kind.
    Other,
}

impl FileKind {
    pub(super) fn of(kind: FileType) -> FileKind {
        match kind {
            FileType::RegularFile => FileKind::File,
            FileType::Directory => FileKind::Directory,
            FileType::Symlink => FileKind::Symlink,
            FileType::Fifo => FileKind::Fifo,
            FileType::Socket => FileKind::Socket,
            _ => FileKind::Other,
        }
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
            .field("modified", &self.modified())
            .finish_non_exhaustive()
    }
}
