//! [`BlockingGuard`]: the guard of an OS thread that has locked by blocking. `Mutex::lock_blocking`
//! and `RwLock::write_blocking` return it; `Condition` takes it for its blocking wait.
//!
//! It is a guard that does not move to another OS thread, because the lock has noted the OS thread
//! as its holder (`holder.rs`). `into_movable` takes that note back first.

use crate::{Guard, ReadGuard, WriteGuard};
use selvedge_core::Mode;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// Holds a [`Mutex`](crate::Mutex), or an [`RwLock`](crate::RwLock) to write, until it is dropped.
/// It stays on its OS thread.
///
/// An OS thread that blocks for a lock while it has such a guard of that lock would wait for
/// itself. No other OS thread can drop the guard, so the blocking operation panics. For a guard
/// that goes to another OS thread, or into a thread of a scheduler, there is `into_movable`.
///
/// ```compile_fail,E0277
/// fn moves<T: Send>(_: T) {}
/// moves(selvedge::sync::Mutex::new(()).lock_blocking());
/// ```
#[must_use = "the lock is released when this is dropped"]
pub struct BlockingGuard<G> {
    guard: G,
    /// As std's guard: not `Send`, but `Sync`.
    _stays: PhantomData<std::sync::MutexGuard<'static, ()>>,
}

impl<G> BlockingGuard<G> {
    /// The caller has recorded this OS thread as the holder.
    #[inline(always)]
    pub(crate) fn new(guard: G) -> BlockingGuard<G> {
        BlockingGuard { guard, _stays: PhantomData }
    }

    pub(crate) fn into_inner(self) -> G {
        self.guard
    }
}

impl<G: Recorded> BlockingGuard<G> {
    /// A guard that may go to another OS thread. This OS thread may then block for the lock.
    ///
    /// # Examples
    /// ```
    /// use selvedge::sync::{BlockingGuard, Mutex};
    ///
    /// let mutex = Mutex::new(1);
    /// std::thread::scope(|scope| {
    ///     let guard = BlockingGuard::into_movable(mutex.lock_blocking());
    ///     scope.spawn(move || drop(guard));
    ///     *mutex.lock_blocking() += 1; // waits for the other OS thread
    /// });
    /// assert_eq!(mutex.into_inner(), 2);
    /// ```
    pub fn into_movable(guard: Self) -> G {
        guard.guard.may_move();
        guard.guard
    }
}

impl<'a, T, M: Mode> BlockingGuard<WriteGuard<'a, T, M>> {
    /// As [`WriteGuard::downgrade`].
    pub fn downgrade(guard: Self) -> ReadGuard<'a, T, M> {
        WriteGuard::downgrade(guard.guard)
    }
}

/// A guard of a lock that records its holder.
#[doc(hidden)]
pub trait Recorded {
    /// Records that the guard may leave its OS thread.
    fn may_move(&self);
}

impl<T, M: Mode> Recorded for Guard<'_, T, M> {
    fn may_move(&self) {
        self.mutex.holder.may_move();
    }
}

impl<T, M: Mode> Recorded for WriteGuard<'_, T, M> {
    fn may_move(&self) {
        self.lock.writer.may_move();
    }
}

impl<G: Deref> Deref for BlockingGuard<G> {
    type Target = G::Target;

    #[inline(always)]
    fn deref(&self) -> &G::Target {
        &self.guard
    }
}

impl<G: DerefMut> DerefMut for BlockingGuard<G> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut G::Target {
        &mut self.guard
    }
}

impl<G: fmt::Debug> fmt::Debug for BlockingGuard<G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.guard.fmt(f)
    }
}
