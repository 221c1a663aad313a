//! The trait by which another OS thread wakes the OS thread of an event source ([`Unpark`]).
//!
//! An event source gives one from `Events::unparker` (`io`'s `reactor/unparker.rs`). `directory.rs`
//! calls it when a thread is woken from another OS thread, and so do the schedulers of `sched` and
//! the queue of disk operations in `io`. A call that comes before the wait must end the next wait,
//! or a wake-up is lost.

use std::fmt;

/// Wakes an OS thread that waits in [`Events::poll`](crate::Events::poll). If no OS thread is
/// waiting, the next poll returns at once.
pub trait Unpark: fmt::Debug + Send + Sync {
    /// Makes the poll return.
    fn unpark(&self);
}
