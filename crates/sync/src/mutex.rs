//! The mutex: [`Mutex`], its guards, and [`AcquireMutex`], the role in which a thread waits for it.
//!
//! The programs of users lock it. [`Condition`](crate::Condition) unlocks it while a thread waits
//! for a notification, and locks it again after that. The state of a mutex is the word of its
//! [`WaitQueue`]: the four bits [`LOCKED`], [`WAITED`], [`NUDGED`] and [`PROMISED`]. A thread locks
//! a free mutex, and unlocks a mutex without waiters, by one exchange of this word. All other
//! changes happen under the lock of the queue.
//!
//! Vocabulary: a waiter is **nudged** when an unlock wakes it to try again ([`Queue::nudge`]); a
//! nudged waiter stays in the queue, and the mutex is free meanwhile. The mutex is **promised** to
//! the first waiter when that waiter has tried again in vain; then the next unlock hands the mutex
//! over.

use crate::blocking::{refuse_within_step, wait_blocking};
use crate::holder::{self, Holder, OwnerRecord, RecursionError};
use crate::{BlockingGuard, Owner};
use selvedge_core::internal::insist;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, budget, constant};
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::panic::Location;
use std::sync::Arc;

/// A lock that only one thread holds at a time, across system calls if need be.
///
/// # Fairness
/// Waiters get the mutex in the order in which they came. An unlock wakes the first waiter and
/// leaves the mutex free. Until that waiter is polled, a running thread may lock the mutex before
/// it; so a mutex that is locked often and briefly is not handed from one sleeping thread to the
/// next. The first waiter may lose to a running thread once. If the mutex is still locked when that
/// waiter is polled, the next unlock hands the mutex to that waiter.
///
/// # Ownership
/// 1. Dropping the [`Guard`] unlocks the mutex. So a thread without the guard cannot unlock it, and
///    the holder cannot unlock it twice.
/// 2. A panic or a cancellation of the holder unlocks the mutex. There is no poisoning: the next
///    holder finds the value as the last holder left it. A program that changes the value in
///    several steps, with system calls between them, must allow for that.
/// 3. A thread that asks for a mutex which it holds itself waits for itself. [`lock`](Mutex::lock)
///    allows that, because the guard may be in another branch of the same thread's `join!`, and the
///    mutex cannot tell the branches of a thread apart. The scheduler's deadlock report names the
///    line. [`checked_lock`](Mutex::checked_lock) gives an error instead to an [`Owner`] that has a
///    guard, and [`lock_blocking`](Mutex::lock_blocking) panics on an OS thread that has one.
///    [`holder`](Mutex::holder) names the holder.
/// 4. Dropping a `lock()` that waits removes it from the queue. If the mutex had been handed to
///    that `lock()`, the mutex goes on to the next waiter.
///
/// # Paper
/// [LZ07 §4.3]: `sys_mutex_lock`, `sys_mutex_unlock`. As in its footnote 1, the mutex has no event
/// loop of its own.
///
/// # Differences
/// 1. The paper does not say what these do: unlocking by a thread that is not the holder,
///    recursion, an exception of the holder, and the end of a waiter. See above.
/// 2. Locking a free mutex, and unlocking a mutex without waiters, do not touch the queue.
///
/// # Complexity
/// One atomic operation to lock and one to unlock if no other thread wants the mutex, and none for
/// a local mutex. Otherwise one critical section each.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local, yield_now};
/// use selvedge::sync::Mutex;
/// use std::rc::Rc;
///
/// let total = round_robin(async {
///     let shared = Rc::new(Mutex::new_local(0));
///     let mut threads = vec![];
///     for _ in 0..10 {
///         let shared = shared.clone();
///         threads.push(spawn_local(async move {
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
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "sys_mutex_lock")]
#[doc(alias = "sys_mutex_unlock")]
pub struct Mutex<T, M: Mode = Shared> {
    /// Its word is [`LOCKED`], [`WAITED`], [`NUDGED`] and [`PROMISED`].
    queue: WaitQueue<(), (), M>,
    pub(crate) holder: OwnerRecord,
    value: UnsafeCell<T>,
}

