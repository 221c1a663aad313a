//! What graphs compute and report, under every scheduler.
#![cfg(not(loom))]
#![allow(missing_docs)]

mod async_calls;
mod cancelling;
mod cleaning;
mod composing;
mod errors;
mod interpreted;
mod keys;
mod large_counts;
mod lending;
mod living;
mod misses;
mod monitoring;
mod noticed_faults;
mod on_put;
mod on_rayon;
mod outliving;
mod random_graphs;
mod ranges;
mod recording;
mod resetting;
mod results;
mod same_errors;
mod schedulers;
mod streaming;
