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
//! [`direct`] makes a future of the closure. As a thread it is one of ours like any other: its
//! system calls are nodes of the same trace, it waits in the same queues, and every scheduler runs
//! it, because a `wait` polls its future within the step of the thread and, if that is pending,
//! leaves the stack as it is and ends the step.
//!
//! # When to use it
//! For code that cannot be made `async`: recursion, callbacks of a foreign library, what was
//! written to block. A switch takes one and a half to three times as long as that of an `async`
//! thread, and a thread at least one page of memory instead of some ten bytes. A process can have
//! some 30,000 stacks with the kernel's usual limit of 65,530 mappings.
//!
//! A switch in the middle of `n` nested calls costs the processor about `n` mispredicted returns
//! besides, some 8 ns each, if they all return before the next one: it remembers where calls return
//! to in a stack of its own, which does not switch with ours. A loop that waits, with what waits
//! inlined into it, has none.
//!
//! # It stays on its OS thread
//! A stack may hold references into thread-local storage, and values that are not `Send`. So the
//! future is not `Send`, and a direct-style thread is created by [`spawn`] or [`fork`] of this
//! crate, or by `spawn_local` and `fork_local`:
//! ```compile_fail
//! fn movable(_: impl Send) {}
//! movable(selvedge::direct::direct(|| ()));
//! ```
//! Between the system calls the OS thread is its own; what it borrows from thread-local storage may
//! be seen, and refused by a `RefCell`, by the other threads there if it is still borrowed when it
//! waits.
//!
//! # Cancellation
//! Dropping a direct-style thread that waits unwinds its stack: destructors run, nothing else does.
//! The unwinding is a panic without a message. Code that catches it goes on, and is thrown it again
//! by its next `wait`.
//!
//! A destructor may `wait` even then. What is left of the thread goes on as a thread of its own on
//! the running CPU, until its destructors are done; where there is no CPU, or that is dropped too,
//! its stack is given up with a message on standard error: never run again, never freed. While
//! destructors wait in the middle of unwinding, [`std::thread::panicking`] is true for everything
//! on the OS thread. A thread that waits in a callback of C, or in any other function that cannot
//! unwind, goes on in the same way when it is dropped, until it waits outside of it. A destructor
//! that panics during unwinding aborts the process, as anywhere in Rust.
//!
//! # Overflow
//! Below each stack lie pages that no code may touch. Running into them ends the process, with the
//! name of the thread and the size of its stack on standard error. The handler passes all other
//! faults on to the one that was there before it.

mod calls;
mod overflow;
mod stack;
mod thread;
mod unwinding;

pub use calls::{exit, fork, sleep, spawn, yield_now};
pub use stack::STACK_BYTES;
pub use thread::{Direct, Options, direct, in_direct, shield, wait};
