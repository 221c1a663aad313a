//! Coroutines: computations that suspend, hand out a value or ask for one, and go on later.
//!
//! A coroutine is an ordinary `async` block or `async fn`. The body holds a typed handle, `Co`, and
//! each operation of the handle suspends the body: a generator calls `co.yield_(value)`, an
//! iteratee calls `co.await_()`. The holder of the coroutine *resumes* it. One resumption runs the
//! body up to its next suspension and returns the value of that suspension together with the rest
//! of the coroutine. The type of the coroutine says in which ways it suspends, so the compiler
//! refuses a holder that resumes an iteratee without a value. The body may also await anything
//! else, a lock or a socket, because a resumption is a future too and waits along with its body.
//! A generator and an iteratee of the same item run as a pipe: they meet at each item, so that no
//! queue and no scheduler stands between them.
//!
//! ```
//! use selvedge::coroutine::trampoline::{Generator, Iteratee, pipe2};
//!
//! let (made, sum) = selvedge::round_robin(async {
//!     let producer = Generator::new(|mut co| async move {
//!         for number in 1..=4 {
//!             co.yield_(number).await;
//!         }
//!         "four numbers"
//!     });
//!     let consumer = Iteratee::new(|mut co| async move {
//!         let mut sum = 0;
//!         while let Some(number) = co.await_().await {
//!             sum += number;
//!         }
//!         sum
//!     });
//!     pipe2(producer, consumer).await
//! })?;
//! assert_eq!((made, sum), ("four numbers", 10));
//! # Ok::<(), selvedge::RunError>(())
//! ```
//!
//! [`trampoline`] has the semantics of the paper step by step, for teaching and for tests.
//! [`pipeline`] has the paper's pipelines for work, at the speed of a loop over blocks.
#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

#[doc(hidden)]
pub mod fuzz;
pub mod pipeline;
pub mod trampoline;
