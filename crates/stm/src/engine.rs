//! The engines: how a transaction reads, and how it commits.
//!
//! | engine | a read | a commit | each attempt sees one moment |
//! |---|---|---|---|
//! | [`Versioned`] | compares versions with a stamp | locks its variables, compares versions | yes |
//! | `Figure3` | notes the version | locks its variables, compares versions twice | no |
//! | `NOrec` | notes the value | takes one lock, compares values | yes |
//! | `GlobalLock` | under one lock | nothing to compare | yes |
//!
//! Programs have `Versioned`. The others stand beside it for comparison, behind the feature
//! `engines`.
//!
//! This file has the steps that several engines have in common.

#[cfg(feature = "engines")]
mod figure3;
#[cfg(feature = "engines")]
mod global_lock;
#[cfg(feature = "engines")]
mod norec;
mod versioned;

#[cfg(feature = "engines")]
pub use figure3::Figure3;
#[cfg(feature = "engines")]
pub use global_lock::GlobalLock;
#[cfg(feature = "engines")]
pub use norec::NOrec;
pub use versioned::Versioned;

use crate::garbage::Garbage;
use crate::locks::{give_back, lock_one};
use crate::log::{Log, WriteEntry};
use crate::primitives::{LOOKS, Ordering, in_one_order, relax};
use crate::reads::ReadEntry;
use crate::session::Session;
use crate::testing;
use crate::turn::CommitTurn;
use crate::variable::{Borrowed, Inner, LOCKED, WAITERS, version};

/// How transactions read and commit: [`Versioned`].
///
/// Variables and transactions have an engine as part of their types, so a transaction cannot touch
/// the variables of another engine. No other crate implements it. With the feature `engines`, this
/// crate has three more, for comparison.
pub trait Engine: sealed::Engine {}

/// Another transaction is in the way: the attempt is to begin again.
pub(crate) struct Conflict;

/// Whether transactions wait for a variable that a commit has written: its `found` has `WAITERS`.
#[must_use]
pub(crate) struct HasWaiters(pub(crate) bool);

impl HasWaiters {
    /// What a commit has found in the words of its variables, all of them in one number.
    #[inline(always)]
    fn among(found: u64) -> HasWaiters {
        HasWaiters(found & WAITERS != 0)
    }
}

pub(crate) mod sealed {
    use super::{Borrowed, CommitTurn, Conflict, HasWaiters, Inner, Log, Session};

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

        /// The turn of an attempt, if each of its reads is to lock the variable.
        fn turn(_: &mut Self::Attempt) -> Option<&mut CommitTurn> {
            None
        }

        /// What a read of a variable notes in the log, and the value. `None` if there is more to
        /// do: then the caller calls `read`.
        ///
        /// The attempt has not written the variable, and has no `turn`. The caller notes the read.
        fn glance(attempt: &mut Self::Attempt, log: &Log, inner: &Inner) -> Option<(u64, *mut ())>;

        /// The value of a variable that the attempt has not written. It is noted in the log. The
        /// attempt has no `turn`.
        fn read(attempt: &mut Self::Attempt, log: &mut Log, inner: Borrowed<'_>)
        -> Result<*mut (), Conflict>;

        /// Gives back the locks of an attempt, and its turn.
        fn release(attempt: &mut Self::Attempt);

        /// Whether the reads of the log hold at one moment.
        fn holds(_: &mut Self::Attempt, _: &Log) -> bool {
            true
        }

        /// Compares the reads of the log and publishes its writes, at one moment. The replaced
        /// nodes are unlinked. With an error there is no effect, and no variable is locked. An
        /// attempt without a turn has nothing to release after its commit.
        fn commit(attempt: &mut Self::Attempt, session: &mut Session) -> Result<HasWaiters, Conflict>;

        /// Step 2. of `registration.rs`: sets `WAITERS`, and tells whether the variable is as it
        /// was read. The caller has the lock of the variable's list.
        fn announce_waiter(inner: &Inner, seen: u64) -> bool;

        /// A number that each commit changes, of an engine in which `announce_waiter` takes a
        /// variable for unchanged that was written and written back. `Registration` asks for it
        /// before and after it registers conditions.
        fn moment() -> u64 {
            0
        }
    }
}

/// A value, and the word that it had while the value was loaded. The word may be locked.
///
/// If the value is that of a commit, the load of the value has synchronised with the commit's
/// store, which followed the lock. So the second load of the word finds the lock or a later word,
/// and differs from the first one unless the first one has the lock or the commit's version.
#[inline(always)]
fn look(inner: &Inner) -> Option<(u64, *mut ())> {
    let word = inner.word.load(Ordering::SeqCst);
    let value = inner.value.load(Ordering::Acquire);
    (inner.word.load(Ordering::SeqCst) == word).then_some((word, value))
}

