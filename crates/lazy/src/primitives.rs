//! The synchronisation primitives of the protocols that loom checks: those of std, or those of loom
//! under `--cfg loom`. And the asymmetric fence of this crate: [`often`] and [`seldom`].
//!
//! `node/waiters.rs`, `ring.rs` and `spark/converter.rs` use the two fences as a pair. The frequent
//! side pays nothing if the kernel has membarrier(2), because the seldom side then interrupts all
//! other CPUs.
//!
//! A side that uses `often` is correct only if the other side of its protocol uses `seldom`. Two
//! `often` fences do not order one another.

#[cfg(loom)]
pub(crate) use loom::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence},
    },
    thread::yield_now,
    thread_local,
};
use selvedge_core::{heavy_fence, light_fence};
use std::sync::PoisonError;
#[cfg(not(loom))]
pub(crate) use std::{
    sync::{
        Condvar, Mutex, MutexGuard,
        atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering, fence},
    },
    thread::yield_now,
    thread_local,
};

/// Locks a mutex of this crate. No code of the program runs under such a mutex.
#[inline]
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The fence of the side that runs often. It costs no instruction where the kernel has
/// membarrier(2). The other side is [`seldom`].
#[inline(always)]
pub(crate) fn often() {
    light_fence();
    if !is_light() {
        fence(Ordering::SeqCst);
    }
}

/// The fence of the side that runs seldom.
pub(crate) fn seldom() {
    if !heavy_fence() {
        fence(Ordering::SeqCst);
    }
}

/// Whether the kernel has membarrier(2). False until the process has asked it, which it does when
/// it makes its first lazy value: see [`learn`].
#[cfg(not(any(loom, miri)))]
static LIGHT: std::sync::atomic::AtomicU8 = std::sync::atomic::AtomicU8::new(UNKNOWN);
#[cfg(not(any(loom, miri)))]
const UNKNOWN: u8 = 0;
#[cfg(not(any(loom, miri)))]
const WITHOUT: u8 = 1;
#[cfg(not(any(loom, miri)))]
const WITH: u8 = 2;

#[cfg(not(any(loom, miri)))]
#[inline(always)]
fn is_light() -> bool {
    LIGHT.load(std::sync::atomic::Ordering::Relaxed) == WITH
}

/// The fences of loom and Miri are full ones on both sides.
#[cfg(any(loom, miri))]
fn is_light() -> bool {
    true
}

/// Asks the kernel for membarrier(2), once.
///
/// An answer of `WITH` is the truth for the whole life of the process, so an OS thread that does
/// not see it yet makes one fence too many, and none too few.
#[inline(always)]
pub(crate) fn learn() {
    #[cfg(not(any(loom, miri)))]
    if LIGHT.load(std::sync::atomic::Ordering::Relaxed) == UNKNOWN {
        ask();
    }
}

#[cfg(not(any(loom, miri)))]
#[cold]
fn ask() {
    let answer = if heavy_fence() { WITH } else { WITHOUT };
    LIGHT.store(answer, std::sync::atomic::Ordering::Relaxed);
}
