//! `File`: an open file, and the operations at an offset that a thread awaits on it.
//!
//! Each method makes an `Operation`, awaits its `OperationFuture` (`operation_future.rs`), and
//! takes the buffer out of the operation that comes back. `set_len` alone is a call on the blocking
//! pool. `OpenOptions` creates the `File`. `cursor.rs` has the methods that read and write from the
//! file's position on. The open descriptor is shared with the operations under way (`Arc<Opened>`),
//! so it is closed after the last of them.

use super::answer::{at, result};
use super::buffer::{AlignedBuf, Buffer, Bytes, zeros};
use super::cursor::Cursor;
use super::metadata::{Metadata, status};
use super::names::made;
use super::operation::{Opened, Operation, Transfer};
use super::operation_future::OperationFuture;
use super::options::OpenOptions;
use crate::sys;
use rustix::io::Errno;
use std::future::Future;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// An open file. It is read and written in two ways:
///
/// - From its *position* on, as a stream: [`read`](Self::read), [`write_all`](Self::write_all),
///   [`lines`](Self::lines), [`seek`](Self::seek) and their like. The position begins at the
///   file's start, and each call that reads or writes moves it. These calls take `&mut self`.
/// - At an offset that the call names: [`read_at`](Self::read_at),
///   [`write_all_at`](Self::write_all_at) and their like. They neither use nor move the position.
///   They take `&self`: several threads may read and write one file at once.
///
/// Clones share the open file. Each clone has a position of its own, which begins where the cloned
/// `File` stands.
///
/// The descriptor is closed when the last clone is dropped and no operation is under way. Closing
/// the last reference to a removed file frees the file's blocks, which may take long. So in a
/// `Thread` with an event loop the loop's ring or pool closes it. Use [`sync_all`](Self::sync_all)
/// to learn whether everything has been written.
///
/// # Cancellation
/// A read or a write owns its memory until the kernel has finished with it. So a call may be
/// dropped at any time, as [`timeout`](crate::time::timeout) does, and the kernel never writes into
/// memory that is in other use. After a call was dropped:
///
/// | dropped call | the position | the file |
/// |---|---|---|
/// | `read`, `read_exact`, `read_to_end`, `read_to_string`, `seek` | is where it was | is as it was |
/// | `write`, `write_all` | is where it was | has all of the bytes, a part of them, or none |
/// | `read_at` and its like | is where it was | is as it was; the buffer is lost |
/// | `write_at`, `write_all_at` | is where it was | has all of the bytes, a part, or none; the buffer is lost |
/// | `set_len` | is where it was | has the new length, or will have it later, or never |
/// | `sync_all`, `sync_data` | is where it was | nothing is known about what is on the disk |
/// | `open`, `create` | | a file may have been created or emptied; no descriptor is left open |
///
/// The kernel may still be busy with a `write` or `write_all` that was dropped. The next `read`,
/// `write` or `seek` of the same `File` waits for that end, so an old write never lands upon a new
/// one. The calls at an offset, `set_len` and other clones do not wait for it.
///
/// # Differences
/// What differs from `std::fs::File`:
/// 1. The position belongs to the `File`, not to the kernel's open file. A clone moves by itself.
/// 2. A write in [append](OpenOptions::append) mode does not move the position, which is where the
///    next read begins.
/// 3. The position moves only if a call returns `Ok`. After an error it is where it was.
/// 4. Each write goes to the kernel before its call returns, so there is no `flush`.
/// 5. The opening of a FIFO does not wait for its other side. A FIFO or a terminal has no offsets:
///    the calls from the position on read what comes next and write behind what was written, and
///    the position counts the bytes. A call at an offset may fail with `ESPIPE`.
///    [`pipe`](crate::pipe) and [`stdio`](crate::stdio) have streams for these.
///
/// # Examples
/// ```
/// use selvedge::fs::File;
/// use std::io::SeekFrom;
///
/// selvedge::run_local(async {
///     let directory = tempfile::tempdir()?;
///     let path = directory.path().join("cloth");
///     let mut file = File::options().read(true).write(true).create(true).open(&path).await?;
///     file.write_all(b"warp and weft\n").await?;
///     file.seek(SeekFrom::Start(9)).await?;
///     assert_eq!(file.read_to_string().await?, "weft\n");
///
///     // At an offset. The call owns the buffer meanwhile, and gives it back.
///     let (read, buffer) = file.read_at(vec![0; 4], 0).await;
///     assert_eq!(&buffer[..read?], b"warp");
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Paper
/// [LZ07 §4.2]: `sys_file_open`, `sys_aio_read`.
#[derive(Debug)]
pub struct File {
    pub(super) opened: Arc<Opened>,
    /// `None` until the position is used: most files that many threads share never use it.
    pub(super) cursor: Option<Box<Cursor>>,
}

