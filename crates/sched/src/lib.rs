//! Ready-made schedulers over the same threads and traces.
//!
//! - [`round_robin`], the reference, on the calling OS thread; it lives in `selvedge-core`.
//! - [`per_core`]: several OS threads, each with its own CPU, its own event loop and its own threads, sharing nothing. Threads need not
//!   be `Send`.
//! - [`simulated`]: one OS thread, a virtual clock and an order that a seed determines, for tests; [`Explorer`] for all orders.
//!
//! A scheduler of one's own is a loop over [`Thread::step`](selvedge_core::Thread::step): see the example `own_scheduler`.
#![forbid(unsafe_code)]

mod per_core;
mod simulated;

pub use per_core::{Failure, per_core};
pub use selvedge_core::{round_robin, round_robin_with};
pub use simulated::{
    Explored, Explorer, Failed, Random, Run, Simulation, VirtualTime, Why, each_seed, simulated,
};
