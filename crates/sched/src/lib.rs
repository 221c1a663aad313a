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

// # For readers of the source
//
// Round-robin, which is there to be read, is in `core`. Read the multi-core scheduler below
// `work_stealing/` in this order: `worker.rs` (a worker's loop) with `worker/next.rs` (which thread
// runs next), `worker/arrivals.rs` (which threads that events woke a worker does not offer, and
// why), `worker/crowding.rs` (when a worker that gets no CPU passes its threads on),
// `worker/idle.rs`, `worker/pairing.rs` and `worker/second_poll.rs`; `run_ring.rs` (the ring from
// which others steal, with the argument that every slot has one user), `idle_workers.rs` (which
// worker sleeps and which searches, with the argument that no wake-up is lost), `desk.rs` (the
// threads that others take from a worker in a long step), `doors.rs` (how a thread comes to
// the worker that its creator names), `start.rs` (how the workers start and stop), `elsewhere.rs`
// (on which CPU a woken worker begins).
//
// A worker pushes with a plain store and claims in batches. A mark in the word by which it claims
// tells it that a worker sleeps. Threads on two workers that talk through the kernel are handed off
// to one of them (`Pairing`). While a worker is in a step, other workers may take from its private
// queues, and also the threads that the step wakes or spawns. Workers look at one another every 10
// ms while they work; one sleeper looks for all while they sleep. When nothing has happened for 80
// ms, no worker looks until the next one wakes up.
//
// Fairness: the round-robin scheduler looks at its event source after at most 256 steps, and the
// work-stealing one also after 200 us. A thread that is woken alone overtakes the others at most
// three times in a row. A thread that waited for another's end lets the threads run first that its
// worker has claimed already, and so finds several ends at once. `priority` lets a thread be
// overtaken for a bounded time.
//
// Invariant: a scheduler uses nothing that a program's own scheduler could not use. `examples/` has
// one that runs the handler of the web server.

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

pub use beside::{Beside, run_beside};
pub use block_on::block_on;
pub use bound::bound;
#[cfg(loom)]
#[doc(hidden)]
pub use elsewhere::model_of_two_sleeps;
pub use handle::{Handle, Spawned};
pub use per_core::{SchedulerError, per_core};
pub use priority::{LEVEL_DEFAULT, LEVEL_MAX, Priority, priority, set_deadline, set_priority};
pub use selvedge_core::{round_robin, round_robin_over};
pub use work_stealing::{Claim, IdleWorkers, Injector, RunRing, Stealer, WorkStealing, work_stealing};
