//! Sessions: the log of a transaction, and the reclamation of memory by epochs.
//!
//! An attempt of a transaction has a [`Session`] of its own from its begin to its end. An OS thread
//! keeps one session for its next attempt; the other free ones lie in the [`Registry`].
//!
//! # No memory is freed while a transaction can reach it
//! The **epoch** is a number that only grows, under the lock of the registry. A session is
//! **pinned** while its transaction runs: its record has the epoch that the session read. Memory
//! that commits have unlinked gathers in the session of the commits. When there is much of it, the
//! session **retires** it, and frees what was retired long enough ago:
//! ```text
//!    pin: at each begin                        collect: once for MANY unlinked objects
//!    1. read the epoch                         a. lock the registry, read the epoch t
//!    2. store it in the record                 b. heavy fence
//!    3. light fence                            c. retire the unlinked objects with t
//!    4. read pointers to objects               d. twice: if each record is 0 or the epoch,
//!    unpin: at each end                           the epoch grows by one
//!    5. store 0 in the record                  e. free what was retired with t, if t + 2 <= epoch
//! ```
//! The heavy fence is membarrier(2): it puts a full fence, the **point**, somewhere into the run of
//! each other OS thread. So a begin costs no fence; see `core/src/fences.rs`. Where the kernel has
//! no such call, both fences are `SeqCst` fences, and the point of an OS thread is the fence of its
//! 3. Loom checks that form.
//!
//! Suppose that a session P reaches an object at 4., and that a collect C retires this object with
//! `t` at c. Then P has read a pointer that is older than the unlink.
//! 1. P's point of C comes after that read. A read after the point would see the unlink, because
//!    the unlink comes before b.
//! 2. So P's 1. and 2. come before its point. Therefore P has read an epoch of at most `t`, because
//!    the epoch `t + 1` is stored after b. And C sees P's record at d., and so does each later
//!    collect, because they lock the registry one after the other.
//! 3. The epoch becomes `t + 2` in d. of C or of a later collect, while it is `t + 1`. That d. does
//!    not see P's epoch, which is at most `t`. So it sees the 0 of P's 5., or a later value of the
//!    record.
//!
//! So the epoch `t + 2` comes after P's `unpin`. The stores to the record are Release stores, which
//! d. reads with Acquire; what comes after d. is under the lock of the registry, or synchronised by
//! it. So each access of P happens before the object is freed.
//!
//! # The loops of the schedulers
//! A worker between two steps holds no reference. So its scheduler could announce this state once
//! for many steps, instead of 1. to 5. for each transaction. That would save a load and two stores
//! to a cache line of the session, and no fence.

use crate::log::Log;
use crate::nodes::SpareNodes;
use crate::primitives::{AtomicU64, Ordering, fence, lock, thread_local};
use crate::wait::WaitingTx;
use crate::world::world;
use selvedge_core::internal::{is_indivisible, quietly};
use selvedge_core::{heavy_fence, light_fence};
use std::cell::Cell;
use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;

/// The function that frees a value behind a pointer of its type.
pub(crate) type Free = unsafe fn(*mut ());

/// Objects that no new transaction can reach: only the transactions that ran when they were
/// retired.
struct Retired {
    epoch: u64,
    garbage: Vec<Garbage>,
}

