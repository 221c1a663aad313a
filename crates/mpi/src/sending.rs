//! How a send ends: [`SendMode`] says when, and [`Sending`] what has become of the message.
//!
//! Engines and mailboxes give a [`Sending`] to the communicator, which waits for its end.

use crate::completion::{Completion, EndedRank};
use std::sync::Arc;

/// Which event ends a send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SendMode {
    /// The message is on its way, and the sender has its memory back.
    Standard,
    /// A receive has taken the message.
    Synchronous,
}

/// What has become of a message that was given to [`Engine::send`](crate::engine::Engine::send).
#[derive(Debug)]
pub enum Sending {
    /// The send is over.
    Done,
    /// The send is over when this is.
    Underway(Arc<Completion>),
    /// The message was not sent, because its receiver has ended.
    Refused(EndedRank),
}
