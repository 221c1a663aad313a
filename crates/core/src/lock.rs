//! The lock around an object that threads block on: [`WordLock`] for shared objects and
//! [`LocalLock`] for local ones, each with a word that can also be changed without the lock.
//!
//! [`WaitQueue`](crate::WaitQueue) uses them. A critical section of a wait queue is a few
//! instructions long, so the lock is one 32-bit word. Its highest bit says that the lock is
//! **held**; the other 31 bits belong to the object. While the lock is held, only the holder
//! changes the word. While it is free, any OS thread may exchange the word for another free one, in
//! one atomic operation. A mutex without contention takes this way past the lock.
//!
//! The holder need not read the word again to release the lock, because no other OS thread writes
//! to a held word. So a critical section is one read-modify-write and one store. For the same
//! reason an OS thread that finds the lock held cannot leave a note in the word that it sleeps. It
//! tries again instead: at once, then after giving up its time slice, and in the end after naps
//! (`Late`, in `primitives.rs`). So a holder that the operating system has stopped in the middle
//! gets to run under every policy of scheduling. `tests/loom/wait_queue.rs` checks both ways.

use crate::primitives::{AtomicU32, Late, MutPtr, Ordering, Turn, UnsafeCell};
use crate::quietly::quietly;
use std::cell::Cell;
use std::fmt;

/// Set in the word while the lock is held.
const HELD: u32 = 1 << 31;

/// The lock of a [`Mode`](crate::Mode).
pub trait Lock<T> {
    /// The right to the value and the word.
    type Guard<'a>: Guard<T>
    where
        Self: 'a;

    /// Puts a value under the lock, beside a word.
    fn new(value: T, word: u32) -> Self;

    /// Takes the lock, until the guard is dropped.
    ///
    /// The lock gives a guard and calls no function under the lock, because the compiler does not
    /// compile such a function into each of its callers.
    fn enter(&self) -> Self::Guard<'_>;

    /// Works on the value and the word under the lock.
    #[inline(always)]
    fn with<R>(&self, f: impl FnOnce(&mut T, &mut u32) -> R) -> R {
        let mut guard = self.enter();
        let (value, word) = guard.parts();
        f(value, word)
    }

    /// The word, without the lock. It may be out of date when the caller gets it. The caller sees
    /// all that was done under the lock before the word got this value.
    fn word(&self) -> u32;

    /// Exchanges the word, without the lock, for the result of `change`; gives the old word. With
    /// `usual`, the first attempt takes that for the word, and does not read the word before.
    ///
    /// # Errors
    /// The word, if `change` gives `None`; or `None` if the lock is held.
    fn exchange(
        &self,
        usual: Option<u32>,
        change: impl FnMut(u32) -> Option<u32>,
    ) -> Result<u32, Option<u32>>;

    /// Called before a waiter's last operation, after which the memory of the waiter goes. That
    /// operation must not unwind because the lock is held: the object would then keep a pointer to
    /// the waiter.
    ///
    /// If the lock of a local object is held here, its holder is an operation further down on the
    /// stack, or on another stack of this OS thread, which cannot go on before the waiter has gone.
    /// So `before_last` aborts the process.
    fn before_last(&self);
}

/// The right to what is under a lock: the lock is released when it is dropped, by a panic too.
pub trait Guard<T> {
    /// The value and the word.
    fn parts(&mut self) -> (&mut T, &mut u32);
}

/// The lock of objects that are shared between OS threads.
pub struct WordLock<T> {
    word: AtomicU32,
    late: Late,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached under the lock alone (`enter`), by one OS thread at a time. Each
// sees all that the one before has done, because `Held` releases the word with Release and `enter`
// takes it with Acquire. So sharing the lock only moves the value between OS threads.
unsafe impl<T: Send> Sync for WordLock<T> {}

/// Releases the lock when it is dropped.
struct Held<'a> {
    lock: &'a AtomicU32,
    word: u32,
}

/// The guard of a [`WordLock`]. The value is given up first.
pub struct WordGuard<'a, T> {
    value: MutPtr<T>,
    held: Held<'a>,
    _turn: Turn<'a>,
}

impl<T> Guard<T> for WordGuard<'_, T> {
    #[inline(always)]
    fn parts(&mut self) -> (&mut T, &mut u32) {
        // SAFETY: `enter` has set HELD where it was not set. Every other caller of `enter` waits
        // until `held` is dropped, and `exchange` does not touch the value.
        (unsafe { self.value.deref() }, &mut self.held.word)
    }
}

impl<T> fmt::Debug for WordGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WordGuard").field("word", &self.held.word).finish_non_exhaustive()
    }
}

impl Drop for Held<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.store(self.word & !HELD, Ordering::Release);
    }
}

impl<T> WordLock<T> {
    crate::constant! {
        /// As [`Lock::new`], also for a `static`.
        pub(crate) fn shared(value: T, word: u32) -> Self {
            WordLock { word: AtomicU32::new(word & !HELD), late: Late::new(), value: UnsafeCell::new(value) }
        }
    }
}

impl<T> Lock<T> for WordLock<T> {
    type Guard<'a>
        = WordGuard<'a, T>
    where
        Self: 'a;

    fn new(value: T, word: u32) -> Self {
        WordLock::shared(value, word)
    }

