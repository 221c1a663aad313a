//! `UnixDatagram`: messages between processes of one host. No datagram is lost, and they arrive in
//! order. Programs use it; nothing in this crate does.
//!
//! Readiness does not say whether the queue of the receiver that `send_to` names has room, so a
//! sender that finds it full sleeps and tries again.

use crate::NonBlocking;
use crate::error::doing;
use crate::sys::{self, Fd};
use crate::time::sleep;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrAny, SocketAddrUnix};
use selvedge_core::Time;
use std::ffi::OsStr;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// A Unix datagram socket.
///
/// All methods take `&self`, so that one thread may receive while another sends. If a datagram is
/// longer than the receiver's buffer, the rest of it is lost.
///
/// # Examples
/// ```
/// use selvedge::round_robin_over;
/// use selvedge::{EventLoop, net::UnixDatagram};
///
/// round_robin_over(&mut EventLoop::new()?, async {
///     let (one, other) = UnixDatagram::pair()?;
///     one.send(b"first").await?;
///     one.send(b"second").await?;
///     let mut buffer = [0; 64];
///     assert_eq!(other.recv(&mut buffer).await?, 5);
///     assert_eq!(other.recv(&mut buffer).await?, 6);
///     std::io::Result::Ok(())
/// })??;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct UnixDatagram {
    io: NonBlocking<Fd>,
}

/// How long a sender pauses between two attempts to send to a receiver that it is not connected to.
/// The kernel does not report when such a receiver has room again.
const PAUSE: Duration = Duration::from_millis(1);

impl UnixDatagram {
    /// A socket at a path. The path is not removed when the socket is dropped.
    ///
    /// # Errors
    /// With the path in the message: a file is there already, not permitted, too long (107 bytes at
    /// most).
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixDatagram> {
        let path = path.as_ref();
        let bind = || -> io::Result<UnixDatagram> {
            let fd = sys::datagram_socket(AddressFamily::UNIX)?;
            sys::bind(&fd, &SocketAddrAny::from(SocketAddrUnix::new(path)?))?;
            Ok(UnixDatagram { io: NonBlocking::assume(fd) })
        };
        bind().map_err(doing(format_args!("bind {}", path.display())))
    }

    /// A socket without a path. It can send, and it can receive if it is
    /// [connected](Self::connect).
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn unbound() -> io::Result<UnixDatagram> {
        Ok(UnixDatagram { io: NonBlocking::assume(sys::datagram_socket(AddressFamily::UNIX)?) })
    }

    /// Two sockets connected to each other.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn pair() -> io::Result<(UnixDatagram, UnixDatagram)> {
        let (one, other) = sys::datagram_pair()?;
        Ok((UnixDatagram { io: NonBlocking::assume(one) }, UnixDatagram { io: NonBlocking::assume(other) }))
    }

    /// Sets the path that [`send`](Self::send) sends to.
    ///
    /// # Errors
    /// With the path in the message: no socket is there, not permitted.
    pub fn connect(&self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        let connect = || -> io::Result<()> {
            Ok(sys::set_peer(&self.io, &SocketAddrAny::from(SocketAddrUnix::new(path)?))?)
        };
        connect().map_err(doing(format_args!("connect to {}", path.display())))
    }

    /// Sends a datagram to the socket at a path, and returns its length. When the receiver's queue
    /// is full, `send_to` tries again until there is room.
    ///
    /// # Errors
    /// With the path in the message: no socket is there, too long; `TimedOut` after the [write
    /// deadline](Self::set_write_deadline).
    pub async fn send_to(&self, bytes: &[u8], path: impl AsRef<Path>) -> io::Result<usize> {
        let path = path.as_ref();
        let send = async {
            let to = SocketAddrAny::from(SocketAddrUnix::new(path)?);
            loop {
                match sys::send_to(&self.io, bytes, &to) {
                    Err(Errno::INTR) => {}
                    Err(error) if io::Error::from(error).kind() == io::ErrorKind::WouldBlock => {
                        self.io.check_write_deadline()?;
                        sleep(PAUSE).await;
                    }
                    sent => return Ok(sent?),
                }
            }
        };
        send.await.map_err(doing(format_args!("send to {}", path.display())))
    }

    /// Receives the next datagram. Returns how many of its bytes are in `buffer`, and the sender's
    /// path, if the sender has a path.
    ///
    /// # Errors
    /// Those of `recvfrom`; `TimedOut` after the [read deadline](Self::set_read_deadline).
    pub async fn recv_from(&self, buffer: &mut [u8]) -> io::Result<(usize, Option<PathBuf>)> {
        let (length, from) = self.io.read_with(|fd| Ok(sys::receive_from(fd, &mut *buffer, false)?)).await?;
        let from = from.and_then(|from| SocketAddrUnix::try_from(from).ok());
        let path = from.and_then(|from| Some(PathBuf::from(OsStr::from_bytes(from.path()?.to_bytes()))));
        Ok((length, path))
    }

    /// Sends a datagram to the socket that this socket is connected to, and returns its length.
    ///
    /// # Errors
    /// Those of `send`: `ConnectionRefused` when that socket is gone; `TimedOut` after the [write
    /// deadline](Self::set_write_deadline).
    pub fn send(&self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> {
        self.io.write_with(|fd| Ok(sys::send(fd, bytes, false)?))
    }

    /// Receives the next datagram, and returns how many of its bytes are in `buffer`.
    ///
    /// # Errors
    /// Those of `recv`; `TimedOut` after the [read deadline](Self::set_read_deadline).
    pub fn recv(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
        self.io.read_with(|fd| Ok(sys::recv(fd, &mut *buffer)?))
    }

    /// Sends without waiting.
    ///
    /// # Errors
    /// As for [`send`](Self::send); `WouldBlock` when there is no room.
    pub fn try_send(&self, bytes: &[u8]) -> io::Result<usize> {
        Ok(sys::send(&self.io, bytes, false)?)
    }

    /// Receives without waiting.
    ///
    /// # Errors
    /// Those of `recv`; `WouldBlock` when no datagram is there.
    pub fn try_recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Ok(sys::recv(&self.io, buffer)?)
    }

    /// Sets the point in time after which receiving fails with `TimedOut`: see
    /// [`NonBlocking::set_read_deadline`].
    pub fn set_read_deadline(&self, deadline: Option<Time>) {
        self.io.set_read_deadline(deadline);
    }

    /// Sets the point in time after which sending fails with `TimedOut`: see
    /// [`NonBlocking::set_write_deadline`].
    pub fn set_write_deadline(&self, deadline: Option<Time>) {
        self.io.set_write_deadline(deadline);
    }
}

impl AsFd for UnixDatagram {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.io.as_fd()
    }
}