/// As `look`, but the word is unlocked, and without `WAITERS`. It looks several times.
fn look_again(inner: &Inner) -> Result<(u64, *mut ()), Conflict> {
    for _ in 0..LOOKS {
        match look(inner) {
            Some((word, value)) if word & LOCKED == 0 => return Ok((word & !WAITERS, value)),
            _ => relax(),
        }
    }
    Err(Conflict)
}

/// Whether each variable of these reads is unlocked and has the version that was read.
fn versions_hold(reads: &[ReadEntry]) -> bool {
    reads.iter().all(|read| {
        // SAFETY: the session of the log is pinned.
        let word = unsafe { read.variable.inner() }.word.load(Ordering::SeqCst);
        word & !WAITERS == read.seen
    })
}

/// The same for a commit that has locked the variables of the log's writes: these may be locked.
#[inline(always)]
fn versions_hold_under_locks(log: &Log) -> bool {
    log.reads.iter().all(|read| {
        // SAFETY: the session of the log is pinned.
        let word = unsafe { read.variable.inner() }.word.load(Ordering::SeqCst);
        // A locked word keeps its version.
        word == read.seen
            || version(word) == read.seen && (word & LOCKED == 0 || log.has_written(read.variable))
    })
}

/// Locks the variables of the log's writes; the newest of their versions. With an error all of them
/// are unlocked again.
///
/// It waits for no other commit beyond some looks, so two commits that lock the same variables in
/// different orders do not wait for each other for ever.
#[inline(always)]
fn lock_all(log: &mut Log) -> Result<u64, Conflict> {
    let (mut newest, mut locked) = (0, 0);
    let all = log.writes.iter_mut().all(|write| {
        // SAFETY: the session of the log is pinned.
        let Some(found) = lock_one(unsafe { write.variable.inner() }) else { return false };
        write.found = found;
        newest = newest.max(version(found));
        locked += 1;
        true
    });
    if !all {
        unlock(&log.writes[..locked]);
        return Err(Conflict);
    }
    in_one_order();
    testing::take_ticket();
    Ok(newest)
}

/// Unlocks variables, with the words that they had, for a commit that gives up.
#[cold]
#[inline(never)]
fn unlock(writes: &[WriteEntry]) {
    for write in writes {
        // SAFETY: the session of the log is pinned.
        give_back(unsafe { write.variable.inner() }, write.found);
    }
}

/// Publishes the values of the log's writes, and then unlocks the variables with the new version.
/// The caller has locked all of them.
///
/// A transaction that has seen one of the values finds each other one at once, also by `read_now`,
/// because all values are stored before the first variable is unlocked.
#[inline(always)]
fn publish(session: &mut Session, new: u64) -> HasWaiters {
    let mut found = 0;
    for write in &session.log.writes {
        store_value(write, &mut session.member.unlinked);
    }
    for write in &session.log.writes {
        // SAFETY: the session of the log is pinned.
        unsafe { write.variable.inner() }.word.store(new, Ordering::Release);
        found |= write.found;
    }
    HasWaiters::among(found)
}

/// Stores the value of a write, and unlinks the node that it replaces. No other commit stores to
/// this variable meanwhile.
#[inline(always)]
fn store_value(write: &WriteEntry, unlinked: &mut Vec<Garbage>) {
    // SAFETY: the session of the log is pinned.
    let inner = unsafe { write.variable.inner() };
    let old = inner.value.load(Ordering::Relaxed);
    inner.value.store(write.value, Ordering::Release);
    if let Some(free) = write.free
        // A cell without a value has a null pointer (`cells.rs`), which nothing needs to free.
        && !old.is_null()
    {
        // SAFETY: the old node has the same type as the new one, because they are of one variable.
        // It is out of reach now, and the session keeps it for the transactions that have read it.
        // The value is `'static`, which the type of the variable demands, so the session may keep
        // it for ever.
        unlinked.push(unsafe { Garbage::new(old, free) });
    }
}

/// Step 2. of `registration.rs` for the engines that compare versions.
fn announce_by_version(inner: &Inner, seen: u64) -> bool {
    let set = |word: u64| (word & !WAITERS == seen).then_some(word | WAITERS);
    inner.word.fetch_update(Ordering::SeqCst, Ordering::SeqCst, set).is_ok()
}
