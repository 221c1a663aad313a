//! The traits [`Read`] and [`Write`] of streams, and their implementations for `&mut` of a stream,
//! `&[u8]` and `Vec<u8>`.
//!
//! `streams.rs` implements them for sockets, pipes and standard streams, `buf_reader.rs` and
//! `fs/cursor.rs` for their types. A method returns its future by value and as `Send`: [the
//! module](super) says why there is no `dyn Read`.

use std::io;

/// A stream that can be read.
///
/// There are no trait objects of it: see [`io`](crate::io).
#[doc(alias = "AsyncRead")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no stream that can be read",
    note = "a socket that several parts of a thread share is a stream by reference: pass `&socket`"
)]
pub trait Read: Send {
    /// Reads the bytes that are there, but at least one byte, into `buffer`, and returns how many;
    /// 0 at the end (or if the buffer has no room).
    ///
    /// # Errors
    /// Those of the stream.
    fn read(&mut self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send;

    /// Reads until `buffer` is full.
    ///
    /// # Errors
    /// Those of [`read`](Self::read), and `UnexpectedEof` if the end comes before the buffer is
    /// full.
    fn read_exact(&mut self, buffer: &mut [u8]) -> impl Future<Output = io::Result<()>> + Send {
        async move {
            let mut filled = 0;
            while filled < buffer.len() {
                match self.read(&mut buffer[filled..]).await? {
                    0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                    read => filled += read,
                }
            }
            Ok(())
        }
    }

    /// Reads until the end.
    ///
    /// # Errors
    /// Those of [`read`](Self::read); after an error the bytes that were read are lost.
    fn read_to_end(&mut self) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        async move {
            let (mut content, mut filled) = (Vec::new(), 0);
            loop {
                if filled == content.len() {
                    content.resize(content.len().max(4096) * 2, 0);
                }
                match self.read(&mut content[filled..]).await? {
                    0 => break,
                    read => filled += read,
                }
            }
            content.truncate(filled);
            Ok(content)
        }
    }

    /// Reads until the end, and returns the bytes as text.
    ///
    /// # Errors
    /// As [`read_to_end`](Self::read_to_end), and `InvalidData` if the bytes are not UTF-8.
    fn read_to_string(&mut self) -> impl Future<Output = io::Result<String>> + Send {
        async move {
            let text = String::from_utf8(self.read_to_end().await?);
            text.map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error.utf8_error()))
        }
    }
}

/// A stream that can be written.
///
/// There are no trait objects of it: see [`io`](crate::io).
#[doc(alias = "AsyncWrite")]
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no stream that can be written",
    note = "a socket that several parts of a thread share is a stream by reference: pass `&socket`"
)]
pub trait Write: Send {
    /// Writes as many of `bytes` as there is room for, but at least one byte, and returns how many.
    ///
    /// # Errors
    /// Those of the stream.
    fn write(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> + Send;

    /// Writes all of `bytes`.
    ///
    /// # Errors
    /// Those of [`write`](Self::write), and `WriteZero` if the stream takes no more bytes. After an
    /// error the number of written bytes is unknown.
    fn write_all(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> + Send {
        async move {
            let mut left = bytes;
            while !left.is_empty() {
                match self.write(left).await? {
                    0 => return Err(io::ErrorKind::WriteZero.into()),
                    written => left = &left[written..],
                }
            }
            Ok(())
        }
    }

    /// Tells the other side that no more bytes will be written, so that the other side reads an
    /// end. It does nothing for a pipe and for a file, because only dropping these tells the end.
    /// It is no error if the other side is gone already.
    ///
    /// # Errors
    /// Those of the stream.
    fn finish(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        async { Ok(()) }
    }
}

impl<R: Read> Read for &mut R {
    fn read(&mut self, buffer: &mut [u8]) -> impl Future<Output = io::Result<usize>> + Send {
        (**self).read(buffer)
    }

    fn read_exact(&mut self, buffer: &mut [u8]) -> impl Future<Output = io::Result<()>> + Send {
        (**self).read_exact(buffer)
    }

    fn read_to_end(&mut self) -> impl Future<Output = io::Result<Vec<u8>>> + Send {
        (**self).read_to_end()
    }

    fn read_to_string(&mut self) -> impl Future<Output = io::Result<String>> + Send {
        (**self).read_to_string()
    }
}

impl<W: Write> Write for &mut W {
    fn write(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<usize>> + Send {
        (**self).write(bytes)
    }

    fn write_all(&mut self, bytes: &[u8]) -> impl Future<Output = io::Result<()>> + Send {
        (**self).write_all(bytes)
    }

    fn finish(&mut self) -> impl Future<Output = io::Result<()>> + Send {
        (**self).finish()
    }
}

/// Reading takes the bytes away from the front of the slice.
impl Read for &[u8] {
    async fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        io::Read::read(self, buffer)
    }
}

/// Writing appends to the vector.
impl Write for Vec<u8> {
    async fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.extend_from_slice(bytes);
        Ok(bytes.len())
    }
}