/// A guard exists, or the mutex is being handed to a waiter.
const LOCKED: u32 = 1;
/// The queue is not empty. If the mutex is free at the same time, the first waiter has been
/// [`NUDGED`].
const WAITED: u32 = 2;
/// The first waiter has been woken to try again, and has not been polled since.
const NUDGED: u32 = 4;
/// The first waiter has tried again and found the mutex locked. The next unlock hands the mutex to
/// that waiter, and no other thread can lock it before.
const PROMISED: u32 = 8;

// SAFETY: the value is reached through a guard alone. There is one guard at a time, because only
// the thread that has set `LOCKED`, or to which the queue has handed the mutex, makes one. So
// sharing the mutex only moves access to the T from one OS thread to another, which `T: Send`
// allows.
unsafe impl<T: Send, M: Mode> Sync for Mutex<T, M> where WaitQueue<(), (), M>: Sync {}

/// Holds a [`Mutex`] until it is dropped.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct Guard<'a, T, M: Mode = Shared> {
    pub(crate) mutex: &'a Mutex<T, M>,
    /// This field makes the guard `Sync` only if the value is.
    _value: PhantomData<&'a mut T>,
}

/// Holds a [`Mutex`] until it is dropped, and keeps it alive.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct OwnedGuard<T, M: Mode = Shared> {
    mutex: Arc<Mutex<T, M>>,
    _value: PhantomData<*mut T>,
}

// SAFETY: an `OwnedGuard` is, as a `Guard`, a handle of the mutex and the only access to its value;
// `T: Send` lets that access move.
unsafe impl<T: Send, M: Mode> Send for OwnedGuard<T, M> where Mutex<T, M>: Send + Sync {}
// SAFETY: as above; a shared guard gives out `&T` only, and `T: Sync` lets OS threads share that.
unsafe impl<T: Send + Sync, M: Mode> Sync for OwnedGuard<T, M> where Mutex<T, M>: Send + Sync {}

impl<T> Mutex<T> {
    constant! {
        /// An unlocked mutex.
        pub fn new(value: T) -> Self {
            Mutex { queue: WaitQueue::shared((), 0), holder: OwnerRecord::new(), value: UnsafeCell::new(value) }
        }
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
        Mutex { queue: WaitQueue::new(()), holder: OwnerRecord::default(), value: UnsafeCell::new(value) }
    }

