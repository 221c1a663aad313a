//! Who holds a lock: the record that owner checks are made against.

use selvedge_core::{is_lent_here, observe, this_thread};
use std::cell::Cell;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

/// Who has locked something.
///
/// It is a record of who *locked*: a guard that was given to somebody else unlocks all the same. If that outlives the thread that has
/// locked, a later thread that has the same number is taken for the holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Holder {
    /// The thread with this number ([`ThreadInfo::id`](selvedge_core::ThreadInfo::id)).
    Thread(u32),
    /// An OS thread, with one of the operations that block it; numbered in the order in which they first did.
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

/// A thread has asked, with one of the operations that check it, for a lock that it holds already.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Recursion(pub(crate) Holder);

impl Recursion {
    /// Who holds the lock, and asked for it again.
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

/// The record: 0 for nobody, or somebody unknown; a thread's number; or an OS thread's above bit 32.
///
/// Written by who has just locked, and cleared before unlocking. So whoever reads himself there has written it himself; or a thread that had
/// his number before him has, and has passed the guard on.
#[derive(Debug, Default)]
pub(crate) struct Record(AtomicU64);

/// Distinguishes an OS thread's number from a thread's.
const OS: u64 = 1 << 32;
/// The guard may be with another thread by now: the record names the locker, and refuses nothing.
const MAY_MOVE: u64 = 1 << 33;

impl Record {
    /// Of nothing locked.
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

    /// Whether it is `me` that has locked, with a guard that stays.
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

    /// Waits for what is held. If it has to wait, whoever observes the running thread is told for whom; `tie` says why, as
    /// [`observe::waits_for`] has it.
    #[inline(always)]
    pub(crate) async fn told<T>(&self, tie: &'static str, waiting: impl Future<Output = T>) -> T {
        let tell = || {
            self.tell(tie);
        };
        telling(tell, waiting).await
    }

    /// Tells whom the running thread waits for, if that is known. False if it is not.
    #[cold]
    pub(crate) fn tell(&self, tie: &'static str) -> bool {
        let holder = self.get();
        if let Some(Holder::Thread(id)) = holder {
            observe::waits_for(id, tie);
        }
        holder.is_some()
    }

    /// Clears it, if it says that it is the running thread.
    pub(crate) fn clear_mine(&self) {
        let mine = thread().map(Holder::to_bits).unwrap_or_default();
        let _ = self.0.compare_exchange(mine, 0, Ordering::Relaxed, Ordering::Relaxed);
    }
}

/// Waits, and calls `tell` whenever that has to go on and somebody may look on: not behind the waker of a combinator, of which nobody knows
/// what else it waits for.
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

/// The thread that runs; under a foreign executor nobody knows.
#[inline]
pub(crate) fn thread() -> Option<Holder> {
    this_thread().map(Holder::Thread)
}

/// The OS thread that runs, as one that blocks.
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
