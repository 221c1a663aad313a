//! The I/O traits of the `tokio` crate.

use crate::{Compat, PollRead, PollWrite};
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

impl<S: PollRead + Unpin> AsyncRead for Compat<S> {
    #[inline]
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        // SAFETY: nothing is de-initialised: it is only ever written to.
        let free = unsafe { buffer.unfilled_mut() };
        let read = ready!(this.io.poll_read_uninit(&mut this.read, cx, free))?;
        // SAFETY: so much was read to the start of the free part: who implements
        // `PollRead` promises so.
        unsafe { buffer.assume_init(read) };
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

impl<S: PollWrite + Unpin> AsyncWrite for Compat<S> {
    #[inline]
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.io.poll_write(&mut this.write, cx, bytes)
    }

    #[inline]
    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.io.poll_write_vectored(&mut this.write, cx, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.io.finish())
    }
}
