//! `Compat`, the adapter, and the traits `PollRead` and `PollWrite` of the streams that it adapts.
//!
//! The file of each library (`futures_io.rs`, `hyper.rs`, `tokio.rs`) implements that library's
//! traits for `Compat`, by these traits and the macro `write_as`. A `Compat` has no buffer: two
//! `PollState`s, one for each direction, are all that it adds to a stream, because a foreign trait
//! polls and keeps no future of ours. `PollRead` is unsafe to implement, because its caller counts
//! on the bytes that it claims to have read.

use selvedge_io::net::{Stream, TcpStream, UnixStream};
use selvedge_io::nonblocking::PollState;
use selvedge_io::pipe::{Receiver, Sender};
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

/// Implements a library's trait for writing: they all have the same calls, but for the name of the
/// last one, and the question whether parts are written at once.
#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio"))]
macro_rules! write_as {
    ($library:ident, $end:ident $(, $vectored:ident)?) => {
        impl<S: $crate::PollWrite + Unpin> $library for $crate::Compat<S> {
            #[inline]
            fn poll_write(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                let this = self.get_mut();
                this.io.poll_write(&mut this.write, cx, bytes)
            }

            #[inline]
            fn poll_write_vectored(
                self: Pin<&mut Self>,
                cx: &mut Context<'_>,
                parts: &[io::IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                let this = self.get_mut();
                this.io.poll_write_vectored(&mut this.write, cx, parts)
            }

            $(fn $vectored(&self) -> bool {
                self.io.is_write_vectored()
            })?

            fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(Ok(()))
            }

            fn $end(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
                Poll::Ready(self.io.finish())
            }
        }
    };
}
#[cfg(any(feature = "futures-io", feature = "hyper", feature = "tokio"))]
pub(crate) use write_as;

/// One of our streams, or an end of a pipe, with the traits of other libraries, according to the
/// features of this crate.
///
/// It is the stream and where it waits in each direction. Since our streams are read and written
/// through shared references, `Compat::new(&stream)`, `Compat::new(Rc::clone(&stream))` and the
/// like are adapters as well: two of them on one stream are its two halves, without a lock.
///
/// A stream's [read and write deadlines](Stream::set_read_deadline) hold through the adapter: the
/// call that waits for too long fails with `TimedOut`.
///
/// Shutting it down (`poll_close`, `poll_shutdown`) closes the stream for writing, so that the peer
/// reads an end. Flushing does nothing, as there is no buffer.
///
/// Of the calls in a row that need not wait every 64th at the latest lets other threads run first,
/// as all calls on our streams do.
#[derive(Debug, Default)]
#[cfg_attr(
    not(any(feature = "futures-io", feature = "hyper", feature = "tokio")),
    expect(dead_code, reason = "it has the traits that the features ask for: here none")
)]
pub struct Compat<S> {
    pub(crate) io: S,
    pub(crate) read: PollState,
    pub(crate) write: PollState,
}

impl<S> Compat<S> {
    /// Adapts a stream.
    pub fn new(io: S) -> Compat<S> {
        Compat { io, read: PollState::default(), write: PollState::default() }
    }

    /// The stream itself, to use as one of ours.
    pub fn get_ref(&self) -> &S {
        &self.io
    }

    /// Gives the stream back. Nothing is buffered here, so that nothing is lost.
    pub fn into_inner(self) -> S {
        self.io
    }
}

impl<S> From<S> for Compat<S> {
    fn from(io: S) -> Compat<S> {
        Compat::new(io)
    }
}

