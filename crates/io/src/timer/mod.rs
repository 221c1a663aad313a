//! The timers of an event loop: two wheels, which share the arithmetic of their slots.
//!
//! | file | a slot holds | a timer is taken out | the loop keeps there |
//! |---|---|---|---|
//! | [`wheel`] | a list of nodes with keys | by its key, at once | the deadlines of descriptors |
//! | [`sleepers`] | a vector | when it is due, or when many have given up | the sleeps |
//! | [`levels`] | nothing: it says which slot a tick belongs to, and which slots are occupied | | |
//!
//! There are two wheels because a node that can be taken out by a key costs each timer its links,
//! and firing it costs a walk through memory. A connection moves its deadline on all the time, so
//! the deadline needs a key. A sleep needs none, because the event loop and the future that sleeps
//! share a [`CancelFlag`](selvedge_core::CancelFlag); and there may be millions of sleeps.

mod levels;
pub(crate) mod sleepers;
pub mod wheel;
