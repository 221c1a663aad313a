//! Sessions: the log of a transaction, with its place in the epochs.
//!
//! An attempt of a transaction has a [`Session`] of its own from its begin to its end. An OS thread
//! keeps one session for its next attempt; the other free ones lie in the [`Registry`]. `epochs.rs`
//! argues why no memory is freed that an attempt can reach.

use crate::epochs::{EpochMember, Epochs};
use crate::garbage::Garbage;
use crate::log::Log;
use crate::primitives::{Mutex, lock, thread_local};
use crate::spare::SpareNodes;
use crate::waiter::WaitingTx;
use crate::world::Alone;
use selvedge_core::internal::{is_indivisible, quietly};
use std::cell::Cell;
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Arc;

/// The log of one transaction at a time, and what the session keeps for the next transactions.
pub(crate) struct Session {
    pub(crate) member: EpochMember,
    pub(crate) spare: SpareNodes,
    /// For the next transaction that waits.
    pub(crate) spare_waiter: Option<Arc<WaitingTx>>,
    pub(crate) log: Log,
}

/// The epochs, and the sessions that no OS thread keeps.
struct Registry {
    epochs: Epochs,
    #[expect(clippy::vec_box, reason = "a session moves between here and its OS threads as a pointer")]
    free: Vec<Box<Session>>,
}

/// The number of unlinked objects at which a session retires them and tries to free some. These
/// objects share one system call of the heavy fence.
const MANY: usize = 256;

impl Registry {
    const fn new() -> Registry {
        Registry { epochs: Epochs::new(), free: Vec::new() }
    }

    #[cold]
    fn session(&mut self) -> Box<Session> {
        self.free.pop().unwrap_or_else(|| {
            Box::new(Session {
                member: self.epochs.join(),
                spare: SpareNodes::default(),
                spare_waiter: None,
                log: Log::new(),
            })
        })
    }
}

#[cfg(not(loom))]
fn registry() -> &'static Mutex<Registry> {
    static REGISTRY: Alone<Mutex<Registry>> = Alone(Mutex::new(Registry::new()));
    &REGISTRY.0
}

#[cfg(loom)]
fn registry() -> &'static Mutex<Registry> {
    loom::lazy_static! {
        static ref REGISTRY: Alone<Mutex<Registry>> = Alone(Mutex::new(Registry::new()));
    }
    &REGISTRY.0
}

impl Session {
    /// See [`EpochMember::pin`].
    #[inline(always)]
    pub(crate) fn pin(&mut self) {
        self.member.pin();
    }

    #[inline(always)]
    pub(crate) fn unpin(&mut self) {
        self.member.unpin();
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
            lock(registry()).free.push(unsafe { Box::from_raw(kept) });
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
    lock(registry()).session()
}

/// Gives a session back, after `unpin`. If the session has unlinked many objects, and no body of a
/// transaction runs on this OS thread, retires them and frees the retired objects that no
/// transaction can reach. So the destructors of the program's values run here, and may run
/// transactions.
#[inline(always)]
pub(crate) fn put(session: Box<Session>) {
    match session.member.unlinked.len() {
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
        let registry = lock(registry());
        if let Some(epoch) = registry.epochs.fence() {
            session.member.retire(epoch);
        }
        registry.epochs.advance();
        registry.epochs.advance();
        session.member.ripe(&mut ripe);
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
    lock(registry()).free.push(free);
}

/// Retires an object that a transaction which begins from now on cannot reach.
pub(crate) fn retire(garbage: Garbage) {
    let mut session = take();
    session.member.unlinked.push(garbage);
    put(session);
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
            let mut registry = lock(registry());
            if let Some(epoch) = registry.epochs.fence() {
                own.member.retire(epoch);
                registry.free.iter_mut().for_each(|session| session.member.retire(epoch));
            }
            registry.epochs.advance();
            registry.epochs.advance();
            own.member.ripe(&mut ripe);
            registry.free.iter_mut().for_each(|session| session.member.ripe(&mut ripe));
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
