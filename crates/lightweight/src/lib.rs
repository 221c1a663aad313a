//! Nine ways to make a thread, behind one interface: for reading and measuring, not for depending
//! on.
//!
//! The paper *Light Weight Concurrency in OCaml* compares eight ways to make very light threads, by
//! three small programs. This crate has them, and the threads of Selvedge beside them. Each is one
//! file, and reads like its section of the paper.
//!
//! | Name | File | A thread that waits is |
//! |---|---|---|
//! | `sys` | [`sys`] | an OS thread |
//! | `vm` | [`vm`] | an OS thread that needs the machine's one lock to run |
//! | `callcc` | [`callcc`] | a stack; the thread that stops chooses the next |
//! | `dlcont` | [`dlcont`] | a stack above a prompt; a loop chooses the next |
//! | `tramp` | [`tramp`] | a closure that the program wrote |
//! | `cont` | [`cont`] | a function that takes its continuation |
//! | `promise` | [`promise`] | a promise, with what waits for it |
//! | `equeue` | [`equeue`] | a handler of events |
//! | `async` | [`task`] | a future, with a waker |
//! | `selvedge` | [`selvedge`](mod@selvedge) | a future in an arena |
//! | `selvedge-direct` | [`selvedge_direct`] | a stack, which the same scheduler resumes |
//! | `selvedge-library` | [`library`] | the same future, in an MVar for any number of threads |
//!
//! Read [`Direct`], [`Indirect`] or [`Async`] first, then `tramp`, which is the shortest. The guide
//! has a chapter, "Nine ways to make a thread".
//!
//! # Examples
//! ```
//! use selvedge_lightweight::{RunEnd, Indirect, Tramp};
//!
//! let (words, end) = (Tramp::make_mvar(), Tramp::make_mvar::<()>());
//! Tramp::spawn(move || Tramp::put_mvar(words, "warp", Tramp::halt));
//! Tramp::spawn(move || {
//!     Tramp::take_mvar(words, move |word| {
//!         assert_eq!(word, "warp");
//!         Tramp::take_mvar(end, |()| Tramp::halt()) // no thread puts it
//!     })
//! });
//! assert_eq!(Tramp::start(), RunEnd { blocked: 1, ..RunEnd::default() });
//! ```

// # For readers of the source
//
// Read `tramp.rs` first. `interface.rs` has three traits, one for each style of program, and
// `apps/` the three programs, once for each style. `system.rs` has the queue and the MVars of the
// implementations on one OS thread, `os.rs` the MVars of OS threads, `stack.rs` continuations on
// stacks. Selvedge's threads have a scheduler of their own (`scheduler.rs`) and MVars of 16 bytes
// (`seat.rs`, `mvar_seat.rs`), which lie in rows (`seat_rows.rs`); `library.rs` has them under the
// scheduler and in the MVars of the library. There is no unsafe code.
//
// Invariant: threads name MVars, and the system owns them. So threads that wait in a circle are
// freed at the end of `start`.

#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

pub mod apps;
pub mod callcc;
pub mod channel;
pub mod cont;
pub mod dlcont;
pub mod equeue;
mod event_system;
mod fifo_seat;
pub mod implementations;
mod interface;
pub mod library;
mod monad;
mod mvar_seat;
pub mod os;
pub mod promise;
mod scheduler;
mod seat;
mod seat_rows;
pub mod selvedge;
pub mod selvedge_direct;
pub mod stack;
pub mod sys;
mod system;
pub mod task;
pub mod tramp;
pub mod vm;

pub use crate::selvedge::Selvedge;
pub use callcc::Callcc;
pub use cont::ContMonad;
pub use dlcont::Dlcont;
pub use equeue::Equeue;
pub use fifo_seat::FifoSeat;
pub use interface::{Async, Direct, Indirect, RunEnd};
pub use library::LibraryThreads;
pub use monad::Monad;
pub use mvar_seat::MVarSeat;
pub use promise::PromiseMonad;
pub use selvedge_direct::SelvedgeDirect;
pub use sys::Sys;
pub use system::Name;
pub use task::Tasks;
pub use tramp::Tramp;
pub use vm::Vm;

/// The programs of the guide's chapter run as printed.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/guide/lightweight.md")]
pub struct Chapter;
