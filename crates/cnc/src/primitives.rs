//! The synchronisation primitives of the protocols that loom checks: std's, or loom's under `--cfg
//! loom`.

use std::sync::PoisonError;

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell as ItemCell,
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};
#[cfg(not(loom))]
pub(crate) use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicPtr, AtomicU64, AtomicUsize, Ordering},
    },
    thread,
};

/// Locks a mutex of this crate. No code of the program runs under such a mutex.
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
