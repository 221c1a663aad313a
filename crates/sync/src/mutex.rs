//! The mutex: one thread at a time.

use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue};
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

/// A lock that only one thread holds at a time, across system calls if need be. The one that has waited longest gets it next.
///
/// Unlocking is dropping the [`Guard`]: nobody can unlock what he does not hold, and a panic or cancellation while holding it unlocks
/// it. A thread that locks it twice waits for itself: a deadlock, which the scheduler reports.
///
/// # Paper
/// [LZ07 §4.3]: `sys_mutex_lock`, `sys_mutex_unlock`. As in its footnote 1, no event loop of its own serves it.
///
/// # Examples
/// ```
/// use selvedge_core::{round_robin, spawn, yield_now};
/// use selvedge_sync::Mutex;
/// use std::rc::Rc;
///
/// let total = round_robin(async {
///     let shared = Rc::new(Mutex::new_local(0));
///     let mut threads = vec![];
///     for _ in 0..10 {
///         let shared = shared.clone();
///         threads.push(spawn(async move {
///             let mut sum = shared.lock().await;
///             let before = *sum;
///             yield_now().await;
///             *sum = before + 1;
///         }));
///     }
///     for thread in threads {
///         thread.await.unwrap();
///     }
///     *shared.lock().await
/// })?;
/// assert_eq!(total, 10);
/// # Ok::<(), selvedge_core::RunError>(())
/// ```
pub struct Mutex<T, M: Mode = Shared> {
    /// Whether it is locked; it stays so while it is handed from one to the next.
    queue: WaitQueue<bool, (), M>,
    value: UnsafeCell<T>,
}

// SAFETY: the value is reached through a guard alone, of which there is one at a time (`queue` sees to it), so that sharing the
// mutex only moves access to the T from one OS thread to another.
unsafe impl<T: Send, M: Mode> Sync for Mutex<T, M> where WaitQueue<bool, (), M>: Sync {}

/// Holds a [`Mutex`] until it is dropped.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct Guard<'a, T, M: Mode> {
    mutex: &'a Mutex<T, M>,
    /// Shared between OS threads only if the value may be.
    _value: PhantomData<&'a mut T>,
}

impl<T> Mutex<T> {
    /// An unlocked mutex.
    pub fn new(value: T) -> Self {
        Mutex::guarding(value)
    }
}

impl<T> Mutex<T, Local> {
    /// An unlocked mutex that stays on its OS thread.
    pub fn new_local(value: T) -> Self {
        Mutex::guarding(value)
    }
}

impl<T, M: Mode> Mutex<T, M> {
    fn guarding(value: T) -> Self {
        Mutex { queue: WaitQueue::new(false), value: UnsafeCell::new(value) }
    }

    /// Locks it, waiting if need be.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = Guard<'_, T, M>> {
        let waiting = self.queue.wait::<Lock>(());
        async move {
            waiting.await;
            self.guard()
        }
    }

    /// Locks it if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T, M>> {
        self.queue.with(|locked, _| !std::mem::replace(locked, true)).then(|| self.guard())
    }

    /// The value, which nobody else can reach.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    fn guard(&self) -> Guard<'_, T, M> {
        Guard { mutex: self, _value: PhantomData }
    }
}

impl<T, M: Mode> Deref for Guard<'_, T, M> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: while a guard lives the mutex is locked for it alone.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T, M: Mode> DerefMut for Guard<'_, T, M> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

enum Lock {}

impl Lock {
    #[inline(always)]
    fn unlock(locked: &mut bool, queue: &mut Queue<'_, ()>) {
        match queue.is_empty() {
            true => *locked = false,
            false => queue.grant(),
        }
    }
}

impl Role<bool, ()> for Lock {
    type Output = ();

    #[inline(always)]
    fn attempt(locked: &mut bool, _: &mut Queue<'_, ()>, _: &mut ()) -> Option<()> {
        (!std::mem::replace(locked, true)).then_some(())
    }

    fn granted(_: &mut ()) {}

    fn abandoned(locked: &mut bool, queue: &mut Queue<'_, ()>, _: &mut ()) {
        Lock::unlock(locked, queue);
    }
}

impl<T, M: Mode> Drop for Guard<'_, T, M> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.queue.with(Lock::unlock);
    }
}

impl<T: fmt::Debug, M: Mode> fmt::Debug for Guard<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&**self).finish()
    }
}

impl<T: Default, M: Mode> Default for Mutex<T, M> {
    fn default() -> Self {
        Mutex::guarding(T::default())
    }
}

impl<T, M: Mode> fmt::Debug for Mutex<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.queue.with(|locked, _| *locked) { "Mutex(locked)" } else { "Mutex(free)" })
    }
}
