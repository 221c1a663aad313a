//! The I/O traits of the `tokio` crate for `Compat` (`compat.rs` has the adapter). `tokio.rs` is
//! the module around it; programs call tokio, which calls these traits.

use crate::compat::write_as;
use crate::{Compat, PollRead};
use std::io;
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
        // SAFETY: the start of the free part has `read` bytes that were read: each implementation
        // of `PollRead` promises that.
        unsafe { buffer.assume_init(read) };
        buffer.advance(read);
        Poll::Ready(Ok(()))
    }
}

write_as!(AsyncWrite, poll_shutdown, is_write_vectored);
