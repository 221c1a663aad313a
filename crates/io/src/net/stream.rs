//! `Stream`: a connected stream socket, and all reading and writing of bytes.
//!
//! `TcpStream` and `UnixStream` dereference to it; a connection thread of the web server (`http`)
//! and `Compat` (`compat`) use it directly. Methods that wait go through `NonBlocking`; the `try_`
//! methods make one call for callers that wait by other means. Every read ends in `note_read` and
//! every write in `note_written`, because these decide whether the next call waits first:
//! `shorts.rs` says what a short read proves for each kind of stream.

use crate::NonBlocking;
use crate::error;
use crate::nonblocking::PollState;
use crate::shorts::Shorts;
use crate::sys::{self, Fd};
use rustix::io::Errno;
use selvedge_core::Time;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::{IpAddr, Shutdown, SocketAddr, SocketAddrV4, SocketAddrV6};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A connection: bytes in order, in both directions.
///
/// All methods take `&self`, so that one thread may read while another writes.
///
/// If the peer is gone, writing fails with `BrokenPipe` or `ConnectionReset`, without a signal.
/// (Only [`send_file`](Self::send_file) cannot suppress SIGPIPE; Rust programs ignore SIGPIPE from
/// their start.)
///
/// # Paper
/// [LZ07 Figure 11]: blocking calls built from non-blocking ones; `sock_send`, `sock_recv`.
#[derive(Debug)]
pub struct Stream {
    io: NonBlocking<Fd>,
    /// The peer's address, for errors: the kernel no longer knows the peer of a broken connection.
    peer: PeerAddress,
}

/// A peer's address in half the room of a `SocketAddr`, because every connection has one.
#[derive(Debug)]
enum PeerAddress {
    Unknown,
    V4(SocketAddrV4),
    V6(Box<SocketAddrV6>),
}

impl PeerAddress {
    fn address(&self) -> Option<SocketAddr> {
        match self {
            PeerAddress::Unknown => None,
            PeerAddress::V4(address) => Some((*address).into()),
            PeerAddress::V6(address) => Some((**address).into()),
        }
    }
}

impl From<SocketAddr> for PeerAddress {
    fn from(address: SocketAddr) -> PeerAddress {
        match address {
            SocketAddr::V4(address) => PeerAddress::V4(address),
            SocketAddr::V6(address) => PeerAddress::V6(Box::new(address)),
        }
    }
}

impl Stream {
    /// Takes over a connected TCP socket in non-blocking mode.
    pub(crate) fn tcp(io: NonBlocking<Fd>, peer: SocketAddr) -> Stream {
        Stream { io: io.with_shorts(Shorts::Prove), peer: peer.into() }
    }

    /// Takes over a connected Unix stream socket in non-blocking mode.
    pub(crate) fn unix(io: NonBlocking<Fd>) -> Stream {
        Stream { io: io.with_shorts(Shorts::ProveUnlessCut), peer: PeerAddress::Unknown }
    }

    /// The network address of the other end, as it was when the connection was accepted or made.
    /// `None` for a Unix socket, and for a stream that was [taken over](Self::from_fd).
    pub fn peer_ip(&self) -> Option<IpAddr> {
        Some(self.peer.address()?.ip())
    }

    /// Takes over a connected stream socket, and puts it into non-blocking mode. The socket is, for
    /// example, inherited from another process, or half of a pair. If it is neither a TCP nor a
    /// Unix socket, each wait costs one call more, because only a failed call proves that such a
    /// socket is empty.
    ///
    /// # Errors
    /// If the descriptor does not accept non-blocking mode.
    pub fn from_fd(fd: OwnedFd) -> io::Result<Stream> {
        let io = NonBlocking::new(Fd::from(fd))?;
        let shorts = Shorts::of(&io);
        Ok(Stream { io: io.with_shorts(shorts), peer: PeerAddress::Unknown })
    }

    /// Reads the bytes that are there, but at least one byte, into `buffer`, and returns how many.
    /// Returns 0 when the peer has closed its direction (or the buffer has no room).
    ///
    /// # Errors
    /// Those of `recv`, and `TimedOut` after the [read deadline](Self::set_read_deadline).
    ///
    /// # Complexity
    /// One `recv` in the usual case: after a read that came back short, the next read waits first.
    #[inline]
    pub fn read(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        self.named(Direction::Reading, self.io.read_into(buffer.len(), |_| self.try_read(buffer)))
    }

