//! What the crate promises, on every engine.
//!
//! | File | |
//! |---|---|
//! | `conformance/mod.rs` | programs of several ranks, which an engine must run; the cases are beside it |
//! | `every_engine.rs` | runs all of them on each engine, under each scheduler |
//! | `checked.rs` | ranks that do not make the same collective call, where that is checked |
//! | `constant_memory.rs` | that memory stays constant over many messages |
//! | `given_up.rs` | receives that are dropped, in every order of the ranks |
//! | `failures.rs` | ranks that panic, return errors, or end too early |
//! | `deadlocks.rs` | ranks that wait for one another |
//! | `files.rs` | random operations on files of all ranks, against the bytes; and disks that fail |
//! | `joined.rs` | worlds that did not start together, and ranks that are spawned |
//! | `model.rs` | random sends and receives, against a matching that looks at every message |
//! | `overlapping.rs` | random collectives that are started, against their results one by one |
//! | `parity.rs` | the names of Haskell-MPI, of which each has a case or a reason |
//! | `persistent_allocations.rs` | that the start of a persistent operation allocates nothing |
//! | `recovery.rs` | ranks that end at any step, and the others, which go on without them |
//! | `simulated.rs` | whole programs in simulated worlds |

mod checked;
mod conformance;
mod constant_memory;
mod deadlocks;
mod every_engine;
mod failures;
mod files;
mod given_up;
mod joined;
mod model;
mod overlapping;
mod parity;
mod persistent_allocations;
mod recovery;
mod simulated;
