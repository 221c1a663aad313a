//! What lazy values, regions, sparks and strategies do, in one binary.
#![cfg(not(loom))]

mod chains;
mod circles;
mod derived;
// The other modules have all of its paths of unsafe code.
#[cfg(not(miri))]
mod everywhere;
mod given_up;
mod owned;
mod random_programs;
mod regions;
mod sparks;
