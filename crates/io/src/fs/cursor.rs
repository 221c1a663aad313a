//! `Cursor`: the position of a `File`, and the methods of `File` that read and write from there on.
//! They implement `Read` and `Write` of [`crate::io`].
//!
//! The kernel's own file position is not used: every transfer names its offset, so several
//! positions in one file do not disturb each other. A file without offsets is `seekless.rs`'s.
//!
//! The rule of this file: the position moves when a call returns `Ok`, and never otherwise. And a
//! write stays in the `Cursor` until it is over, also when the future of its call is dropped. So
//! the next call of the same `File` waits for the write, and the kernel never performs the two in
//! the other order.

use super::answer::at;
use super::buffer::AlignedBuf;
use super::file::{File, Uncached, transferred};
use super::operation::Operation;
use super::operation_future::OperationFuture;
use crate::io::{BufReader, Lines, Read, Write};
use rustix::io::Errno;
use selvedge_core::budget;
use std::future::poll_fn;
use std::io::{self, SeekFrom};
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::task::{Poll, ready};

/// The most bytes that one operation moves.
const PIECE: usize = 64 << 10;

/// The most bytes that one call copies from memory. It counts as a call for each `PIECE` in the
/// thread's budget, so the thread lets others run.
const CACHED: usize = 4 * PIECE;

/// The position of a [`File`], and what its next call has to know.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    position: u64,
    /// Whether every read has to be an operation, because reads of bytes in memory are of no use
    /// here.
    uncached: bool,
    /// Whether the file is known to have no offsets (`seekless.rs`).
    seekless: bool,
    /// Whether the last read found its bytes in memory.
    in_memory: bool,
    /// The write that the kernel may still be busy with. Only `&mut self` reaches it: the mutex
    /// makes a `File` `Sync` and is never locked.
    writing: Mutex<Option<OperationFuture>>,
}

impl Cursor {
    fn writing(&mut self) -> &mut Option<OperationFuture> {
        self.writing.get_mut().unwrap_or_else(PoisonError::into_inner)
    }
}

impl File {
    fn cursor(&mut self) -> &mut Cursor {
        self.cursor.get_or_insert_default()
    }

    /// The position: the offset in bytes from the file's start at which the next
    /// [`read`](Self::read) begins, and the next [`write`](Self::write), unless it appends.
    #[doc(alias = "stream_position")]
    pub fn position(&self) -> u64 {
        self.cursor.as_ref().map_or(0, |cursor| cursor.position)
    }

    /// Moves the position to an offset in bytes from the file's start. It may lie behind the end:
    /// a read there finds the end, and a write there fills the gap with zeros.
    pub fn set_position(&mut self, position: u64) {
        self.cursor().position = position;
    }

