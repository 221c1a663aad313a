//! All interleavings of the protocols of this crate, in one program, because linking is what takes
//! long.
#![cfg(loom)]

mod alarm;
mod biased;
mod freed;
mod inbox;
mod join;
mod outlet;
mod parker;
mod quiet;
mod reply_cell;
mod state;
mod wait_queue;
