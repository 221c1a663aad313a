//! Threads that are events.
//!
//! A thread is an ordinary `async fn`. A **system call** is a request of a thread to the world
//! outside it: [`yield_now`], [`fork`], [`wait`], [`sleep`], [`park`], or [one of the program's
//! own](Syscall). The sequence of a thread's system calls is its **trace**. A **scheduler** is an
//! ordinary program that walks traces:
//!
//! - **The thread view** is for programs: the functions above, [`spawn`] with a [`JoinHandle`],
//!   [`catch`], and every object that blocks on a [`WaitQueue`].
//! - **The event view** is for schedulers: [`Thread::step`] runs a thread to its next system call
//!   and returns a [`Trace`] node that owns the rest of the thread. A [`Cpu`] keeps the threads
//!   that wait for one another, and gives them back when they are woken.
//!
//! [`round_robin`] is the reference scheduler. It is short, and other schedulers look like it.
//!
//! # Costs
//! A thread is one block of 8 bytes plus its future, rounded up to 8; one that loops on `yield_now`
//! takes 16 bytes. A switch allocates nothing, takes no lock and performs no atomic
//! read-modify-write.
//!
//! # Foreign futures
//! Any future runs as a thread. If it is pending without a Selvedge system call, the thread waits
//! behind its waker. Selvedge's leaf futures run elsewhere too: within `join!`, `select!` and the
//! like. A leaf future that needs no Selvedge scheduler runs under any executor.
//!
//! Code that stops the OS thread within a step stops all threads of its CPU. A foreign `block_on`
//! there, or the end of a [`std::thread::scope`], waits for ever if it needs one of these threads,
//! or needs the scheduler, as [`sleep`] does. This crate cannot detect a foreign `block_on`,
//! because it looks like a combinator with a waker of its own. The `block_on` and the
//! `wait_blocking` of the crates above detect their own use within a step, and panic.

// # For readers of the source
//
// `core` is the only crate that knows how a thread lies in memory. A thread is a header of 8 bytes,
// followed by its future, in an arena of reserved address space. A 32-bit key counts granules of 8
// bytes from the start of the arena. The arena is cut into chunks with blocks of one size. One
// `Cpu` owns each chunk; it takes one chunk at first, and then several in a row.
//
// A leaf future that is polled within a step puts its request into the slot of the CPU. `step`
// turns the slot into a `Trace` node, and looks at nothing else. `CpuInner::run` is compiled into a
// scheduler's loop. It handles the common ends of a step and returns a `Brief`; `end_of_step` and
// `conclude` handle the other ends and return a node. `round_robin` enters its CPU once for many
// steps, and acts on the `Brief` itself. A thread that is joined tells its joiner within its last
// poll, when its block is marked. Between two steps the CPU leaves the fields that the next step
// writes again: the last thread stays there, and `CURRENT` alone tells whether it is in its step.
//
// A queue that grants a thread of the running CPU puts it into the ready queue under the lock of
// the queue, which runs no code of the program. Within a combinator with a waker of its own, the
// queue wakes that waker instead, and the request is a detached one. A waker that is kept is two
// numbers in its data pointer, the CPU's and the thread's. It is never allocated and never counted.
// A waker that outlives its thread wakes no thread, or a later thread once without cause, which
// futures must bear anyway.
//
// CPUs may form a `Group`. The threads of `spawn` and `fork` are then **mobile**, by a bit in the
// header. A waiting mobile thread belongs to no CPU. The OS thread that wakes it takes it over with
// one exchange of the first word of its header, and makes it ready on its own CPU (`state.rs`).
// Threads of `spawn_local` stay on their CPU. A thread and its join handle share one word, the join
// state, which each exchanges as a whole (`join_state.rs`).
//
// Read in this order: `trace.rs` (the nodes), `round_robin.rs` (a whole scheduler), `header.rs`
// (the layout), `body.rs` (a thread's future), `cpu.rs` (its head lists its parts), `wait_queue.rs`
// (everything that blocks), `budget.rs` (how much a thread does without waiting). Protocols between
// OS threads: `parker.rs` (sleep and wake-up; `inbox.rs`, `blocking.rs` and the event loops of `io`
// use it), `reply_cell.rs` (one reply; `call.rs`, `scope`, `sched` and `io`'s pool use it),
// `inbox.rs`, `quiet.rs` (when a deadlock is told), `state.rs`, `lock.rs`, `alarm.rs`, `biased.rs`,
// `outlet.rs`, `task_context.rs` (the context of a poll, which goes with its stack).
//
// Invariants:
// - `core` waits for nothing outside the process, opens no descriptor for a thread, and starts no
//   OS thread. It reads the clock, maps the memory of the arena, and reads `/proc/self/stat` to
//   count the OS threads before it reports a deadlock.
// - A switch (yield, wait, sleep) allocates nothing and takes no lock. A yield performs no atomic
//   read-modify-write. A thread that is not mobile never does; a mobile one performs one to wait
//   and one to be woken. Only `nbio` and `call`, which carry data of the program, take a box.
// - No code of the program runs under the lock of a wait queue. Wakers are cloned before it is
//   taken, and woken and dropped after it is released; a `Debug` writes what it has read before.
//   The closures of an object that a program makes itself are the exception: a second operation on
//   a `Local` object panics before it reaches the state, and a waiter that is dropped there aborts
//   the process (`lock.rs`).
// - A key is for ever the address of a block header: memory is never unmapped, and a chunk never
//   changes the size of its blocks. So stale wakers are harmless.
// - A continuation is one-shot by type: `step` consumes the `Thread`. There is no check at run
//   time.
// - Dropping a suspended thread cancels it. The drop takes the thread out of its queue in constant
//   time, and a grant that it has not collected goes on to the next waiter. `JoinHandle::cancel`
//   marks a thread and makes it ready; its scheduler then drops its future, unless the future is
//   within a `shield`. A dropped sleep is given up with one exchange, on any OS thread. A dropped
//   `Cpu` cancels all threads that it keeps.
// - A panic ends one thread, is reported, and reaches its joiner. A foreign waker is wrapped before
//   an event source has it, so its panics end where it is woken and dropped.

