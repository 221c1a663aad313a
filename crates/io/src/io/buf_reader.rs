//! `BufReader` reads ahead, so that ends of lines can be found; `Lines` gives the lines of one.
//!
//! Streams make them in their methods `buffered` and `lines` (`streams.rs`, `pipe.rs`,
//! `fs/cursor.rs`), and `Stdin` has one inside. Bytes that were read ahead are in the `BufReader`
//! alone: a future of this file that is dropped loses none, because `fill` counts bytes only when
//! its read has returned.

use super::Read;
use std::io;

/// The number of bytes that one read asks for.
const CAPACITY: usize = 8192;
/// The longest line that is accepted, unless `line_max` sets another length.
const LINE_MAX: usize = 1 << 20;

/// A reader with a buffer, to read a stream by lines and the like.
///
/// Its methods other than [`read_exact`](Read::read_exact) and [`read_to_end`](Read::read_to_end)
/// lose nothing when they are given up, because the bytes that were read ahead stay in the buffer.
///
/// # Examples
/// ```
/// use selvedge::io::BufReader;
///
/// selvedge::run_local(async {
///     let mut reader = BufReader::new(&b"GET /\nHost: localhost\n\nbody"[..]);
///     let mut line = String::new();
///     while reader.read_line(&mut line).await? > 1 {
///         print!("{line}");
///         line.clear();
///     }
///     assert_eq!(reader.buffer(), b"body");
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct BufReader<R> {
    inner: R,
    /// The bytes that were read ahead are from `start` to `end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    line_max: usize,
}

impl<R> BufReader<R> {
    /// A buffer over a reader, with nothing read ahead. The buffer takes 8 KiB at its first use,
    /// and more for a longer line.
    pub fn new(inner: R) -> BufReader<R> {
        BufReader { inner, buffer: Vec::new(), start: 0, end: 0, line_max: LINE_MAX }
    }

    /// Sets the longest line, in bytes and with its line end, that is accepted. Without this call
    /// it is 1 MiB. A peer that never ends its line takes no more memory than that.
    pub fn line_max(self, bytes: usize) -> BufReader<R> {
        BufReader { line_max: bytes, ..self }
    }

    /// The bytes that were read ahead.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Removes `bytes` bytes from the front of the bytes that were read ahead.
    ///
    /// # Panics
    /// If fewer bytes were read ahead.
    pub fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.end - self.start, "no more can be taken than was read ahead");
        self.start += bytes;
    }

    /// The reader below the buffer.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// The reader below the buffer. The buffer does not see the bytes that the caller reads from
    /// it.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Drops the buffer, with the bytes that were read ahead, and returns the reader below it.
    pub fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: Read> BufReader<R> {
    /// Reads more bytes, and appends them to the bytes that were read ahead. Returns the number of
    /// new bytes; 0 at the end.
    ///
    /// # Errors
    /// Those of the reader below.
    pub async fn fill(&mut self) -> io::Result<usize> {
        if self.start > 0 && (self.start == self.end || self.end == self.buffer.len()) {
            self.buffer.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        if self.end == self.buffer.len() {
            self.buffer.resize((2 * self.end).max(CAPACITY), 0);
        }
        let read = self.inner.read(&mut self.buffer[self.end..]).await?;
        self.end += read;
        Ok(read)
    }

    /// Appends all bytes up to and including the first `end` to `bytes`; all bytes that are left if
    /// `end` does not come. Returns the number of bytes, which is 0 at the end.
    ///
    /// # Errors
    /// Those of the reader below; `InvalidData` when more than the [longest line](Self::line_max)
    /// was read ahead. All these bytes stay in the buffer.
    pub async fn read_until(&mut self, end: u8, bytes: &mut Vec<u8>) -> io::Result<usize> {
        let length = self.find(end).await?;
        bytes.extend_from_slice(&self.buffer()[..length]);
        self.consume(length);
        Ok(length)
    }

    /// Appends the next line to `line`, with its line end, and returns its length in bytes; 0 at
    /// the end. The last line need not have a line end.
    ///
    /// # Errors
    /// As for [`read_until`](Self::read_until); `InvalidData` for a line that is not UTF-8. That
    /// line is skipped.
    pub async fn read_line(&mut self, line: &mut String) -> io::Result<usize> {
        let length = self.find(b'\n').await?;
        let text = std::str::from_utf8(&self.buffer()[..length]).map(|text| line.push_str(text));
        self.consume(length);
        text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        Ok(length)
    }

    /// The lines, one after the other.
    pub fn lines(self) -> Lines<R> {
        Lines { reader: self }
    }

    /// Reads ahead until the first `wanted`, or the end. Returns the number of bytes up to there,
    /// with `wanted`.
    async fn find(&mut self, wanted: u8) -> io::Result<usize> {
        let mut searched = 0;
        loop {
            let ahead = self.buffer();
            if let Some(at) = ahead[searched..].iter().position(|&byte| byte == wanted) {
                return Ok(searched + at + 1);
            }
            searched = ahead.len();
            if searched > self.line_max {
                let text = format!("a line of more than {} bytes", self.line_max);
                return Err(io::Error::new(io::ErrorKind::InvalidData, text));
            }
            if self.fill().await? == 0 {
                return Ok(searched);
            }
        }
    }
}

impl<R: Read> Read for BufReader<R> {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.buffer().is_empty() {
            // A large read goes directly into `buffer`, so that its bytes are not copied twice.
            if buffer.len() >= CAPACITY {
                return self.inner.read(buffer).await;
            }
            self.fill().await?;
        }
        let length = buffer.len().min(self.buffer().len());
        buffer[..length].copy_from_slice(&self.buffer()[..length]);
        self.consume(length);
        Ok(length)
    }
}

/// The lines of a reader, without their ends, from [`BufReader::lines`].
#[derive(Debug)]
pub struct Lines<R> {
    reader: BufReader<R>,
}

impl<R: Read> Lines<R> {
    /// The next line, without its line end (`\n` or `\r\n`); `None` at the end. Giving up loses
    /// nothing.
    ///
    /// # Errors
    /// As for [`BufReader::read_line`].
    pub async fn next(&mut self) -> io::Result<Option<String>> {
        let mut line = String::new();
        if self.reader.read_line(&mut line).await? == 0 {
            return Ok(None);
        }
        if line.ends_with('\n') {
            line.pop();
            if line.ends_with('\r') {
                line.pop();
            }
        }
        Ok(Some(line))
    }

    /// The reader, to go on reading in another way.
    pub fn into_inner(self) -> BufReader<R> {
        self.reader
    }
}
