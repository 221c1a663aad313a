//! Lazy values that threads share, arenas of thunks, and sparks.
//!
//! | | for | evaluated | a thread that meets it under evaluation |
//! |---|---|---|---|
//! | [`Lazy`] | a value of its own, with a body that may wait | once | waits: a thread of ours is parked, an OS thread blocks |
//! | [`Region`], [`Nursery`], [`Thunk`], [`LazyList`] | many small values of pure code, freed together | mostly once; entered by stores alone | looks until it is there |
//! | [`join`], [`par_map`], [`par_chunks`], [`InPieces`] | two or many pieces of work, by idle workers | once | does parts of it |
//! | [`par`], [`pseq`], [`par_buffer`], [`Ahead`] | a [`Lazy`] value that will be needed soon | once, by an idle worker or where it is needed | as for [`Lazy`] |
//! | [`Strategy`], [`par_list`], [`par_chunk`], [`par_ahead`], [`in_turn`], [`Deep`](trait@Deep) | how far values are evaluated, and where | | |
//! | [`NoValueError`] | why a value has none: a panic, or `<<loop>>` with the names of the circle | | |
//!
//! # Which, when
//! - A value that several threads need, and that one of them is to make: [`Lazy`].
//! - A value in a `static`, which depends on no other: the standard library's `LazyLock` does. But
//!   a thread of ours that waits for a `LazyLock` stops all threads of its CPU, and an initialiser
//!   that needs its own value, or waits for a part of itself that does, waits for ever.
//! - Millions of values that are one computation, in lists and trees: a [`Region`]. Its thunks run
//!   at a stretch, on the native stack, and their code must be pure: two threads may evaluate one
//!   at the same moment ([`RegionCounts`] tells how often). [`Nursery::just_once`] opts out, and
//!   [`ClaimAtYield`] bounds a duplicate.
//! - Work that may be done in parallel: [`join`] and the maps for work that the caller waits for,
//!   [`par`] for a value that it may need later.
//!
//! # Examples
//! A table of which only those rows are made that are needed, each from the one before:
//! ```
//! use selvedge::lazy::Lazy;
//!
//! let mut rows = vec![Lazy::ready(vec![1u64])];
//! for _ in 0..30 {
//!     let next = rows.last().unwrap().map(|row| {
//!         let inner = row.windows(2).map(|pair| pair[0] + pair[1]);
//!         std::iter::once(1).chain(inner).chain([1]).collect()
//!     });
//!     rows.push(next);
//! }
//! assert_eq!(rows[20].force_blocking()[10], 184_756);
//! assert!(!rows[21].is_ready());
//! ```

// # For readers of the source
//
// A lazy value is a node with its body. The thread that claims the node polls the body, and other
// threads wait in a queue of the node, which the update finds without an atomic exchange. Read
// `node.rs` (the states), `node/waiters.rs` (why no waiter is lost), `force.rs` (how bodies are
// polled within one another, and how a long chain is forced in a bounded native stack;
// `force/woken.rs` says which bodies a poll polls, and `force/more_stack.rs` handles chains of
// bodies that block), `node/drops.rs` (delayed drops, and why values are `'static`), `circle.rs`
// (how a circle is found, and what is given up with a frozen body).
//
// Thunks of a region (`region/cell.rs`) are of another kind: words in an arena, entered and
// updated by stores (`region/code.rs`). `region/claim.rs` proves that no duplicate is longer than
// a quantum, `region/waits.rs` parks an OS thread at a hole and finds circles, and
// `region/chunk.rs` has the memory.
//
// Sparks (`spark.rs`, `ring.rs`) lie in rings of their OS threads. Thieves take the oldest spark
// without interrupting the owner. When a spark is made, the scheduler creates a thread that takes
// sparks from there, and that ends when it finds none (`spark/converter.rs`). So the scheduler's
// own protocol wakes a worker that sleeps.
//
// Invariants:
// - An update for which no thread waits is a store and a load.
// - `lazy` knows no scheduler: it asks the running one for a thread.

#![doc(test(attr(deny(warnings), allow(dead_code))))]

mod adapters;
mod circle;
mod failed;
mod force;
mod list;
mod node;
mod primitives;
mod region;
mod ring;
mod spark;
mod strategy;
mod value;

pub use adapters::{Ahead, InPieces, ParPieces};
pub use failed::NoValueError;
pub use list::{Cons, LazyList, ListIter};
pub use region::{
    ClaimAtYield, Grey, GreyClaimAtYield, LockFree, Nursery, OneCas, Region, RegionCounts, Thunk, ThunkEntry,
    ThunkWord, TwoCas, Unsynchronised,
};
#[doc(hidden)]
pub use ring::SparkRing;
#[doc(inline)]
pub use selvedge_lazy_derive::Deep;
pub use spark::{SparkCounts, join, par, pseq, spark_counts};
pub use strategy::{
    AheadOf, ChunksOf, Deep, EachOf, InTurn, ParBuffer, Strategy, in_turn, par_ahead, par_buffer, par_chunk,
    par_chunks, par_list, par_map, rdeepseq, rpar, rseq,
};
pub use value::Lazy;
