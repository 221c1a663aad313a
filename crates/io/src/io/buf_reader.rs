//! Reading ahead, so that lines can be found.

use super::Read;
use std::io;

/// How much is read at once.
const CAPACITY: usize = 8192;
/// The longest line that is taken, without another word.
const LINE_MAX: usize = 1 << 20;

/// A reader with a buffer, to be read by lines and the like.
///
/// Its methods other than [`read_exact`](Read::read_exact) and [`read_to_end`](Read::read_to_end)
/// lose nothing when they are given up: what was read ahead stays in the buffer.
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
    /// What was read ahead is from `start` to `end`.
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    line_max: usize,
}

impl<R> BufReader<R> {
    /// Over a reader, with nothing read ahead. The buffer takes 8 KiB once it is used, and more for
    /// a longer line.
    pub fn new(inner: R) -> BufReader<R> {
        BufReader { inner, buffer: Vec::new(), start: 0, end: 0, line_max: LINE_MAX }
    }

    /// The longest line, in bytes and with its end, that is taken; 1 MiB if this is not called. A
    /// peer that never ends its line takes no more memory than that.
    pub fn line_max(self, bytes: usize) -> BufReader<R> {
        BufReader { line_max: bytes, ..self }
    }

    /// What was read ahead.
    pub fn buffer(&self) -> &[u8] {
        &self.buffer[self.start..self.end]
    }

    /// Takes so many bytes of what was read ahead away.
    ///
    /// # Panics
    /// If there are fewer.
    pub fn consume(&mut self, bytes: usize) {
        assert!(bytes <= self.end - self.start, "no more can be taken than was read ahead");
        self.start += bytes;
    }

    /// The reader below.
    pub fn get_ref(&self) -> &R {
        &self.inner
    }

    /// The reader below. What is read from it is not seen here.
    pub fn get_mut(&mut self) -> &mut R {
        &mut self.inner
    }

    /// Gives up the buffer, with what was read ahead, for the reader below.
    pub fn into_inner(self) -> R {
        self.inner
    }
}

impl<R: Read> BufReader<R> {
    /// Reads more, and adds it to what was read ahead. Returns how much that was; 0 at the end.
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

    /// Appends all up to the first `end`, and that, to `bytes`, or all that is left if it does not
    /// come; returns how much, which is 0 at the end.
    ///
    /// # Errors
    /// Those of the reader below; `InvalidData` when more than the [longest line](Self::line_max)
    /// was read ahead, all of which stays in the buffer.
    pub async fn read_until(&mut self, end: u8, bytes: &mut Vec<u8>) -> io::Result<usize> {
        let length = self.find(end).await?;
        bytes.extend_from_slice(&self.buffer()[..length]);
        self.consume(length);
        Ok(length)
    }

    /// Appends the next line to `line`, with its end, and returns its length in bytes; 0 at the
    /// end. The last line need not have an end.
    ///
    /// # Errors
    /// As for [`read_until`](Self::read_until); `InvalidData` for a line that is not UTF-8, which
    /// is skipped.
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

    /// How long it is to the first `wanted`, with that, or to the end, once it has been read ahead.
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
            // What is large need not be copied twice.
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
    /// The next line, without its end (`\n` or `\r\n`); `None` at the end. Giving up loses nothing.
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

    /// The reader, to be read on in another way.
    pub fn into_inner(self) -> BufReader<R> {
        self.reader
    }
}