    #[inline(always)]
    fn enter(&self) -> WordGuard<'_, T> {
        let turn = self.late.turn();
        let word = self.word.load(Ordering::Relaxed);
        let word = match word & HELD == 0
            && self
                .word
                .compare_exchange_weak(word, word | HELD, Ordering::Acquire, Ordering::Relaxed)
                .is_ok()
        {
            true => word,
            false => acquire_late(&self.word, &self.late),
        };
        let held = Held { lock: &self.word, word };
        WordGuard { value: self.value.get_mut(), held, _turn: turn }
    }

    #[inline(always)]
    fn word(&self) -> u32 {
        self.word.load(Ordering::Acquire) & !HELD
    }

    #[inline(always)]
    fn exchange(
        &self,
        usual: Option<u32>,
        mut change: impl FnMut(u32) -> Option<u32>,
    ) -> Result<u32, Option<u32>> {
        let mut word = usual.unwrap_or_else(|| self.word.load(Ordering::Acquire));
        loop {
            if word & HELD != 0 {
                return Err(None);
            }
            let new = change(word).ok_or(Some(word))? & !HELD;
            if new == word && usual.is_none() {
                return Ok(word);
            }
            // AcqRel, because the exchange may take the thing that the word guards, or give it
            // back.
            match self.word.compare_exchange_weak(word, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Ok(word),
                Err(now) => word = now,
            }
        }
    }

    /// Nothing to do, because the operation that follows waits for the holder.
    #[inline(always)]
    fn before_last(&self) {}
}

#[cold]
#[inline(never)]
fn acquire_late(lock: &AtomicU32, late: &Late) -> u32 {
    late.acquire(|| {
        let word = lock.load(Ordering::Relaxed);
        let taken = word & HELD == 0
            && lock.compare_exchange_weak(word, word | HELD, Ordering::Acquire, Ordering::Relaxed).is_ok();
        taken.then_some(word)
    })
}

impl<T> fmt::Debug for WordLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WordLock").field("word", &self.word()).finish_non_exhaustive()
    }
}

/// The lock of objects that stay on one OS thread. It only refuses an operation within another one
/// on the same object.
pub struct LocalLock<T> {
    word: Cell<u32>,
    value: std::cell::UnsafeCell<T>,
}

/// As [`Held`].
struct Entered<'a> {
    lock: &'a Cell<u32>,
    word: u32,
}

impl Drop for Entered<'_> {
    #[inline(always)]
    fn drop(&mut self) {
        self.lock.set(self.word & !HELD);
    }
}

/// The guard of a [`LocalLock`].
pub struct LocalGuard<'a, T> {
    value: &'a std::cell::UnsafeCell<T>,
    entered: Entered<'a>,
}

impl<T> Guard<T> for LocalGuard<'_, T> {
    #[inline(always)]
    fn parts(&mut self) -> (&mut T, &mut u32) {
        // SAFETY: the lock stays on its OS thread, because `Cell` is not `Sync`. There HELD keeps
        // every other operation out while `entered` lives, also an operation on another stack:
        // `try_enter` alone sets HELD, where it was not set, and only `Entered` stores to the word
        // after that.
        (unsafe { &mut *self.value.get() }, &mut self.entered.word)
    }
}

impl<T> fmt::Debug for LocalGuard<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalGuard").field("word", &self.entered.word).finish_non_exhaustive()
    }
}

impl<T> Lock<T> for LocalLock<T> {
    type Guard<'a>
        = LocalGuard<'a, T>
    where
        Self: 'a;

    fn new(value: T, word: u32) -> Self {
        LocalLock { word: Cell::new(word & !HELD), value: std::cell::UnsafeCell::new(value) }
    }

    /// # Panics
    /// If it is held.
    #[inline(always)]
    fn enter(&self) -> LocalGuard<'_, T> {
        match self.try_enter() {
            Some(entered) => LocalGuard { value: &self.value, entered },
            None => entered_twice(),
        }
    }

    #[inline(always)]
    fn word(&self) -> u32 {
        self.word.get() & !HELD
    }

    /// HELD is set while `change` runs, because `change` may leave this stack for another one. An
    /// operation there must neither change the word nor reach the value.
    #[inline(always)]
    fn exchange(
        &self,
        _: Option<u32>,
        mut change: impl FnMut(u32) -> Option<u32>,
    ) -> Result<u32, Option<u32>> {
        let mut entered = self.try_enter().ok_or(None)?;
        let word = entered.word;
        entered.word = change(word).ok_or(Some(word))?;
        Ok(word)
    }

    #[inline(always)]
    fn before_last(&self) {
        if self.word.get() & HELD != 0 {
            dropped_within();
        }
    }
}

impl<T> LocalLock<T> {
    /// Takes the lock; `None` if it is held.
    #[inline(always)]
    fn try_enter(&self) -> Option<Entered<'_>> {
        let word = self.word.get();
        if word & HELD != 0 {
            return None;
        }
        self.word.set(word | HELD);
        Some(Entered { lock: &self.word, word })
    }
}

#[cold]
#[inline(never)]
fn entered_twice() -> ! {
    panic!("an object was reached from within an operation on it")
}

#[cold]
#[inline(never)]
fn dropped_within() -> ! {
    // The message may be lost if standard error is gone; the process ends all the same.
    quietly(|| {
        eprintln!(
            "a wait was dropped within an operation on its own object, which may be using it: aborting"
        );
    });
    std::process::abort()
}

impl<T> fmt::Debug for LocalLock<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LocalLock").field("word", &self.word()).finish_non_exhaustive()
    }
}
