//! The synchronisation primitives of the protocols that loom checks: std's, or loom's under `--cfg
//! loom`.
//!
//! `run_ring.rs`, `idle_workers.rs`, `injector.rs` and `elsewhere.rs` import their atomics and
//! locks from here and from nowhere else, because `tests/loom` checks them.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell as SlotCell,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread::yield_now,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering},
    },
    thread::yield_now,
};

/// std's cell with loom's interface, so that loom sees every access.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct SlotCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> SlotCell<T> {
    pub(crate) const fn new(value: T) -> SlotCell<T> {
        SlotCell(std::cell::UnsafeCell::new(value))
    }

    /// Gives `work` the content. The caller makes sure that no other user touches the content
    /// meanwhile.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, work: impl FnOnce(*mut T) -> R) -> R {
        work(self.0.get())
    }
}
