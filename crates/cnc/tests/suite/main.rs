//! What graphs compute and report, under every scheduler.
#![cfg(not(loom))]
#![allow(missing_docs)]

mod cleaning;
mod errors;
mod random_graphs;
mod results;
mod schedulers;
