//! Standard input, output and error of the process.
//!
//! What they are, the process does not choose: terminals, pipes, files. A terminal or a pipe is waited for by readiness, a file is read and
//! written on the [blocking pool](crate::pool).
//!
//! Non-blocking mode belongs to the open file, which the process shares with the shell that started it and with
//! its own children; to leave a terminal in that mode breaks them. So terminals and pipes are opened once more
//! (`/proc/self/fd`), and only this process's own opening gets the mode. Where that is not permitted, and for sockets, the pool
//! does it, as for files.
//!
//! These streams are apart from those of [`std::io`]: what `println!` has buffered is not written by them, and what
//! [`std::io::stdin`] has read ahead they do not see.

use crate::error::doing;
use crate::sys::{self, Fd};
use crate::{NonBlocking, blocking};
use rustix::fs::FileType;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

/// How a standard stream is waited for.
#[derive(Debug)]
enum Way {
    /// By readiness, through an opening of our own.
    Ready(NonBlocking<Fd>),
    /// On the pool, through a duplicate of the descriptor.
    Pool(Arc<Fd>),
}

/// The way for a standard descriptor.
///
/// # Errors
/// If it is closed.
fn way(number: RawFd, name: &'static str, write: bool) -> io::Result<Way> {
    // SAFETY: 0, 1 and 2 are the process's for as long as it runs; were one closed, the calls below would say so.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    let find = || -> io::Result<Way> {
        let kind = FileType::from_raw_mode(rustix::fs::fstat(fd)?.st_mode);
        if (kind == FileType::Fifo || kind == FileType::CharacterDevice && rustix::termios::isatty(fd))
            && let Ok(own) = sys::reopen(fd, write)
        {
            return Ok(Way::Ready(NonBlocking::assume(own)));
        }
        Ok(Way::Pool(Arc::new(sys::duplicate(fd)?)))
    };
    find().map_err(doing(name))
}

/// Standard input.
///
/// # Errors
/// If it is closed, or the process has no descriptors left.
///
/// # Examples
/// ```no_run
/// # async fn f() -> std::io::Result<()> {
/// let mut input = selvedge_io::stdio::stdin()?;
/// let mut line = String::new();
/// while input.read_line(&mut line).await? > 0 {
///     println!("{} bytes", line.len());
///     line.clear();
/// }
/// # Ok(()) }
/// ```
pub fn stdin() -> io::Result<Stdin> {
    Ok(Stdin { way: way(0, "standard input", false)?, ahead: Vec::new() })
}

/// Standard output.
///
/// # Errors
/// If it is closed, or the process has no descriptors left.
///
/// # Examples
/// ```
/// # futures::executor::block_on(async {
/// selvedge_io::stdio::stdout()?.write_all(b"hello\n").await
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn stdout() -> io::Result<Output> {
    Ok(Output { way: way(1, "standard output", true)? })
}

/// Standard error.
///
/// # Errors
/// If it is closed, or the process has no descriptors left.
pub fn stderr() -> io::Result<Output> {
    Ok(Output { way: way(2, "standard error", true)? })
}

/// Standard input, from [`stdin`]. Two of them take each other's input away.
pub struct Stdin {
    way: Way,
    /// Read ahead by `read_line`.
    ahead: Vec<u8>,
}

/// How much is read at once, to find lines in it.
const AHEAD: usize = 8192;

impl Stdin {
    /// Reads what is there, but at least one byte, into `buffer`, and returns how much; 0 at the end.
    ///
    /// # Errors
    /// Those of `read`.
    ///
    /// If it is waited for on the pool, a read that is given up still takes the next input away.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if !self.ahead.is_empty() {
            let length = self.ahead.len().min(buffer.len());
            buffer[..length].copy_from_slice(&self.ahead[..length]);
            self.ahead.drain(..length);
            return Ok(length);
        }
        match &self.way {
            Way::Ready(io) => io.read_into(buffer.len(), |fd| Ok(sys::read(fd, &mut *buffer)?)).await,
            Way::Pool(fd) => {
                let (fd, mut room) = (fd.clone(), vec![0; buffer.len().min(AHEAD)]);
                let read = blocking(move || sys::read(&*fd, &mut room).map(|length| (length, room)));
                let (length, read) = read.await??;
                buffer[..length].copy_from_slice(&read[..length]);
                Ok(length)
            }
        }
    }

    /// Appends the next line to `line`, with its end, and returns its length in bytes; 0 at the end of the input. Giving up loses nothing
    /// of the line.
    ///
    /// # Errors
    /// Those of `read`; `InvalidData` for a line that is not UTF-8, which is skipped.
    pub async fn read_line(&mut self, line: &mut String) -> io::Result<usize> {
        let mut searched = 0;
        let length = loop {
            if let Some(end) = self.ahead[searched..].iter().position(|&byte| byte == b'\n') {
                break searched + end + 1;
            }
            searched = self.ahead.len();
            let mut more = [0; AHEAD];
            // What is ahead is taken out of the way, for `read` to go to the source; and put back if that is given up.
            let mut ahead = PutBack { ahead: std::mem::take(&mut self.ahead), of: self };
            let read = ahead.of.read(&mut more).await?;
            ahead.ahead.extend_from_slice(&more[..read]);
            drop(ahead);
            if read == 0 {
                break self.ahead.len();
            }
        };
        let bytes: Vec<u8> = self.ahead.drain(..length).collect();
        let text =
            String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
        line.push_str(&text);
        Ok(length)
    }
}

/// Puts back what was read ahead.
struct PutBack<'a> {
    ahead: Vec<u8>,
    of: &'a mut Stdin,
}

impl Drop for PutBack<'_> {
    fn drop(&mut self) {
        self.of.ahead = std::mem::take(&mut self.ahead);
    }
}

impl fmt::Debug for Stdin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stdin").field("way", &self.way).field("ahead", &self.ahead.len()).finish()
    }
}

/// Standard output or standard error, from [`stdout`] or [`stderr`]. Nothing is buffered.
#[derive(Debug)]
pub struct Output {
    way: Way,
}

impl Output {
    /// Writes all of `bytes`. What several threads write at once may be mixed.
    ///
    /// # Errors
    /// Those of `write`: `BrokenPipe` when nobody reads any more; how much was written is not known then.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        match &self.way {
            Way::Ready(io) => {
                let write = io.write_with(move |fd| {
                    while !bytes.is_empty() {
                        bytes = &bytes[sys::write(fd, bytes)?..];
                    }
                    Ok(())
                });
                write.await
            }
            Way::Pool(fd) => {
                let (fd, bytes) = (fd.clone(), bytes.to_vec());
                let write = blocking(move || {
                    let mut left = &bytes[..];
                    while !left.is_empty() {
                        match sys::write(&*fd, left) {
                            Err(rustix::io::Errno::INTR) => {}
                            written => left = &left[written?..],
                        }
                    }
                    Ok(())
                });
                write.await?
            }
        }
    }
}
