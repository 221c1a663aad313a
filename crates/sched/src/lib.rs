//! Ready-made schedulers over the same threads and traces.
//!
//! - [`round_robin`], the reference, on the calling OS thread; it lives in `selvedge-core`.
//! - [`per_core`]: several OS threads, each with its own CPU, its own event loop and its own threads, sharing nothing. Threads need not
//!   be `Send`.
//!
//! A scheduler of one's own is a loop over [`Thread::step`](selvedge_core::Thread::step): see the example `own_scheduler`.
#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "the ring's slots are exclusive by protocol")]
mod deque;
mod injector;
mod per_core;
mod primitives;
mod sleep;

pub use deque::{Claim, Deque, Stealer};
pub use injector::Injector;
pub use per_core::{Failure, per_core};
pub use selvedge_core::{round_robin, round_robin_with};
pub use sleep::Crew;
