//! The semaphore: [`Semaphore`], its permits, and [`AcquirePermits`], the role in which a thread
//! waits for permits.
//!
//! The programs of users call it. The state of a semaphore is the word of its [`WaitQueue`]: the
//! number of free permits, and the bit [`WAITED`]. While there is no waiter, a thread acquires and
//! releases by one exchange of this word. All other changes happen under the lock of the queue.

use crate::blocking::{refuse_within_step, wait_blocking};
use selvedge_core::internal::insist;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, Waiting, constant};
use std::fmt;
use std::mem;
use std::ops::Deref;
use std::panic::Location;

/// A number of permits. Threads acquire some of them, and wait if there are too few.
///
/// The semaphore is fair: threads get permits in the order in which they ask. A thread that asks
/// for many permits is served before a later thread that asks for fewer. While a thread waits, the
/// free permits are kept for the first waiter.
///
/// # Cancellation
/// Dropping an `acquire` that waits removes it from the queue. Waiters behind it for which there
/// are enough permits now go on. If the dropped future had been granted its permits, they are
/// released.
///
/// # Complexity
/// One atomic operation to acquire permits that are free, and one to release permits while no
/// thread waits. Otherwise one critical section each.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local, yield_now};
/// use selvedge::sync::Semaphore;
/// use std::{cell::Cell, rc::Rc};
///
/// round_robin(async {
///     let two = Rc::new(Semaphore::new_local(2));
///     let inside = Rc::new(Cell::new(0));
///     let mut threads = vec![];
///     for _ in 0..10 {
///         let (two, inside) = (two.clone(), inside.clone());
///         threads.push(spawn_local(async move {
///             let _permit = two.acquire().await;
///             inside.set(inside.get() + 1);
///             assert!(inside.get() <= 2);
///             yield_now().await;
///             inside.set(inside.get() - 1);
///         }));
///     }
///     for thread in threads {
///         thread.await.unwrap();
///     }
///     assert_eq!(two.available(), 2);
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct Semaphore<M: Mode = Shared> {
    /// Its word is the number of free permits, and [`WAITED`]. The payload of a waiter is the
    /// number of permits that it asks for.
    queue: WaitQueue<(), u32, M>,
}

/// The queue is not empty.
const WAITED: u32 = 1 << 30;

impl Semaphore {
    /// The most permits that a semaphore can have: 2^30 - 1.
    pub const PERMITS_MAX: u32 = WAITED - 1;

    constant! {
        /// A semaphore with this many permits.
        ///
        /// # Panics
        /// When they are more than [`PERMITS_MAX`](Semaphore::PERMITS_MAX).
        pub fn new(permits: u32) -> Self {
            assert!(permits <= Semaphore::PERMITS_MAX, "a semaphore has fewer than 2^30 permits");
            Semaphore { queue: WaitQueue::shared((), permits) }
        }
    }
}

impl Semaphore<Local> {
    /// A semaphore that stays on its OS thread.
    ///
    /// # Panics
    /// When there are more permits than [`PERMITS_MAX`](Semaphore::PERMITS_MAX).
    pub fn new_local(permits: u32) -> Self {
        Semaphore::with_permits(permits)
    }
}

impl<M: Mode> Semaphore<M> {
    fn with_permits(permits: u32) -> Self {
        Semaphore { queue: WaitQueue::with_word((), sum(0, permits)) }
    }

