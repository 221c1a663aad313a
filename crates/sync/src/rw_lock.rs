//! The readers-writer lock: [`RwLock`], its guards, and [`AcquireLock`], the role in which a thread
//! waits for it.
//!
//! The programs of users lock it. The state of a lock is the word of its [`WaitQueue`]: the number
//! of readers, and the bits [`WRITTEN`] and [`WAITED`]. While there is no waiter, a thread locks
//! and unlocks by one exchange of this word. All other changes happen under the lock of the queue.

use crate::blocking::{refuse_within_step, wait_blocking};
use crate::holder::{self, Holder, OwnerRecord, RecursionError};
use crate::{BlockingGuard, Owner};
use selvedge_core::internal::insist;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, budget, constant, observe};
use std::cell::UnsafeCell;
use std::fmt;
use std::marker::PhantomData;
use std::mem;
use std::ops::{Deref, DerefMut};
use std::panic::Location;

/// A lock that many threads hold at a time to read, or one thread to write.
///
/// The lock is fair: threads get it in the order in which they ask. A reader that comes after a
/// waiting writer waits behind that writer, so that neither side starves the other. Therefore a
/// thread that reads and asks to read once more may wait for a writer that waits for this thread.
/// Such a thread should read once, and pass the guard on.
///
/// # Ownership
/// As with a [`Mutex`](crate::Mutex): dropping a guard unlocks; a panic or a cancellation of the
/// holder unlocks and does not poison. [`read`](RwLock::read) and [`write`](RwLock::write) let a
/// thread wait for itself. [`checked_read`](RwLock::checked_read) and
/// [`checked_write`](RwLock::checked_write) give an error to an [`Owner`] that holds the lock to
/// write. The
/// lock counts its readers and does not record them. Only while the program is
/// [observed](selvedge_core::observe) the lock records one of its readers, so that a dump can name
/// a thread.
///
/// # Cancellation
/// Dropping a `read()` or `write()` that waits removes it from the queue. If a writer at the head
/// leaves, the readers behind it go on. If the lock had been handed to the dropped future, the lock
/// goes on to the next waiter.
///
/// # Complexity
/// One atomic operation to lock and one to unlock if there is no waiter. Otherwise one critical
/// section each.
///
/// # Examples
/// ```
/// use selvedge::round_robin;
/// use selvedge::sync::RwLock;
///
/// round_robin(async {
///     let lock = RwLock::new_local(5);
///     {
///         let (one, other) = (lock.read().await, lock.read().await);
///         assert_eq!(*one + *other, 10);
///         assert!(lock.try_write().is_none());
///     }
///     *lock.write().await += 1;
///     assert_eq!(*lock.read().await, 6);
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct RwLock<T, M: Mode = Shared> {
    /// Its word is the number of readers, [`WRITTEN`] and [`WAITED`].
    queue: WaitQueue<(), Wish, M>,
    pub(crate) writer: OwnerRecord,
    /// A thread that holds the lock to read. It is recorded only while the program is observed, for
    /// the observer.
    reader: OwnerRecord,
    value: UnsafeCell<T>,
}

/// The queue is not empty.
const WAITED: u32 = 1 << 30;
/// A writer holds the lock. The number of readers is 0 then.
const WRITTEN: u32 = 1 << 29;
const READERS_MAX: u32 = WRITTEN - 1;

// SAFETY: the value is reached through guards alone. The word (`Wish::added`) lets in several
// readers, which share `&T`, or one writer, which has `&mut T`; `T: Sync` allows the former and `T:
// Send` the latter.
unsafe impl<T: Send + Sync, M: Mode> Sync for RwLock<T, M> where WaitQueue<(), Wish, M>: Sync {}

/// Gives shared access to the value of an [`RwLock`] until it is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct ReadGuard<'a, T, M: Mode = Shared> {
    lock: &'a RwLock<T, M>,
    _value: PhantomData<&'a T>,
}

/// Holds an [`RwLock`] to write until it is dropped.
#[must_use = "the lock is released when this is dropped"]
pub struct WriteGuard<'a, T, M: Mode = Shared> {
    pub(crate) lock: &'a RwLock<T, M>,
    _value: PhantomData<&'a mut T>,
}

impl<T> RwLock<T> {
    constant! {
        /// A free lock.
        pub fn new(value: T) -> Self {
            RwLock { queue: WaitQueue::shared((), 0), writer: OwnerRecord::new(), reader: OwnerRecord::new(), value: UnsafeCell::new(value) }
        }
    }
}

