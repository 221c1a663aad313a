//! All interleavings of the protocols of this crate, in one program, because linking is what takes
//! long.
#![cfg(loom)]

#[macro_use]
#[path = "../engines/mod.rs"]
mod engines;

mod transactions;
