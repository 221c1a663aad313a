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
mod around;
mod biased;
mod birth;
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
mod reply_cell;
mod round_robin;
mod run_queue;
mod shield;
mod standstill;
mod state;
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

#[doc(hidden)]
pub use alarm::SleepHandle;
pub use alarm::{Alarm, CancelCount, CancelFlag};
pub use arena::{ArenaFull, Unavailable};
#[doc(hidden)]
pub use around::{
    Around, CancelPayload, around, exchange_around, exchange_frame, exchange_stack, this_stack,
};
pub use biased::{Guest, Inside, Outside, Owner, Visit, biased};
pub use birth::{Adopt, Birth, adopter};
#[doc(hidden)]
pub use blocking::{insist, run_blocking};
pub use call::{Answer, Call, Syscall};
pub use calling::{Calling, call};
pub use cpu::Cpu;
#[doc(hidden)]
pub use cpu::ask::is_lent_here;
#[doc(hidden)]
pub use cpu::inner::running_cpu;
pub use deadlock::Deadlock;
pub use events::{Events, NoEvents, Relief, RunError};
pub use exception::{Catch, Exception, Panic, catch, throw};
pub use fences::{heavy_fence, light_fence, prepare_heavy_fence};
pub use fork::{Fork, detach, detach_local, fork, fork_local};
#[doc(hidden)]
pub use freed::{FreedList, ListHead};
pub use group::Group;
#[doc(hidden)]
pub use huge_pages::{HUGE_PAGE, advise_huge_pages, prepare_pages};
#[doc(hidden)]
pub use inbox::Inbox;
#[doc(hidden)]
pub use indivisible::{indivisible, is_indivisible};
pub use join::{JoinHandle, spawn, spawn_local, try_spawn};
#[doc(hidden)]
pub use join_state::{JoinState, Joiner};
pub use joinable::JoinError;
pub use lock::{Guard, LocalGuard, LocalLock, Lock, WordGuard, WordLock};
pub use nbio::Nbio;
pub use outlet::Outlet;
#[doc(hidden)]
pub use outlet::{Inlet, Ticket, outlet};
pub use park::{Park, park};
#[doc(hidden)]
pub use parker::Parker;
#[doc(hidden)]
pub use per_process::PerProcess;
pub use performing::{Performing, nbio};
pub use quiet::Quiet;
#[doc(hidden)]
pub use quiet::{CallUnderWay, Ledger};
#[doc(hidden)]
pub use quietly::quietly;
pub use readiness::{
    SleepUntil, WaitFd, in_thread, now, set_fallback, sleep, sleep_until, this_thread, wait,
};
#[doc(hidden)]
pub use reply_cell::ReplyCell;
pub use round_robin::{round_robin, round_robin_until, round_robin_with, steps};
pub use run_queue::{RunQueue, SendQueue};
pub use shield::{Shield, shield};
#[doc(hidden)]
pub use state::{Woken, Word, park as park_state, take_notification, wake as wake_state};
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