/// A pointer to an object, which is freed when this is dropped.
///
/// # Lifetimes
/// An object becomes garbage when a commit has unlinked it or its last handle is gone, and is freed
/// later: by any OS thread, after any transaction, at any time before the process ends. So neither
/// the value nor a destructor may borrow. Values of variables, keys, values and hashers of maps,
/// the values of nodes, and predicates are `'static`, because the types of handles (`TVar`,
/// `TWord`, `TNode`, `TMap`), `CellValue` and `Cells::new` demand it:
/// ```compile_fail,E0597
/// use selvedge::stm::TVar;
///
/// let cloth = String::from("cloth");
/// let borrows = TVar::new(&cloth);
/// ```
/// ```compile_fail,E0597
/// use selvedge::stm::TArray;
///
/// let cloth = String::from("cloth");
/// let borrows = TArray::new([&cloth]);
/// ```
/// ```compile_fail,E0597
/// use selvedge::stm::{TMap, atomically_blocking};
///
/// let cloth = String::from("cloth");
/// let borrows = TMap::new();
/// atomically_blocking(|tx| borrows.insert(tx, 1, &cloth).map(drop));
/// ```
/// ```compile_fail,E0597
/// use selvedge::stm::TNode;
///
/// let cloth = String::from("cloth");
/// let borrows = TNode::<_, 0>::new(&cloth, []);
/// ```
/// ```compile_fail,E0597
/// use selvedge::stm::{TWord, atomically_blocking};
///
/// let limit = String::from("12345");
/// let length = &limit;
/// let count = TWord::new(7);
/// let seen = count.clone();
/// atomically_blocking(|tx| {
///     let seen = seen.clone();
///     tx.wait_for(move |tx| Ok(seen.read(tx)? > length.len()))
/// });
/// ```
pub(crate) struct Garbage {
    pointer: *mut (),
    free: Free,
}

impl Garbage {
    /// # Safety
    /// `free` may be called once with `pointer`, on any OS thread and at any later time, when this
    /// is dropped: so what it frees is `Send`, `Sync` and `'static`.
    pub(crate) unsafe fn new(pointer: *mut (), free: Free) -> Garbage {
        Garbage { pointer, free }
    }

    /// Frees the object. A panic of its destructor goes on to the caller.
    #[inline(always)]
    fn free_now(self) {
        let Garbage { pointer, free } = *ManuallyDrop::new(self);
        // SAFETY: the contract of `new`; this is the one call, because `self` is not dropped.
        unsafe { free(pointer) };
    }
}

// SAFETY: `Garbage::new` is called for values of type `T: Send + Sync + 'static`, for variables of
// them and for heads of blocks (`Cells::new`), and its contract allows any OS thread.
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

/// The log of one transaction at a time, and the garbage of the transactions that used the session
/// before.
pub(crate) struct Session {
    record: &'static Record,
    /// Whether `pin` needs a fence of its own, because the kernel has no heavy one.
    has_own_fence: bool,
    /// In the order of their epochs.
    retired: VecDeque<Retired>,
    /// The objects that commits have unlinked, and that are not retired yet.
    pub(crate) unlinked: Vec<Garbage>,
    pub(crate) spare: SpareNodes,
    /// For the next transaction that waits.
    pub(crate) spare_waiter: Option<Arc<WaitingTx>>,
    pub(crate) log: Log,
}

/// All records, and the sessions that no OS thread keeps.
pub(crate) struct Registry {
    records: Vec<&'static Record>,
    /// Whether the kernel has the heavy fence. Known with the first session.
    has_heavy_fence: Option<bool>,
    #[expect(clippy::vec_box, reason = "a session moves between here and its OS threads as a pointer")]
    free: Vec<Box<Session>>,
}

/// The number of unlinked objects at which a session retires them and tries to free some. These
/// objects share one system call of the heavy fence.
const MANY: usize = 256;

impl Registry {
    pub(crate) const fn new() -> Registry {
        Registry { records: Vec::new(), has_heavy_fence: None, free: Vec::new() }
    }

    #[cold]
    fn session(&mut self) -> Box<Session> {
        let has_own_fence = !*self.has_heavy_fence.get_or_insert_with(heavy_fence);
        self.free.pop().unwrap_or_else(|| {
            let record: &'static Record = Box::leak(Box::new(Record { pinned: AtomicU64::new(0) }));
            self.records.push(record);
            Box::new(Session {
                record,
                has_own_fence,
                retired: VecDeque::new(),
                unlinked: Vec::new(),
                spare: SpareNodes::default(),
                spare_waiter: None,
                log: Log::new(),
            })
        })
    }

