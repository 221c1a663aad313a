//! Pipes and FIFOs: bytes in order, in one direction.
//!
//! # Examples
//! ```
//! use selvedge::{round_robin_over, spawn};
//! use selvedge::{EventLoop, pipe};
//!
//! round_robin_over(&mut EventLoop::new()?, async {
//!     let (sender, receiver) = pipe::pipe()?;
//!     let reader = spawn(async move { receiver.read_to_end().await });
//!     sender.write_all(b"down the pipe").await?;
//!     drop(sender);
//!     assert_eq!(reader.await.unwrap()?, b"down the pipe");
//!     std::io::Result::Ok(())
//! })??;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use crate::NonBlocking;
use crate::error::doing;
use crate::nonblocking::PollState;
use crate::pool::Lane;
use crate::sys::{self, Fd};
use crate::time::sleep;
use crate::wait_reason::with_reason;
use rustix::io::Errno;
use selvedge_core::observe::{Object, WaitReason};
use selvedge_core::{Interest, Time};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// A new pipe: bytes that are written to one end are read from the other.
///
/// # Errors
/// If the process has no descriptors left.
///
/// # Paper
/// [LZ07 §4.3]: message passing by pipes and epoll.
pub fn pipe() -> io::Result<(Sender, Receiver)> {
    let (reader, writer) = sys::pipe()?;
    Ok((Sender { io: NonBlocking::assume(writer) }, Receiver { io: NonBlocking::assume(reader) }))
}

/// The writing end of a pipe. When the other end is closed, writing fails with
/// `BrokenPipe`. (Rust programs ignore SIGPIPE from their start.)
#[derive(Debug)]
pub struct Sender {
    io: NonBlocking<Fd>,
}

/// The reading end of a pipe.
#[derive(Debug)]
pub struct Receiver {
    io: NonBlocking<Fd>,
}

/// The pauses while the opening of a FIFO waits for a reader: the first, and the longest. The
/// opening looks again and again, because the kernel reports no such event.
const PAUSES: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(50));

impl Sender {
    /// Opens a FIFO for writing, and waits until a reader has it open.
    ///
    /// # Errors
    /// With the path in the message: not there, not permitted, not a FIFO.
    pub async fn open(path: impl Into<PathBuf>) -> io::Result<Sender> {
        let path = path.into();
        let mut pause = PAUSES.0;
        loop {
            match open_fifo(path.clone(), true).await {
                Err(error) if Errno::from_io_error(&error) == Some(Errno::NXIO) => {
                    sleep(pause).await;
                    pause = (2 * pause).min(PAUSES.1);
                }
                opened => return Ok(Sender { io: opened.map_err(opening(&path))? }),
            }
        }
    }

    /// Takes over the writing end of a pipe, and puts it into non-blocking mode.
    ///
    /// # Errors
    /// If the descriptor does not take the mode.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Sender> {
        Ok(Sender { io: NonBlocking::new(fd.into())? })
    }

    /// The writing end of a pipe to which a child has just been given the other end.
    pub(crate) fn of_child(writer: Fd) -> Sender {
        Sender { io: NonBlocking::assume(writer) }
    }

    /// Writes as many of `bytes` as there is room for, but at least one byte, and returns how many.
    ///
    /// # Errors
    /// Those of `write`, and `TimedOut` after the [deadline](Self::set_deadline).
    #[inline]
    pub fn write(&self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> {
        self.io.write_from(bytes.len(), |_| self.try_write(bytes))
    }

    /// Writes all of `bytes`. Up to 4,096 bytes are written in one piece, even while other
    /// processes write to the pipe.
    ///
    /// # Errors
    /// As for [`write`](Self::write). After an error the number of written bytes is unknown.
    pub fn write_all(&self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> {
        self.io.write_all_with(bytes, |bytes| self.try_write(bytes))
    }

    /// Writes without waiting.
    ///
    /// # Errors
    /// Those of `write`, `WouldBlock` among them.
    #[inline]
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        let written = sys::write(&self.io, bytes)?;
        self.io.note_written(written, bytes.len());
        Ok(written)
    }

    /// Makes a call that writes without waiting, for code that polls: see
    /// [`NonBlocking::poll_write_with`].
    ///
    /// # Errors
    /// Those of `call`, and `TimedOut` after the [deadline](Self::set_deadline).
    #[inline]
    pub fn poll_write_with<R>(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        mut call: impl FnMut(&Sender) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.io.poll_write_with(state, cx, |_| call(self))
    }

    /// Sets the point in time after which writing fails with `TimedOut`: see
    /// [`NonBlocking::set_write_deadline`].
    pub fn set_deadline(&self, deadline: Option<Time>) {
        self.io.set_write_deadline(deadline);
    }

    /// Gives up the end for its descriptor, which stays in non-blocking mode.
    pub fn into_fd(self) -> OwnedFd {
        self.io.into_inner().into()
    }
}

