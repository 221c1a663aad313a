//! The synchronisation primitives of the protocols that loom checks: those of std, or those of loom
//! under `--cfg loom`.
//!
//! `slot.rs`, `in_use.rs`, `storage.rs`, `storage/table.rs`, `places.rs`, `bell.rs` and
//! `schedulers/circle.rs` must use these types and not those of std, because loom sees the accesses
//! of its own types only.

use std::sync::PoisonError;

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell as ItemCell,
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

/// Locks a mutex of this crate. Under some of these mutexes code of the program runs: `Eq`, `Hash`
/// and `Clone` of keys, and the closures of `StepCol::makes`. If that code panics, the mutex is
/// poisoned. The next owner of the lock ignores this, because each content is valid at each call.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// std's cell with loom's interface, so that loom sees every access.
#[cfg(not(loom))]
#[derive(Debug)]
pub(crate) struct ItemCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> ItemCell<T> {
    pub(crate) const fn new(value: T) -> ItemCell<T> {
        ItemCell(std::cell::UnsafeCell::new(value))
    }

    /// Gives `work` the content to read. The caller makes sure that no user writes it meanwhile.
    #[inline(always)]
    pub(crate) fn with<R>(&self, work: impl FnOnce(*const T) -> R) -> R {
        work(self.0.get())
    }

    /// Gives `work` the content. The caller makes sure that no other user touches it meanwhile.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, work: impl FnOnce(*mut T) -> R) -> R {
        work(self.0.get())
    }
}