    /// Acquires one permit, and waits for it if need be.
    #[inline]
    #[track_caller]
    pub fn acquire(&self) -> impl Future<Output = Permit<'_, M>> {
        self.acquire_many(1)
    }

    /// Acquires several permits at once, and waits until all are free. A waiting thread holds none
    /// of them before.
    #[inline]
    #[track_caller]
    pub fn acquire_many(&self, permits: u32) -> impl Future<Output = Permit<'_, M>> {
        let place = Location::caller();
        async move {
            self.take(permits, place).await;
            Permit { semaphore: self, permits }
        }
    }

    /// Acquires permits that own a handle of the semaphore, for example an `Arc` or `Rc` of it.
    ///
    /// # Examples
    /// ```
    /// use selvedge::{round_robin, spawn};
    /// use selvedge::sync::Semaphore;
    /// use std::sync::Arc;
    ///
    /// round_robin(async {
    ///     let connections = Arc::new(Semaphore::new(100));
    ///     let permit = Semaphore::acquire_owned(connections.clone(), 1).await;
    ///     let thread = spawn(async move { drop(permit) });
    ///     thread.await.unwrap();
    ///     assert_eq!(connections.available(), 100);
    /// })?;
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[track_caller]
    pub fn acquire_owned<H>(semaphore: H, permits: u32) -> impl Future<Output = OwnedPermit<H, M>>
    where
        H: Deref<Target = Semaphore<M>>,
    {
        let place = Location::caller();
        async move {
            semaphore.take(permits, place).await;
            OwnedPermit { semaphore, permits }
        }
    }

    #[inline(always)]
    fn take(
        &self,
        permits: u32,
        place: &'static Location<'static>,
    ) -> Waiting<'_, (), u32, AcquirePermits, M> {
        self.queue.wait_at(permits, place)
    }

    /// Acquires this many permits if they are free and no thread waits.
    #[inline]
    pub fn try_acquire(&self, permits: u32) -> Option<Permit<'_, M>> {
        let taken = match self.queue.exchange(|word| less(word, permits)) {
            Ok(_) => true,
            Err(Some(_)) => false,
            Err(None) => self.queue.with(|_, queue| AcquirePermits::take(queue, permits)),
        };
        taken.then(|| Permit { semaphore: self, permits })
    }

    /// Acquires this many permits, and blocks this OS thread until they are free.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    ///
    /// # Complexity
    /// As [`acquire`](Semaphore::acquire). The OS thread polls the semaphore for a few microseconds
    /// before it queues, and for a few more before it sleeps.
    #[inline]
    #[track_caller]
    pub fn acquire_blocking(&self, permits: u32) -> Permit<'_, M> {
        refuse_within_step();
        if self.queue.exchange(|word| less(word, permits)).is_err() {
            self.acquire_blocking_late(permits, Location::caller());
        }
        Permit { semaphore: self, permits }
    }

    #[inline(never)]
    fn acquire_blocking_late(&self, permits: u32, place: &'static Location<'static>) {
        if !insist(|| self.queue.exchange(|word| less(word, permits)).is_ok()) {
            wait_blocking(self.take(permits, place));
        }
    }

    /// Adds permits: new ones, or permits that were [forgotten](Permit::forget).
    ///
    /// # Panics
    /// When they would become more than [`PERMITS_MAX`](Semaphore::PERMITS_MAX).
    #[inline]
    pub fn release(&self, permits: u32) {
        if self.queue.exchange(|word| (word & WAITED == 0).then(|| sum(word, permits))).is_err() {
            self.release_late(permits);
        }
    }

    #[cold]
    fn release_late(&self, permits: u32) {
        self.queue.with(|_, queue| AcquirePermits::release(queue, permits));
    }

    /// The number of free permits. The answer may be out of date when the caller gets it. While a
    /// thread waits for more permits than are free, no other thread gets the free ones.
    pub fn available(&self) -> u32 {
        self.queue.word() & !WAITED
    }
}

/// The sum of `free` and `permits`.
#[inline(always)]
fn sum(free: u32, permits: u32) -> u32 {
    match free.checked_add(permits) {
        Some(sum) if sum <= Semaphore::PERMITS_MAX => sum,
        _ => too_many(free, permits),
    }
}

#[cold]
fn too_many(free: u32, permits: u32) -> ! {
    panic!("{free} permits of a semaphore and {permits} more are more than {}", Semaphore::PERMITS_MAX)
}

/// The word after this many permits have been taken. `None` if a thread waits, or if there are too
/// few.
#[inline(always)]
fn less(word: u32, permits: u32) -> Option<u32> {
    if word & WAITED == 0 { word.checked_sub(permits) } else { None }
}

enum AcquirePermits {}

impl AcquirePermits {
    fn take(queue: &mut Queue<'_, u32>, permits: u32) -> bool {
        match less(*queue.word(), permits) {
            Some(left) => {
                *queue.word() = left;
                true
            }
            None => false,
        }
    }

