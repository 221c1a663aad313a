//! The engines: how a transaction reads, and how it commits.
//!
//! | engine | a read | a commit | each attempt sees one moment |
//! |---|---|---|---|
//! | [`Versioned`] | compares versions with a stamp | locks its variables, compares versions | yes |
//! | [`Figure3`] | notes the version | locks its variables, compares versions twice | no |
//! | [`NOrec`] | notes the value | takes one lock, compares values | yes |
//! | [`GlobalLock`] | under one lock | nothing to compare | yes |
//!
//! This file has the steps that several engines have in common.

mod figure3;
mod global_lock;
mod norec;
mod versioned;

pub use figure3::Figure3;
pub use global_lock::GlobalLock;
pub use norec::NOrec;
pub use versioned::Versioned;

use crate::condition::ToWake;
use crate::log::{Log, ReadEntry};
use crate::primitives::{LOOKS, Ordering, in_one_order, relax};
use crate::session::{Garbage, Session};
use crate::testing;
use crate::turn::CommitTurn;
use crate::var::{Borrowed, Inner, LOCKED, WAITERS, version, word_of};
use crate::wait;

/// How transactions read and commit: [`Versioned`], which is the default, [`Figure3`], [`NOrec`] or
/// [`GlobalLock`].
///
/// Variables and transactions have an engine as part of their types, so a transaction cannot touch
/// the variables of another engine. No other crate implements it.
pub trait Engine: sealed::Engine {}

/// Another transaction is in the way: the attempt is to begin again.
pub(crate) struct Conflict;

pub(crate) mod sealed {
    use super::{Borrowed, CommitTurn, Conflict, Inner, Log, Session, ToWake};

    #[expect(unnameable_types, reason = "the engines rely on the log and on the words of variables")]
    #[expect(private_interfaces, reason = "as above")]
    pub trait Engine: Sized + 'static {
        /// What an attempt has besides its log.
        type Attempt;

        /// Whether each attempt sees one moment. If not, `holds` is asked before a panic or an
        /// error of the body leaves the attempt.
        const OPAQUE: bool = true;

        /// Begins an attempt, perhaps in a turn. The session is pinned.
        fn begin(turn: Option<Box<CommitTurn>>) -> Self::Attempt;

        /// The value of a variable that the attempt has not written. It is noted in the log.
        fn read(attempt: &mut Self::Attempt, log: &mut Log, inner: Borrowed<'_>)
        -> Result<*mut (), Conflict>;

        /// Whether the reads of the log hold at one moment.
        fn holds(attempt: &mut Self::Attempt, log: &Log) -> bool;

        /// Compares the reads of the log and publishes its writes, at one moment. The replaced
        /// nodes are unlinked. With an error there is no effect, and no variable is locked.
        fn commit(attempt: &mut Self::Attempt, session: &mut Session) -> Result<Vec<ToWake>, Conflict>;

        /// Step 2. of `wait.rs`: sets `WAITERS`, and tells whether the variable is as it was read.
        /// The caller has the lock of the variable's list.
        fn announce_waiter(inner: &Inner, seen: u64) -> bool;
    }
}

/// A value, and the word that it had while the value was loaded: unlocked, without `WAITERS`.
///
/// If the value is that of a commit, the load of the value has synchronised with the commit's
/// store, which followed the lock. So the second load of the word finds the lock or a later word,
/// and differs from the first one unless the first one has the commit's version.
#[inline(always)]
fn load(inner: &Inner) -> Result<(u64, *mut ()), Conflict> {
    for _ in 0..LOOKS {
        let word = inner.word.load(Ordering::SeqCst);
        if word & LOCKED == 0 {
            let value = inner.value.load(Ordering::Acquire);
            if (inner.word.load(Ordering::SeqCst) ^ word) & !WAITERS == 0 {
                return Ok((word & !WAITERS, value));
            }
        }
        relax();
    }
    Err(Conflict)
}

/// The value of a variable, which stays locked until the turn ends.
#[cold]
fn read_in_turn(turn: &mut CommitTurn, log: &mut Log, inner: Borrowed<'_>) -> *mut () {
    let seen = turn.keep(inner) & !WAITERS;
    log.note_read(ReadEntry { inner: inner.pointer(), seen });
    inner.value.load(Ordering::Acquire)
}

