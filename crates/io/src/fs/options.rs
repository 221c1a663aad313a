//! `OpenOptions`: how a file is opened, as in the standard library; and the future that opens it.
//!
//! `File::open` and `File::create` go through it, so every `File` is made here. Each file is opened
//! with `O_CLOEXEC`, `O_NONBLOCK` and `O_NOCTTY`, whatever the program chooses.

use super::answer::{at, result};
use super::file::File;
use super::operation::{Open, Opened, Operation, c_path};
use super::operation_future::OperationFuture;
use rustix::fs::{Mode, OFlags};
use std::io;
use std::path::PathBuf;

/// How a file is to be opened: as [`std::fs::OpenOptions`], and with [`direct`](Self::direct)
/// access.
///
/// # Examples
/// ```
/// # futures::executor::block_on(async {
/// use selvedge::fs::File;
///
/// let directory = tempfile::tempdir()?;
/// let path = directory.path().join("log");
/// let mut log = File::options().append(true).create_new(true).open(path).await?;
/// log.write_all(b"begun\n").await?;
/// log.sync_data().await?;
/// # std::io::Result::Ok(()) }).unwrap();
/// ```
#[derive(Clone, Debug)]
pub struct OpenOptions {
    read: bool,
    write: bool,
    append: bool,
    truncate: bool,
    create: bool,
    create_new: bool,
    direct: bool,
    mode: u32,
    flags: i32,
}

impl Default for OpenOptions {
    fn default() -> OpenOptions {
        OpenOptions::new()
    }
}

impl OpenOptions {
    /// Options that allow nothing yet. Call at least [`read`](Self::read) or
    /// [`write`](Self::write).
    pub fn new() -> OpenOptions {
        OpenOptions {
            read: false,
            write: false,
            append: false,
            truncate: false,
            create: false,
            create_new: false,
            direct: false,
            mode: 0o666,
            flags: 0,
        }
    }

    /// Whether the file can be read.
    pub fn read(&mut self, read: bool) -> &mut OpenOptions {
        self.read = read;
        self
    }

    /// Whether the file can be written.
    pub fn write(&mut self, write: bool) -> &mut OpenOptions {
        self.write = write;
        self
    }

    /// Whether every write goes to the file's end, wherever the position and the call's offset are,
    /// and whatever other programs write. The file can be written then. The position stays where
    /// it is.
    pub fn append(&mut self, append: bool) -> &mut OpenOptions {
        self.append = append;
        self
    }

    /// Whether the file is emptied. It has to be opened for writing.
    pub fn truncate(&mut self, truncate: bool) -> &mut OpenOptions {
        self.truncate = truncate;
        self
    }

    /// Whether the file is created if it does not exist. It has to be opened for writing.
    pub fn create(&mut self, create: bool) -> &mut OpenOptions {
        self.create = create;
        self
    }

    /// Whether the file is created, and must not exist before.
    pub fn create_new(&mut self, create_new: bool) -> &mut OpenOptions {
        self.create_new = create_new;
        self
    }

    /// Whether transfers bypass the page cache. Then offset, length and the buffer's address must
    /// be multiples of the disk's block size, 512 to 4096 bytes: [`AlignedBuf`](super::AlignedBuf)
    /// has such addresses.
    #[doc(alias = "O_DIRECT")]
    pub fn direct(&mut self, direct: bool) -> &mut OpenOptions {
        self.direct = direct;
        self
    }

    /// The permissions of a file that is created, without the permissions that the process's mask
    /// takes away.
    pub fn mode(&mut self, mode: u32) -> &mut OpenOptions {
        self.mode = mode;
        self
    }

    /// More flags of `open(2)`.
    pub fn custom_flags(&mut self, flags: i32) -> &mut OpenOptions {
        self.flags = flags;
        self
    }

    /// Opens a file with these options. The opening of a FIFO does not wait for its other side.
    ///
    /// # Errors
    /// With the path in the message: not there, there already, not permitted, no descriptors left.
    /// `InvalidInput`, as in the standard library, if the options contradict each other: neither
    /// reading nor writing; emptying or creating a file that is only read; emptying a file that is
    /// appended to.
    #[doc(alias = "sys_file_open")]
    pub async fn open(&self, path: impl Into<PathBuf>) -> io::Result<File> {
        let path = path.into();
        match self.opened(&path).await {
            Ok((fd, flags)) => Ok(File::new(Opened::new(fd, path, flags))),
            Err(error) => Err(at("open", &path)(error)),
        }
    }

    async fn opened(&self, path: &std::path::Path) -> io::Result<(crate::sys::Fd, OFlags)> {
        let flags = self.flags()?;
        let open = Open { path: c_path(path)?, flags, mode: Mode::from_raw_mode(self.mode) };
        match OperationFuture::new(Operation::Open(Box::new(open))).await {
            (_, Operation::Opened(fd)) => Ok((fd, flags)),
            (outcome, _) => Err(result(outcome).expect_err("what is opened has a descriptor")),
        }
    }

    fn flags(&self) -> io::Result<OFlags> {
        let changes = self.truncate || self.create || self.create_new;
        let contradict = match (self.write, self.append) {
            (_, true) => self.truncate && !self.create_new,
            (true, false) => false,
            (false, false) => changes,
        };
        if contradict {
            return Err(rustix::io::Errno::INVAL.into());
        }
        let access = match (self.read, self.write || self.append) {
            (true, false) => OFlags::RDONLY,
            (false, true) => OFlags::WRONLY,
            (true, true) => OFlags::RDWR,
            (false, false) => return Err(rustix::io::Errno::INVAL.into()),
        };
        let chosen = [
            (self.append, OFlags::APPEND),
            (self.truncate, OFlags::TRUNC),
            (self.create, OFlags::CREATE),
            (self.create_new, OFlags::CREATE | OFlags::EXCL),
            (self.direct, OFlags::DIRECT),
        ];
        let always =
            OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::from_bits_retain(self.flags as u32);
        Ok(chosen
            .into_iter()
            .filter(|(chosen, _)| *chosen)
            .fold(access | always, |flags, (_, flag)| flags | flag))
    }
}
