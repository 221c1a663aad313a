//! Sending a file without carrying its bytes through the process.

use super::Stream;
use selvedge_core::yield_now;
use std::io;
use std::os::fd::AsFd;

/// How much one call sends at most, so that a peer as fast as we are does not keep the worker to itself.
const CHUNK: u64 = 512 * 1024;

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
    pub async fn send_file(&self, file: impl AsFd, offset: u64, length: u64) -> io::Result<()> {
        let (mut position, end) = (offset, offset.saturating_add(length));
        while position < end {
            let chunk = (end - position).min(CHUNK);
            // A short call says nothing of the socket: the page cache may have been the reason. So only EAGAIN makes
            // the next call wait.
            let sent = self.io().write_with(|socket| {
                let mut from = position;
                Ok(rustix::fs::sendfile(socket, &file, Some(&mut from), chunk as usize)?)
            });
            match sent.await? as u64 {
                0 => {
                    let text = format!(
                        "the file shrank: it ends {} bytes before what was to be sent",
                        end - position
                    );
                    return Err(io::Error::new(io::ErrorKind::UnexpectedEof, text));
                }
                sent => {
                    position += sent;
                    if sent == CHUNK && position < end {
                        yield_now().await;
                    }
                }
            }
        }
        Ok(())
    }
}
