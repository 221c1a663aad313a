//! `Position`: a file as a stream, with a place in the file that reading and writing move. It
//! implements `Read` and `Write` of [`crate::io`].
//!
//! `File::stream` makes it. The kernel's own file position is not used: every transfer names its
//! offset, so several positions in one file do not disturb each other.

use super::File;
use super::file::MayBeCached;
use crate::io::{Read, Write};
use selvedge_core::budget;
use std::future::poll_fn;
use std::io;
use std::task::{Poll, ready};

/// The most bytes that one operation moves.
const PIECE: usize = 64 << 10;

/// The most bytes that one call copies from memory. It counts as a call for each `PIECE` in the
/// thread's budget, so the thread lets others run.
const CACHED: usize = 4 * PIECE;

/// A place in a file, from [`File::stream`] or [`File::stream_from`]. Reads and writes go on from
/// there. A file may have several.
///
/// Bytes that are read ahead stay in the [`BufReader`](crate::io::BufReader) around it. Its own
/// buffer belongs to the operation under way and is used again by the next one, so only the first
/// operation allocates.
///
/// # Cancellation
/// A read that is given up does not move the position. A write that is given up may be done or not,
/// and the position stays before it.
///
/// # Examples
/// ```
/// use selvedge::fs::File;
///
/// selvedge::run_local(async {
///     let mut lines = File::open("Cargo.toml").await?.stream().lines();
///     assert_eq!(lines.next().await?.as_deref(), Some("[package]"));
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Position {
    file: File,
    offset: u64,
    /// The buffer is kept for its memory.
    piece: Vec<u8>,
    /// Whether the file can be read without an operation, where its bytes are in memory.
    cached: bool,
    /// Whether the last read found its bytes in memory.
    in_memory: bool,
}

impl File {
    /// The file as a stream, from its start.
    #[doc(alias = "reader")]
    #[doc(alias = "writer")]
    pub fn stream(self) -> Position {
        self.stream_from(0)
    }

    /// The file as a stream, from an offset in bytes.
    #[doc(alias = "seek")]
    pub fn stream_from(self, offset: u64) -> Position {
        Position { file: self, offset, piece: Vec::new(), cached: true, in_memory: false }
    }
}

impl Position {
    /// The position, in bytes from the start.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// Moves the position. What is read and written next lies at `offset`, in bytes from the start.
    pub fn set_offset(&mut self, offset: u64) {
        self.offset = offset;
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Whether the last read found its bytes in memory and waited for no disk. The next read
    /// probably does too.
    pub fn was_in_memory(&self) -> bool {
        self.in_memory
    }

    /// The stream with a buffer, to read it by lines, for example.
    pub fn buffered(self) -> crate::io::BufReader<Position> {
        crate::io::BufReader::new(self)
    }

    /// The lines from here on.
    pub fn lines(self) -> crate::io::Lines<Position> {
        self.buffered().lines()
    }
}

impl Position {
    /// Reads bytes that are in memory. `None` if the disk has to be waited for.
    async fn read_cached(&mut self, buffer: &mut [u8]) -> Option<usize> {
        if !self.cached {
            return None;
        }
        let room = buffer.len().min(CACHED);
        poll_fn(|cx| {
            ready!(budget::spend_on_call(cx));
            let read = self.file.read_cached_at(&mut buffer[..room], self.offset);
            match read {
                Ok(read) => budget::charge(budget::CALL * (read.saturating_sub(1) / PIECE) as u32),
                Err(MayBeCached(later)) => {
                    self.cached = later;
                    budget::refund(budget::CALL);
                }
            }
            Poll::Ready(read.ok())
        })
        .await
    }
}

impl Read for Position {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read_cached(buffer).await;
        self.in_memory = read.is_some();
        if let Some(read) = read {
            self.offset += read as u64;
            return Ok(read);
        }
        let mut piece = std::mem::take(&mut self.piece);
        piece.resize(buffer.len().min(PIECE), 0);
        let (read, piece) = self.file.read_at(piece, self.offset).await;
        self.piece = piece;
        let read = read?;
        buffer[..read].copy_from_slice(&self.piece[..read]);
        self.offset += read as u64;
        Ok(read)
    }
}

impl Write for Position {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut piece = std::mem::take(&mut self.piece);
        piece.clear();
        piece.extend_from_slice(&bytes[..bytes.len().min(PIECE)]);
        let (written, piece) = self.file.write_at(piece, self.offset).await;
        self.piece = piece;
        let written = written?;
        self.offset += written as u64;
        Ok(written)
    }
}
