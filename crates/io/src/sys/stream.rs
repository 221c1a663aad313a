//! What the kernel keeps for a connected stream.

use super::{Call, on};
use rustix::io::Result;
use std::ffi::c_int;
use std::os::fd::{AsFd, BorrowedFd};

/// How many bytes were sent that the other end has not acknowledged yet, `ioctl(SIOCOUTQ)`: of a connection that was
/// broken, how many were lost. A Unix socket counts the memory that they take.
///
/// # Errors
/// Those of `ioctl`.
pub fn unacknowledged(stream: impl AsFd) -> Result<usize> {
    /// It has the same number as the question about a terminal's output.
    const SIOCOUTQ: rustix::ioctl::Opcode = libc::TIOCOUTQ as rustix::ioctl::Opcode;
    let real = |stream: BorrowedFd<'_>, _| {
        // SAFETY: `SIOCOUTQ` writes one `int`, which is what `Getter` gives it room for.
        let bytes = unsafe { rustix::ioctl::ioctl(stream, rustix::ioctl::Getter::<SIOCOUTQ, c_int>::new()) }?;
        Ok(usize::try_from(bytes).unwrap_or(0))
    };
    on(Call::Unacknowledged, stream, real, |kernel, stream, _| kernel.unacknowledged(stream))
}
