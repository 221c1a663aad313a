//! Unix stream sockets, connections between processes of one host at paths of the file system:
//! `UnixListener` and `UnixStream`.
//!
//! Accepting is in `accept.rs`, reading and writing in `stream.rs`. The web server can listen on
//! such a path. The kernel does not report when a full backlog has room again, so
//! `UnixStream::connect` asks again every millisecond.

use super::accept::Acceptor;
use super::stream::{Stream, connected};
use crate::NonBlocking;
use crate::error::doing;
use crate::sys::{self, Fd};
use crate::time::sleep;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix};
use std::ffi::OsStr;
use std::io;
use std::ops::Deref;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How many connections that are not yet accepted the kernel keeps.
const BACKLOG: i32 = 1024;

/// A Unix socket that accepts connections.
#[derive(Debug)]
pub struct UnixListener {
    acceptor: Acceptor,
    path: PathBuf,
}

impl UnixListener {
    /// Makes a socket at a path and listens. The path is not removed when the listener is dropped.
    ///
    /// # Errors
    /// With the path in the message: a file is there already, not permitted, too long (107 bytes at
    /// most).
    pub fn bind(path: impl AsRef<Path>) -> io::Result<UnixListener> {
        let path = path.as_ref();
        let listen = || -> io::Result<UnixListener> {
            let address = SocketAddrUnix::new(path)?.into();
            let fd = sys::socket(AddressFamily::UNIX)?;
            sys::bind(&fd, &address)?;
            sys::listen(&fd, BACKLOG)?;
            Ok(UnixListener { acceptor: Acceptor::new(fd), path: path.to_owned() })
        };
        listen().map_err(doing(format_args!("bind {}", path.display())))
    }

    /// Takes over a listening Unix socket, and puts it into non-blocking mode: see
    /// [`TcpListener::from_fd`](super::TcpListener::from_fd).
    ///
    /// # Errors
    /// If the descriptor is no Unix socket that listens.
    pub fn from_fd(fd: OwnedFd) -> io::Result<UnixListener> {
        let invalid = || io::Error::new(io::ErrorKind::InvalidInput, "no Unix socket that listens");
        if !rustix::net::sockopt::socket_acceptconn(&fd)? {
            return Err(invalid());
        }
        let address = SocketAddrUnix::try_from(rustix::net::getsockname(&fd)?).map_err(|_| invalid())?;
        let path = match address.path_bytes() {
            Some(path) => PathBuf::from(OsStr::from_bytes(path)),
            None => PathBuf::new(),
        };
        rustix::io::ioctl_fionbio(&fd, true)?;
        Ok(UnixListener { acceptor: Acceptor::new(Fd::from(fd)), path })
    }

    /// Waits for the next connection. Otherwise like
    /// [`TcpListener::accept`](super::TcpListener::accept).
    ///
    /// # Errors
    /// Only errors that waiting does not remove, with the path in the message.
    pub async fn accept(&self) -> io::Result<UnixStream> {
        let (fd, _) = self.acceptor.accept(self.path.display()).await?;
        Ok(UnixStream { stream: Stream::unix(NonBlocking::assume(fd)) })
    }

    /// The path at which the listener listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How many times `accept` has paused because descriptors or memory had run out.
    pub fn pauses(&self) -> u64 {
        self.acceptor.pauses()
    }

    /// Another listener on the same socket, for another event loop: see
    /// [`TcpListener::share`](super::TcpListener::share).
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn share(&self) -> io::Result<UnixListener> {
        Ok(UnixListener { acceptor: self.acceptor.share()?, path: self.path.clone() })
    }
}

impl AsFd for UnixListener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.acceptor.as_fd()
    }
}

/// A connection through a Unix socket: a [`Stream`].
#[derive(Debug)]
pub struct UnixStream {
    stream: Stream,
}

impl UnixStream {
    /// Connects to the listener at a path. When the listener's backlog is full, `connect` tries
    /// again until there is room.
    ///
    /// # Errors
    /// With the path in the message: no socket is there, no listener has it, not permitted.
    pub async fn connect(path: impl AsRef<Path>) -> io::Result<UnixStream> {
        let path = path.as_ref();
        let connect = async {
            let address = SocketAddrUnix::new(path)?.into();
            let io = NonBlocking::assume(sys::socket(AddressFamily::UNIX)?);
            loop {
                match sys::connect(&io, &address) {
                    Ok(()) => break,
                    // The kernel does not report when the backlog has room again.
                    Err(Errno::AGAIN) => sleep(Duration::from_millis(1)).await,
                    Err(Errno::INPROGRESS | Errno::INTR) => break connected(&io).await?,
                    Err(error) => return Err(error.into()),
                }
            }
            Ok(UnixStream { stream: Stream::unix(io) })
        };
        connect.await.map_err(doing(format_args!("connect to {}", path.display())))
    }

    /// Two ends connected to each other.
    ///
    /// # Errors
    /// If the process has no descriptors left.
    pub fn pair() -> io::Result<(UnixStream, UnixStream)> {
        let (one, other) = sys::socket_pair()?;
        let end = |fd| UnixStream { stream: Stream::unix(NonBlocking::assume(fd)) };
        Ok((end(one), end(other)))
    }
}

impl Deref for UnixStream {
    type Target = Stream;

    #[inline]
    fn deref(&self) -> &Stream {
        &self.stream
    }
}

impl From<UnixStream> for Stream {
    fn from(unix: UnixStream) -> Stream {
        unix.stream
    }
}

impl AsFd for UnixStream {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
