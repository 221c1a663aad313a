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
//! use selvedge::coroutine::{Generator, Iteratee, pipe2};
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
//! The coroutines of this crate are stepped exactly as the paper says: which coroutine is resumed
//! when, and which values are thrown away. They are for teaching and for tests. The crate
//! `selvedge-pipeline` has the paper's pipelines for work, at the speed of a loop over blocks.
//!
//! | for | there is |
//! |---|---|
//! | a coroutine, whatever its suspensions | [`Coroutine`], [`Co`] in its body, [`Coroutine::resume`] |
//! | pauses, and coroutines in lock-step | [`Trampoline`], [`bounce`], [`run`], [`mzip_with`], [`interleave`] |
//! | values out of a coroutine, or into it | [`Generator`], [`run_generator`]; [`Iteratee`], [`run_iteratee`] |
//! | other suspensions | [`Request`], [`Many`], [`Compose`], [`EitherFunctor`], your own [`Suspension`] |
//! | one kind of coroutine as another | [`Coroutine::map_suspension`], [`Natural`] |
//! | a producer and a consumer | [`pipe1`], [`pipe2`] |
//! | stages between them | [`Transducer`], `first >> second`, [`from_generator`], [`to_generator`] |
//! | how two coroutines make one step | [`Sequential`], [`Concurrent`], [`Parallel`] |
//!
//! # Base monad
//! The paper's coroutines are a layer over any base monad `m`. Here the base is async Rust: a
//! bounce is a future, and what a body awaits beside the operations of its [`Co`] belongs to the
//! bounce. If the body awaits a lock, the bounce waits, and no suspension reaches the holder.
//! Printing, assigning and other plain code needs no lifting.
//!
//! # Cost
//! [`Coroutine::new`] allocates twice: the body, pinned in a box, and the place where body and
//! holder meet. A coroutine that awaits values has a third allocation, for them. A suspension
//! allocates nothing. It takes the locks of these places a few times, and no other thread holds
//! one. Each combinator here is a body of its own, and costs as much. A step that passes through
//! `n` nested combinators uses the stack of `n` nested polls.
//!
//! # Differences
//! 1. A coroutine is resumed at most once: [`Coroutine::resume`] consumes it. In Haskell a
//!    resumption is a function that may be called again.
//! 2. A suspension functor holds its resumptions from the beginning. A function `a -> x` is
//!    therefore a [`Feed`]: a place for the `a`, and the `x` that will read it. In a composition
//!    with [`Await`] outside, the inner suspension is chosen before the value is fed.
//! 3. Rust computes values before it passes them, so it has no value that fails when it is used.
//!    [`Fed`] is one that the body may hold and never open.

// # For readers of the source
//
// Read `suspension.rs` (what a coroutine hands out when it suspends), `coroutine.rs` (how a
// resumption polls the body, and the handover in which it finds the suspension), `pipe.rs` (a
// producer and a consumer). A combinator is a body too: it resumes other coroutines and suspends as
// they do. The tests compare all of it with the paper's listings, which
// `tests/suite/against_the_listings.rs` has once more with a boxed closure for each resumption, and
// with the sessions that the paper prints.
//
// Invariants:
// - `coroutine` has no unsafe code, does no I/O and has no scheduler. `Parallel` alone asks the
//   running scheduler for a thread.
// - A suspension allocates nothing.

#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod binder;
mod body;
mod cast;
mod coroutine;
mod interleave;
mod pipe;
mod roles;
mod suspension;
mod transducer;

pub use binder::{Binder, Concurrent, Parallel, Sequential};
pub use body::Co;
pub use cast::{
    Naught, from_generator, from_iteratee, from_trampoline, to_generator, to_iteratee, to_trampoline,
};
pub use coroutine::{Coroutine, Natural, Resumed};
pub use interleave::{interleave, interleave_by, mzip_with, mzip_with_by};
pub use pipe::{pipe1, pipe1_by, pipe2, pipe2_by};
pub use roles::{
    Generator, InOrOut, Iteratee, Request, Trampoline, bounce, run, run_generator, run_iteratee,
};
pub use suspension::{
    Await, Compose, Either, EitherFunctor, Fed, Feed, FeedSlot, Identity, Many, Single, Suspension, Yield,
};
pub use transducer::{
    AfterUncast, Transducer, lift_one_to_one, lift_stateful, lift_stateless, pipe, pipe_by,
};
