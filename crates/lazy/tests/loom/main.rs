//! All interleavings of the protocols of this crate, in one program, because linking is what takes
//! long.
#![cfg(loom)]

mod lazy;
mod regions;
mod spark_ring;