    /// Step b. The epoch with which the objects may be retired that were unlinked before the call.
    /// `None` if the kernel has refused the fence.
    fn fence(&self) -> Option<u64> {
        let is_ordered = match self.has_heavy_fence {
            Some(true) => heavy_fence(),
            _ => {
                fence(Ordering::SeqCst);
                true
            }
        };
        is_ordered.then(|| world().epoch.0.load(Ordering::Relaxed))
    }

    /// Step d., once. The caller holds the registry's lock, so no other OS thread writes the epoch.
    fn advance(&self) {
        let epoch = &world().epoch.0;
        let now = epoch.load(Ordering::Relaxed);
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
    #[inline(always)]
    pub(crate) fn pin(&mut self) {
        let epoch = world().epoch.0.load(Ordering::Relaxed);
        self.record.pinned.store(epoch, Ordering::Release);
        match self.has_own_fence {
            false => light_fence(),
            true => fence(Ordering::SeqCst),
        }
    }

    #[inline(always)]
    pub(crate) fn unpin(&mut self) {
        self.record.pinned.store(0, Ordering::Release);
    }

    /// Step c., with the epoch of `Registry::fence`.
    fn retire(&mut self, epoch: u64) {
        if !self.unlinked.is_empty() {
            let next = Vec::with_capacity(self.unlinked.len());
            let garbage = std::mem::replace(&mut self.unlinked, next);
            self.retired.push_back(Retired { epoch, garbage });
        }
    }

    /// Takes out the objects that no transaction can reach any more.
    fn ripe(&mut self, into: &mut Vec<Vec<Garbage>>) {
        let epoch = world().epoch.0.load(Ordering::Acquire);
        while self.retired.front().is_some_and(|retired| retired.epoch + 2 <= epoch) {
            into.extend(self.retired.pop_front().map(|retired| retired.garbage));
        }
    }
}

#[cfg(not(loom))]
thread_local! {
    /// The session that this OS thread keeps for its next transaction. Null while a transaction has
    /// it; [`ENDED`] when the OS thread ends. Without a destructor, so that an access has nothing
    /// to check.
    static KEPT: Cell<*mut Session> = const { Cell::new(null_mut()) };
    /// Destructors of values run.
    static FREES: Cell<bool> = const { Cell::new(false) };
}
#[cfg(loom)]
thread_local! {
    static KEPT: Cell<*mut Session> = Cell::new(null_mut());
    static FREES: Cell<bool> = Cell::new(false);
}

/// In place of a session, on an OS thread that ends.
const ENDED: *mut Session = without_provenance_mut(1);

/// Gives the session that an OS thread keeps to the registry when the OS thread ends. In a model
/// the session is forgotten, because the world may have ended before. Its record is not pinned.
#[cfg(not(loom))]
struct AtEnd;

#[cfg(not(loom))]
impl Drop for AtEnd {
    fn drop(&mut self) {
        let kept = KEPT.replace(ENDED);
        if is_session(kept) {
            // SAFETY: `keep` has put it there, and it is there no more.
            lock(&world().registry.0).free.push(unsafe { Box::from_raw(kept) });
        }
    }
}

#[cfg(not(loom))]
std::thread_local!(static AT_END: AtEnd = const { AtEnd });

/// Whether `KEPT` has a session. One comparison, as both other values are small numbers.
#[inline(always)]
fn is_session(kept: *mut Session) -> bool {
    kept.addr() > ENDED.addr()
}

/// A session for one transaction; it is not pinned, and its log is empty.
#[inline(always)]
pub(crate) fn take() -> Box<Session> {
    let kept = KEPT.with(Cell::get);
    if !is_session(kept) {
        return take_free();
    }
    KEPT.with(|cell| cell.set(null_mut()));
    // SAFETY: `keep` has put it there, and it is there no more.
    unsafe { Box::from_raw(kept) }
}

/// Gives `f` the session that this OS thread keeps. None while a transaction has it. `f` runs no
/// code of the program.
#[inline(always)]
pub(crate) fn with_kept<R>(f: impl FnOnce(&mut Session) -> R) -> Option<R> {
    let kept = KEPT.with(Cell::get);
    // SAFETY: `keep` has put it there, and `f` does not take it.
    is_session(kept).then(|| f(unsafe { &mut *kept }))
}

/// A session of the registry.
#[cold]
#[inline(never)]
fn take_free() -> Box<Session> {
    #[cfg(not(loom))]
    let _ = AT_END.try_with(|_| {});
    lock(&world().registry.0).session()
}

/// Gives a session back, after `unpin`. If the session has unlinked many objects, and no body of a
/// transaction runs on this OS thread, retires them and frees the retired objects that no
/// transaction can reach. So the destructors of the program's values run here, and may run
/// transactions.
#[inline(always)]
pub(crate) fn put(session: Box<Session>) {
    match session.unlinked.len() {
        ..MANY => keep(session),
        _ => put_many(session),
    }
}

#[cold]
#[inline(never)]
fn put_many(mut session: Box<Session>) {
    if !may_free() {
        return keep(session);
    }
    let mut ripe = Vec::new();
    {
        let registry = lock(&world().registry.0);
        if let Some(epoch) = registry.fence() {
            session.retire(epoch);
        }
        registry.advance();
        registry.advance();
        session.ripe(&mut ripe);
    }
    keep(session);
    free(ripe);
}

/// Keeps the session for the next transaction of this OS thread. If there is one already, that one
/// goes to the registry. If the OS thread ends, this one does.
#[inline(always)]
fn keep(session: Box<Session>) {
    match KEPT.with(Cell::get).is_null() {
        true => KEPT.with(|cell| cell.set(Box::into_raw(session))),
        false => keep_instead(session),
    }
}

#[cold]
#[inline(never)]
fn keep_instead(session: Box<Session>) {
    let other = KEPT.with(Cell::get);
    let free = match is_session(other) {
        true => {
            KEPT.with(|cell| cell.set(Box::into_raw(session)));
            // SAFETY: `keep` has put it there, and it is there no more.
            unsafe { Box::from_raw(other) }
        }
        false => session,
    };
    lock(&world().registry.0).free.push(free);
}

/// Whether destructors of the program's values may run now on this OS thread.
fn may_free() -> bool {
    !FREES.with(Cell::get) && !is_indivisible()
}

/// Frees the objects. A destructor among them that drops variables leaves those to a later call:
/// so a long chain of variables takes no deep stack.
fn free(ripe: Vec<Vec<Garbage>>) {
    FREES.with(|frees| frees.set(true));
    ripe.into_iter().for_each(free_all);
    FREES.with(|frees| frees.set(false));
}

/// Frees objects of which no destructor keeps those after it from being freed.
fn free_all(garbage: Vec<Garbage>) {
    let mut left = garbage.into_iter();
    while !left.as_slice().is_empty() {
        quietly(|| left.by_ref().for_each(Garbage::free_now));
    }
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
            if let Some(epoch) = registry.fence() {
                own.retire(epoch);
                registry.free.iter_mut().for_each(|session| session.retire(epoch));
            }
            registry.advance();
            registry.advance();
            own.ripe(&mut ripe);
            registry.free.iter_mut().for_each(|session| session.ripe(&mut ripe));
        }
        if ripe.is_empty() {
            break;
        }
        keep(own);
        free(ripe);
        own = take();
    }
    keep(own);
}

/// A session that is pinned as long as this lives.
pub(crate) struct Pinned(Option<Box<Session>>);

impl Pinned {
    pub(crate) fn new() -> Pinned {
        let mut session = take();
        session.pin();
        Pinned(Some(session))
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if let Some(mut session) = self.0.take() {
            session.unpin();
            put(session);
        }
    }
}