    fn release(queue: &mut Queue<'_, u32>, permits: u32) {
        *queue.word() = sum(*queue.word() & !WAITED, permits);
        AcquirePermits::serve(queue);
    }

    /// Grants waiters from the head of the queue their permits, as long as the free ones suffice.
    fn serve(queue: &mut Queue<'_, u32>) {
        let mut free = *queue.word() & !WAITED;
        while let Some(left) = queue.front().and_then(|permits| free.checked_sub(*permits)) {
            free = left;
            queue.grant();
        }
        *queue.word() = if queue.is_empty() { free } else { free | WAITED };
    }
}

impl Role<(), u32> for AcquirePermits {
    type Output = ();

    const PASSES: bool = true;

    #[inline(always)]
    fn pass(word: u32, permits: &u32) -> Option<u32> {
        less(word, *permits)
    }

    fn attempt(_: &mut (), queue: &mut Queue<'_, u32>, permits: &mut u32) -> Option<()> {
        if AcquirePermits::take(queue, *permits) {
            return Some(());
        }
        *queue.word() |= WAITED;
        None
    }

    #[inline(always)]
    fn granted(_: &mut u32) {}

    fn abandoned(_: &mut (), queue: &mut Queue<'_, u32>, permits: &mut u32) {
        AcquirePermits::release(queue, *permits);
    }

    fn withdrawn(_: &mut (), queue: &mut Queue<'_, u32>, _: &mut u32, first: bool) {
        if first {
            AcquirePermits::serve(queue);
        }
    }
}

/// Permits of a [`Semaphore`], released when this is dropped.
#[must_use = "the permits are released when this is dropped"]
pub struct Permit<'a, M: Mode = Shared> {
    semaphore: &'a Semaphore<M>,
    permits: u32,
}

impl<M: Mode> Permit<'_, M> {
    /// The number of permits.
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// Moves this many permits into a permit of their own. `None` if there are fewer.
    pub fn split(&mut self, permits: u32) -> Option<Self> {
        self.permits = self.permits.checked_sub(permits)?;
        Some(Permit { semaphore: self.semaphore, permits })
    }

    /// Takes the permits out of the semaphore for good, or until [`Semaphore::release`].
    pub fn forget(self) {
        mem::forget(self);
    }
}

impl<M: Mode> Drop for Permit<'_, M> {
    #[inline]
    fn drop(&mut self) {
        self.semaphore.release(self.permits);
    }
}

/// Permits of a [`Semaphore`] with a handle of it, released when this is dropped.
#[must_use = "the permits are released when this is dropped"]
pub struct OwnedPermit<H: Deref<Target = Semaphore<M>>, M: Mode = Shared> {
    semaphore: H,
    permits: u32,
}

impl<H: Deref<Target = Semaphore<M>>, M: Mode> OwnedPermit<H, M> {
    /// The number of permits.
    pub fn permits(&self) -> u32 {
        self.permits
    }

    /// Moves this many permits into a permit of their own. `None` if there are fewer.
    pub fn split(&mut self, permits: u32) -> Option<Self>
    where
        H: Clone,
    {
        self.permits = self.permits.checked_sub(permits)?;
        Some(OwnedPermit { semaphore: self.semaphore.clone(), permits })
    }

    /// Takes the permits out of the semaphore for good, or until [`Semaphore::release`].
    pub fn forget(mut self) {
        self.permits = 0;
    }
}

impl<H: Deref<Target = Semaphore<M>>, M: Mode> Drop for OwnedPermit<H, M> {
    fn drop(&mut self) {
        self.semaphore.release(self.permits);
    }
}

impl<M: Mode> fmt::Debug for Semaphore<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = self.queue.word();
        let waited = if word & WAITED != 0 { ", waited for" } else { "" };
        write!(f, "Semaphore({} free{waited})", word & !WAITED)
    }
}

impl<M: Mode> fmt::Debug for Permit<'_, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Permit({})", self.permits)
    }
}

impl<H: Deref<Target = Semaphore<M>>, M: Mode> fmt::Debug for OwnedPermit<H, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OwnedPermit({})", self.permits)
    }
}
