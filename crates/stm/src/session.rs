//! Sessions: the log of a transaction, and the reclamation of memory by epochs.
//!
//! An attempt of a transaction has a [`Session`] of its own from its begin to its end. An OS thread
//! keeps one session for its next attempt; the other free ones lie in the [`Registry`].
//!
//! # No memory is freed while a transaction can reach it
//! The **epoch** is a number that only grows. A session is **pinned** while its transaction runs:
//! its record has the epoch that the session read. Memory that was unlinked is **retired** with the
//! epoch `t` that the retiring session reads after the unlink, and is freed when the epoch is at
//! least `t + 2`. `advance` moves the epoch from `e` to `e + 1` if no record is pinned at another
//! epoch than `e`. There are three `SeqCst` fences: in `pin` after the record is written, in
//! `retire` before the epoch is read, and in `advance` between the reads of the epoch and of the
//! records.
//!
//! Let a session P reach memory that was unlinked and then retired with `t`.
//! 1. P has read a pointer that is older than the unlink. So the fence of P's `pin` comes before
//!    the fence of that `retire`.
//! 2. So P's record has an epoch of at most `t`: had P read a later epoch before its fence, then
//!    `retire` would have read that epoch or a later one after its own fence.
//! 3. The `advance` from `t + 1` to `t + 2` has read `t + 1`, which `retire` did not see. So the
//!    fence of `retire` comes before the fence of `advance`, and by 1 so does the fence of P's
//!    `pin`. That `advance` sees P's record pinned at an epoch of at most `t`, or P's `unpin`.
//!    In the first case it leaves the epoch alone.
//!
//! So the epoch `t + 2` comes after P's `unpin`. The `unpin` is a Release store which `advance`
//! reads with Acquire; `advance` stores the epoch with Release, and the session that frees the
//! memory reads it with Acquire. So each access of P happens before the memory is freed.

use crate::log::Log;
use crate::primitives::{AtomicU64, Ordering, fence, lock, thread_local};
use crate::world::world;
use selvedge_core::{is_indivisible, quietly};
use std::cell::Cell;

/// The function that frees a value behind a pointer of its type.
pub(crate) type Free = unsafe fn(*mut ());

/// An object that no other transaction than those that run already can reach.
pub(crate) struct Retired {
    epoch: u64,
    garbage: Garbage,
}

/// A pointer to an object, which is freed when this is dropped.
pub(crate) struct Garbage {
    pointer: *mut (),
    free: Free,
}

impl Garbage {
    /// # Safety
    /// `free` may be called once with `pointer`, on any OS thread, when this is dropped.
    pub(crate) unsafe fn new(pointer: *mut (), free: Free) -> Garbage {
        Garbage { pointer, free }
    }
}

// SAFETY: `Garbage::new` is called for values of type `T: Send + Sync + 'static` and for variables
// of them, and its contract allows any OS thread.
unsafe impl Send for Garbage {}

impl Drop for Garbage {
    /// Panics of a destructor are reported by the panic hook and end here, because the caller is a
    /// transaction that has nothing to do with the value.
    fn drop(&mut self) {
        // SAFETY: the contract of `new`.
        quietly(|| unsafe { (self.free)(self.pointer) });
    }
}

/// The part of a session that other OS threads read. It is never freed.
#[repr(align(128))]
struct Record {
    /// The epoch at which the session is pinned; 0 if it is not.
    pinned: AtomicU64,
}

/// The log of one transaction at a time, and the garbage of those that used the session before.
pub(crate) struct Session {
    record: &'static Record,
    /// In the order of their epochs.
    retired: Vec<Retired>,
    /// The objects that the running commit has unlinked.
    pub(crate) unlinked: Vec<Garbage>,
    pub(crate) log: Log,
}

/// All records, and the sessions that no OS thread keeps.
pub(crate) struct Registry {
    records: Vec<&'static Record>,
    #[expect(clippy::vec_box, reason = "a session moves between here and its OS threads as a pointer")]
    free: Vec<Box<Session>>,
}

/// The number of retired objects at which a session tries to free some.
const MANY: usize = 64;

impl Registry {
    pub(crate) const fn new() -> Registry {
        Registry { records: Vec::new(), free: Vec::new() }
    }

    #[cold]
    fn session(&mut self) -> Box<Session> {
        self.free.pop().unwrap_or_else(|| {
            let record: &'static Record = Box::leak(Box::new(Record { pinned: AtomicU64::new(0) }));
            self.records.push(record);
            Box::new(Session { record, retired: Vec::new(), unlinked: Vec::new(), log: Log::default() })
        })
    }

    /// Moves the epoch on, if each pinned session has seen the present one. The caller holds the
    /// registry's lock, so no other OS thread writes the epoch.
    fn advance(&self) {
        let epoch = &world().epoch.0;
        let now = epoch.load(Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let is_seen = |record: &&Record| {
            let pinned = record.pinned.load(Ordering::Acquire);
            pinned == 0 || pinned == now
        };
        if self.records.iter().all(is_seen) {
            epoch.store(now + 1, Ordering::Release);
        }
    }
}

impl Session {
    /// Protects all objects that are reachable from now on, until [`unpin`](Session::unpin).
    #[inline]
    pub(crate) fn pin(&mut self) {
        let epoch = world().epoch.0.load(Ordering::Relaxed);
        self.record.pinned.store(epoch, Ordering::Release);
        fence(Ordering::SeqCst);
    }