    /// Moves the position, and returns it. It may lie behind the end: a read there finds the end,
    /// and a write there fills the gap with zeros.
    ///
    /// # Errors
    /// With the path in the message: `InvalidInput` for a position before the file's start, or
    /// behind the last that a file can have. With [`SeekFrom::End`] also those of
    /// [`metadata`](Self::metadata).
    ///
    /// # Cancellation
    /// The position is where it was.
    ///
    /// # Complexity
    /// With [`SeekFrom::End`] one question to the file system, otherwise none.
    #[doc(alias = "lseek")]
    pub async fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.finish_given_up().await;
        let (from, by) = match to {
            SeekFrom::Start(position) => (position, 0),
            SeekFrom::Current(by) => (self.position(), by),
            SeekFrom::End(by) => (self.len().await?, by),
        };
        let position = from.checked_add_signed(by).filter(|position| i64::try_from(*position).is_ok());
        let position = position.ok_or_else(|| at("seek in", self.path())(Errno::INVAL.into()))?;
        self.set_position(position);
        Ok(position)
    }

    /// Moves the position to the file's start.
    ///
    /// # Errors
    /// None. A `Result` is what the standard library's method of this name returns.
    pub async fn rewind(&mut self) -> io::Result<()> {
        self.seek(SeekFrom::Start(0)).await.map(drop)
    }

    /// Reads from the position on into `buffer`, at least one byte, and moves the position by the
    /// number of bytes, which it returns. It is 0 at the file's end, or if `buffer` has no room. A
    /// short read is no sign of the end.
    ///
    /// Bytes that are in memory come without an operation, on this OS thread. Otherwise one
    /// operation reads up to 64 KiB.
    ///
    /// # Errors
    /// With the path in the message: not opened for reading, a directory, the disk's.
    ///
    /// # Cancellation
    /// The position is where it was, so the next read returns the same bytes. `buffer` is as it
    /// was: the kernel fills memory of the operation.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let position = self.position();
        let read = self.read_piece(buffer, position).await?;
        self.cursor().position = position + read as u64;
        Ok(read)
    }

    /// Reads from the position on until `buffer` is full, and moves the position by its length.
    ///
    /// # Errors
    /// `UnexpectedEof` if the file ends before. Otherwise as [`read`](Self::read). The position is
    /// where it was.
    ///
    /// # Cancellation
    /// The position is where it was. A part of `buffer` may have been filled.
    pub async fn read_exact(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let (position, mut filled) = (self.position(), 0);
        while filled < buffer.len() {
            match self.read_piece(&mut buffer[filled..], position + filled as u64).await? {
                0 => return Err(at("read", self.path())(io::ErrorKind::UnexpectedEof.into())),
                read => filled += read,
            }
        }
        self.cursor().position = position + filled as u64;
        Ok(())
    }

    /// All bytes from the position on. The position moves to the end.
    ///
    /// # Errors
    /// As [`read`](Self::read); `OutOfMemory` if there is more than the memory that is left. The
    /// position is where it was.
    ///
    /// # Cancellation
    /// The position is where it was, so the next call returns the same bytes.
    pub async fn read_to_end(&mut self) -> io::Result<Vec<u8>> {
        self.finish_given_up().await;
        let position = self.position();
        let content = self.read_rest(position).await?;
        self.cursor().position = position + content.len() as u64;
        Ok(content)
    }

    /// All bytes from the position on, as text. The position moves to the end.
    ///
    /// # Errors
    /// As [`read_to_end`](Self::read_to_end), and `InvalidData` if it is not UTF-8. The position is
    /// where it was.
    ///
    /// # Cancellation
    /// As [`read_to_end`](Self::read_to_end).
    pub async fn read_to_string(&mut self) -> io::Result<String> {
        self.finish_given_up().await;
        let position = self.position();
        let text = String::from_utf8(self.read_rest(position).await?);
        let text = text.map_err(|error| {
            at("read", self.path())(io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
        })?;
        self.cursor().position = position + text.len() as u64;
        Ok(text)
    }

    /// Writes the beginning of `bytes` at the position, at least one byte and at most 64 KiB, and
    /// moves the position by the number of bytes, which it returns. In
    /// [append](super::OpenOptions::append) mode it writes at the file's end, and the position
    /// stays.
    ///
    /// # Errors
    /// With the path in the message: no room, not opened for writing.
    ///
    /// # Cancellation
    /// The position is where it was. The file may have all of these bytes, a part of them, or none;
    /// a second write of the same bytes there makes it sure, unless the file appends. The next
    /// call waits until the kernel has finished with this one.
    ///
    /// # Complexity
    /// The bytes are copied once, because the operation owns the memory that the kernel reads.
    /// [`write_all_at`](Self::write_all_at) takes over a buffer and copies nothing.
    pub async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let position = self.position();
        let written = self.write_piece(bytes, position).await?;
        self.move_behind(position, written);
        Ok(written)
    }

    /// Writes all of `bytes` at the position, and moves the position by their number. In
    /// [append](super::OpenOptions::append) mode it writes at the file's end, and the position
    /// stays.
    ///
    /// Up to 64 KiB are one write, which other appending programs do not divide on a local file
    /// system.
    ///
    /// # Errors
    /// As for [`write`](Self::write), and `WriteZero` if the file takes no more. A part of the
    /// bytes may have been written, and the position is where it was.
    ///
    /// # Cancellation
    /// As for [`write`](Self::write).
    pub async fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (position, mut done) = (self.position(), 0);
        while done < bytes.len() {
            match self.write_piece(&bytes[done..], position.saturating_add(done as u64)).await? {
                0 => return Err(at("write", self.path())(io::ErrorKind::WriteZero.into())),
                written => done += written,
            }
        }
        self.move_behind(position, done);
        Ok(())
    }

    /// The file with a buffer, to read it by lines and the like, from the position on. The buffer
    /// reads ahead, so the position is behind the bytes that the buffer has returned.
    pub fn buffered(self) -> BufReader<File> {
        BufReader::new(self)
    }

    /// The lines from the position on.
    ///
    /// # Examples
    /// ```
    /// use selvedge::fs::File;
    ///
    /// selvedge::run_local(async {
    ///     let mut lines = File::open("Cargo.toml").await?.lines();
    ///     assert_eq!(lines.next().await?.as_deref(), Some("[package]"));
    ///     std::io::Result::Ok(())
    /// })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lines(self) -> Lines<File> {
        self.buffered().lines()
    }

    /// Whether the last [`read`](Self::read) found its bytes in memory and waited for no disk. The
    /// next read probably does too.
    pub fn was_in_memory(&self) -> bool {
        self.cursor.as_ref().is_some_and(|cursor| cursor.in_memory)
    }

    /// Reads bytes at an offset, from memory or by one operation. Where there are no offsets, it
    /// reads the bytes that come next.
    async fn read_piece(&mut self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.finish_given_up().await;
        let read = self.read_cached(buffer, offset).await;
        self.cursor().in_memory = read.is_some();
        if let Some(read) = read {
            return Ok(read);
        }
        if !self.cursor().seekless {
            match self.read_aligned_at(offset, buffer.len().min(PIECE) as u32).await {
                Ok(piece) => {
                    buffer[..piece.len()].copy_from_slice(&piece);
                    return Ok(piece.len());
                }
                Err(error) if self.lacks_offsets(&error) => self.cursor().seekless = true,
                Err(error) => return Err(error),
            }
        }
        self.read_next(buffer).await
    }

    /// Reads bytes that are in memory. `None` if the disk has to be waited for.
    async fn read_cached(&mut self, buffer: &mut [u8], offset: u64) -> Option<usize> {
        if self.cursor().uncached {
            return None;
        }
        let room = buffer.len().min(CACHED);
        poll_fn(|cx| {
            ready!(budget::spend_on_call(cx));
            let read = self.read_cached_at(&mut buffer[..room], offset);
            match read {
                Ok(read) => budget::charge(budget::CALL * (read.saturating_sub(1) / PIECE) as u32),
                Err(why) => {
                    self.cursor().uncached = why != Uncached::Now;
                    self.cursor().seekless |= why == Uncached::Seekless;
                    budget::refund(budget::CALL);
                }
            }
            Poll::Ready(read.ok())
        })
        .await
    }

    /// Writes bytes at an offset by one operation, which stays in the cursor until it is over.
    /// Where there are no offsets, it writes them behind what was written.
    async fn write_piece(&mut self, bytes: &[u8], offset: u64) -> io::Result<usize> {
        self.finish_given_up().await;
        if self.cursor().seekless {
            return self.write_next(bytes).await;
        }
        let mut piece = AlignedBuf::recycled(bytes.len().min(PIECE));
        let length = piece.len();
        piece.copy_from_slice(&bytes[..length]);
        let write = OperationFuture::new(Operation::Write(self.transfer(piece, 0, offset)));
        *self.cursor().writing() = Some(write);
        match self.finish_writing().await {
            Err(error) if self.lacks_offsets(&error) => {
                self.cursor().seekless = true;
                self.write_next(bytes).await
            }
            written => written.map_err(at("write", self.path())),
        }
    }

    /// After this no write of a call that was dropped is under way. A write that has not been asked
    /// for is dropped, and its outcome is not told, because its call has no reader for it.
    async fn finish_given_up(&mut self) {
        let Some(cursor) = &mut self.cursor else { return };
        match cursor.writing() {
            None => {}
            Some(write) if write.is_unsent() => *cursor.writing() = None,
            Some(_) => drop(self.finish_writing().await),
        }
    }

    /// Waits until the write in the cursor is over, and takes it out.
    async fn finish_writing(&mut self) -> io::Result<usize> {
        let writing = self.cursor().writing();
        poll_fn(|cx| {
            let write = writing.as_mut().expect("the caller has put it there, or has seen it");
            let (written, _) = transferred(ready!(Pin::new(write).poll(cx)));
            *writing = None;
            Poll::Ready(written)
        })
        .await
    }

    /// Moves the position behind bytes that were written, unless they went to the file's end.
    fn move_behind(&mut self, position: u64, written: usize) {
        if !self.opened.append {
            self.cursor().position = position + written as u64;
        }
    }
}

