//! The synchronisation primitives of the protocols that are checked with loom: std's, or loom's under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::sync::{
    Mutex,
    atomic::{AtomicU8, AtomicU64, Ordering},
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex,
    atomic::{AtomicU8, AtomicU64, Ordering},
};