/// What can be read by polling, through a shared reference: our streams, and pointers to them.
///
/// # Safety
/// The adapters hand out as initialised what [`poll_read_uninit`](Self::poll_read_uninit) says it
/// has read: an implementation must have initialised this number of bytes from the start of the
/// buffer.
pub unsafe trait PollRead {
    /// Reads what is there, but at least one byte, and returns how much; 0 at the end. When there
    /// is nothing yet, the task of `cx` is woken once there may be.
    ///
    /// # Errors
    /// Those of the stream's own reading.
    fn poll_read(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>>;

    /// As [`poll_read`](Self::poll_read), into memory that need not be initialised: as much of it
    /// as is returned is, from the start.
    ///
    /// # Errors
    /// Those of the stream's own reading.
    fn poll_read_uninit(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>>;
}

/// What can be written to by polling, through a shared reference: our streams, and pointers to
/// them.
pub trait PollWrite {
    /// Writes as much of `bytes` as there is room for, but at least one byte, and returns how much.
    /// When there is no room, the task of `cx` is woken once there may be.
    ///
    /// # Errors
    /// Those of the stream's own writing.
    fn poll_write(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>>;

    /// As [`poll_write`](Self::poll_write), from several places at once.
    ///
    /// # Errors
    /// Those of the stream's own writing.
    fn poll_write_vectored(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>>;

    /// Whether several places are indeed written from at once; else the first of them is.
    fn is_write_vectored(&self) -> bool;

    /// Says that nothing more will be written: the peer reads an end. It is no error if the peer is
    /// gone already. A pipe's end can only be dropped for that, and does nothing here.
    ///
    /// # Errors
    /// Those of the stream's own shutting down.
    fn finish(&self) -> io::Result<()>;
}

// SAFETY: `try_read_uninit` returns how much the kernel has written to the buffer.
unsafe impl PollRead for Stream {
    #[inline]
    fn poll_read(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_with(state, cx, |stream| stream.try_read(buffer))
    }

    #[inline]
    fn poll_read_uninit(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_with(state, cx, |stream| stream.try_read_uninit(buffer))
    }
}

impl PollWrite for Stream {
    #[inline]
    fn poll_write(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(state, cx, |stream| stream.try_write(bytes))
    }

    #[inline]
    fn poll_write_vectored(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        // One call takes at most this number of parts; the caller sees a short write and goes on.
        let parts = &parts[..parts.len().min(PARTS_MAX)];
        self.poll_write_with(state, cx, |stream| stream.try_write_vectored(parts))
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn finish(&self) -> io::Result<()> {
        match self.shutdown(Shutdown::Write) {
            Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
            result => result,
        }
    }
}

// SAFETY: all of what is read to is initialised first.
unsafe impl PollRead for Receiver {
    #[inline]
    fn poll_read(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        buffer: &mut [u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_read_with(state, cx, |pipe| pipe.try_read(buffer))
    }

    fn poll_read_uninit(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Poll<io::Result<usize>> {
        let room = buffer.len().min(PIPE);
        let buffer = &mut buffer[..room];
        buffer.fill(MaybeUninit::new(0));
        // SAFETY: initialised above.
        let buffer = unsafe { buffer.assume_init_mut() };
        self.poll_read(state, cx, buffer)
    }
}

impl PollWrite for Sender {
    #[inline]
    fn poll_write(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.poll_write_with(state, cx, |pipe| pipe.try_write(bytes))
    }

    fn poll_write_vectored(
        &self,
        state: &mut PollState,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let first = parts.iter().find(|part| !part.is_empty()).map_or(&[][..], |part| part);
        self.poll_write(state, cx, first)
    }

    fn is_write_vectored(&self) -> bool {
        false
    }

    fn finish(&self) -> io::Result<()> {
        Ok(())
    }
}

/// The most that a pipe holds, mostly.
const PIPE: usize = 64 << 10;

/// The most parts that one call takes (`IOV_MAX`).
const PARTS_MAX: usize = 1024;

/// What is reached through a pointer is polled as what it points at.
macro_rules! through {
    ($([$($generics:tt)*] $pointer:ty),+ $(,)?) => {$(
        // SAFETY: what it points at keeps the promise.
        unsafe impl<$($generics)*> PollRead for $pointer
        where
            <$pointer as std::ops::Deref>::Target: PollRead,
        {
            #[inline]
            fn poll_read(
                &self,
                state: &mut PollState,
                cx: &mut Context<'_>,
                buffer: &mut [u8],
            ) -> Poll<io::Result<usize>> {
                (**self).poll_read(state, cx, buffer)
            }

            #[inline]
            fn poll_read_uninit(
                &self,
                state: &mut PollState,
                cx: &mut Context<'_>,
                buffer: &mut [MaybeUninit<u8>],
            ) -> Poll<io::Result<usize>> {
                (**self).poll_read_uninit(state, cx, buffer)
            }
        }

        impl<$($generics)*> PollWrite for $pointer
        where
            <$pointer as std::ops::Deref>::Target: PollWrite,
        {
            #[inline]
            fn poll_write(
                &self,
                state: &mut PollState,
                cx: &mut Context<'_>,
                bytes: &[u8],
            ) -> Poll<io::Result<usize>> {
                (**self).poll_write(state, cx, bytes)
            }

            #[inline]
            fn poll_write_vectored(
                &self,
                state: &mut PollState,
                cx: &mut Context<'_>,
                parts: &[IoSlice<'_>],
            ) -> Poll<io::Result<usize>> {
                (**self).poll_write_vectored(state, cx, parts)
            }

            fn is_write_vectored(&self) -> bool {
                (**self).is_write_vectored()
            }

            fn finish(&self) -> io::Result<()> {
                (**self).finish()
            }
        }
    )+};
}

through!([] TcpStream, [] UnixStream, ['a, S: ?Sized] &'a S, [S: ?Sized] Rc<S>, [S: ?Sized] Arc<S>, [S: ?Sized] Box<S>);