impl Receiver {
    /// Opens a FIFO for reading. The opening does not wait for a writer; the first read does.
    ///
    /// # Errors
    /// With the path in the message: not there, not permitted, not a FIFO.
    pub async fn open(path: impl Into<PathBuf>) -> io::Result<Receiver> {
        let path = path.into();
        let io = open_fifo(path.clone(), false).await.map_err(opening(&path))?;
        // A read before the first writer has come would find an end.
        io.drained(Interest::READ);
        Ok(Receiver { io })
    }

    /// Takes over the reading end of a pipe, and puts it into non-blocking mode.
    ///
    /// # Errors
    /// If the descriptor does not take the mode.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Receiver> {
        Ok(Receiver { io: NonBlocking::new(fd.into())? })
    }

    /// The reading end of a pipe to which a child has just been given the other end.
    pub(crate) fn of_child(reader: Fd) -> Receiver {
        let io = NonBlocking::assume(reader);
        // No child has written anything so soon.
        io.drained(Interest::READ);
        Receiver { io }
    }

    /// Reads the bytes that are there, but at least one byte, into `buffer`, and returns how many;
    /// 0 when no writer is left (or the buffer has no room).
    ///
    /// # Errors
    /// Those of `read`, and `TimedOut` after the [deadline](Self::set_deadline).
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        self.io.read_into(buffer.len(), |_| self.try_read(buffer))
    }

    /// Reads until `buffer` is full.
    ///
    /// # Errors
    /// As for [`read`](Self::read), and `UnexpectedEof` when no writer is left before.
    pub fn read_exact(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<()>> {
        self.io.read_exact_with(buffer, |buffer| self.try_read(buffer))
    }

    /// Reads until no writer is left.
    ///
    /// # Errors
    /// As for [`read`](Self::read); after an error the bytes that were read are lost.
    pub async fn read_to_end(&self) -> io::Result<Vec<u8>> {
        let mut content = Vec::new();
        loop {
            content.reserve(4096);
            if self.io.read_with(|fd| Ok(sys::read_to_spare(fd, &mut content)?)).await? == 0 {
                return Ok(content);
            }
        }
    }

    /// Reads without waiting.
    ///
    /// # Errors
    /// Those of `read`, `WouldBlock` among them.
    #[inline]
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        // A short read proves nothing: see `shorts`.
        Ok(sys::read(&self.io, buffer)?)
    }

    /// Makes a call that reads without waiting, for code that polls: see
    /// [`NonBlocking::poll_read_with`].
    ///
    /// # Errors
    /// Those of `call`, and `TimedOut` after the [deadline](Self::set_deadline).
    #[inline]
    pub fn poll_read_with<R>(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        mut call: impl FnMut(&Receiver) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.io.poll_read_with(state, cx, |_| call(self))
    }

    /// Waits until there is something to read, or no writer is left. It is a hint: see
    /// [`NonBlocking::readable`].
    ///
    /// # Errors
    /// `TimedOut` after the [deadline](Self::set_deadline).
    pub fn readable(&self) -> impl Future<Output = io::Result<()>> {
        self.io.readable()
    }

    /// Sets the point in time after which reading fails with `TimedOut`: see
    /// [`NonBlocking::set_read_deadline`].
    pub fn set_deadline(&self, deadline: Option<Time>) {
        self.io.set_read_deadline(deadline);
    }

    /// Gives up the end for its descriptor, which stays in non-blocking mode.
    pub fn into_fd(self) -> OwnedFd {
        self.io.into_inner().into()
    }
}

impl AsFd for Sender {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

impl AsFd for Receiver {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

fn opening(path: &Path) -> impl FnOnce(io::Error) -> io::Error {
    doing(format!("open {}", path.display()))
}

/// Opens an end of a FIFO on the blocking pool.
async fn open_fifo(path: PathBuf, write: bool) -> io::Result<NonBlocking<Fd>> {
    let name: Arc<str> = path.to_string_lossy().into();
    let reason = || WaitReason { call: "open", object: Object::Name(name.clone()) };
    let opened = Lane::Files.run(move || {
        let fd = sys::open_fifo(&path, write)?;
        match rustix::fs::FileType::from_raw_mode(sys::status(&fd)?.mode) {
            rustix::fs::FileType::Fifo => Ok(fd),
            _ => Err(io::Error::new(io::ErrorKind::InvalidInput, "not a FIFO")),
        }
    });
    Ok(NonBlocking::assume(with_reason(reason, opened).await.map_err(io::Error::from).flatten()?))
}
