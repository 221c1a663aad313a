//! The traits of the `futures-io` crate for [`Compat`], under the feature of that name (`compat.rs`
//! has the adapter). TLS by `futures-rustls` comes in this way.

use crate::compat::write_as;
use crate::{Compat, PollRead};
use futures_io::{AsyncRead, AsyncWrite};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

impl<S: PollRead + Unpin> AsyncRead for Compat<S> {
    #[inline]
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut [u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        this.io.poll_read(&mut this.read, cx, buffer)
    }
}

write_as!(AsyncWrite, poll_close);
