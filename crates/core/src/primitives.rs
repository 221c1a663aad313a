//! The synchronisation primitives of the protocols that are checked with loom: std's, or loom's under `--cfg loom`.

#[cfg(loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    lazy_static,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering},
    },
    thread_local,
};
#[cfg(not(loom))]
pub(crate) use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, Ordering},
};

/// `std`'s cell with loom's way of getting at the value.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}

/// How one waits for a lock that is held for a few instructions: by trying again, less and less often.
#[cfg(not(loom))]
pub(crate) struct Late;

/// Nothing: see the model's.
#[cfg(not(loom))]
pub(crate) struct Turn;

#[cfg(not(loom))]
impl Late {
    pub(crate) const fn new() -> Late {
        Late
    }

    /// To be called before the first attempt; the end of what it gives is the end of the critical section.
    #[inline(always)]
    pub(crate) fn turn(&self) -> Turn {
        Turn
    }

    /// Tries until it succeeds.
    pub(crate) fn acquire<T>(&self, attempt: impl Fn() -> Option<T>) -> T {
        let mut round = 0u32;
        loop {
            match round {
                0..6 => (0..1 << round).for_each(|_| std::hint::spin_loop()),
                6..32 => std::thread::yield_now(),
                _ => std::thread::sleep(std::time::Duration::from_micros(50)),
            }
            match attempt() {
                Some(acquired) => return acquired,
                None => round += 1,
            }
        }
    }
}

/// The same in a model, which would have to try every number of vain attempts: here they wait in a mutex of the model's,
/// and an attempt is in vain only because of those who go past the lock.
#[cfg(loom)]
pub(crate) struct Late(Mutex<()>);

#[cfg(loom)]
impl Late {
    pub(crate) fn new() -> Late {
        Late(Mutex::new(()))
    }

    pub(crate) fn turn(&self) -> impl Sized {
        self.0.lock().unwrap()
    }

    pub(crate) fn acquire<T>(&self, attempt: impl Fn() -> Option<T>) -> T {
        loop {
            if let Some(acquired) = attempt() {
                return acquired;
            }
        }
    }
}