#![doc(test(attr(deny(warnings), allow(dead_code))))]

/// Declares a `const` function. In a model the function is not `const`, because loom's atomics
/// cannot be made at compile time.
#[doc(hidden)]
#[macro_export]
macro_rules! constant {
    ($(#[$attribute:meta])* $visibility:vis fn $($rest:tt)*) => {
        #[cfg(not(loom))]
        $(#[$attribute])* $visibility const fn $($rest)*
        #[cfg(loom)]
        $(#[$attribute])* $visibility fn $($rest)*
    };
}

mod alarm;
mod arena;
mod biased;
mod blocking;
mod body;
pub mod budget;
mod call;
mod calling;
mod cpu;
mod deadlock;
mod directory;
pub mod draw;
mod events;
mod exception;
mod far;
mod fences;
mod fork;
mod freed;
mod group;
mod grouped;
mod header;
mod huge_pages;
mod inbox;
mod indivisible;
#[doc(hidden)]
pub mod internal;
mod join;
mod join_state;
mod joinable;
mod keys;
mod lock;
mod nbio;
pub mod observe;
mod observer;
mod outlet;
mod park;
mod parker;
mod per_process;
mod performing;
mod primitives;
mod quiet;
mod quietly;
mod readiness;
mod release;
mod remote_spawn;
mod reply_cell;
mod round_robin;
mod run_queue;
mod shield;
mod standstill;
mod state;
mod task_context;
mod thread;
mod thread_info;
mod thread_value;
mod time;
mod trace;
mod unpark;
mod vtable;
mod wait_queue;
mod wait_site;
mod waker;
mod written_name;
mod yield_now;

pub use alarm::{Alarm, CancelCount, CancelFlag};
pub use arena::{ArenaFullError, CpuError};
pub use biased::{Guest, Inside, Outside, Owner, Visit, biased};
pub use call::{Answer, Call, Syscall};
pub use calling::{Calling, call};
pub use cpu::Cpu;
pub use deadlock::Deadlock;
pub use events::{Events, NoEvents, Relief, RunError};
pub use exception::{Catch, Exception, Panic, catch, throw};
pub use fences::{heavy_fence, light_fence, prepare_heavy_fence};
pub use fork::{Fork, detach, detach_local, fork, fork_local};
pub use group::Group;
pub use join::{JoinHandle, spawn, spawn_local, try_spawn};
pub use joinable::JoinError;
pub use lock::{Guard, LocalGuard, LocalLock, Lock, WordGuard, WordLock};
pub use nbio::Nbio;
pub use outlet::Outlet;
pub use park::{Park, park};
pub use performing::{Performing, nbio};
pub use quiet::Quiet;
pub use readiness::{
    SleepUntil, WaitFd, in_thread, now, set_fallback, sleep, sleep_until, this_thread, wait,
};
pub use remote_spawn::{Adopt, RemoteSpawn, adopter, adopter_of_cpus};
pub use round_robin::{round_robin, round_robin_on, round_robin_over, steps};
pub use run_queue::{RunQueue, SendQueue};
pub use shield::{Shield, shield};
pub use thread::{SendThread, Thread};
pub use thread_info::ThreadInfo;
pub use thread_value::{ThreadValue, WithValue};
pub use time::{Deadline, Time, VirtualClock};
pub use trace::{Detached, Interest, Readiness, Request, Sleep, Trace, Wait};
pub use unpark::Unpark;
pub use wait_queue::WaitQueue;
pub use wait_queue::list::Queue;
pub use wait_queue::mode::{Local, Mode, Shared};
pub use wait_queue::role::Role;
pub use wait_queue::waiting::Waiting;
pub use yield_now::{Exit, YieldNow, exit, yield_now};
