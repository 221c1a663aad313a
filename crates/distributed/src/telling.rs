//! [`tell`]: the one way in which this crate sends. `outbox.rs`, `driver.rs` and `stream.rs` call
//! it.

use selvedge_mpi::{Communicator, Error, Message, Tag};

/// Sends a message, and does not wait until it is on its way.
///
/// # Errors
/// If the rank has ended, and if the value cannot be serialised. Then nothing was sent.
pub(crate) fn tell<T: Message>(comm: &Communicator, to: usize, tag: Tag, value: T) -> Result<(), Error> {
    // A request that is dropped goes its way. If the message was refused, the request has ended.
    comm.isend(to, tag, value).test().unwrap_or(Ok(()))
}
