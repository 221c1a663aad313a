//! Ready-made schedulers over the same threads and traces.
//!
//! - [`work_stealing`]: several OS threads that share the threads among them. Begin with this
//!   scheduler.
//! - [`per_core`]: several OS threads that share nothing. Each has its own CPU, its own event loop
//!   and its own threads. The threads need not be `Send`.
//! - [`priority`]: one OS thread, urgent threads first, with deadlines.
//! - [`round_robin`]: the reference scheduler, on the calling OS thread; it is in `selvedge-core`.
//!
//! Several schedulers may run side by side in one program, on OS threads of their own. A [`Handle`]
//! takes work to a scheduler from elsewhere, and [`block_on`] waits for a result in ordinary code.
//! [`bound`] gives a thread an OS thread of its own.
//!
//! [`RunRing`], [`Injector`] and [`IdleWorkers`] are the parts of [`work_stealing`], for multi-core
//! schedulers of a program's own; [`run_beside`] starts their workers.
//!
//! A scheduler of a program's own is a loop over [`Thread::step`](selvedge_core::Thread::step): see
//! the example `own_scheduler`.
#![deny(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

#[expect(unsafe_code, reason = "OS threads borrow from their caller")]
mod beside;
mod block_on;
mod bound;
#[expect(unsafe_code, reason = "the system is called, and a cell has one user at a time by protocol")]
mod elsewhere;
mod handle;
mod per_core;
mod primitives;
mod priority;
mod work_stealing;

pub use beside::run_beside;
pub use block_on::block_on;
pub use bound::bound;
#[cfg(loom)]
#[doc(hidden)]
pub use elsewhere::model_of_two_sleeps;
pub use handle::{Handle, Spawned};
pub use per_core::{Failure, per_core};
pub use priority::{LEVEL_DEFAULT, LEVEL_MAX, Priority, priority, set_deadline, set_priority};
pub use selvedge_core::{round_robin, round_robin_with};
pub use work_stealing::{Claim, IdleWorkers, Injector, RunRing, Stealer, WorkStealing, work_stealing};
