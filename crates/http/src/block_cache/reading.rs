//! How a block comes from the disk: [`read`], on a second descriptor of the file that is opened for
//! direct access.
//!
//! The read is an operation of the worker's event loop (`fs::File`), so no worker waits. A direct
//! read begins and ends at multiples of a page, so the last block asks for more bytes than the file
//! has, and gets fewer.

use super::{BLOCK_BYTES, BlockError};
use crate::cache::CachedFile;
use crate::document_root::Backing;
use bytes::Bytes;
use selvedge_io::fs::{AlignedBuf, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::sync::Arc;

const PAGE: usize = AlignedBuf::ALIGNMENT;

/// The memory of a block.
struct BlockMemory(AlignedBuf);

impl AsRef<[u8]> for BlockMemory {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// The bytes of memory that a block of `len` bytes takes: pages, doubled until they suffice.
pub(super) fn room(len: usize) -> usize {
    len.div_ceil(PAGE).next_power_of_two() * PAGE
}

/// Reads block number `number` of `file`: all bytes that the file had in it when it was looked up.
///
/// # Errors
/// If the file has become shorter, or cannot be read.
pub(super) async fn read(file: &CachedFile, number: u64) -> Result<Bytes, BlockError> {
    let start = number * BLOCK_BYTES;
    let len = file.identity.len.saturating_sub(start).min(BLOCK_BYTES) as usize;
    let failed = |at: u64| move |error: io::Error| failure(at, &error);
    let direct = opened(file).await.map_err(failed(start))?;
    let wanted = len.next_multiple_of(PAGE);
    let mut block = direct.read_aligned_at(start, wanted as u32).await.map_err(failed(start))?;
    while block.len() < len {
        // The file has become shorter, or the kernel has stopped early. The next read tells.
        let have = block.len();
        let at = have / PAGE * PAGE;
        let from = start + at as u64;
        let more = direct.read_aligned_at(from, (wanted - at) as u32).await.map_err(failed(from))?;
        if at + more.len() <= have {
            return Err(BlockError::Shorter(start + have as u64));
        }
        block.set_len(at + more.len());
        block[at..].copy_from_slice(&more);
    }
    block.set_len(len);
    Ok(Bytes::from_owner(BlockMemory(block)))
}

/// The file, opened for direct access. It stays open as long as `file`.
async fn opened(file: &CachedFile) -> io::Result<File> {
    if let Some(opened) = file.direct.get() {
        return Ok(opened.clone());
    }
    let Backing::Open(open) = &file.body else { return Err(io::ErrorKind::Unsupported.into()) };
    // The very file that was looked up, whatever its name stands for by now.
    let path = format!("/proc/self/fd/{}", open.as_fd().as_raw_fd());
    let opened = File::options().read(true).direct(true).open(path).await?;
    // Another block of the file may have been first.
    Ok(file.direct.get_or_init(|| opened).clone())
}

/// The failure to read the bytes from `at` on. A kernel without `/proc` has no second descriptor.
fn failure(at: u64, error: &io::Error) -> BlockError {
    match error.kind() {
        io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported | io::ErrorKind::NotFound => {
            BlockError::Refused
        }
        _ => {
            // Its own text names the path of the descriptor, which tells an operator nothing.
            let number = error.get_ref().and_then(|error| error.source()?.downcast_ref::<io::Error>());
            let text = number.unwrap_or(error).to_string();
            BlockError::Failed(at, Arc::from(text))
        }
    }
}