    /// Appends the bytes that are there, but at least one byte, to `buffer`, within its spare
    /// capacity, and returns how many. Returns 0 when the peer has closed its direction. The spare
    /// capacity is not zeroed first.
    ///
    /// # Errors
    /// As for [`read`](Self::read).
    ///
    /// # Panics
    /// If `buffer` has no spare capacity.
    #[inline]
    pub fn read_to_spare(&self, buffer: &mut Vec<u8>) -> impl Future<Output = io::Result<usize>> {
        assert!(buffer.len() < buffer.capacity(), "there must be room to read into");
        self.named(Direction::Reading, self.io.read_with(|_| self.try_read_to_spare(buffer)))
    }

    /// Makes a call that reads without waiting, again after each wait, until it does not block. It
    /// is for callers that take room for the bytes only when there may be some.
    ///
    /// # Errors
    /// Those of `call`, and `TimedOut` after the [read deadline](Self::set_read_deadline).
    #[inline]
    pub fn read_with<R>(
        &self,
        mut call: impl FnMut(&Stream) -> io::Result<R> + Unpin,
    ) -> impl Future<Output = io::Result<R>> {
        self.named(Direction::Reading, self.io.read_with(move |_| call(self)))
    }

    /// Reads until `buffer` is full.
    ///
    /// # Errors
    /// As for [`read`](Self::read), and `UnexpectedEof` when the peer closes its direction before
    /// that.
    pub fn read_exact(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<()>> {
        self.named(Direction::Reading, self.io.read_exact_with(buffer, |buffer| self.try_read(buffer)))
    }

    /// Reads without waiting.
    ///
    /// # Errors
    /// Those of `recv`, `WouldBlock` among them.
    #[inline]
    pub fn try_read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let room = buffer.len();
        if room == 0 {
            return Ok(0);
        }
        let (read, cut) = match self.io.shorts() {
            Shorts::ProveUnlessCut => sys::recv_message(&self.io, buffer)?,
            _ => (sys::recv(&self.io, buffer)?, false),
        };
        self.io.note_read(read, room, cut);
        Ok(read)
    }

    /// Appends without waiting. Otherwise like [`read_to_spare`](Self::read_to_spare).
    ///
    /// # Errors
    /// Those of `recv`, `WouldBlock` among them.
    #[inline]
    pub fn try_read_to_spare(&self, buffer: &mut Vec<u8>) -> io::Result<usize> {
        let room = buffer.capacity() - buffer.len();
        let (read, cut) = match self.io.shorts() {
            Shorts::ProveUnlessCut => sys::recv_message_to_spare(&self.io, buffer)?,
            _ => (sys::recv_to_spare(&self.io, buffer)?, false),
        };
        self.io.note_read(read, room, cut);
        Ok(read)
    }

    /// Like [`try_read`](Self::try_read), into memory that need not be initialised. If the call
    /// returns `n`, the first `n` bytes are initialised.
    ///
    /// # Errors
    /// Those of `recv`, `WouldBlock` among them.
    #[inline]
    pub fn try_read_uninit(&self, buffer: &mut [MaybeUninit<u8>]) -> io::Result<usize> {
        let room = buffer.len();
        if room == 0 {
            return Ok(0);
        }
        let (read, cut) = match self.io.shorts() {
            Shorts::ProveUnlessCut => sys::recv_message_uninit(&self.io, buffer)?,
            _ => (sys::recv_uninit(&self.io, buffer)?, false),
        };
        self.io.note_read(read, room, cut);
        Ok(read)
    }