/// Whether each variable of the log's reads is unlocked and has the version that was read.
fn versions_hold(log: &Log) -> bool {
    // SAFETY: the session of the log is pinned.
    let now = |read: &ReadEntry| unsafe { read.inner.as_ref() }.word.load(Ordering::SeqCst) & !WAITERS;
    log.reads.iter().all(|read| now(read) == read.seen)
}

/// The same for a commit that has locked the variables of the log's writes: these may be locked.
#[inline(always)]
fn versions_hold_under_locks(log: &Log) -> bool {
    log.reads.iter().all(|read| {
        // SAFETY: the session of the log is pinned.
        let word = unsafe { read.inner.as_ref() }.word.load(Ordering::SeqCst);
        match word & LOCKED {
            0 => word & !WAITERS == read.seen,
            _ => log.found(read.inner) == Some(read.seen),
        }
    })
}

/// Locks the variables of the log's writes; the newest of their versions. With an error all of them
/// are unlocked again.
///
/// It waits for no other commit beyond some looks, so two commits that lock the same variables in
/// different orders do not wait for each other for ever.
#[inline(always)]
fn lock_all(log: &mut Log) -> Result<u64, Conflict> {
    let mut newest = 0;
    for at in 0..log.writes.len() {
        // SAFETY: the session of the log is pinned.
        let inner = unsafe { log.writes[at].inner.as_ref() };
        let Some(found) = lock_one(inner) else {
            unlock(log, at);
            return Err(Conflict);
        };
        log.writes[at].found = found;
        newest = newest.max(version(found));
    }
    in_one_order();
    testing::take_ticket();
    Ok(newest)
}

/// Locks a variable; the word that it had. `None` if it was locked at each of some looks.
#[inline(always)]
pub(crate) fn lock_one(inner: &Inner) -> Option<u64> {
    for _ in 0..LOOKS {
        let word = inner.word.load(Ordering::Relaxed);
        if word & LOCKED == 0 {
            let locked = word | LOCKED;
            let exchange = inner.word.compare_exchange(word, locked, Ordering::SeqCst, Ordering::Relaxed);
            if exchange.is_ok() {
                return Some(word);
            }
        }
        relax();
    }
    None
}

/// Unlocks the first variables of the log's writes, with the words that they had.
#[cold]
fn unlock(log: &Log, first: usize) {
    for write in &log.writes[..first] {
        // SAFETY: the session of the log is pinned.
        unsafe { write.inner.as_ref() }.word.store(write.found, Ordering::Release);
    }
}

/// Publishes the values of the log's writes, and unlocks their variables with a new version. The
/// caller has locked the variables.
#[inline(always)]
fn publish(session: &mut Session, new: u64) -> Vec<ToWake> {
    store_values(session);
    let mut woken = Vec::new();
    for write in &session.log.writes {
        // SAFETY: the session of the log is pinned.
        unsafe { write.inner.as_ref() }.word.store(word_of(new), Ordering::Release);
    }
    for write in session.log.writes.iter().filter(|write| write.found & WAITERS != 0) {
        // SAFETY: as above.
        wait::gather(unsafe { Borrowed::new(write.inner) }, &mut woken);
    }
    woken
}

/// Stores the values of the log's writes, and unlinks the nodes that they replace. No other commit
/// stores to these variables meanwhile.
#[inline(always)]
fn store_values(session: &mut Session) {
    for write in &session.log.writes {
        // SAFETY: the session of the log is pinned.
        let inner = unsafe { write.inner.as_ref() };
        let old = inner.value.load(Ordering::Relaxed);
        inner.value.store(write.value, Ordering::Release);
        // A cell without a value has a null pointer (`cells.rs`), which nothing needs to free.
        let free = write.free.filter(|_| !old.is_null());
        // SAFETY: the old node has the same type as the new one, because they are of one variable.
        // It is out of reach now, and the session keeps it for those that have it.
        session.unlinked.extend(free.map(|free| unsafe { Garbage::new(old, free) }));
    }
}

/// Step 2. of `wait.rs` for the engines that compare versions.
fn announce_by_version(inner: &Inner, seen: u64) -> bool {
    let set = |word: u64| (word & !WAITERS == seen).then_some(word | WAITERS);
    inner.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, set).is_ok()
}
