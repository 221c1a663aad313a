//! `Stream::send_file`: sends a file without copying its bytes through the process.
//!
//! Programs call it. The web server makes calls of `Stream::try_send_file` (`stream.rs`) instead. A
//! short `sendfile` does not prove that the socket is full, so this file never notes the socket as
//! drained.

use super::stream::{Direction, Stream};
use crate::sys;
use selvedge_core::budget;
use std::io;
use std::os::fd::AsFd;

/// The number of bytes that one call sends at most, so that a fast peer does not keep the worker
/// for itself.
const CHUNK: u64 = 512 * 1024;
/// Sending this many bytes counts as one more call in the thread's budget. So the thread lets other
/// threads run after about 2 MiB.
const CHUNK_PER_CALL: u64 = 32 * 1024;

impl Stream {
    /// Sends `length` bytes of a file from `offset` on. The call neither uses nor moves the file's
    /// own position, so that any number of threads may send one file at once.
    ///
    /// The calling worker waits while the kernel reads the file's pages. Files that are not in
    /// memory should be read on the blocking pool instead.
    ///
    /// # Errors
    /// - `UnexpectedEof` when the file has shrunk and ends before all bytes were sent. The peer has
    ///   received the bytes up to the file's end. The connection is of no more use if the peer was
    ///   promised `length` bytes.
    /// - `TimedOut` after the [write deadline](Self::set_write_deadline).
    /// - Those of `sendfile`.
    ///
    /// # Paper
    /// [LZ07 Figure 1]: `send_file`; [Mighty, "Tuning"]: sendfile without lseek, issued again for
    /// the rest.
    pub fn send_file(
        &self,
        file: impl AsFd + Unpin,
        offset: u64,
        length: u64,
    ) -> impl Future<Output = io::Result<()>> {
        let (mut position, end) = (offset, offset.saturating_add(length));
        self.named(
            Direction::Writing,
            self.io().write_with(move |socket| {
                if position >= end {
                    return Ok(());
                }
                let chunk = (end - position).min(CHUNK);
                match sys::send_file(socket, &file, &mut position, chunk as usize)? as u64 {
                    0 => {
                        let text = format!(
                            "the file shrank: it ends {} bytes before what was to be sent",
                            end - position
                        );
                        Err(io::Error::new(io::ErrorKind::UnexpectedEof, text))
                    }
                    _ if position >= end => Ok(()),
                    sent => {
                        // Whether the call was short or not says nothing about the socket, because
                        // the page cache may be the reason. So only a call that would block makes
                        // the next call wait.
                        budget::charge(budget::CALL * (sent / CHUNK_PER_CALL) as u32);
                        Err(io::ErrorKind::Interrupted.into())
                    }
                }
            }),
        )
    }
}
