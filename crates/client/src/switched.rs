//! [`Switched`]: the connection behind an answer `101 Switching Protocols`.

use bytes::Bytes;
use selvedge_io::net::Stream;

/// A connection that speaks another protocol from now on. [`AnswerBody::into_upgraded`] gives it.
///
/// [`AnswerBody::into_upgraded`]: crate::AnswerBody::into_upgraded
#[derive(Debug)]
pub struct Switched {
    /// Bytes of the new protocol that the server has sent behind the head of its answer.
    pub early: Bytes,
    /// The connection, without time limits.
    pub stream: Stream,
}