    /// Writes as many of `bytes` as there is room for, but at least one byte, and returns how many.
    ///
    /// # Errors
    /// Those of `send`, and `TimedOut` after the [write deadline](Self::set_write_deadline).
    #[inline]
    pub fn write(&self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> {
        self.named(Direction::Writing, self.io.write_from(bytes.len(), |_| self.try_send(bytes, false)))
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// As for [`write`](Self::write). After an error the number of written bytes is unknown.
    #[inline]
    pub fn write_all(&self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> {
        self.send_all(bytes, false)
    }

    /// Writes all of `bytes` as the first part of a message, for example a head before a body that
    /// [`send_file`](Self::send_file) sends. The rest must follow at once, because the kernel keeps
    /// an incomplete packet back until the rest comes (`MSG_MORE`), for 200 ms at most.
    ///
    /// # Errors
    /// As for [`write_all`](Self::write_all).
    #[inline]
    pub fn write_all_more(&self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> {
        self.send_all(bytes, true)
    }

    /// Writes as many bytes of the concatenation of `parts` as there is room for, and returns how
    /// many.
    ///
    /// # Errors
    /// As for [`write`](Self::write).
    #[inline]
    pub fn write_vectored(&self, parts: &[IoSlice<'_>]) -> impl Future<Output = io::Result<usize>> {
        self.named(Direction::Writing, self.io.write_with(|_| self.try_write_vectored(parts)))
    }

    /// Writes the concatenation of `parts`, in one system call if there is room. The slices in
    /// `parts` are changed.
    ///
    /// # Errors
    /// As for [`write_all`](Self::write_all).
    pub fn write_all_vectored(&self, mut parts: &mut [IoSlice<'_>]) -> impl Future<Output = io::Result<()>> {
        self.named(
            Direction::Writing,
            self.io.write_with(move |_| {
                IoSlice::advance_slices(&mut parts, 0); // skips empty parts in front
                if parts.is_empty() {
                    return Ok(());
                }
                let some = &parts[..parts.len().min(PARTS_MAX)];
                let length = length_of(some);
                let written = self.try_write_vectored(some)?;
                IoSlice::advance_slices(&mut parts, written);
                match (parts.is_empty(), written < length) {
                    (true, _) => Ok(()),
                    (false, true) => Err(io::ErrorKind::WouldBlock.into()), // the socket is full
                    // More parts are left than one call takes.
                    (false, false) => Err(io::ErrorKind::Interrupted.into()),
                }
            }),
        )
    }

    /// Writes without waiting.
    ///
    /// # Errors
    /// Those of `send`, `WouldBlock` among them.
    #[inline]
    pub fn try_write(&self, bytes: &[u8]) -> io::Result<usize> {
        self.try_send(bytes, false)
    }

    /// Writes as many bytes of the concatenation of `parts` as there is room for, without waiting.
    ///
    /// # Errors
    /// Those of `sendmsg`, `WouldBlock` among them; `InvalidInput` for more than 1,024 parts.
    #[inline]
    pub fn try_write_vectored(&self, parts: &[IoSlice<'_>]) -> io::Result<usize> {
        let written = sys::send_vectored(&self.io, parts)?;
        self.io.note_written(written, length_of(parts));
        Ok(written)
    }

    #[inline]
    fn send_all(&self, bytes: &[u8], more: bool) -> impl Future<Output = io::Result<()>> {
        self.named(Direction::Writing, self.io.write_all_with(bytes, move |bytes| self.try_send(bytes, more)))
    }

    /// Writes without waiting. With `more`, the rest of a message follows at once, as for
    /// [`write_all_more`](Self::write_all_more).
    ///
    /// # Errors
    /// Those of `send`, `WouldBlock` among them.
    #[inline]
    pub fn try_send(&self, bytes: &[u8], more: bool) -> io::Result<usize> {
        let written = sys::send(&self.io, bytes, more)?;
        self.io.note_written(written, bytes.len());
        Ok(written)
    }

    /// Sends at most `count` bytes of `file` from `offset` on without waiting for the socket, moves
    /// `offset` behind them, and returns their number; 0 at the end of the file. The calling OS
    /// thread waits for pages of the file that are not in memory.
    ///
    /// # Errors
    /// Those of `sendfile`, `WouldBlock` among them.
    #[inline]
    pub fn try_send_file(&self, file: impl AsFd, offset: &mut u64, count: usize) -> io::Result<usize> {
        Ok(sys::send_file(&self.io, file, offset, count)?)
    }

    /// The number of bytes that were written and that the other end has not acknowledged: of a
    /// broken connection, the bytes that are lost. For a Unix socket it is the memory that these
    /// bytes take.
    ///
    /// # Errors
    /// Those of `ioctl`.
    pub fn unacknowledged(&self) -> io::Result<usize> {
        Ok(sys::unacknowledged(&self.io)?)
    }

    /// Makes a call that reads without waiting, for code that polls: see
    /// [`NonBlocking::poll_read_with`].
    ///
    /// # Errors
    /// Those of `call`, and `TimedOut` after the [read deadline](Self::set_read_deadline).
    #[inline]
    pub fn poll_read_with<R>(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        mut call: impl FnMut(&Stream) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.io.poll_read_with(state, cx, |_| call(self))
    }

    /// Makes a call that writes without waiting, for code that polls: see
    /// [`NonBlocking::poll_write_with`].
    ///
    /// # Errors
    /// Those of `call`, and `TimedOut` after the [write deadline](Self::set_write_deadline).
    #[inline]
    pub fn poll_write_with<R>(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        mut call: impl FnMut(&Stream) -> io::Result<R>,
    ) -> Poll<io::Result<R>> {
        self.io.poll_write_with(state, cx, |_| call(self))
    }

    /// Closes one direction, or both. The peer reads all bytes that were written before, and then
    /// the end.
    ///
    /// # Errors
    /// `NotConnected` when the peer is gone already.
    pub fn shutdown(&self, how: Shutdown) -> io::Result<()> {
        let how = match how {
            Shutdown::Read => rustix::net::Shutdown::Read,
            Shutdown::Write => rustix::net::Shutdown::Write,
            Shutdown::Both => rustix::net::Shutdown::Both,
        };
        Ok(sys::shutdown(&self.io, how)?)
    }

    /// Waits until there is something to read, or the peer has closed. So an idle connection need
    /// not hold a buffer. The result is a hint: see [`NonBlocking::readable`].
    ///
    /// # Errors
    /// `TimedOut` after the [read deadline](Self::set_read_deadline).
    #[inline]
    pub fn readable(&self) -> impl Future<Output = io::Result<()>> {
        self.io.readable()
    }

    /// Waits until there may be room to write. The result is a hint: see [`NonBlocking::writable`].
    ///
    /// # Errors
    /// `TimedOut` after the [write deadline](Self::set_write_deadline).
    #[inline]
    pub fn writable(&self) -> impl Future<Output = io::Result<()>> {
        self.io.writable()
    }

    /// Sets the point in time after which reading fails with `TimedOut`:
    /// see [`NonBlocking::set_read_deadline`].
    #[inline]
    pub fn set_read_deadline(&self, deadline: Option<Time>) {
        self.io.set_read_deadline(deadline);
    }

    /// Sets the point in time after which writing fails with `TimedOut`:
    /// see [`NonBlocking::set_write_deadline`].
    #[inline]
    pub fn set_write_deadline(&self, deadline: Option<Time>) {
        self.io.set_write_deadline(deadline);
    }

    /// Wraps a future so that its errors name the peer.
    #[inline]
    pub(crate) fn named<F>(&self, doing: Direction, future: F) -> PeerNamed<'_, F> {
        PeerNamed { stream: self, doing, future }
    }

    #[cold]
    fn name(&self, doing: Direction, error: io::Error) -> io::Error {
        match (self.peer.address(), doing) {
            (None, _) => error,
            (Some(peer), Direction::Reading) => error::doing(format_args!("read from {peer}"))(error),
            (Some(peer), Direction::Writing) => error::doing(format_args!("write to {peer}"))(error),
        }
    }

    pub(crate) fn io(&self) -> &NonBlocking<Fd> {
        &self.io
    }

    /// Turns the stream into its descriptor, which stays in non-blocking mode.
    pub fn into_fd(self) -> OwnedFd {
        self.io.into_inner().into()
    }
}

/// The kind of work that a future does on a stream.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Direction {
    Reading,
    Writing,
}

/// A future with errors that name the stream's peer.
#[derive(Debug)]
pub(crate) struct PeerNamed<'a, F> {
    stream: &'a Stream,
    doing: Direction,
    future: F,
}

impl<T, F: Future<Output = io::Result<T>> + Unpin> Future for PeerNamed<'_, F> {
    type Output = io::Result<T>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        let this = self.get_mut();
        match Pin::new(&mut this.future).poll(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(this.stream.name(this.doing, error))),
            other => other,
        }
    }
}

fn length_of(parts: &[IoSlice<'_>]) -> usize {
    parts.iter().map(|part| part.len()).sum()
}

/// The most parts that one `sendmsg` takes (`IOV_MAX`).
const PARTS_MAX: usize = 1024;

impl AsFd for Stream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}

/// Waits for the outcome of a `connect` that is under way.
pub(crate) async fn connected(io: &NonBlocking<Fd>) -> io::Result<()> {
    loop {
        io.writable().await?;
        sys::socket_error(io)??;
        match sys::peer_address(io) {
            Ok(_) => return Ok(()),
            Err(Errno::NOTCONN) => {} // resumed too early
            Err(error) => return Err(error.into()),
        }
    }
}
