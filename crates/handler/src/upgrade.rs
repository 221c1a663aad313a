//! [`Upgraded`]: the connection itself, which a handler gets behind a `101 Switching Protocols`,
//! and [`Duplex`], what an engine provides for it.

use bytes::{Buf, Bytes};
use selvedge_io::net::Stream;
use selvedge_io::nonblocking::PollState;
use std::cell::RefCell;
use std::fmt;
use std::future::poll_fn;
use std::io;
use std::net::Shutdown;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

/// A connection that is read and written at the same time, through a shared reference.
pub trait Duplex: 'static {
    /// Reads the bytes that are there into `buffer`; 0 at the end.
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>>;

    /// Writes bytes, and returns how many.
    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>>;

    /// Makes the peer read an end, behind the bytes that were written.
    fn poll_finish(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}

/// The connection behind an upgrade. Clones are the same connection, so one clone may read while
/// another writes.
///
/// It stays on the OS thread of the connection, and so do the threads that hold it. The connection
/// is closed when the last clone has been dropped and the handler of [`Body::upgrade`] has ended.
///
/// [`Body::upgrade`]: crate::Body::upgrade
#[derive(Clone)]
pub struct Upgraded {
    inner: Rc<UpgradedConnection>,
}

struct UpgradedConnection {
    /// Bytes that the engine had read before the upgrade.
    early: RefCell<Bytes>,
    duplex: Box<dyn Duplex>,
}

impl Upgraded {
    /// For an engine: a connection, and the bytes that it has read from it already.
    pub fn new(early: Bytes, duplex: impl Duplex) -> Upgraded {
        Upgraded {
            inner: Rc::new(UpgradedConnection { early: RefCell::new(early), duplex: Box::new(duplex) }),
        }
    }

    /// A stream as such a connection: for clients and tests.
    pub fn of_stream(early: Bytes, stream: impl Into<Stream>) -> Upgraded {
        let duplex =
            StreamDuplex { stream: stream.into(), read: RefCell::default(), write: RefCell::default() };
        Upgraded::new(early, duplex)
    }

    /// Reads the bytes that are there into `buffer`; 0 at the end.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        poll_fn(|cx| self.poll_read(cx, buffer)).await
    }

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn write_all(&self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = poll_fn(|cx| self.poll_write(cx, bytes)).await?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Makes the peer read an end, behind the bytes that were written.
    ///
    /// # Errors
    /// Those of the connection.
    pub async fn finish(&self) -> io::Result<()> {
        poll_fn(|cx| self.inner.duplex.poll_finish(cx)).await
    }
}

/// A stream, and where it waits in each direction.
struct StreamDuplex {
    stream: Stream,
    read: RefCell<PollState>,
    write: RefCell<PollState>,
}

impl Duplex for StreamDuplex {
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        self.stream.poll_read_with(&mut self.read.borrow_mut(), cx, |stream| stream.try_read(buffer))
    }

    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.stream.poll_write_with(&mut self.write.borrow_mut(), cx, |stream| stream.try_write(bytes))
    }

    fn poll_finish(&self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.stream.shutdown(Shutdown::Write))
    }
}

impl Duplex for Upgraded {
    fn poll_read(&self, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut early = self.inner.early.borrow_mut();
        if early.is_empty() {
            drop(early);
            return self.inner.duplex.poll_read(cx, buffer);
        }
        let count = early.len().min(buffer.len());
        early.copy_to_slice(&mut buffer[..count]);
        Poll::Ready(Ok(count))
    }

    fn poll_write(&self, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.inner.duplex.poll_write(cx, bytes)
    }

    fn poll_finish(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.duplex.poll_finish(cx)
    }
}

impl futures_io::AsyncRead for Upgraded {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        Duplex::poll_read(&*self, cx, buffer)
    }
}

impl futures_io::AsyncWrite for Upgraded {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Duplex::poll_write(&*self, cx, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_close(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_finish(cx))?;
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for Upgraded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upgraded").field("early", &self.inner.early.borrow().len()).finish_non_exhaustive()
    }
}
