//! The synchronisation primitives of the protocols that loom checks: those of std, or those of loom
//! under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread_local,
};
use std::sync::PoisonError;
#[cfg(not(loom))]
pub(crate) use std::{
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, AtomicUsize, Ordering, fence},
    },
    thread_local,
};

/// Locks a mutex of this crate. No code of the program runs under such a mutex, except under the
/// mutex of the global engine. That mutex guards no data, so a panic leaves nothing half done.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Nothing in a program. Loom treats a `SeqCst` access as an `AcqRel` one; this fence gives a model
/// the total order that `SeqCst` accesses have in a program.
#[inline(always)]
pub(crate) fn in_one_order() {
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// The number of times that a transaction looks at a locked variable before it gives up.
pub(crate) const LOOKS: u32 = if cfg!(loom) { 1 } else { 100 };

/// The number of conflicts after which a transaction asks for the turn.
pub(crate) const PATIENCE: u32 = if cfg!(loom) { 1 } else { 32 };

/// Lets another OS thread run, which perhaps was stopped while it had a variable locked.
pub(crate) fn give_way() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::thread::yield_now();
}

/// Passes a moment in which another OS thread unlocks a variable.
#[inline]
pub(crate) fn relax() {
    #[cfg(loom)]
    loom::thread::yield_now();
    #[cfg(not(loom))]
    std::hint::spin_loop();
}
