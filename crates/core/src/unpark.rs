//! The handle that wakes the OS thread of an event source ([`Unpark`]).

use std::fmt;

/// Wakes an OS thread that waits in [`Events::poll`](crate::Events::poll). If no OS thread is
/// waiting, the next poll returns at once.
pub trait Unpark: fmt::Debug + Send + Sync {
    /// Makes the poll return.
    fn unpark(&self);
}
