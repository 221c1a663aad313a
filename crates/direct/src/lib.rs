//! Direct style: threads that look like ordinary blocking code.
//!
//! The body of a direct-style thread is a closure, not an `async` block. It runs on a stack of its
//! own, and [`wait`]s for any future in the middle of any function:
//! ```
//! use selvedge::{round_robin, spawn_local};
//! use selvedge::direct::{direct, wait, yield_now};
//!
//! fn depth_first(depth: u32) -> u64 {
//!     yield_now(); // a system call, from within ordinary recursion
//!     if depth == 0 { 1 } else { depth_first(depth - 1) + depth_first(depth - 1) }
//! }
//!
//! let leaves = round_robin(async {
//!     let thread = spawn_local(direct(|| depth_first(5)));
//!     let other = spawn_local(direct(|| wait(async { 10 })));
//!     thread.await.unwrap() + other.await.unwrap()
//! })?;
//! assert_eq!(leaves, 42);
//! # Ok::<(), selvedge::RunError>(())
//! ```
//!
//! [`direct`] makes a future of the closure. That future runs as a thread like any other: its
//! system calls are nodes of the same trace, it waits in the same queues, and every scheduler runs
//! it. The reason is that a `wait` polls its future within the step of the thread. If the future is
//! pending, the `wait` leaves the stack as it is and ends the step.
//!
//! # When to use it
//! For code that cannot be made `async`: recursion, callbacks of a foreign library, code that was
//! written to block. A switch takes one and a half to three times as long as that of an `async`
//! thread. A thread takes at least one page of memory, and not some ten bytes. A new stack takes a
//! page fault and a system call, one to three microseconds; a stack that is used again takes
//! neither. The number of stacks is limited by memory. On a kernel before Linux 6.13 a process can
//! have some 30,000, with the usual limit of 65,530 mappings.
//!
//! A switch within `n` nested calls also costs about `n` mispredicted returns, some 8 ns each, if
//! all `n` calls return before the next switch. The reason is that the processor predicts returns
//! by a stack of its own, which does not switch. A loop has no such cost if the function that waits
//! is inlined into it.
//!
//! # It stays on its OS thread
//! A stack may hold references into thread-local storage, and values that are not `Send`. So the
//! future is not `Send`, and a direct-style thread is created by [`spawn`] or [`fork`] of this
//! crate, or by `spawn_local` and `fork_local`:
//! ```compile_fail,E0277
//! fn movable(_: impl Send) {}
//! movable(selvedge::direct::direct(|| ()));
//! ```
//! While such a thread waits, other threads run on the same OS thread. If it holds a borrow of a
//! thread-local `RefCell` at that time, their borrows fail.
//!
//! # Cancellation
//! Dropping a direct-style thread that waits unwinds its stack: the destructors run, and no other
//! code. The unwinding is a panic without a message. If the thread's code catches the panic, that
//! code goes on, and its next `wait` panics again. If no frame on the stack would run any code, the
//! stack is not unwound but left, which is faster.
//!
//! A destructor may `wait` during the unwinding. Then the rest of the thread becomes a thread of
//! its own on the running CPU, until the destructors are done. If no CPU runs, or if the new thread
//! is dropped too, its stack is given up with a message on standard error: it never runs again, and
//! is never freed. While a destructor waits during the unwinding, [`std::thread::panicking`] is
//! true for all code on the OS thread.
//!
//! A thread may wait in a callback of C, or in another function that cannot unwind. If it is
//! dropped there, it goes on in the same way until it waits outside of that function. A destructor
//! that panics during the unwinding aborts the process, as anywhere in Rust.
//!
//! # Overflow
//! Below each stack lie pages that no code may touch. An access to them ends the process, with the
//! name of the thread and the size of its stack on standard error. The handler of the fault passes
//! all other faults on to the handler that was there before.

// # For readers of the source
//
// A direct-style thread is a future with a poll that switches to a stack of its own. `wait(future)`
// on that stack polls the future within the step, and switches back when it is pending. So every
// scheduler runs these threads, and `core` knows nothing of them. Read `thread.rs` (the future),
// `waiting.rs` (`wait`, cancellation), `stack.rs` (a stack and its control block), `quarry.rs` (the
// origin of new stacks, and their guards), `unwinding.rs` (which stacks can be unwound, and which
// need not be), `overflow.rs` (the message of a full stack).
//
// Invariants:
// - A step leaves a stack only if it has entered it, never within a step that a scheduler on that
//   stack runs. The context of its polls (the scope around them) goes with the stack.
// - A stack in use never changes its OS thread, and is used again only when nothing is on it.
//   Dropping the thread unwinds the stack, unless no frame on it has anything to drop. A stack that
//   cannot be unwound to its end is given up for ever.
// - A guard of 64 KiB lies below each stack before any code runs on it. A mapping of stacks is
//   never undone.

#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod calls;
mod overflow;
mod quarry;
mod stack;
mod thread;
mod unwinding;
mod waiting;

pub use calls::{exit, fork, sleep, spawn, yield_now};
pub use stack::STACK_BYTES;
pub use thread::{Direct, Options, direct};
pub use waiting::{in_direct, shield, wait};