impl<T> RwLock<T, Local> {
    /// A free lock that stays on its OS thread.
    pub fn new_local(value: T) -> Self {
        RwLock::guarding(value)
    }
}

impl<T, M: Mode> RwLock<T, M> {
    fn guarding(value: T) -> Self {
        RwLock {
            queue: WaitQueue::new(()),
            writer: OwnerRecord::default(),
            reader: OwnerRecord::default(),
            value: UnsafeCell::new(value),
        }
    }

    /// Locks it to read, and waits if need be.
    #[inline]
    #[track_caller]
    pub fn read(&self) -> impl Future<Output = ReadGuard<'_, T, M>> {
        let place = Location::caller();
        async move {
            if !budget::suffices(1) || self.queue.exchange(|word| Wish::Read.added(word)).is_err() {
                budget::refund(1);
                self.acquire(Wish::Read, place).await;
            }
            self.read_guard()
        }
    }

    /// Locks it to write, and waits if need be.
    #[inline]
    #[track_caller]
    pub fn write(&self) -> impl Future<Output = WriteGuard<'_, T, M>> {
        let place = Location::caller();
        async move {
            if !budget::suffices(1) || !self.queue.replace(0, WRITTEN) {
                budget::refund(1);
                self.acquire(Wish::Write, place).await;
            }
            self.write_guard(holder::thread())
        }
    }

    #[inline(always)]
    fn acquire(&self, wish: Wish, place: &'static Location<'static>) -> impl Future<Output = ()> {
        let tell = || {
            let _ = self.writer.tell("which holds the lock to write")
                || self.reader.tell("which holds the lock to read");
        };
        holder::telling(tell, self.queue.wait_at::<AcquireLock>(wish, place))
    }

    /// Locks it to read, unless it is locked to write on behalf of this owner.
    ///
    /// # Errors
    /// When a guard that [`checked_write`](RwLock::checked_write) made on behalf of this owner is
    /// still there, wherever that guard is.
    #[track_caller]
    pub fn checked_read<'a>(
        &'a self,
        owner: &'a Owner,
    ) -> impl Future<Output = Result<ReadGuard<'a, T, M>, RecursionError>> {
        let place = Location::caller();
        async move {
            self.writer.refuse(owner)?;
            self.acquire(Wish::Read, place).await;
            Ok(self.read_guard())
        }
    }

    /// Locks it to write on behalf of an owner, unless it is locked to write on behalf of this
    /// owner already.
    ///
    /// # Errors
    /// As [`checked_read`](RwLock::checked_read).
    #[track_caller]
    pub fn checked_write<'a>(
        &'a self,
        owner: &'a Owner,
    ) -> impl Future<Output = Result<WriteGuard<'a, T, M>, RecursionError>> {
        let place = Location::caller();
        async move {
            self.writer.refuse(owner)?;
            self.acquire(Wish::Write, place).await;
            let guard = self.write_guard(holder::thread());
            self.writer.add_owner(owner);
            Ok(guard)
        }
    }

    /// Locks it to read if there is no writer and no waiter.
    #[inline]
    pub fn try_read(&self) -> Option<ReadGuard<'_, T, M>> {
        self.try_acquire(Wish::Read).then(|| self.read_guard())
    }

    /// Locks it to write if it is free.
    #[inline]
    pub fn try_write(&self) -> Option<WriteGuard<'_, T, M>> {
        self.try_acquire(Wish::Write).then(|| self.write_guard(holder::thread()))
    }

    /// Locks it to read, and blocks this OS thread while it waits.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread. When this OS thread has a
    /// [`BlockingGuard`] of it, because it would wait for itself.
    ///
    /// # Complexity
    /// As [`read`](RwLock::read). The OS thread polls the lock for a few microseconds before it
    /// queues, and for a few more before it sleeps.
    #[inline]
    #[track_caller]
    pub fn read_blocking(&self) -> ReadGuard<'_, T, M> {
        self.acquire_blocking(Wish::Read);
        self.read_guard()
    }

    /// Locks it to write, and blocks this OS thread while it waits.
    ///
    /// # Panics
    /// As [`read_blocking`](RwLock::read_blocking).
    ///
    /// # Complexity
    /// As [`read_blocking`](RwLock::read_blocking).
    #[inline]
    #[track_caller]
    pub fn write_blocking(&self) -> BlockingGuard<WriteGuard<'_, T, M>> {
        self.acquire_blocking(Wish::Write);
        self.writer.set_staying(holder::os_thread());
        BlockingGuard::new(WriteGuard { lock: self, _value: PhantomData })
    }

    #[inline(always)]
    #[track_caller]
    fn acquire_blocking(&self, wish: Wish) {
        refuse_within_step();
        if self.queue.exchange(|word| wish.added(word)).is_err() {
            self.acquire_blocking_late(wish, Location::caller());
        }
    }

    #[inline(never)]
    #[track_caller]
    fn acquire_blocking_late(&self, wish: Wish, place: &'static Location<'static>) {
        self.writer.refuse_os_thread(holder::os_thread());
        if !insist(|| self.queue.exchange(|word| wish.added(word)).is_ok()) {
            wait_blocking(self.acquire(wish, place));
        }
    }

    /// The thread that holds it to write, if it is known. `None` if there is no writer, or if the
    /// writer is a task of a foreign executor.
    pub fn writer(&self) -> Option<Holder> {
        self.writer.get()
    }

    /// The number of readers. The answer may be out of date when the caller gets it.
    pub fn readers(&self) -> u32 {
        self.queue.word() & READERS_MAX
    }

    /// The value. The exclusive borrow shows that there is no guard.
    pub fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// The value. Because the lock is moved here, there is no guard.
    pub fn into_inner(self) -> T {
        self.value.into_inner()
    }

    #[inline(always)]
    fn try_acquire(&self, wish: Wish) -> bool {
        match self.queue.exchange(|word| wish.added(word)) {
            Ok(_) => true,
            Err(Some(_)) => false,
            Err(None) => self.queue.with(|_, queue| AcquireLock::take(queue, wish)),
        }
    }

    #[inline(always)]
    fn read_guard(&self) -> ReadGuard<'_, T, M> {
        if observe::is_on() {
            self.reader.set(holder::thread());
        }
        ReadGuard { lock: self, _value: PhantomData }
    }

    /// Clears the record of a reader that leaves, so that the record never names a thread that has
    /// left. A guard may be dropped by another thread than the thread that locked; then the record
    /// does not name the dropping thread, and the last reader clears the record.
    #[cold]
    fn reader_leaves(&self) {
        match self.readers() {
            1 => self.reader.set(None),
            _ => self.reader.clear_mine(),
        }
    }

    #[inline(always)]
    fn write_guard(&self, me: Option<Holder>) -> WriteGuard<'_, T, M> {
        self.writer.set(me);
        WriteGuard { lock: self, _value: PhantomData }
    }

    #[inline(always)]
    fn unlock(&self, wish: Wish) {
        if self.queue.exchange(|word| (word & WAITED == 0).then(|| wish.removed(word))).is_err() {
            self.unlock_late(wish);
        }
    }

    #[cold]
    fn unlock_late(&self, wish: Wish) {
        self.queue.with(|_, queue| AcquireLock::release(queue, wish));
    }
}

