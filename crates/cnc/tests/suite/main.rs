//! What graphs compute and report, under every scheduler.
#![cfg(not(loom))]
#![allow(missing_docs)]

mod errors;
mod results;
mod schedulers;
