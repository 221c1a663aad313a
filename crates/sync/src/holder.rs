//! The holder of a lock: [`Holder`], which names a thread, and [`Record`], in which a lock keeps
//! its holder.
//!
//! [`Mutex`](crate::Mutex), [`RwLock`](crate::RwLock), [`OnceCell`](crate::OnceCell) and
//! [`Promise`](crate::Promise) keep a [`Record`]. They use it for two things: to refuse a thread
//! that would wait for itself ([`check`], [`refuse_recursion`]), and to tell an observer for which
//! thread the running thread waits ([`telling`]).

use selvedge_core::{is_lent_here, observe, this_thread};
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// The thread that has locked something.
///
/// It names the thread that *locked*. A guard that has been passed to another thread unlocks all
/// the same. If the guard outlives the thread that has locked, and a later thread gets the same
/// number, that later thread is taken for the holder.
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

/// A thread has asked for a lock that it holds already, with an operation that checks this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recursion(pub(crate) Holder);

impl Recursion {
    /// The thread that holds the lock and has asked for it again.
    pub fn holder(&self) -> Holder {
        self.0
    }
}

impl fmt::Display for Recursion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} would wait for itself: it has locked this already", self.0)
    }
}

impl std::error::Error for Recursion {}

/// The record of one lock: 0 for no holder or an unknown one, the number of a thread, or [`OS`] and
/// the number of an OS thread; with [`MAY_MOVE`] if the guard can move.
///
/// The locker writes the record after it has locked, and the record is cleared before the lock is
/// released. So a thread that reads its own number here has written it, or an earlier thread with
/// the same number has written it and has passed the guard on. All accesses are Relaxed, because a
/// thread decides on its own number alone.
#[derive(Debug, Default)]
pub(crate) struct Record(AtomicU64);

/// This bit distinguishes the number of an OS thread from the number of a thread.
const OS: u64 = 1 << 32;
/// Another thread may have the guard by now. The record names the locker, and refuses no thread.
const MAY_MOVE: u64 = 1 << 33;

impl Record {
    /// The record of a free lock.
    pub(crate) const fn new() -> Record {
        Record(AtomicU64::new(0))
    }

    #[inline]
    pub(crate) fn set(&self, me: Option<Holder>) {
        self.0.store(me.map_or(0, Holder::to_bits), Ordering::Relaxed);
    }

    /// As [`set`](Record::set), for a guard that is made to be passed on.
    pub(crate) fn set_of_movable(&self, me: Option<Holder>) {
        self.0.store(me.map_or(0, |me| me.to_bits() | MAY_MOVE), Ordering::Relaxed);
    }

    /// Whether `me` has locked, with a guard that does not move.
    fn is_held_by(&self, me: Holder) -> bool {
        self.0.load(Ordering::Relaxed) == me.to_bits()
    }

    pub(crate) fn get(&self) -> Option<Holder> {
        match self.0.load(Ordering::Relaxed) & !MAY_MOVE {
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

/// Panics instead of letting a thread wait for itself.
///
/// # Panics
/// When `me` is the recorded holder.
#[track_caller]
pub(crate) fn refuse_recursion(record: &Record, me: Option<Holder>) {
    if let Err(recursion) = check(record, me) {
        panic!("{recursion}");
    }
}

pub(crate) fn check(record: &Record, me: Option<Holder>) -> Result<(), Recursion> {
    match me {
        Some(me) if record.is_held_by(me) => Err(Recursion(me)),
        _ => Ok(()),
    }
}