impl<'a, T, M: Mode> WriteGuard<'a, T, M> {
    /// Turns the write guard into a read guard. No other writer gets the lock in between. Readers
    /// at the head of the queue go on too.
    ///
    /// # Examples
    /// ```
    /// use selvedge::sync::{BlockingGuard, RwLock};
    ///
    /// let lock = RwLock::new(1);
    /// let mut writer = lock.write_blocking();
    /// *writer = 2;
    /// let reader = BlockingGuard::downgrade(writer);
    /// assert_eq!((*reader, *lock.read_blocking()), (2, 2));
    /// ```
    pub fn downgrade(writer: WriteGuard<'a, T, M>) -> ReadGuard<'a, T, M> {
        let lock = writer.lock;
        mem::forget(writer);
        lock.writer.set(None);
        lock.queue.with(|_, queue| {
            *queue.word() = Wish::Write.removed(*queue.word()) + 1;
            AcquireLock::serve(queue);
        });
        lock.read_guard()
    }
}

impl<T, M: Mode> Deref for ReadGuard<'_, T, M> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: while a `ReadGuard` lives, the number of readers is not 0, so `Wish::added` lets
        // no writer in.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, M: Mode> Deref for WriteGuard<'_, T, M> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        // SAFETY: while a `WriteGuard` lives, `WRITTEN` is set on its behalf, so `Wish::added` lets
        // in neither a writer nor a reader.
        unsafe { &*self.lock.value.get() }
    }
}

