//! [`FileInside`], what the handles of one open file share; and how one rank reads and writes
//! pieces of it.
//!
//! `access.rs` transfers the pieces of one rank so, and `two_phase.rs` the pieces that some
//! ranks transfer for all.

use super::view::FilePiece;
use crate::communicator::Communicator;
use crate::error::{CallSite, Error, ErrorClass};
use crate::window::{LockedWindow, Window, WindowLock};
use selvedge_io::fs::File;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

/// An open file, as the handles and started operations of one rank share it.
pub(super) struct FileInside {
    /// The ranks that have the file open. No other operation uses this communicator.
    pub(super) comm: Communicator,
    pub(super) file: File,
    pub(super) path: PathBuf,
    /// The position that all ranks share, on rank 0. Its lock is that of the atomic mode.
    pub(super) shared_position: Window<u64>,
    pub(super) is_atomic: AtomicBool,
    pub(super) hints: FileHints,
    pub(super) delete_on_close: bool,
}

/// What the hints say of collective operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FileHints {
    /// How many ranks read and write for all, at most.
    pub(super) aggregators: usize,
    /// How many bytes each of them reads or writes in one round, at most.
    pub(super) buffer: u64,
}

/// A call of the system that has failed, as one rank tells it the others: its number, and what
/// was done.
pub(super) type FileFault = (Option<i32>, String);

/// Gaps of at most this number of bytes are read too, because a call costs more.
pub(super) const GAP_MAX: u64 = 4096;

/// Pieces with gaps between them are read together up to this number of bytes.
const TOGETHER_MAX: u64 = 1 << 20;

impl FileInside {
    /// The bytes of these pieces, up to the end of the file.
    pub(super) async fn read(&self, pieces: &[FilePiece]) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        for together in pieces.chunk_by(joined()) {
            let (first, last) = (together[0], together[together.len() - 1]);
            let length = (last.end() - first.offset) as usize;
            let read = self.read_upto(first.offset, length).await?;
            if together.len() == 1 && bytes.is_empty() {
                bytes = read;
            } else {
                bytes.reserve(together.iter().map(|piece| piece.length).sum());
                for piece in together {
                    let begin = ((piece.offset - first.offset) as usize).min(read.len());
                    let end = (begin + piece.length).min(read.len());
                    bytes.extend_from_slice(&read[begin..end]);
                }
            }
            if bytes.len() < last.place + last.length - pieces[0].place {
                break; // The file ends here.
            }
        }
        Ok(bytes)
    }

    /// This number of bytes from `offset` on; fewer if the file ends before.
    pub(super) async fn read_upto(&self, offset: u64, length: usize) -> io::Result<Vec<u8>> {
        let (read, mut bytes) = self.file.read_at(vec![0; length], offset).await;
        let mut read = read?;
        bytes.truncate(read);
        // A read may be cut short before the end.
        while read > 0 && bytes.len() < length {
            let (more, rest) =
                self.file.read_at(vec![0; length - bytes.len()], offset + bytes.len() as u64).await;
            read = more?;
            bytes.extend_from_slice(&rest[..read]);
        }
        Ok(bytes)
    }

    /// Writes the bytes to these pieces, one call for each.
    pub(super) async fn write(&self, pieces: &[FilePiece], bytes: Vec<u8>) -> io::Result<()> {
        if let [piece] = pieces {
            return self.file.write_all_at(bytes, piece.offset).await.0;
        }
        for piece in pieces {
            let part = bytes[piece.place..][..piece.length].to_vec();
            self.file.write_all_at(part, piece.offset).await.0?;
        }
        Ok(())
    }

    /// The lock of the file, for an operation that began in atomic mode.
    pub(super) async fn lock_if(
        &self,
        is_atomic: bool,
        call: CallSite,
        lock: WindowLock,
    ) -> Result<Option<LockedWindow<'_, u64>>, Error> {
        if !is_atomic {
            return Ok(None);
        }
        let locked = self.shared_position.lock(0, lock).await;
        locked.map(Some).map_err(|error| error.in_call(call))
    }

    /// Whether an operation that begins now is in atomic mode.
    pub(super) fn is_atomic(&self) -> bool {
        self.is_atomic.load(Ordering::Relaxed)
    }
}

/// Whether the next piece is read with the pieces before it.
fn joined() -> impl FnMut(&FilePiece, &FilePiece) -> bool {
    let mut begin = None;
    move |piece, next| {
        let first = *begin.get_or_insert(piece.offset);
        let are_joined = next.offset - piece.end() <= GAP_MAX && next.end() - first <= TOGETHER_MAX;
        if !are_joined {
            begin = None;
        }
        are_joined
    }
}

/// A failure of this rank, to be told the others.
pub(super) fn fault(error: &io::Error) -> FileFault {
    let inner = error.get_ref().and_then(|inner| inner.source());
    let inner = inner.and_then(|inner| inner.downcast_ref::<io::Error>());
    (error.raw_os_error().or_else(|| inner?.raw_os_error()), error.to_string())
}

/// The error of a call, in which the system has failed on this rank or on `rank`.
pub(super) fn failed(call: CallSite, rank: usize, (errno, text): FileFault) -> Error {
    let at = if rank == call.rank { String::new() } else { format!("on rank {rank}: ") };
    call.error(ErrorClass::File, format!("{at}{text}")).with_errno(errno)
}

/// What the ranks have told one another of their part: the first failure is that of all.
///
/// # Errors
/// That failure.
pub(super) fn agreed(call: CallSite, faults: Vec<Option<FileFault>>) -> Result<(), Error> {
    let first = faults.into_iter().enumerate().find_map(|(rank, fault)| Some((rank, fault?)));
    first.map_or(Ok(()), |(rank, fault)| Err(failed(call, rank, fault)))
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn small_gaps_are_read_and_large_ones_are_not() {
        let piece = |offset| FilePiece { offset, length: 4, place: 0 };
        let pieces: Vec<FilePiece> =
            [0, 8, 4108, 9000, 9008, 9008 + (1 << 20)].into_iter().map(piece).collect();
        let groups: Vec<usize> = pieces.chunk_by(joined()).map(<[_]>::len).collect();
        assert_eq!(groups, [3, 2, 1]);
        // Near enough to its neighbour, but too far from the first.
        let row: Vec<FilePiece> = (0..600).map(|number| piece(number * 2000)).collect();
        let groups: Vec<usize> = row.chunk_by(joined()).map(<[_]>::len).collect();
        assert_eq!(groups.iter().sum::<usize>(), 600);
        assert_eq!(groups, [525, 75]);
    }
}
