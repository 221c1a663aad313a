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
use crate::io::{BufReader, Lines, Read};
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
    let input = Input { way: way(0, "standard input", false)? };
    Ok(Stdin { reader: BufReader::new(input).line_max(usize::MAX) })
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
#[derive(Debug)]
pub struct Stdin {
    reader: BufReader<Input>,
}

/// How much is read at once on the pool.
const PIECE: usize = 8192;

impl Stdin {
    /// Reads what is there, but at least one byte, into `buffer`, and returns how much; 0 at the end.
    ///
    /// # Errors
    /// Those of `read`.
    ///
    /// If it is waited for on the pool, a read that is given up still takes the next input away.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).await
    }

    /// Appends the next line to `line`, with its end, and returns its length in bytes; 0 at the end of the input. Giving up loses nothing
    /// of the line.
    ///
    /// # Errors
    /// Those of `read`; `InvalidData` for a line that is not UTF-8, which is skipped.
    pub async fn read_line(&mut self, line: &mut String) -> io::Result<usize> {
        self.reader.read_line(line).await
    }

    /// The lines, one after the other, however long.
    ///
    /// # Examples
    /// ```
    /// use selvedge::stdio;
    ///
    /// selvedge::run_local(async {
    ///     let mut lines = stdio::stdin()?.lines();
    ///     while let Some(line) = lines.next().await? {
    ///         println!("{} characters", line.chars().count());
    ///     }
    ///     std::io::Result::Ok(())
    /// })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lines(self) -> Lines<impl Read + fmt::Debug> {
        self.reader.lines()
    }
}

/// Standard input without a buffer.
#[derive(Debug)]
struct Input {
    way: Way,
}

impl Read for Input {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.way {
            Way::Ready(io) => io.read_into(buffer.len(), |fd| Ok(sys::read(fd, &mut *buffer)?)).await,
            Way::Pool(fd) => {
                let (fd, mut room) = (fd.clone(), vec![0; buffer.len().min(PIECE)]);
                let read = blocking(move || sys::read(&*fd, &mut room).map(|length| (length, room)));
                let (length, read) = read.await??;
                buffer[..length].copy_from_slice(&read[..length]);
                Ok(length)
            }
        }
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
