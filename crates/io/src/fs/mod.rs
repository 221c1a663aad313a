//! Files, with the names of [`std::fs`]: each function and method that may wait for the disk is
//! `async`. [`File`] reads and writes from its position on, or at an offset.
//!
//! # Examples
//! A log that is appended, and read by lines:
//! ```
//! use selvedge::fs::{self, File};
//!
//! selvedge::run_local(async {
//!     let directory = tempfile::tempdir()?;
//!     let path = directory.path().join("log");
//!     let mut log = File::options().append(true).create(true).open(&path).await?;
//!     log.write_all(b"set up\n").await?;
//!     log.write_all(b"woven\n").await?;
//!     log.sync_data().await?; // both lines are on the disk
//!
//!     let mut lines = File::open(&path).await?.lines();
//!     while let Some(line) = lines.next().await? {
//!         println!("{line}");
//!     }
//!     assert_eq!(fs::metadata(&path).await?.len(), 13);
//!     std::io::Result::Ok(())
//! })??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # How an operation reaches the disk
//!
//! Linux offers no readiness for files: an operation begins, and some time later it is over. There
//! are two ways to the disk. An operation does the same on either.
//!
//! - In a `Thread` that is scheduled with an [`EventLoop`](crate::EventLoop), through a ring of
//!   that loop (io_uring). The operations that the threads of one turn ask for go to the kernel two
//!   by two, while the threads run. The last of them go with the system call that also brings back
//!   the operations that are done.
//! - Where the kernel has no rings for the process (an old kernel, a container that forbids them),
//!   and on foreign executors, reads of bytes in memory are answered at once (`preadv2` with
//!   `RWF_NOWAIT`), and the [blocking pool](crate::blocking) performs all other operations.
//!   [`Driver`] and the environment's `SELVEDGE_IO=epoll` ask for this way.
//!
//! The blocking pool makes the calls that concern names only ([`rename`] and its like).
//!
//! # The owner of the buffer
//!
//! The operation owns the buffer. The kernel writes into it until the operation is done, whether or
//! not a thread still waits. So a buffer goes in by value and comes back with the result. When the
//! future is dropped, an operation that has not begun is taken back. An operation that has begun is
//! cancelled if the kernel can cancel it, and its buffer is freed when the kernel has done with it.
//! [`File`] has a table of what is true after each dropped call.
//!
//! # The recipe
//!
//! The recipe of [LZ07 §4.2] that the head of [`crate`] describes:
//!
//! 1. **System call and node.** A request gives its operation to the queue of the OS thread's event
//!    loop, and waits behind its [`Waker`](std::task::Waker), which for a `Thread` is two numbers
//!    ([`Trace::Blocked`](selvedge_core::Trace::Blocked)). So the thread may resume on another OS
//!    thread.
//! 2. **Interpret and register.** `queue.rs`: each operation gets a slot and is served in its turn.
//!    The kernel has up to 144 operations of a loop at a time.
//! 3. **Event loop.** `disk.rs` and `uring.rs`, driven by [`EventLoop`](crate::EventLoop); or the
//!    blocking pool.
//!
//! # Paper
//! [LZ07 §4.2, Figure 15]: `sys_aio_read`, `worker_aio` and `sys_file_open`.
//!
//! # Differences
//! 1. Linux AIO serves only direct access; the rings serve all files.
//! 2. The kernel has a bounded number of operations at once, and any number of threads may wait: a
//!    million within 256 MB.

mod answer;
mod buffer;
mod cursor;
mod directory;
pub(crate) mod disk;
mod file;
mod handle;
mod metadata;
mod names;
pub(crate) mod operation;
mod operation_future;
mod options;
mod queue;
pub(crate) mod region;
mod seekless;
mod tree;

pub use buffer::{AlignedBuf, Buffer};
pub use directory::{DirEntry, read_dir};
pub use disk::Driver;
pub use file::File;
pub use handle::{FileStatus, Handle};
pub use metadata::{FileType, Metadata};
pub use names::{
    canonicalize, create_dir, hard_link, read_link, remove_dir, remove_file, rename, set_permissions, symlink,
};
pub use options::OpenOptions;
/// The standard library's permissions of a file.
#[doc(inline)]
pub use std::fs::Permissions;
pub use tree::{copy, create_dir_all, remove_dir_all};

use answer::at;
use metadata::status;
use std::io;
use std::path::PathBuf;

/// The status of the file at a path, following symbolic links.
///
/// # Errors
/// With the path in the message: not there, not permitted.
pub async fn metadata(path: impl Into<PathBuf>) -> io::Result<Metadata> {
    let path = path.into();
    status(None, &path, true).await.map_err(at("stat", &path))
}

/// Like [`metadata`], but for a symbolic link itself and not for its target.
///
/// # Errors
/// With the path in the message: not there, not permitted.
#[doc(alias = "lstat")]
pub async fn symlink_metadata(path: impl Into<PathBuf>) -> io::Result<Metadata> {
    let path = path.into();
    status(None, &path, false).await.map_err(at("stat", &path))
}

/// Whether there is a file or a directory at a path. A symbolic link is followed.
///
/// Another program may create or remove it at the next moment. A program that opens the file and
/// looks at the error, or creates it by [`File::create_new`], does not depend on that.
///
/// # Errors
/// With the path in the message, if it cannot be told: not permitted to look into a directory.
///
/// # Examples
/// ```
/// use selvedge::fs;
///
/// selvedge::run_local(async {
///     assert!(fs::exists("Cargo.toml").await?);
///     assert!(!fs::exists("Cargo.toml/none").await.unwrap_or(false));
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[doc(alias = "try_exists")]
pub async fn exists(path: impl Into<PathBuf>) -> io::Result<bool> {
    match metadata(path).await {
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// The whole content of the file at a path.
///
/// # Errors
/// With the path in the message: not there, not permitted, a directory; `OutOfMemory` if it is
/// longer than the memory that is left.
pub async fn read(path: impl Into<PathBuf>) -> io::Result<Vec<u8>> {
    File::open(path).await?.read_rest(0).await
}

/// The whole content of the file at a path, as text.
///
/// # Errors
/// As for [`read`], and `InvalidData` if it is not UTF-8.
pub async fn read_to_string(path: impl Into<PathBuf>) -> io::Result<String> {
    let path = path.into();
    let content = read(path.clone()).await?;
    let text = String::from_utf8(content);
    text.map_err(|error| at("read", &path)(io::Error::new(io::ErrorKind::InvalidData, error)))
}

/// Makes `content` the whole content of the file at a path, which is created if it is not there.
///
/// The content is copied once, because the operation owns the memory that the kernel reads.
/// [`File::write_all_at`] takes over a buffer and copies nothing.
///
/// # Errors
/// With the path in the message: not permitted, a directory, no room. The content of the file is
/// undefined then.
pub async fn write(path: impl Into<PathBuf>, content: impl AsRef<[u8]>) -> io::Result<()> {
    let content = content.as_ref().to_vec();
    File::create(path).await?.write_all_at(content, 0).await.0
}