    /// Locks the mutex, and waits for it if need be.
    #[inline]
    #[track_caller]
    pub fn lock(&self) -> impl Future<Output = Guard<'_, T, M>> {
        self.lock_at(Location::caller())
    }

    #[inline]
    pub(crate) async fn lock_at(&self, place: &'static Location<'static>) -> Guard<'_, T, M> {
        if !budget::suffices(1) || !self.queue.replace(0, LOCKED) {
            budget::refund(1);
            self.acquire(place).await;
        }
        self.guard(holder::thread())
    }

    #[inline(always)]
    fn acquire(&self, place: &'static Location<'static>) -> impl Future<Output = ()> {
        self.holder.told("which holds the mutex", self.queue.wait_at::<AcquireMutex>((), place))
    }

    /// Locks it on behalf of an owner, unless it is locked on behalf of this owner already.
    ///
    /// # Errors
    /// When a guard that was made on behalf of this owner is still there, wherever that guard is.
    ///
    /// # Examples
    /// ```
    /// use selvedge::round_robin;
    /// use selvedge::sync::{Mutex, Owner};
    ///
    /// round_robin(async {
    ///     let (mutex, me) = (Mutex::new_local(()), Owner::new());
    ///     let guard = mutex.checked_lock(&me).await.unwrap();
    ///     assert!(mutex.checked_lock(&me).await.is_err(), "it would wait for itself");
    ///     drop(guard);
    ///     assert!(mutex.checked_lock(&me).await.is_ok());
    /// })?;
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[track_caller]
    pub fn checked_lock<'a>(
        &'a self,
        owner: &'a Owner,
    ) -> impl Future<Output = Result<Guard<'a, T, M>, RecursionError>> {
        let place = Location::caller();
        async move {
            self.holder.refuse(owner)?;
            let guard = self.lock_at(place).await;
            self.holder.add_owner(owner);
            Ok(guard)
        }
    }

    /// Locks the mutex if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T, M>> {
        self.try_acquire().then(|| self.guard(holder::thread()))
    }

    /// Locks the mutex, and blocks this OS thread while it waits.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread. When this OS thread has a
    /// [`BlockingGuard`] of the mutex already, because it would wait for itself.
    ///
    /// # Complexity
    /// As [`lock`](Mutex::lock). The OS thread polls the mutex for a few microseconds before it
    /// queues, and for a few more before it sleeps.
    #[inline]
    #[track_caller]
    pub fn lock_blocking(&self) -> BlockingGuard<Guard<'_, T, M>> {
        refuse_within_step();
        let me = holder::os_thread();
        if !self.queue.replace(0, LOCKED) {
            self.lock_blocking_late(me, Location::caller());
        }
        self.holder.set_staying(me);
        BlockingGuard::new(Guard { mutex: self, _value: PhantomData })
    }

    #[inline(never)]
    #[track_caller]
    fn lock_blocking_late(&self, me: Option<Holder>, place: &'static Location<'static>) {
        self.holder.refuse_os_thread(me);
        if !insist(|| self.queue.exchange(|word| AcquireMutex::pass(word, &())).is_ok()) {
            wait_blocking(self.acquire(place));
        }
    }

    /// Locks the mutex with a guard that owns a handle of the mutex and borrows nothing. Such a
    /// guard may outlive every borrow of the mutex.
    #[track_caller]
    pub fn lock_owned(self: Arc<Self>) -> impl Future<Output = OwnedGuard<T, M>> {
        let place = Location::caller();
        async move {
            self.acquire(place).await;
            self.holder.set(holder::thread());
            OwnedGuard { mutex: self, _value: PhantomData }
        }
    }

    /// The holder, if it is known. `None` if the mutex is free, or if a task of a foreign executor
    /// holds it.
    pub fn holder(&self) -> Option<Holder> {
        self.holder.get()
    }

    /// Whether the mutex is locked. The answer may be out of date when the caller gets it.
    pub fn is_locked(&self) -> bool {
        self.queue.word() & LOCKED != 0
    }

    /// The value. The exclusive borrow shows that there is no guard.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The value. Because the mutex is moved here, there is no guard.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// Records this OS thread as the holder. `Condition::wait_blocking` calls it, because its wait
    /// locks with `lock_at`, which records only the number of a Selvedge thread.
    pub(crate) fn locked_by_os_thread(&self) {
        self.holder.set_staying(holder::os_thread());
    }

    #[inline(always)]
    fn try_acquire(&self) -> bool {
        match self.queue.exchange(|word| AcquireMutex::pass(word, &())) {
            Ok(_) => true,
            Err(Some(_)) => false,
            // Another OS thread is under the queue's lock, and may be about to free the mutex.
            Err(None) => self.queue.with(|_, queue| {
                let passed = AcquireMutex::pass(*queue.word(), &());
                passed.into_iter().for_each(|word| *queue.word() = word);
                passed.is_some()
            }),
        }
    }

    #[inline(always)]
    fn guard(&self, me: Option<Holder>) -> Guard<'_, T, M> {
        self.holder.set(me);
        Guard { mutex: self, _value: PhantomData }
    }

    #[inline(always)]
    fn unlock(&self) {
        self.holder.set(None);
        if !self.queue.replace(LOCKED, 0) {
            self.unlock_waited();
        }
    }

    #[inline(never)]
    fn unlock_waited(&self) {
        // If the first waiter has been nudged already, this exchange is enough, because a second
        // nudge would add nothing.
        if !self.queue.replace(LOCKED | WAITED | NUDGED, WAITED | NUDGED) {
            self.queue.with(|_, queue| AcquireMutex::unlock(queue));
        }
    }
}