impl Clone for File {
    fn clone(&self) -> File {
        let mut file = File { opened: self.opened.clone(), cursor: None };
        if self.position() > 0 {
            file.set_position(self.position());
        }
        file
    }
}

/// Why bytes could not be read without an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Uncached {
    /// They are not in memory. Later bytes may be.
    Now,
    /// No bytes of this file are read so.
    Always,
    /// The file has no offsets.
    Seekless,
}

impl File {
    pub(super) fn new(opened: Opened) -> File {
        File { opened: Arc::new(opened), cursor: None }
    }

    /// Opens a file for reading. The opening of a FIFO does not wait for a writer.
    ///
    /// # Errors
    /// With the path in the message: not there, not permitted, no descriptors left.
    #[doc(alias = "sys_file_open")]
    pub async fn open(path: impl Into<PathBuf>) -> io::Result<File> {
        OpenOptions::new().read(true).open(path).await
    }

    /// Opens a file for writing; creates it if it is not there, and empties it if it is.
    ///
    /// # Errors
    /// With the path in the message: not permitted, a directory, no descriptors left.
    pub async fn create(path: impl Into<PathBuf>) -> io::Result<File> {
        OpenOptions::new().write(true).create(true).truncate(true).open(path).await
    }

    /// Creates a file for reading and writing, which must not be there yet.
    ///
    /// # Errors
    /// With the path in the message: there already, not permitted, no descriptors left.
    pub async fn create_new(path: impl Into<PathBuf>) -> io::Result<File> {
        OpenOptions::new().read(true).write(true).create_new(true).open(path).await
    }

    /// The other ways to open a file.
    pub fn options() -> OpenOptions {
        OpenOptions::new()
    }

    /// The file's status now.
    ///
    /// # Errors
    /// With the path in the message; only a network file system has any.
    pub async fn metadata(&self) -> io::Result<Metadata> {
        status(Some(self.opened.clone()), self.path(), true).await.map_err(at("stat", self.path()))
    }

    /// The file's length now, in bytes.
    ///
    /// # Errors
    /// As for [`metadata`](Self::metadata).
    pub async fn len(&self) -> io::Result<u64> {
        Ok(self.metadata().await?.len())
    }

    /// Reads from `offset` on into `buffer`, at most as many bytes as its length. Returns the
    /// number of bytes, which is 0 at the file's end only, and the buffer. A short read is no sign
    /// of the end.
    ///
    /// # Errors
    /// With the path in the message. The buffer comes back in any case.
    pub async fn read_at<B: Buffer>(&self, buffer: B, offset: u64) -> (io::Result<usize>, B) {
        self.fill(buffer, 0, offset).await
    }

