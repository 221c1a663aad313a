//! What a file system knows of a file.

use rustix::fs::{FileType, Statx, StatxTimestamp};
use std::fmt;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// What a file system knows of a file beside its content.
#[derive(Clone)]
pub struct Metadata {
    stat: Statx,
}

impl Metadata {
    pub(super) fn new(stat: Statx) -> Metadata {
        Metadata { stat }
    }

    /// Its length in bytes.
    #[expect(clippy::len_without_is_empty, reason = "the length of a file, not of a container")]
    pub fn len(&self) -> u64 {
        self.stat.stx_size
    }

    /// What it is.
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

    /// Its kind and permissions, as `stat(2)` packs them.
    pub fn mode(&self) -> u32 {
        self.stat.stx_mode.into()
    }

    /// The device it is on.
    pub fn dev(&self) -> u64 {
        rustix::fs::makedev(self.stat.stx_dev_major, self.stat.stx_dev_minor)
    }

    /// Its number on the device.
    pub fn ino(&self) -> u64 {
        self.stat.stx_ino
    }

    /// How many names it has.
    pub fn nlink(&self) -> u64 {
        self.stat.stx_nlink.into()
    }

    /// Its owner.
    pub fn uid(&self) -> u32 {
        self.stat.stx_uid
    }

    /// Its owner's group.
    pub fn gid(&self) -> u32 {
        self.stat.stx_gid
    }

    /// How much room it takes, in units of 512 bytes.
    pub fn blocks(&self) -> u64 {
        self.stat.stx_blocks
    }

    /// When its content was last changed.
    pub fn modified(&self) -> SystemTime {
        time(self.stat.stx_mtime)
    }

    /// When its content was last read, as far as the file system keeps account.
    pub fn accessed(&self) -> SystemTime {
        time(self.stat.stx_atime)
    }
}

/// What a name in a file system is the name of.
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
    /// A device, or what else there may be.
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