impl<T, M: Mode> DerefMut for WriteGuard<'_, T, M> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        // SAFETY: as above, and the guard is borrowed exclusively.
        unsafe { &mut *self.lock.value.get() }
    }
}

/// The kind of access that a thread asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Read,
    Write,
}

impl Wish {
    /// The word with one more holder of this kind; `None` if that is not possible. It is never
    /// possible while `WAITED` is set: [`AcquireLock::serve`] clears that bit first.
    #[inline(always)]
    fn added(self, word: u32) -> Option<u32> {
        match self {
            Wish::Read => (word < READERS_MAX).then(|| word + 1),
            Wish::Write => (word == 0).then_some(WRITTEN),
        }
    }

    #[inline(always)]
    fn removed(self, word: u32) -> u32 {
        match self {
            Wish::Read => word - 1,
            Wish::Write => word & !WRITTEN,
        }
    }
}

enum AcquireLock {}

impl AcquireLock {
    /// Locks if the word allows it. It fails for every word with `WAITED` or `WRITTEN`, because
    /// such a word is not below `READERS_MAX`, and not 0.
    fn take(queue: &mut Queue<'_, Wish>, wish: Wish) -> bool {
        let added = wish.added(*queue.word());
        added.into_iter().for_each(|word| *queue.word() = word);
        added.is_some()
    }

    fn release(queue: &mut Queue<'_, Wish>, wish: Wish) {
        *queue.word() = wish.removed(*queue.word());
        AcquireLock::serve(queue);
    }

    /// Hands the lock to waiters from the head of the queue, as long as the next waiter can have
    /// it.
    fn serve(queue: &mut Queue<'_, Wish>) {
        let mut word = *queue.word() & !WAITED;
        while let Some(added) = queue.front().and_then(|wish| wish.added(word)) {
            word = added;
            queue.grant();
        }
        *queue.word() = if queue.is_empty() { word } else { word | WAITED };
    }
}

impl Role<(), Wish> for AcquireLock {
    type Output = ();

    const PASSES: bool = true;

    #[inline(always)]
    fn pass(word: u32, wish: &Wish) -> Option<u32> {
        wish.added(word)
    }

    fn attempt(_: &mut (), queue: &mut Queue<'_, Wish>, wish: &mut Wish) -> Option<()> {
        if AcquireLock::take(queue, *wish) {
            return Some(());
        }
        *queue.word() |= WAITED;
        None
    }

    #[inline(always)]
    fn granted(_: &mut Wish) {}

    fn abandoned(_: &mut (), queue: &mut Queue<'_, Wish>, wish: &mut Wish) {
        AcquireLock::release(queue, *wish);
    }

    fn withdrawn(_: &mut (), queue: &mut Queue<'_, Wish>, _: &mut Wish, first: bool) {
        if first {
            AcquireLock::serve(queue);
        }
    }
}

impl<T, M: Mode> Drop for ReadGuard<'_, T, M> {
    #[inline]
    fn drop(&mut self) {
        if observe::is_on() {
            self.lock.reader_leaves();
        }
        self.lock.unlock(Wish::Read);
    }
}

impl<T, M: Mode> Drop for WriteGuard<'_, T, M> {
    #[inline]
    fn drop(&mut self) {
        self.lock.writer.set(None);
        self.lock.unlock(Wish::Write);
    }
}

impl<T: fmt::Debug, M: Mode> fmt::Debug for ReadGuard<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("ReadGuard").field(&**self).finish()
    }
}

impl<T: fmt::Debug, M: Mode> fmt::Debug for WriteGuard<'_, T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WriteGuard").field(&**self).finish()
    }
}

impl<T: Default, M: Mode> Default for RwLock<T, M> {
    fn default() -> Self {
        RwLock::guarding(T::default())
    }
}

impl<T, M: Mode> fmt::Debug for RwLock<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.queue.word() & !WAITED, self.writer()) {
            (0, _) => f.write_str("RwLock(free)"),
            (WRITTEN, Some(writer)) => write!(f, "RwLock(written by {writer})"),
            (WRITTEN, None) => f.write_str("RwLock(written)"),
            (readers, _) => write!(f, "RwLock({readers} readers)"),
        }
    }
}