    /// Reads bytes that are in memory from `offset` on, without an operation. `Err` if an operation
    /// has to read them.
    pub(super) fn read_cached_at(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Uncached> {
        // A direct read waits for the disk in spite of the flag.
        if self.opened.direct {
            return Err(Uncached::Always);
        }
        match sys::pread_ahead_of(&*self.opened, buffer, offset) {
            // `preadv2` of Linux 5.9 and 5.10 may return 0 before the end (its manual, BUGS). So an
            // operation finds the end.
            Some(Ok(0)) if !buffer.is_empty() => Err(Uncached::Now),
            Some(Ok(read)) => Ok(read),
            Some(Err(Errno::AGAIN | Errno::INTR)) => Err(Uncached::Now),
            Some(Err(error)) if self.lacks_offsets(&error.into()) => Err(Uncached::Seekless),
            Some(Err(_)) | None => Err(Uncached::Always),
        }
    }

    /// Fills `buffer` from `offset` on, and returns it.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before. Otherwise as [`read_at`](Self::read_at).
    pub async fn read_exact_at<B: Buffer>(&self, buffer: B, offset: u64) -> (io::Result<()>, B) {
        let mut transfer = self.transfer(buffer, 0, offset);
        let length = transfer.bytes.as_mut_slice().len();
        while transfer.start < length {
            let read;
            (read, transfer) = transferred(OperationFuture::new(Operation::Read(transfer)).await);
            let end = || io::Error::new(io::ErrorKind::UnexpectedEof, "it ends before");
            match read.and_then(|n| if n == 0 { Err(end()) } else { Ok(n) }) {
                Ok(n) => {
                    transfer.start += n;
                    transfer.offset += n as u64;
                }
                Err(error) => return (Err(at("read", self.path())(error)), B::from_bytes(transfer.bytes)),
            }
        }
        (Ok(()), B::from_bytes(transfer.bytes))
    }

    /// Reads up to `length` bytes from `offset` on, and returns them. It is one read: like
    /// [`read_at`](Self::read_at) it may return fewer bytes, and none at the file's end only.
    ///
    /// The operation takes a recycled buffer when it begins. So a thread that waits for its turn
    /// holds no buffer. This is the call for very many threads.
    ///
    /// # Errors
    /// With the path in the message.
    ///
    /// # Complexity
    /// No allocation, as long as programs drop the buffers.
    ///
    /// # Paper
    /// [LZ07 Figure 15]: `sys_aio_read`.
    #[doc(alias = "sys_aio_read")]
    pub fn read_aligned_at(
        &self,
        offset: u64,
        length: u32,
    ) -> impl Future<Output = io::Result<AlignedBuf>> + '_ {
        let transfer = Transfer { file: self.opened.clone(), bytes: Bytes::ToCome(length), offset, start: 0 };
        Reading { file: self, doing: OperationFuture::new(Operation::Read(transfer)) }
    }

    /// Writes the beginning of `buffer` at `offset`. Returns the number of bytes, and the buffer.
    ///
    /// # Errors
    /// With the path in the message: no room, not opened for writing. The buffer comes back in any
    /// case.
    pub async fn write_at<B: Buffer>(&self, buffer: B, offset: u64) -> (io::Result<usize>, B) {
        let transfer = self.transfer(buffer, 0, offset);
        let (written, transfer) = transferred(OperationFuture::new(Operation::Write(transfer)).await);
        (written.map_err(at("write", self.path())), B::from_bytes(transfer.bytes))
    }

    /// Writes all of `buffer` at `offset`, and returns it.
    ///
    /// # Errors
    /// As for [`write_at`](Self::write_at). The number of bytes written is not known then.
    pub async fn write_all_at<B: Buffer>(&self, buffer: B, offset: u64) -> (io::Result<()>, B) {
        let mut transfer = self.transfer(buffer, 0, offset);
        let length = transfer.bytes.as_mut_slice().len();
        while transfer.start < length {
            let written;
            (written, transfer) = transferred(OperationFuture::new(Operation::Write(transfer)).await);
            let none = || io::Error::from(io::ErrorKind::WriteZero);
            match written.and_then(|n| if n == 0 { Err(none()) } else { Ok(n) }) {
                Ok(n) => {
                    transfer.start += n;
                    transfer.offset += n as u64;
                }
                Err(error) => return (Err(at("write", self.path())(error)), B::from_bytes(transfer.bytes)),
            }
        }
        (Ok(()), B::from_bytes(transfer.bytes))
    }

