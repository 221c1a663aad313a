//! [`Received`]: a message that has arrived; and [`CommListener`], which takes the messages of a
//! communicator.
//!
//! An engine implements [`CommListener`] and gives it to `comm.rs`. `driver.rs` calls it.

use super::error::MpiError;
use super::memory::MpiMemory;
use std::fmt;

/// A message that was received.
#[derive(Debug, PartialEq)]
pub struct Received {
    /// The rank that sent it.
    pub source: usize,
    /// Its tag.
    pub tag: i32,
    /// Its bytes.
    pub memory: MpiMemory,
}

/// Takes the messages of a communicator, on the OS thread that finds them.
///
/// Its methods do not wait, because no message moves meanwhile. A panic in one of them ends there,
/// after the panic hook has reported it.
pub trait CommListener: fmt::Debug + Send + Sync + 'static {
    /// A message has arrived. The messages of one source come in the order in which that rank sent
    /// them.
    fn message(&self, message: Received);

    /// MPI can receive no more messages on this communicator, or one of them is lost.
    fn failed(&self, error: MpiError);

    /// A rank is dead. No message of it comes any more, and the other ranks are as they were. It is
    /// called where MPI [bears deaths](super::About::bears_deaths).
    fn rank_died(&self, rank: usize);

    /// Whether the loop looks for messages. While it does not, messages stay where they are, and
    /// the senders of long ones wait. An answer that becomes `true` is told to the loop with
    /// [`Comm::look`](super::Comm::look).
    fn wants_messages(&self) -> bool {
        true
    }
}
