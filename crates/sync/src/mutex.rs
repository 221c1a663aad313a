//! The mutex: one thread at a time.

use crate::bell::insist;
use crate::blocking::{refuse_within_step, wait_blocking};
use crate::holder::{self, Holder, Record, Recursion};
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
/// Those who wait get it in the order of their coming. When it is unlocked the first of them is woken, and until that one runs
/// somebody who runs already may lock it before him; so a mutex that is locked often and briefly is not handed from one sleeper to the
/// next. That happens once: if he finds it locked when he looks, it is handed to him the next time it is unlocked.
///
/// # Ownership
/// 1. Unlocking is dropping the [`Guard`], so that nobody can unlock what he does not hold, or twice.
/// 2. A panic or a cancellation while holding it unlocks it. There is no poisoning: the next one finds the value as it was left, and who
///    changes it in several steps with system calls between them must bear that.
/// 3. A thread that asks for a mutex which it holds itself waits for itself. [`lock`](Mutex::lock) lets it, because the other one may
///    be another branch of the same thread's `join!`, which nobody can tell apart; the scheduler's deadlock report names the line.
///    [`checked_lock`](Mutex::checked_lock) gives an error instead, and [`lock_blocking`](Mutex::lock_blocking) panics.
///    [`holder`](Mutex::holder) tells who holds it.
/// 4. Dropping a `lock()` that waits leaves the queue; if the mutex had been handed to it, it goes on to the next.
///
/// # Paper
/// [LZ07 §4.3]: `sys_mutex_lock`, `sys_mutex_unlock`. As in its footnote 1, no event loop of its own serves it.
///
/// # Differences
/// 1. The paper does not say what unlocking by a stranger, recursion, an exception while holding, and the end of a waiter do: see above.
/// 2. A free mutex is locked, and one that nobody waits for is unlocked, without its queue.
///
/// # Complexity
/// One atomic operation to lock and one to unlock if nobody else wants it, none for a local one; one critical section each
/// otherwise.
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
    holder: Record,
    value: UnsafeCell<T>,
}

/// Somebody holds the mutex, or it is being handed to one who waits.
const LOCKED: u32 = 1;
/// Somebody waits. If it is not locked then, the first of them has been [`NUDGED`].
const WAITED: u32 = 2;
/// The first who waits has been woken to look, and has not looked yet.
const NUDGED: u32 = 4;
/// The first who waits has looked, and found it locked: when it is unlocked it is handed to him, and nobody comes before.
const PROMISED: u32 = 8;

// SAFETY: the value is reached through a guard alone, of which there is one at a time (`queue` sees to it), so that sharing the
// mutex only moves access to the T from one OS thread to another.
unsafe impl<T: Send, M: Mode> Sync for Mutex<T, M> where WaitQueue<(), (), M>: Sync {}

/// Holds a [`Mutex`] until it is dropped.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct Guard<'a, T, M: Mode = Shared> {
    pub(crate) mutex: &'a Mutex<T, M>,
    /// Shared between OS threads only if the value may be.
    _value: PhantomData<&'a mut T>,
}

/// Holds a [`Mutex`] until it is dropped, and keeps it alive.
#[must_use = "the mutex is unlocked when this is dropped"]
pub struct OwnedGuard<T, M: Mode = Shared> {
    mutex: Arc<Mutex<T, M>>,
    _value: PhantomData<*mut T>,
}

// SAFETY: as a `Guard`: a handle of the mutex and the only access to its value.
unsafe impl<T: Send, M: Mode> Send for OwnedGuard<T, M> where Mutex<T, M>: Send + Sync {}
// SAFETY: likewise; shared, it gives out `&T`.
unsafe impl<T: Send + Sync, M: Mode> Sync for OwnedGuard<T, M> where Mutex<T, M>: Send + Sync {}

impl<T> Mutex<T> {
    constant! {
        /// An unlocked mutex.
        pub fn new(value: T) -> Self {
            Mutex { queue: WaitQueue::shared((), 0), holder: Record::new(), value: UnsafeCell::new(value) }
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
        Mutex { queue: WaitQueue::new(()), holder: Record::default(), value: UnsafeCell::new(value) }
    }

    /// Locks it, waiting if need be.
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
        self.holder.told("which holds the mutex", self.queue.wait_at::<Lock>((), place))
    }

