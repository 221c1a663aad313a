//! `unacknowledged`: the question how much of the sent data the peer has acknowledged.
//! `net::Stream` exports it, and the web server asks it about slow and broken connections (`http`'s
//! `connection/client.rs` and `connection/exchange.rs`).

use super::Call;
use super::gate::on;
use rustix::io::Result;
use std::ffi::c_int;
use std::os::fd::{AsFd, BorrowedFd};

/// The number of bytes that were sent and that the other end has not acknowledged yet,
/// `ioctl(SIOCOUTQ)`. For a broken connection it is the number of lost bytes. A Unix socket counts
/// the memory that the bytes take.
///
/// # Errors
/// Those of `ioctl`.
pub fn unacknowledged(stream: impl AsFd) -> Result<usize> {
    /// The opcode is the same as that of the question about a terminal's output.
    const SIOCOUTQ: rustix::ioctl::Opcode = libc::TIOCOUTQ as rustix::ioctl::Opcode;
    let real = |stream: BorrowedFd<'_>, _| {
        // SAFETY: `SIOCOUTQ` writes one `int`, and `Getter` gives it room for one `c_int`.
        let bytes = unsafe { rustix::ioctl::ioctl(stream, rustix::ioctl::Getter::<SIOCOUTQ, c_int>::new()) }?;
        Ok(usize::try_from(bytes).unwrap_or(0))
    };
    on(Call::Unacknowledged, stream, real, |kernel, stream, _| kernel.unacknowledged(stream))
}
