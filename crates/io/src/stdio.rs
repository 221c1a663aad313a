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
//!
//! A stream that the process was started without (`>&-` in a shell) is an error here. Those of
//! [`std::io`] are then empty and take all bytes.

mod closed;

use crate::error::doing;
use crate::io::{BufReader, Lines, Read};
use crate::sys::{self, Fd};
use crate::{NonBlocking, blocking};
use rustix::fs::FileType;
use std::fmt;
use std::io;
use std::os::fd::{BorrowedFd, RawFd};
use std::pin::Pin;
use std::sync::Arc;

/// The way in which a thread waits for a standard stream.
#[derive(Debug)]
enum Way {
    /// By readiness, through an open file of this process's own.
    Ready(NonBlocking<Fd>),
    /// On the pool, through a duplicate of the descriptor.
    Pool(Arc<Fd>),
}

/// A read on the pool, with its buffer, which comes back with the number of bytes that were read.
type PoolRead = Pin<Box<dyn Future<Output = io::Result<(usize, Vec<u8>)>> + Send + Sync>>;

/// Chooses the way for a standard descriptor.
///
/// # Errors
/// If the descriptor is closed, or was closed when the process began.
fn way(number: RawFd, name: &'static str, write: bool) -> io::Result<Way> {
    // SAFETY: the numbers 0, 1 and 2 belong to the process for as long as it runs. If one of them
    // were closed, the calls below would fail.
    let fd = unsafe { BorrowedFd::borrow_raw(number) };
    let find = || -> io::Result<Way> {
        if closed::was_closed(number, fd) {
            return Err(rustix::io::Errno::BADF.into());
        }
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
    let input = Input { way: way(0, "standard input", false)?, begun: None, left: Vec::new() };
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

/// How many bytes one write on the pool has at most.
const COPIED: usize = 256 << 10;

impl Stdin {
    /// Reads the bytes that are there, but at least one byte, into `buffer`, and returns how many;
    /// 0 at the end. Giving up loses nothing: if the pool performs the read, the bytes go to the
    /// next call.
    ///
    /// # Errors
    /// Those of `read`.
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
struct Input {
    way: Way,
    /// A read on the pool that was given up, or that is under way. It has taken its bytes from the
    /// input, or will take them.
    begun: Option<PoolRead>,
    /// The bytes that a read on the pool has brought and that found no room in the caller's buffer.
    left: Vec<u8>,
}

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Input { way, begun, left } = self;
        f.debug_struct("Input")
            .field("way", way)
            .field("begun", &begun.is_some())
            .field("left", &left.len())
            .finish()
    }
}

impl Input {
    /// Reads on the pool at most `room` bytes into `left`. Giving up leaves the read in `begun`.
    async fn read_on_pool(&mut self, fd: &Arc<Fd>, room: usize) -> io::Result<()> {
        let begin = || -> PoolRead {
            let (fd, mut buffer) = (fd.clone(), vec![0; room.min(PIECE)]);
            let read = blocking(move || sys::read(&*fd, &mut buffer).map(|length| (length, buffer)));
            Box::pin(async { Ok(read.await??) })
        };
        let read = self.begun.get_or_insert_with(begin).await;
        self.begun = None;
        let (length, buffer) = read?;
        self.left = buffer;
        self.left.truncate(length);
        Ok(())
    }
}

impl Read for Input {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.way {
            Way::Ready(io) => io.read_into(buffer.len(), |fd| Ok(sys::read(fd, &mut *buffer)?)).await,
            Way::Pool(fd) => {
                if self.left.is_empty() && !buffer.is_empty() {
                    let fd = fd.clone();
                    self.read_on_pool(&fd, buffer.len()).await?;
                }
                let length = self.left.len().min(buffer.len());
                buffer[..length].copy_from_slice(&self.left[..length]);
                self.left.drain(..length);
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
                // The thread of the pool needs a copy, which is small however much is written.
                for piece in bytes.chunks(COPIED) {
                    let (fd, bytes) = (fd.clone(), piece.to_vec());
                    let write = blocking(move || {
                        let mut left = &bytes[..];
                        while !left.is_empty() {
                            match sys::write(&*fd, left) {
                                Err(rustix::io::Errno::INTR) => {}
                                written => left = &left[written?..],
                            }
                        }
                        Ok::<_, io::Error>(())
                    });
                    write.await??;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pool::shared;
    use futures::executor::block_on;
    use futures::poll;
    use std::io::Write;
    use std::os::fd::OwnedFd;
    use std::os::unix::net::UnixStream;
    use std::pin::pin;

    #[test]
    fn a_read_on_the_pool_that_is_given_up_leaves_its_bytes_to_the_next() {
        let (mut sender, socket) = UnixStream::pair().unwrap();
        let way = Way::Pool(Arc::new(OwnedFd::from(socket).into()));
        let mut input = Input { way, begun: None, left: Vec::new() };
        block_on(async {
            for _ in 0..3 {
                assert!(poll!(pin!(input.read(&mut [0; 8]))).is_pending());
                // A job that no OS thread has taken yet would read nothing after all.
                while shared().load().queued > 0 {
                    std::thread::yield_now();
                }
            }
            sender.write_all(b"some of the").unwrap();
            drop(sender);
            let (mut all, mut buffer) = (Vec::new(), [0; 3]);
            loop {
                match input.read(&mut buffer).await.unwrap() {
                    0 => break,
                    read => all.extend_from_slice(&buffer[..read]),
                }
            }
            assert_eq!(all, b"some of the");
        });
    }
}
