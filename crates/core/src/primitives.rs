//! The synchronisation primitives of the protocols that loom checks: those of std, or those of loom
//! under `--cfg loom`.
//!
//! `lock.rs`, `parker.rs`, `reply_cell.rs` and the other files with a loom model
//! (`tests/loom`) import their atomics from here and from nowhere else: a protocol that takes
//! one from `std` is not checked. `Late` is the way to wait for a lock that is held for a few
//! instructions.

#[cfg(loom)]
pub(crate) use loom::{
    cell::{MutPtr, UnsafeCell},
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

/// The cell of `std`, with loom's way to reach the value.
#[cfg(not(loom))]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(loom))]
impl<T> UnsafeCell<T> {
    pub(crate) const fn new(value: T) -> UnsafeCell<T> {
        UnsafeCell(std::cell::UnsafeCell::new(value))
    }

    #[inline(always)]
    pub(crate) fn get_mut(&self) -> MutPtr<T> {
        MutPtr(self.0.get())
    }
}

/// A pointer to the value. It lives for as long as its owner uses the value, because loom finds two
/// users at once by the lives of their pointers.
#[cfg(not(loom))]
pub(crate) struct MutPtr<T>(*mut T);

#[cfg(not(loom))]
impl<T> MutPtr<T> {
    /// # Safety
    /// The value is live, and while the result lives, no other code reaches the value.
    #[inline(always)]
    #[expect(clippy::mut_from_ref, reason = "as loom has it")]
    pub(crate) unsafe fn deref(&self) -> &mut T {
        // SAFETY: the caller's contract.
        unsafe { &mut *self.0 }
    }
}

/// The way in which an OS thread waits for a lock that is held for a few instructions: it tries
/// again, less and less often.
#[cfg(not(loom))]
pub(crate) struct Late;

/// An empty value. In a model it is the guard of a mutex.
#[cfg(not(loom))]
pub(crate) struct Turn<'a>(std::marker::PhantomData<&'a ()>);

#[cfg(loom)]
pub(crate) type Turn<'a> = loom::sync::MutexGuard<'a, ()>;

#[cfg(not(loom))]
impl Late {
    pub(crate) const fn new() -> Late {
        Late
    }

    /// Called before the first attempt. The critical section ends when the result is dropped.
    #[inline(always)]
    pub(crate) fn turn(&self) -> Turn<'_> {
        Turn(std::marker::PhantomData)
    }

    /// Tries until an attempt succeeds.
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

/// The same in a model. A model would have to try every number of failed attempts, so here OS
/// threads wait in a mutex of the model. An attempt fails only because of operations that go past
/// the lock.
#[cfg(loom)]
pub(crate) struct Late(Mutex<()>);

#[cfg(loom)]
impl Late {
    pub(crate) fn new() -> Late {
        Late(Mutex::new(()))
    }

    pub(crate) fn turn(&self) -> Turn<'_> {
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
