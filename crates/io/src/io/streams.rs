//! [`Read`] and [`Write`] for sockets, pipes and standard streams, by macros that forward to the
//! methods of each stream; and the methods of `Stream` that need [`BufReader`].
//!
//! So the work is done in `net/stream.rs`, `pipe.rs` and `stdio.rs`. `TcpStream` and `UnixStream`
//! repeat five methods of `Stream` here (`own_methods`), because a trait's method of the same name
//! would otherwise be found before one that is reached by `Deref`.

use super::{BufReader, Lines, Read, Write};
use crate::net::{Stream, TcpStream, UnixStream};
use crate::pipe::{Receiver, Sender};
use crate::stdio::{Output, Stdin};
use std::io;
use std::net::Shutdown;

/// Implements [`Read`] for types by the methods of the type that they dereference to.
macro_rules! reads {
    ($base:ident: $($stream:ty),*) => {$(
        impl Read for $stream {
            #[inline]
            fn read(&mut self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send {
                $base::read(self, buffer)
            }
        }
    )*};
}

/// Implements [`Write`] for types in the same way.
macro_rules! writes {
    ($base:ident, $finish:ident: $($stream:ty),*) => {$(
        impl Write for $stream {
            #[inline]
            fn write(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> + Send {
                $base::write(self, bytes)
            }

            #[inline]
            fn write_all(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> + Send {
                $base::write_all(self, bytes)
            }

            async fn finish(&mut self) -> io::Result<()> {
                $finish(self)
            }
        }
    )*};
}

reads!(Stream: Stream, &Stream, TcpStream, &TcpStream, UnixStream, &UnixStream);
reads!(Receiver: Receiver, &Receiver);
reads!(Stdin: Stdin);
writes!(Stream, close_for_writing: Stream, &Stream, TcpStream, &TcpStream, UnixStream, &UnixStream);
writes!(Sender, only_dropping_says_so: Sender, &Sender);

/// Gives types that dereference to a [`Stream`] its methods that the traits also have. Otherwise,
/// where a program imports the traits, the compiler would find the traits' methods first, and these
/// need the stream to be `mut`.
macro_rules! own_methods {
    ($($stream:ty),*) => {$(
        impl $stream {
            /// Like [`Stream::read`].
            ///
            /// # Errors
            /// As for [`Stream::read`].
            #[inline]
            pub fn read(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> {
                Stream::read(self, buffer)
            }

            /// Like [`Stream::read_exact`].
            ///
            /// # Errors
            /// As for [`Stream::read_exact`].
            #[inline]
            pub fn read_exact(&self, buffer: &mut [u8]) -> impl Future<Output = io::Result<()>> {
                Stream::read_exact(self, buffer)
            }

            /// Like [`Stream::read_to_end`].
            ///
            /// # Errors
            /// As for [`Stream::read_to_end`].
            #[inline]
            pub fn read_to_end(&self) -> impl Future<Output = io::Result<Vec<u8>>> {
                Stream::read_to_end(self)
            }

            /// Like [`Stream::write`].
            ///
            /// # Errors
            /// As for [`Stream::write`].
            #[inline]
            pub fn write(&self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> {
                Stream::write(self, bytes)
            }

            /// Like [`Stream::write_all`].
            ///
            /// # Errors
            /// As for [`Stream::write_all`].
            #[inline]
            pub fn write_all(&self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> {
                Stream::write_all(self, bytes)
            }
        }
    )*};
}

own_methods!(TcpStream, UnixStream);

fn only_dropping_says_so(_: &Sender) -> io::Result<()> {
    Ok(())
}

fn close_for_writing(stream: &Stream) -> io::Result<()> {
    match stream.shutdown(Shutdown::Write) {
        Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
        finished => finished,
    }
}

/// `write` writes all of the bytes.
impl Write for &Output {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (**self).write_all(bytes).await?;
        Ok(bytes.len())
    }
}

/// `write` writes all of the bytes.
impl Write for Output {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes).await
    }
}

impl Stream {
    /// Reads until the peer closes its direction.
    ///
    /// # Errors
    /// As for [`read`](Self::read); after an error the bytes that were read are lost.
    pub fn read_to_end(&self) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        let mut reader = self;
        async move { Read::read_to_end(&mut reader).await }
    }

    /// The stream with a buffer, to read it by lines and the like. The bytes that the buffer has
    /// read ahead are in the buffer only: no other reader of the stream sees them.
    pub fn buffered(&self) -> BufReader<&Stream> {
        BufReader::new(self)
    }

    /// The lines that the peer sends. Otherwise like [`buffered`](Self::buffered).
    ///
    /// # Examples
    /// ```
    /// use selvedge::net::UnixStream;
    ///
    /// selvedge::run_local(async {
    ///     let (here, there) = UnixStream::pair()?;
    ///     there.write_all(b"warp\nweft\n").await?;
    ///     drop(there);
    ///     let mut lines = here.lines();
    ///     assert_eq!(lines.next().await?.as_deref(), Some("warp"));
    ///     assert_eq!(lines.next().await?.as_deref(), Some("weft"));
    ///     assert_eq!(lines.next().await?, None);
    ///     std::io::Result::Ok(())
    /// })??;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn lines(&self) -> Lines<&Stream> {
        self.buffered().lines()
    }
}
