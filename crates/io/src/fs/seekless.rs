//! Files without offsets, as a `File` reads and writes them from its position on: FIFOs, terminals
//! and other devices that give bytes as they come.
//!
//! The kernel refuses a transfer at an offset there, with `ESPIPE`. A `File` then makes the plain
//! calls. Its descriptor is in non-blocking mode (`options.rs`), so a call that finds nothing waits
//! in the event loop, and no OS thread waits with it. `cursor.rs` remembers which files are such,
//! and `file.rs` reads their rest.

use super::answer::at;
use super::file::File;
use crate::nonblocking::wait;
use crate::sys;
use rustix::fs::FileType;
use rustix::io::Errno;
use selvedge_core::{Interest, budget};
use std::future::poll_fn;
use std::io;
use std::os::fd::AsFd;

impl File {
    /// Whether a transfer has failed because the file has no offsets. It has moved no byte then.
    /// A regular file has offsets, whatever a call says: the plain calls would read its beginning
    /// again.
    pub(super) fn lacks_offsets(&self, error: &io::Error) -> bool {
        let is_regular = |mode| FileType::from_raw_mode(mode) == FileType::RegularFile;
        error.kind() == io::ErrorKind::NotSeekable
            && sys::status(self).is_ok_and(|status| !is_regular(status.mode))
    }

    /// Reads the bytes that come next, at least one, or none at the end. Waits while there are none
    /// yet. A call that is dropped has taken no byte.
    pub(super) async fn read_next(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.repeat(Interest::READ, || sys::read(self, &mut *buffer)).await;
        read.map_err(at("read", self.path()))
    }

    /// Writes the beginning of `bytes` behind what was written before. Waits while there is no
    /// room. A call that is dropped has written no byte.
    pub(super) async fn write_next(&self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.repeat(Interest::WRITE, || sys::write(self, bytes)).await;
        written.map_err(at("write", self.path()))
    }

    /// Makes a call until it does not fail because it would have to wait.
    async fn repeat(
        &self,
        interest: Interest,
        mut call: impl FnMut() -> Result<usize, Errno>,
    ) -> io::Result<usize> {
        loop {
            poll_fn(budget::spend_on_call).await;
            match call() {
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => wait(self.as_fd(), interest).await,
                outcome => return Ok(outcome?),
            }
        }
    }
}