    /// All bytes from `offset` on.
    pub(super) async fn read_rest(&self, offset: u64) -> io::Result<Vec<u8>> {
        // A file in /proc reports the length 0.
        let length = self.metadata().await?.len().saturating_sub(offset);
        let length = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1).max(READ_MIN);
        let mut content = zeros(length).map_err(at("read", self.path()))?;
        let mut filled = 0;
        loop {
            let (mut read, mut buffer) =
                self.fill(content, filled, offset.saturating_add(filled as u64)).await;
            if read.as_ref().is_err_and(|error| self.lacks_offsets(error)) {
                read = self.read_next(&mut buffer[filled..]).await;
            }
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

    /// Sets the length of the file. Bytes behind the new end are lost; a file that grows gets
    /// zeros. The blocking pool makes this call.
    ///
    /// # Errors
    /// With the path in the message: not opened for writing, longer than the file system allows.
    pub async fn set_len(&self, len: u64) -> io::Result<()> {
        let file = self.opened.clone();
        made(move || sys::truncate(&*file, len)).await.map_err(at("set the length of", self.path()))
    }

    /// Waits until everything written to the file is on the disk, with all of its metadata.
    /// "Everything" is each write that has returned `Ok`, of any `File` and of any program. The
    /// name is no part of that: to have the name on the disk, open its directory and sync it in the
    /// same way.
    ///
    /// # Errors
    /// With the path in the message: an earlier write did not reach the disk.
    pub async fn sync_all(&self) -> io::Result<()> {
        self.sync(false).await
    }

    /// Waits until everything written to the file is on the disk, with the metadata that a reader
    /// needs.
    ///
    /// # Errors
    /// As for [`sync_all`](Self::sync_all).
    pub async fn sync_data(&self) -> io::Result<()> {
        self.sync(true).await
    }

    async fn sync(&self, data: bool) -> io::Result<()> {
        let (outcome, _) = OperationFuture::new(Operation::Sync { file: self.opened.clone(), data }).await;
        result(outcome).map(drop).map_err(at("sync", self.path()))
    }

    /// The path by which the file was opened.
    pub fn path(&self) -> &Path {
        &self.opened.path
    }

    /// Reads into a part of a buffer.
    async fn fill<B: Buffer>(&self, buffer: B, start: usize, offset: u64) -> (io::Result<usize>, B) {
        let transfer = self.transfer(buffer, start, offset);
        let (read, transfer) = transferred(OperationFuture::new(Operation::Read(transfer)).await);
        (read.map_err(at("read", self.path())), B::from_bytes(transfer.bytes))
    }

    pub(super) fn transfer<B: Buffer>(&self, buffer: B, start: usize, offset: u64) -> Transfer {
        Transfer { file: self.opened.clone(), bytes: buffer.into_bytes(), offset, start }
    }
}

/// The fewest bytes that [`read_rest`](File::read_rest) asks for.
const READ_MIN: usize = 512;

pub(super) fn transferred((outcome, operation): (i32, Operation)) -> (io::Result<usize>, Transfer) {
    match operation {
        Operation::Read(transfer) | Operation::Write(transfer) => (result(outcome), transfer),
        other => unreachable!("a transfer was asked for, not {other:?}"),
    }
}

impl AsFd for File {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.opened.as_fd()
    }
}

/// The future of [`File::read_aligned_at`].
#[derive(Debug)]
struct Reading<'a> {
    file: &'a File,
    doing: OperationFuture,
}

impl Future for Reading<'_> {
    type Output = io::Result<AlignedBuf>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<AlignedBuf>> {
        let (read, transfer) = transferred(ready!(Pin::new(&mut self.doing).poll(cx)));
        let read = read.map_err(at("read", self.file.path()));
        Poll::Ready(read.map(|length| {
            let Bytes::Aligned(mut buffer) = transfer.bytes else { unreachable!("the operation has begun") };
            buffer.set_len(length);
            buffer
        }))
    }
}