impl Read for File {
    fn read(&mut self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send {
        File::read(self, buffer)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> impl Future<Output = io::Result<()>> + Send {
        File::read_exact(self, buffer)
    }

    fn read_to_end(&mut self) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        File::read_to_end(self)
    }

    fn read_to_string(&mut self) -> impl Future<Output = io::Result<String>> + Send {
        File::read_to_string(self)
    }
}

impl Write for File {
    fn write(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> + Send {
        File::write(self, bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> + Send {
        File::write_all(self, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::super::operation::Opened;
    use super::super::queue::{OperationQueue, Performer, Ticket};
    use super::*;
    use rustix::fs::OFlags;
    use selvedge_core::{Cpu, Trace};
    use std::io::{Read as _, Seek};
    use std::os::fd::OwnedFd;
    use std::pin::pin;
    use std::sync::Arc;

    /// An empty file, and another handle to look at its content.
    fn files(flags: OFlags) -> (File, std::fs::File) {
        let file = tempfile::tempfile().unwrap();
        let look = file.try_clone().unwrap();
        (File::new(Opened::new(OwnedFd::from(file).into(), "file".into(), flags)), look)
    }

    fn content(mut look: &std::fs::File) -> String {
        let mut content = String::new();
        look.rewind().unwrap();
        look.read_to_string(&mut content).unwrap();
        content
    }

    /// Performs an operation that has begun, as a slow performer does.
    fn perform(queue: &OperationQueue, ticket: Ticket) {
        let mut state = queue.lock();
        let outcome = state.operation(ticket).perform();
        let completed = state.complete(ticket, outcome);
        drop(state);
        drop(completed);
    }

    /// Runs `main` in a thread. Nothing but `main` itself performs the thread's operations.
    fn with_a_queue<F: Future<Output = ()> + 'static>(main: impl FnOnce(Arc<OperationQueue>) -> F) {
        let queue = Arc::new(OperationQueue::new(Performer::Loop, None));
        OperationQueue::set_here(Some(queue.clone()));
        let mut cpu = Cpu::new().unwrap();
        let thread = cpu.thread(main(queue)).unwrap();
        assert!(matches!(thread.step(&mut cpu), Trace::Ret));
        OperationQueue::set_here(None);
    }

    #[test]
    fn a_write_that_was_given_up_is_over_before_the_next_one_begins() {
        with_a_queue(async |queue| {
            let (mut file, look) = files(OFlags::empty());
            assert!(futures::poll!(pin!(file.write_all(b"old"))).is_pending());
            let old = queue.lock().begin().unwrap();
            assert_eq!(file.position(), 0);

            {
                let mut next = pin!(file.write_all(b"new"));
                assert!(futures::poll!(&mut next).is_pending());
                assert!(queue.lock().begin().is_none(), "the new write waits for the old one");
                perform(&queue, old);
                assert!(futures::poll!(&mut next).is_pending());
                let new = queue.lock().begin().unwrap();
                perform(&queue, new);
                assert!(futures::poll!(&mut next).is_ready());
            }
            assert_eq!((content(&look).as_str(), file.position()), ("new", 3));
        });
    }

    #[test]
    fn reads_and_seeks_wait_for_a_write_that_was_given_up() {
        with_a_queue(async |queue| {
            let (mut file, _look) = files(OFlags::empty());
            let mut buffer = [0; 4];
            assert!(futures::poll!(pin!(file.write(b"warp"))).is_pending());
            let write = queue.lock().begin().unwrap();
            {
                let mut read = pin!(file.read(&mut buffer));
                assert!(futures::poll!(&mut read).is_pending());
                perform(&queue, write);
                assert!(futures::poll!(&mut read).is_ready(), "the bytes are in memory");
            }
            assert_eq!((&buffer, file.position()), (b"warp", 4));

            assert!(futures::poll!(pin!(file.write(b"weft"))).is_pending());
            let write = queue.lock().begin().unwrap();
            {
                let mut seek = pin!(file.seek(SeekFrom::Current(-4)));
                assert!(futures::poll!(&mut seek).is_pending());
                perform(&queue, write);
                assert!(futures::poll!(&mut seek).is_ready());
            }
            assert_eq!(file.position(), 0);
        });
    }

    #[test]
    fn a_dropped_file_lets_go_of_its_write() {
        with_a_queue(async |queue| {
            let (mut file, look) = files(OFlags::APPEND);
            // One has not begun, the other has.
            assert!(futures::poll!(pin!(file.write(b"never"))).is_pending());
            drop(file.clone());
            drop(file);
            assert_eq!(queue.awaited(), 0);
            let next = queue.lock().begin();
            next.into_iter().for_each(|close| perform(&queue, close));
            assert!(queue.lock().begin().is_none() && content(&look).is_empty());

            let (mut file, look) = files(OFlags::APPEND);
            assert!(futures::poll!(pin!(file.write(b"done"))).is_pending());
            let write = queue.lock().begin().unwrap();
            drop(file);
            perform(&queue, write);
            assert_eq!((content(&look).as_str(), queue.awaited()), ("done", 0));
        });
    }
}