    /// Locks it, unless this thread holds it already.
    ///
    /// # Errors
    /// When the thread that runs is the one that has locked it, other than with [`lock_owned`](Mutex::lock_owned). All branches of a
    /// `join!` are one thread.
    ///
    /// # Examples
    /// ```
    /// use selvedge::round_robin;
    /// use selvedge::sync::Mutex;
    ///
    /// round_robin(async {
    ///     let mutex = Mutex::new_local(());
    ///     let guard = mutex.checked_lock().await.unwrap();
    ///     assert!(mutex.checked_lock().await.is_err(), "it would wait for itself");
    ///     drop(guard);
    ///     assert!(mutex.checked_lock().await.is_ok());
    /// })?;
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[track_caller]
    pub fn checked_lock(&self) -> impl Future<Output = Result<Guard<'_, T, M>, Recursion>> {
        let place = Location::caller();
        async move {
            holder::check(&self.holder, holder::thread())?;
            Ok(self.lock_at(place).await)
        }
    }

    /// Locks it if it is free.
    #[inline]
    pub fn try_lock(&self) -> Option<Guard<'_, T, M>> {
        self.try_acquire().then(|| self.guard(holder::thread()))
    }

    /// Locks it, blocking this OS thread if need be.
    ///
    /// # Panics
    /// Within a step of one of our threads; and when this OS thread has locked it already, and would wait for itself.
    ///
    /// # Complexity
    /// As [`lock`](Mutex::lock). It looks for a few microseconds whether it becomes free before it queues, and after that before the OS
    /// thread sleeps.
    #[inline]
    #[track_caller]
    pub fn lock_blocking(&self) -> Guard<'_, T, M> {
        refuse_within_step();
        let me = holder::os_thread();
        if !self.queue.replace(0, LOCKED) {
            self.lock_blocking_late(me, Location::caller());
        }
        self.guard(me)
    }

    #[inline(never)]
    #[track_caller]
    fn lock_blocking_late(&self, me: Option<Holder>, place: &'static Location<'static>) {
        holder::refuse_recursion(&self.holder, me);
        if !insist(|| self.queue.exchange(|word| Lock::pass(word, &())).is_ok()) {
            wait_blocking(self.acquire(place));
        }
    }

    /// Locks it with a guard that owns a handle of the mutex rather than borrowing it. Such a guard may go to another thread, so that
    /// [`checked_lock`](Mutex::checked_lock) waits for it, whichever thread has locked.
    #[track_caller]
    pub fn lock_owned(self: Arc<Self>) -> impl Future<Output = OwnedGuard<T, M>> {
        let place = Location::caller();
        async move {
            self.acquire(place).await;
            self.holder.set_of_movable(holder::thread());
            OwnedGuard { mutex: self, _value: PhantomData }
        }
    }

    /// Who holds it, as far as that is known: `None` if nobody does, or somebody under a foreign executor.
    pub fn holder(&self) -> Option<Holder> {
        self.holder.get()
    }

    /// Whether somebody holds it: out of date as soon as it is told.
    pub fn is_locked(&self) -> bool {
        self.queue.word() & LOCKED != 0
    }

    /// The value, which nobody else can reach.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The value, which nobody else can reach.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    /// Whose guard was made by waiting on behalf of this OS thread.
    pub(crate) fn locked_by_os_thread(&self) {
        self.holder.set(holder::os_thread());
    }

    #[inline(always)]
    fn try_acquire(&self) -> bool {
        match self.queue.exchange(|word| Lock::pass(word, &())) {
            Ok(_) => true,
            Err(Some(_)) => false,
            // Under its lock it may well be about to become free.
            Err(None) => self.queue.with(|_, queue| {
                let passed = Lock::pass(*queue.word(), &());
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
        // Who has been nudged already need not be nudged again.
        if !self.queue.replace(LOCKED | WAITED | NUDGED, WAITED | NUDGED) {
            self.queue.with(|_, queue| Lock::unlock(queue));
        }
    }
}

impl<T, M: Mode> Deref for Guard<'_, T, M> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: while a guard lives the mutex is locked for it alone.
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
        // SAFETY: while a guard lives the mutex is locked for it alone.
        unsafe { &*self.mutex.value.get() }
    }
}

impl<T, M: Mode> DerefMut for OwnedGuard<T, M> {
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { &mut *self.mutex.value.get() }
    }
}

enum Lock {}

impl Lock {
    /// It is free, or the first who waits has it, or is to look.
    fn unlock(queue: &mut Queue<'_, ()>) {
        if *queue.word() & PROMISED != 0 {
            queue.grant();
            *queue.word() = if queue.is_empty() { LOCKED } else { LOCKED | WAITED };
        } else {
            *queue.word() &= !LOCKED;
            if *queue.word() & NUDGED == 0 {
                Lock::renew(queue);
            }
        }
    }

    /// The first who waits has not been nudged, and nothing has been promised to him.
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

impl Role<(), ()> for Lock {
    type Output = ();

    const PASSES: bool = true;

    const USUAL: Option<u32> = Some(0);

    #[inline(always)]
    fn pass(word: u32, _: &()) -> Option<u32> {
        (word & (LOCKED | PROMISED) == 0).then_some(word | LOCKED)
    }

    fn attempt(_: &mut (), queue: &mut Queue<'_, ()>, _: &mut ()) -> Option<()> {
        let passed = Lock::pass(*queue.word(), &());
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
        Lock::unlock(queue);
    }

    fn withdrawn(_: &mut (), queue: &mut Queue<'_, ()>, _: &mut (), first: bool) {
        if first {
            Lock::renew(queue);
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