    #[inline]
    pub(crate) fn unpin(&mut self) {
        self.record.pinned.store(0, Ordering::Release);
    }

    /// Retires the objects in `unlinked`, which no transaction that begins from now on can reach.
    pub(crate) fn retire(&mut self) {
        fence(Ordering::SeqCst);
        let epoch = world().epoch.0.load(Ordering::Relaxed);
        self.retired.extend(self.unlinked.drain(..).map(|garbage| Retired { epoch, garbage }));
    }

    /// Takes out the objects that no transaction can reach any more.
    fn ripe(&mut self, into: &mut Vec<Garbage>) {
        let epoch = world().epoch.0.load(Ordering::Acquire);
        let ripe = self.retired.iter().take_while(|retired| retired.epoch + 2 <= epoch).count();
        into.extend(self.retired.drain(..ripe).map(|retired| retired.garbage));
    }
}

/// The session that an OS thread keeps for its next transaction.
struct KeptSession(Cell<Option<Box<Session>>>);

#[cfg(not(loom))]
impl Drop for KeptSession {
    fn drop(&mut self) {
        if let Some(session) = self.0.take() {
            lock(&world().registry.0).free.push(session);
        }
    }
}

/// In a model the session is forgotten when its OS thread ends, because the world may have ended
/// before. Its record is not pinned.
#[cfg(loom)]
impl Drop for KeptSession {
    fn drop(&mut self) {
        std::mem::forget(self.0.take());
    }
}

#[cfg(not(loom))]
thread_local! {
    static KEPT: KeptSession = const { KeptSession(Cell::new(None)) };
    static FREES: Cell<bool> = const { Cell::new(false) };
}
#[cfg(loom)]
thread_local! {
    static KEPT: KeptSession = KeptSession(Cell::new(None));
    static FREES: Cell<bool> = Cell::new(false);
}

/// A session for one transaction; it is not pinned, and its log is empty.
#[inline]
pub(crate) fn take() -> Box<Session> {
    match KEPT.try_with(|kept| kept.0.take()).ok().flatten() {
        Some(session) => session,
        None => lock(&world().registry.0).session(),
    }
}

/// Gives a session back, after `unpin`. If the session has retired many objects, and no body of a
/// transaction runs on this OS thread, frees those that no transaction can reach. So the
/// destructors of the program's values run here, and may run transactions.
#[inline]
pub(crate) fn put(mut session: Box<Session>) {
    let mut ripe = Vec::new();
    if session.retired.len() >= MANY && may_free() {
        advance_twice();
        session.ripe(&mut ripe);
    }
    keep(session);
    if !ripe.is_empty() {
        free(ripe);
    }
}

/// Keeps the session for the next transaction of this OS thread. If there is one already, or the
/// OS thread ends, the session goes to the registry.
#[inline]
fn keep(session: Box<Session>) {
    let mut session = Some(session);
    let _ = KEPT.try_with(|kept| {
        let other = kept.0.take();
        kept.0.set(session.take());
        session = other;
    });
    if let Some(session) = session {
        lock(&world().registry.0).free.push(session);
    }
}

/// Whether destructors of the program's values may run now on this OS thread.
fn may_free() -> bool {
    !FREES.try_with(Cell::get).unwrap_or(true) && !is_indivisible()
}

#[cold]
fn advance_twice() {
    let registry = lock(&world().registry.0);
    registry.advance();
    registry.advance();
}

/// Frees the objects. A destructor among them that drops variables leaves those to a later call:
/// so a long chain of variables takes no deep stack.
#[cold]
fn free(ripe: Vec<Garbage>) {
    let _ = FREES.try_with(|frees| frees.set(true));
    drop(ripe);
    let _ = FREES.try_with(|frees| frees.set(false));
}

/// Frees the values and variables that transactions have replaced or dropped and that no running
/// transaction can reach.
///
/// A transaction that has replaced many values calls this by itself. A program calls it when the
/// destructors of few values shall not wait for further transactions. Values that another OS thread
/// has replaced, and still keeps for its next transaction, stay. Within the body of a transaction,
/// or within a destructor of such a value, the call does nothing.
///
/// # Complexity
/// Linear in the number of OS threads that have run transactions and of values that are freed.
///
/// # Examples
/// ```
/// use selvedge::stm::{TVar, atomically_blocking, reclaim};
/// use std::sync::{Arc, Weak};
///
/// let old = Arc::new("a value with an owner elsewhere");
/// let seen: Weak<_> = Arc::downgrade(&old);
/// let var = TVar::new(old);
/// let new = Arc::new("another");
/// atomically_blocking(|tx| Ok(var.write(tx, new.clone())));
/// reclaim();
/// assert!(seen.upgrade().is_none());
/// ```
pub fn reclaim() {
    if !may_free() {
        return;
    }
    let mut own = take();
    loop {
        let mut ripe = Vec::new();
        {
            let mut registry = lock(&world().registry.0);
            registry.advance();
            registry.advance();
            registry.free.iter_mut().for_each(|session| session.ripe(&mut ripe));
        }
        own.ripe(&mut ripe);
        if ripe.is_empty() {
            break;
        }
        keep(own);
        free(ripe);
        own = take();
    }
    keep(own);
}
