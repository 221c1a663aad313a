//! Files. Linux offers no readiness for them: an operation is begun, and some time later it is
//! over.
//!
//! # How an operation reaches the disk
//!
//! In threads of ours that are scheduled with an [`EventLoop`](crate::EventLoop), through a ring of
//! that loop (io_uring): what the threads of one turn ask for goes to the kernel two by two, while
//! they run, and the last of it with the system call that also brings back what is done. Where the
//! kernel has no rings for the process (an old one, a container that forbids them), and on foreign
//! executors, reads of what is in memory are answered at once (`preadv2` with `RWF_NOWAIT`), and
//! all else is done by the [blocking pool](crate::blocking). [`Driver`] and the environment's
//! `SELVEDGE_IO=epoll` ask for that way. What an operation does is the same on either.
//!
//! What concerns names only ([`rename`] and its like) is done by the blocking pool.
//!
//! # The owner of the buffer
//!
//! The operation owns the buffer. The kernel writes into it until the operation is done, whether or
//! not a thread still waits. So a buffer goes in by value and comes back with the result. When the
//! future is dropped, an operation that has not begun is taken back; one that has begun is
//! cancelled if that can be, and its buffer freed when the kernel lets go of it.
//!
//! # The recipe
//!
//! Of [LZ07 §4.2], as the head of [`crate`] tells it:
//!
//! 1. **System call and node.** A request gives its operation to the queue of the OS thread's event
//!    loop, and waits behind its [`Waker`](std::task::Waker), which for our threads is two numbers
//!    ([`Trace::Blocked`](selvedge_core::Trace::Blocked)): so it may resume on another OS thread
//!    than it asked on.
//! 2. **Interpret and register.** `queue.rs`: a slot for the operation, first come, first served,
//!    some hundred at a time in the kernel.
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

mod buffer;
pub(crate) mod disk;
mod file;
mod handle;
mod metadata;
mod names;
pub(crate) mod operation;
mod options;
mod position;
mod queue;
pub(crate) mod region;
mod tree;

pub use buffer::{AlignedBuf, Buffer};
pub use disk::Driver;
pub use file::File;
pub use handle::{FileStatus, Handle};
pub use metadata::{FileKind, Metadata};
pub use names::{
    DirEntry, canonicalize, create_dir, hard_link, read_dir, read_link, remove_dir, remove_file, rename,
    set_permissions, symlink,
};
pub use options::OpenOptions;
pub use position::Position;
pub use tree::{copy, create_dir_all, remove_dir_all};

use crate::error::doing;
use operation::{Operation, RawOutcome, Stat, c_path};
use queue::OperationFuture;
use std::io;
use std::path::{Path, PathBuf};

/// The status of the file at a path, following symbolic links.
///
/// # Errors
/// With the path in the message: not there, not permitted.
pub async fn metadata(path: impl Into<PathBuf>) -> io::Result<Metadata> {
    let path = path.into();
    status(None, &path, true).await.map_err(at("stat", &path))
}

/// As [`metadata`], but of a symbolic link itself, not of what it leads to.
///
/// # Errors
/// With the path in the message: not there, not permitted.
#[doc(alias = "lstat")]
pub async fn symlink_metadata(path: impl Into<PathBuf>) -> io::Result<Metadata> {
    let path = path.into();
    status(None, &path, false).await.map_err(at("stat", &path))
}

/// The whole content of the file at a path.
///
/// # Errors
/// With the path in the message: not there, not permitted, a directory; `OutOfMemory` if it is
/// longer than what there is to hold it.
pub async fn read(path: impl Into<PathBuf>) -> io::Result<Vec<u8>> {
    let file = File::open(path).await?;
    // A file in /proc has no length that it tells.
    let length = file.metadata().await?.len();
    let length = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1).max(READ_MIN);
    let mut content = zeros(length).map_err(at("read", file.path()))?;
    let mut filled = 0;
    loop {
        let (read, buffer) = file.fill(content, filled, filled as u64).await;
        content = buffer;
        match read? {
            0 => break,
            n => filled += n,
        }
        if filled == content.len() {
            content.resize(2 * filled, 0);
        }
    }
    content.truncate(filled);
    Ok(content)
}

/// So many zeros, if there is memory for them: a file may be said to be as long as one likes.
pub(crate) fn zeros(length: usize) -> io::Result<Vec<u8>> {
    Vec::<u8>::new().try_reserve_exact(length)?;
    // Not in that room: memory that comes from the kernel is zeros already.
    Ok(vec![0; length])
}

/// What [`read`] tries to read at least.
const READ_MIN: usize = 512;

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
/// The content is copied once, because the operation owns what the kernel reads;
/// [`File::write_all_at`] takes a buffer that is to be given up for it.
///
/// # Errors
/// With the path in the message: not permitted, a directory, no room. What the file contains then
/// is not known.
pub async fn write(path: impl Into<PathBuf>, content: impl AsRef<[u8]>) -> io::Result<()> {
    let content = content.as_ref().to_vec();
    File::create(path).await?.write_all_at(content, 0).await.0
}

/// What an operation came to, as a result.
fn result(outcome: RawOutcome) -> io::Result<usize> {
    usize::try_from(outcome).map_err(|_| io::Error::from_raw_os_error(-outcome))
}

fn at(what: &'static str, path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    move |error| doing(format_args!("{what} {}", path.display()))(error)
}

/// The status of an open file, or of the one at a path.
async fn status(
    file: Option<std::sync::Arc<operation::Opened>>,
    path: &Path,
    follow: bool,
) -> io::Result<Metadata> {
    let path = if file.is_some() { Default::default() } else { c_path(path)? };
    let stat = Box::new(Stat::new(file, path, follow));
    match OperationFuture::new(Operation::Stat(stat)).await {
        (outcome, Operation::Stat(stat)) => result(outcome).map(|_| Metadata::new(stat.result)),
        (_, other) => unreachable!("a status was asked for, not {other:?}"),
    }
}
