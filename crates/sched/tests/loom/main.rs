//! All interleavings of the protocols of this crate, in one program, because linking is what takes
//! long.
#![cfg(loom)]

mod elsewhere;
mod idle_workers;
mod run_ring;
