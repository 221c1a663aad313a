//! A file as a stream: with a position that reading and writing move.

use super::File;
use crate::io::{Read, Write};
use std::io;

/// How much one read or write moves at most.
const PIECE: usize = 64 << 10;

/// A place in a file, from [`File::stream`] or [`File::stream_from`]: reads and writes go on from
/// there. Several may be in one file.
///
/// What is read ahead, a [`BufReader`](crate::io::BufReader) over it keeps. Its own buffer belongs
/// to the operation under way; it is kept from one to the next, so that none but the first
/// allocates.
///
/// # Cancellation
/// A read that is given up does not move the position. Of a write that is given up it is not known
/// whether it is done, and the position stays before it.
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
    /// Kept for its memory.
    piece: Vec<u8>,
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
        Position { file: self, offset, piece: Vec::new() }
    }
}

impl Position {
    /// Where it is, in bytes from the start.
    pub fn offset(&self) -> u64 {
        self.offset
    }

    /// The file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// With a buffer, to be read by lines and the like.
    pub fn buffered(self) -> crate::io::BufReader<Position> {
        crate::io::BufReader::new(self)
    }

    /// The lines from here on.
    pub fn lines(self) -> crate::io::Lines<Position> {
        self.buffered().lines()
    }
}

impl Read for Position {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
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
