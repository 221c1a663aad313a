//! The holder of a lock: [`Holder`], which names a thread, and [`OwnerRecord`], in which a lock
//! keeps its holder.
//!
//! [`Mutex`](crate::Mutex), [`RwLock`](crate::RwLock), [`OnceCell`](crate::OnceCell) and
//! [`Promise`](crate::Promise) keep an [`OwnerRecord`]. They use it for two things: to refuse a
//! caller that would wait for itself ([`OwnerRecord::refuse`], [`OwnerRecord::refuse_os_thread`]),
//! and to tell an observer for which thread the running thread waits ([`telling`]).

use crate::Owner;
use selvedge_core::internal::is_lent_here;
use selvedge_core::{observe, this_thread};
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The thread that has locked something.
///
/// It names the thread that *locked*. A guard that has been passed to another thread unlocks all
/// the same. If the guard outlives the thread that has locked, a later thread may have the same
/// number. So the name is for reports; no operation is refused because of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Holder {
    /// The thread with this number ([`ThreadInfo::id`](selvedge_core::ThreadInfo::id)).
    Thread(u32),
    /// An OS thread that has called an operation which blocks it. OS threads are numbered in the
    /// order of their first such call.
    OsThread(u32),
}

impl Holder {
    #[inline]
    fn to_bits(self) -> u64 {
        match self {
            Holder::Thread(id) => u64::from(id),
            Holder::OsThread(id) => OS | u64::from(id),
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Thread(id) => write!(f, "thread {id}"),
            Holder::OsThread(id) => write!(f, "OS thread {id}"),
        }
    }
}

/// A lock was asked for on behalf of the [`Owner`](crate::Owner) that holds it, or by the OS thread
/// that does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecursionError(Option<Holder>);

impl RecursionError {
    /// The thread that has locked, as far as it is known: see [`Holder`].
    pub fn holder(&self) -> Option<Holder> {
        self.0
    }
}

impl fmt::Display for RecursionError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the caller would wait for itself: ")?;
        match self.0 {
            Some(holder @ Holder::OsThread(_)) => write!(f, "{holder} has locked this already"),
            Some(holder) => write!(f, "its owner has locked this already, in {holder}"),
            None => f.write_str("its owner has locked this already"),
        }
    }
}

impl std::error::Error for RecursionError {}

/// The record of one lock. Bits 0 to 31 are the number of a thread, or with [`OS`] of an OS thread;
/// 0 is no holder or an unknown one. The upper bits are the number of the [`Owner`] for which the
/// lock is held; 0 is none.
///
/// The locker writes the record after it has locked, and the record is cleared before the lock is
/// released. All accesses are Relaxed, because a reader decides on a value alone that only the
/// holder of the lock has written:
/// - An OS thread that reads its own number with [`STAYS`] has written it, and its guard is still
///   there, because that guard cannot leave the OS thread.
/// - Code that reads the number of its own [`Owner`] has that owner in common with the locker. The
///   guard is still there, because the numbers of owners are not used again.
#[derive(Debug, Default)]
pub(crate) struct OwnerRecord(AtomicU64);

/// This bit distinguishes the number of an OS thread from the number of a thread.
const OS: u64 = 1 << 32;
/// The guard cannot leave the OS thread that has locked.
const STAYS: u64 = 1 << 33;
const OWNER_SHIFT: u32 = u64::BITS - Owner::BITS;

impl OwnerRecord {
    /// The record of a free lock.
    pub(crate) const fn new() -> OwnerRecord {
        OwnerRecord(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn set(&self, me: Option<Holder>) {
        self.0.store(me.map_or(0, Holder::to_bits), Ordering::Relaxed);
    }

    /// As [`set`](OwnerRecord::set), for a guard that stays on its OS thread.
    #[inline]
    pub(crate) fn set_staying(&self, me: Option<Holder>) {
        self.0.store(me.map_or(0, |me| me.to_bits() | STAYS), Ordering::Relaxed);
    }

    /// The guard may leave its OS thread from now on.
    pub(crate) fn may_move(&self) {
        self.0.fetch_and(!STAYS, Ordering::Relaxed);
    }

    /// Adds the owner for which the lock is held.
    pub(crate) fn add_owner(&self, owner: &Owner) {
        self.0.fetch_or(u64::from(owner.number()) << OWNER_SHIFT, Ordering::Relaxed);
    }

    /// # Errors
    /// When the lock is held for this owner.
    pub(crate) fn refuse(&self, owner: &Owner) -> Result<(), RecursionError> {
        let holder = self.0.load(Ordering::Relaxed) >> OWNER_SHIFT;
        match owner.number() != 0 && holder == u64::from(owner.number()) {
            true => Err(RecursionError(self.get())),
            false => Ok(()),
        }
    }

    /// # Panics
    /// When this OS thread has a guard of the lock that stays with it.
    #[track_caller]
    pub(crate) fn refuse_os_thread(&self, me: Option<Holder>) {
        if me.is_some_and(|me| self.0.load(Ordering::Relaxed) == me.to_bits() | STAYS) {
            panic!("{}", RecursionError(me));
        }
    }

    pub(crate) fn get(&self) -> Option<Holder> {
        match self.0.load(Ordering::Relaxed) & (OS | u64::from(u32::MAX)) {
            0 => None,
            id if id & OS != 0 => Some(Holder::OsThread(id as u32)),
            id => Some(Holder::Thread(id as u32)),
        }
    }

    /// Waits for `waiting`, which ends when the holder lets go. If it has to wait, an observer of
    /// the running thread is told the holder; `tie` is the reason, as for [`observe::waits_for`].
    #[inline(always)]
    pub(crate) async fn told<T>(&self, tie: &'static str, waiting: impl Future<Output = T>) -> T {
        let tell = || {
            self.tell(tie);
        };
        telling(tell, waiting).await
    }

    /// Tells the observer for which thread the running thread waits, if that is known. False if it
    /// is not.
    #[cold]
    pub(crate) fn tell(&self, tie: &'static str) -> bool {
        let holder = self.get();
        if let Some(Holder::Thread(id)) = holder {
            observe::waits_for(id, tie);
        }
        holder.is_some()
    }

    /// Clears the record if it names the running thread.
    pub(crate) fn clear_mine(&self) {
        let mine = thread().map(Holder::to_bits).unwrap_or_default();
        let _ = self.0.compare_exchange(mine, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Waits for `waiting`. Each time it is pending, `tell` is called if the program is observed and
/// the waker is the running thread's own. It is not called behind the waker of a combinator,
/// because the combinator may wait for other things too.
#[inline(always)]
pub(crate) async fn telling<T>(tell: impl Fn(), waiting: impl Future<Output = T>) -> T {
    let mut waiting = pin!(waiting);
    poll_fn(|cx| {
        let polled = waiting.as_mut().poll(cx);
        if polled.is_pending() && observe::is_on() && is_lent_here(cx.waker()) {
            tell();
        }
        polled
    })
    .await
}

/// The running thread. `None` under a foreign executor, because its tasks have no number.
#[inline]
pub(crate) fn thread() -> Option<Holder> {
    this_thread().map(Holder::Thread)
}

/// The running OS thread, as a holder that blocks. Its first call numbers it.
#[inline]
pub(crate) fn os_thread() -> Option<Holder> {
    thread_local!(static MINE: Cell<u32> = const { Cell::new(0) });
    MINE.with(|mine| {
        if mine.get() == 0 {
            mine.set(next_os_thread());
        }
        Some(Holder::OsThread(mine.get()))
    })
}

#[cold]
fn next_os_thread() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}
