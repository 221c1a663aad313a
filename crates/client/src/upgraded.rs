//! [`Upgraded`]: the connection behind an answer `101 Switching Protocols`.

use bytes::Bytes;
use selvedge_io::net::Stream;

/// A connection that speaks another protocol from now on. [`Incoming::into_upgraded`] gives it.
///
/// [`Incoming::into_upgraded`]: crate::Incoming::into_upgraded
#[derive(Debug)]
pub struct Upgraded {
    /// Bytes of the new protocol that the server has sent behind the head of its answer.
    pub early: Bytes,
    /// The connection, without time limits.
    pub stream: Stream,
}
