//! Sending a file without carrying its bytes through the process.

use super::stream::{Doing, Stream};
use crate::sys;
use selvedge_core::budget;
use std::io;
use std::os::fd::AsFd;

/// How much one call sends at most, so that a peer as fast as we are does not keep the worker to itself.
const CHUNK: u64 = 512 * 1024;
/// Sending this much counts as one call more before the thread lets others run: 2 MiB at a time.
const CHUNK_PER_CALL: u64 = 32 * 1024;

impl Stream {
    /// Sends `length` bytes of a file from `offset` on. The file's own position is neither used nor moved, so that any number
    /// of threads may send one file at once.
    ///
    /// The file's pages are read while the calling worker waits for them: for files that are not in memory, read on the
    /// blocking pool instead.
    ///
    /// # Errors
    /// - `UnexpectedEof` when the file ends before all was sent: it has shrunk. The peer has got what there was of it; the
    ///   connection is of no more use if it was promised `length` bytes.
    /// - `TimedOut` after the [write deadline](Self::set_write_deadline).
    /// - Those of `sendfile`.
    ///
    /// # Paper
    /// [LZ07 Figure 1]: `send_file`; [Mighty, "Tuning"]: sendfile without lseek, issued again for the rest.
    pub fn send_file(
        &self,
        file: impl AsFd + Unpin,
        offset: u64,
        length: u64,
    ) -> impl Future<Output = io::Result<()>> {
        let (mut position, end) = (offset, offset.saturating_add(length));
        self.named(
            Doing::Writing,
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
                        // Short or not, it says nothing of the socket, since the page cache may have been the reason: only a
                        // call that would block makes the next one wait.
                        budget::charge(budget::CALL * (sent / CHUNK_PER_CALL) as u32);
                        Err(io::ErrorKind::Interrupted.into())
                    }
                }
            }),
        )
    }
}
