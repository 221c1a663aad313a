//! Standard input, output and error of the process.
//!
//! The process does not choose the kind of these streams: they may be terminals, pipes or files.
//! Threads wait for a terminal or a pipe by readiness. A file is read and written on the [blocking
//! pool](crate::pool).
//!
//! Non-blocking mode belongs to the open file. The process shares the open file with the shell that
//! started it and with its own children, and they break if a terminal stays in non-blocking mode.
//! So terminals and pipes are opened once more (`/proc/self/fd`), and only this process's new open
//! file gets the mode. Where a second opening is not permitted, and for sockets, the pool reads and
//! writes, as for files.
//!
//! These streams are separate from those of [`std::io`]: they do not write the bytes that
//! `println!` has buffered, and they do not see the bytes that [`std::io::stdin`] has read ahead.

use crate::error::doing;
use crate::io::{BufReader, Lines, Read};
use crate::sys::{self, Fd};
use crate::{NonBlocking, blocking};
use rustix::fs::FileType;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::sync::Arc;

/// The way in which a thread waits for a standard stream.
#[derive(Debug)]
enum Way {
    /// By readiness, through an open file of this process's own.
    Ready(NonBlocking<Fd>),
    /// On the pool, through a duplicate of the descriptor.
    Pool(Arc<Fd>),
}

/// Chooses the way for a standard descriptor.
///
/// # Errors
/// If the descriptor is closed.
fn way(number: RawFd, name: &'static str, write: bool) -> io::Result<Way> {
    // SAFETY: the numbers 0, 1 and 2 belong to the process for as long as it runs. If one of them
    // were closed, the calls below would fail.
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
/// If it is closed, or if the process has no descriptors left.
///
/// # Examples
/// ```no_run
/// # async fn f() -> std::io::Result<()> {
/// let mut input = selvedge::stdio::stdin()?;
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
/// If it is closed, or if the process has no descriptors left.
///
/// # Examples
/// ```
/// # futures::executor::block_on(async {
/// selvedge::stdio::stdout()?.write_all(b"hello\n").await
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
pub fn stdout() -> io::Result<Output> {
    Ok(Output { way: way(1, "standard output", true)? })
}

/// Standard error.
///
/// # Errors
/// If it is closed, or if the process has no descriptors left.
pub fn stderr() -> io::Result<Output> {
    Ok(Output { way: way(2, "standard error", true)? })
}

/// Standard input, from [`stdin`]. Two `Stdin` values take each other's input away.
#[derive(Debug)]
pub struct Stdin {
    reader: BufReader<Input>,
}

/// The number of bytes that one read on the pool asks for.
const PIECE: usize = 8192;

impl Stdin {
    /// Reads the bytes that are there, but at least one byte, into `buffer`, and returns how many;
    /// 0 at the end.
    ///
    /// # Errors
    /// Those of `read`.
    ///
    /// If the pool performs the read, a read that is given up still takes the next input away.
    pub async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.reader.read(buffer).await
    }

    /// Appends the next line to `line`, with its line end, and returns its length in bytes; 0 at
    /// the end of the input. Giving up loses nothing of the line.
    ///
    /// # Errors
    /// Those of `read`; `InvalidData` for a line that is not UTF-8. That line is skipped.
    pub async fn read_line(&mut self, line: &mut String) -> io::Result<usize> {
        self.reader.read_line(line).await
    }

    /// The lines, one after the other. A line may have any length.
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
    /// Writes all of `bytes`. Bytes that several threads write at the same time may be mixed.
    ///
    /// # Errors
    /// Those of `write`: `BrokenPipe` when the reading end is closed. After an error the number of
    /// written bytes is unknown.
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
