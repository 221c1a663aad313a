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

// # For readers of the source
//
// `trampoline` follows the paper step by step. Read `suspension.rs` (what a coroutine hands out
// when it suspends), `coroutine.rs` (how a resumption polls the body, and the handover in which it
// finds the suspension), `pipe.rs` (a producer and a consumer). A combinator is a body too: it
// resumes other coroutines and suspends as they do. The tests compare all of it with the paper's
// listings, which `tests/suite/against_the_listings.rs` has once more with a boxed closure for each
// resumption, and with the sessions that the paper prints.
//
// `pipeline` is for work. Read `stage.rs` (the protocol), `chain.rs` (`a >> b`, and how an end and
// a break travel), `list.rs` (lists in a block, with ends not yet found), `branch.rs` (why outputs
// come in order without a queue), `record.rs` (two splitters that decide at different times).
// Parsers (`csv.rs`, `json.rs`, `xml.rs`, `binary.rs`) and encoders are transducers; `fuzz.rs` has
// the properties that hold at every cut of their input. `failure.rs` says why and where a pipeline
// stopped. `boxed.rs` has stages behind a pointer, for pipelines that a running program puts
// together, and `boxed/kinds.rs` the same with their kinds. `join.rs` says what a join does, and
// `join/driven.rs` runs it. `held.rs` has the pipelines that a holder steps, `read.rs` iteratees
// that want less than a chunk. `body.rs` runs a stage that is written as a coroutine, with
// `queue.rs` for its waiting items; `bodies.rs` has the bodies of other roles. `exact.rs` has the
// numbers.
//
// Ways to save a copy: a stage that makes an item out of others writes it where the next stage
// keeps it (`Sink::put_made`). A body that makes a chunk gives its memory to a body after it
// (`Sink::put_store`). Items that a stage puts one by one wait for a chunk, but no longer than the
// call of that stage (`Transduce::gather` and `flush`). Lines that are zipped with numbers go on as
// two chunks (`ZippedLists` in `list.rs`) until a stage asks for the lists, so a search sees the
// block.
//
// Invariants:
// - `coroutine` has no unsafe code, does no I/O and has no scheduler. `Parallel` alone asks the
//   running scheduler for a thread.
// - A suspension of `trampoline` allocates nothing.
// - A stage of `pipeline` never waits. The holder of the pipeline waits, between two chunks.
// - Nothing follows a failure: no item and no end reaches the stage after a failed one.

#![forbid(unsafe_code)]
#![doc(test(attr(deny(warnings), allow(dead_code))))]

#[doc(hidden)]
pub mod fuzz;
pub mod pipeline;
pub mod trampoline;