impl<T, M: Mode> Deref for Guard<'_, T, M> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: while this guard lives, `LOCKED` is set on its behalf, and there is no other
        // guard (`Mutex::guard` is called by the locker alone).
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T, M: Mode> DerefMut for Guard<'_, T, M> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

impl<T, M: Mode> Deref for OwnedGuard<T, M> {
    type Target = T;

    fn deref(&self) -> &T {
        // SAFETY: while this guard lives, `LOCKED` is set on its behalf, and there is no other
        // guard (`lock_owned` makes it after `acquire`).
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T, M: Mode> DerefMut for OwnedGuard<T, M> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

enum AcquireMutex {}

impl AcquireMutex {
    /// Ends the hold of the mutex. If the mutex is promised, the first waiter gets it. Otherwise
    /// the mutex becomes free, and the first waiter is nudged unless it has been nudged already.
    fn unlock(queue: &mut Queue<'_, ()>) {
        if *queue.word() & PROMISED != 0 {
            queue.grant();
            *queue.word() = if queue.is_empty() { LOCKED } else { LOCKED | WAITED };
        } else {
            *queue.word() &= !LOCKED;
            if *queue.word() & NUDGED == 0 {
                AcquireMutex::renew(queue);
            }
        }
    }

    /// Sets the word after the first waiter has changed or the mutex has become free. The caller
    /// knows that the waiter which is the first now has not been nudged and has no promise. If the
    /// mutex is free, `renew` nudges that waiter.
    fn renew(queue: &mut Queue<'_, ()>) {
        let locked = *queue.word() & LOCKED;
        *queue.word() = match (queue.is_empty(), locked) {
            (true, _) => locked,
            (false, LOCKED) => LOCKED | WAITED,
            (false, _) => {
                queue.nudge();
                WAITED | NUDGED
            }
        };
    }
}

impl Role<(), ()> for AcquireMutex {
    type Output = ();

    const PASSES: bool = true;

    const USUAL: Option<u32> = Some(0);

    #[inline(always)]
    fn pass(word: u32, _: &()) -> Option<u32> {
        (word & (LOCKED | PROMISED) == 0).then_some(word | LOCKED)
    }

    fn attempt(_: &mut (), queue: &mut Queue<'_, ()>, _: &mut ()) -> Option<()> {
        let passed = AcquireMutex::pass(*queue.word(), &());
        *queue.word() = passed.unwrap_or(*queue.word() | WAITED);
        passed.map(|_| ())
    }

    fn retry(_: &mut (), queue: &mut Queue<'_, ()>) -> Option<()> {
        let free = *queue.word() & LOCKED == 0;
        *queue.word() = if free { LOCKED | WAITED } else { LOCKED | WAITED | PROMISED };
        free.then_some(())
    }

    #[inline(always)]
    fn granted(_: &mut ()) {}

    fn abandoned(_: &mut (), queue: &mut Queue<'_, ()>, _: &mut ()) {
        AcquireMutex::unlock(queue);
    }

    fn withdrawn(_: &mut (), queue: &mut Queue<'_, ()>, _: &mut (), first: bool) {
        if first {
            AcquireMutex::renew(queue);
        }
    }
}

impl<T, M: Mode> Drop for Guard<'_, T, M> {
    #[inline]
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

impl<T, M: Mode> Drop for OwnedGuard<T, M> {
    fn drop(&mut self) {
        self.mutex.unlock();
    }
}

impl<T: fmt::Debug, M: Mode> fmt::Debug for Guard<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Guard").field(&**self).finish()
    }
}

impl<T: fmt::Debug, M: Mode> fmt::Debug for OwnedGuard<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OwnedGuard").field(&**self).finish()
    }
}

impl<T: Default, M: Mode> Default for Mutex<T, M> {
    fn default() -> Self {
        Mutex::guarding(T::default())
    }
}

impl<T, M: Mode> fmt::Debug for Mutex<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.is_locked(), self.holder()) {
            (true, Some(holder)) => write!(f, "Mutex(locked by {holder})"),
            (true, None) => f.write_str("Mutex(locked)"),
            (false, _) => f.write_str("Mutex(free)"),
        }
    }
}
