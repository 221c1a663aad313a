//! [`Versioned`]: versions, and a clock that few commits raise.

use super::{
    Conflict, Engine, HasWaiters, announce_by_version, lock_all, look, look_again, publish, sealed,
    store_value, unlock, versions_hold, versions_hold_under_locks,
};
use crate::locks::{exchange, give_back};
use crate::log::Log;
use crate::primitives::{Ordering, in_one_order};
use crate::reads::ReadEntry;
use crate::session::Session;
use crate::testing;
use crate::turn::{self, CommitTurn};
use crate::variable::{Borrowed, Inner, LOCKED, WAITERS, version};
use crate::world::world;
use std::fmt;

/// The default engine: optimistic, opaque, without a shared counter that each commit writes.
///
/// A transaction reads without locks, and keeps the versions of the variables that it has read.
/// When it commits, it locks the variables that it has written, compares the versions that it has
/// read, and publishes its values. **Opaque** means that each attempt of a transaction, also one
/// that will not commit, sees a state that existed at one moment.
///
/// # Paper
/// [HMP05 §5, Figure 3]: locks for the written variables alone, versions for the others, no lock
/// while the transaction runs, and an abort instead of a wait when a lock is taken.
///
/// # Differences
/// 1. The lock is a bit of the version, not a mark in the value.
/// 2. A transaction validates while it reads, so an inconsistent one is never seen; the paper finds
///    such a one later and abandons it ([HMP05 §4.3]).
/// 3. A variable that a commit has locked is looked at for about 100 times; then the reader begins
///    again.
/// 4. The versions at commit are compared with those of the reads. So the second check of
///    Figure 3 takes the place of both, because it follows the locks.
/// 5. A transaction that has met many conflicts gets a turn, in which it locks what it reads. The
///    paper has no such bound.
///
/// # Complexity
/// A read of a version that is not newer than the transaction's stamp costs three loads. At a newer
/// one the transaction compares all versions that it has read, if it has read any. When it has
/// compared 32 of them for that, it raises the clock once, so that the following reads are not
/// newer. A commit locks each written
/// variable with one exchange, and loads the word of each variable read.
///
/// # Each attempt sees one moment
/// The **clock** is read by each transaction and raised by few. The **stamp** of a transaction is
/// the clock that it has read. A commit, after it has locked all its variables, reads the clock `c`
/// and gives its values a version greater than `c` and than their old versions.
/// 1. Let a commit W give the version `v`, and let a transaction have a stamp of at least `v`. W
///    has read a clock below `v`, so W had locked all its variables before the clock reached the
///    stamp. So each load of the transaction finds such a variable locked, or with W's value.
/// 2. So a variable that is unlocked and not newer than the stamp has had its value, but for a
///    commit that held all its locks, since before the transaction read the stamp. Such a commit
///    takes effect before the transaction, because the values that it has read are compared after
///    its locks.
/// 3. At a newer version, all earlier reads are compared after the newer value was read. So all of
///    them held at the moment of that read; a later read by 2. held at that moment as well.
/// 4. When the clock is raised, all reads are compared after the new stamp was read, so that they
///    held at one moment, which is not before the moment of 2.
/// 5. A transaction that has the turn (`turn.rs`) has locked all variables that it has read. So all
///    of them hold at the moment of its last read, and when it commits.
///
/// The locks, the clock and the words are accessed with `SeqCst`, because 1. orders a store before
/// a load of another variable.
#[derive(Debug, Clone, Copy)]
pub enum Versioned {}

/// The number of entries that a transaction compares because of newer reads before it raises the
/// clock. To compare this number of entries takes about as long as to write the clock.
const COMPARED: usize = 32;

/// The distance of a raised clock from the newest version that the transaction has read. The
/// variables that it has not read yet may have versions a little newer than that.
const AHEAD: u64 = 1 << 10;

/// An attempt of the default engine.
#[expect(unnameable_types, reason = "only the engine uses it")]
pub struct Snapshot {
    stamp: u64,
    /// The number of entries compared since the stamp was read.
    compared: usize,
    /// With a turn, stamps do not matter.
    turn: Option<Box<CommitTurn>>,
}

impl fmt::Debug for Snapshot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Snapshot").field("stamp", &self.stamp).finish_non_exhaustive()
    }
}

impl Engine for Versioned {}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl sealed::Engine for Versioned {
    type Attempt = Snapshot;

    #[inline(always)]
    fn begin(turn: Option<Box<CommitTurn>>) -> Snapshot {
        let stamp = world().clock.0.load(Ordering::SeqCst);
        in_one_order();
        Snapshot { stamp, compared: 0, turn }
    }

    #[inline]
    fn turn(snapshot: &mut Snapshot) -> Option<&mut CommitTurn> {
        snapshot.turn.as_deref_mut()
    }

    /// A word without bits is a version. At the first read no version is too new.
    #[inline(always)]
    fn glance(snapshot: &mut Snapshot, log: &Log, inner: &Inner) -> Option<(u64, *mut ())> {
        let (word, value) = look(inner)?;
        (word <= snapshot.stamp || word < WAITERS && log.reads.is_empty()).then_some((word, value))
    }

    #[inline(never)]
    fn read(snapshot: &mut Snapshot, log: &mut Log, inner: Borrowed<'_>) -> Result<*mut (), Conflict> {
        let (word, value) = look_again(&inner)?;
        log.note_read(inner.address(), word);
        if word > snapshot.stamp && log.reads.len() > 1 {
            snapshot.meet_newer(&log.reads)?;
        }
        Ok(value)
    }

    #[inline(always)]
    fn release(snapshot: &mut Snapshot) {
        turn::end(&mut snapshot.turn);
    }

    #[inline(always)]
    fn commit(snapshot: &mut Snapshot, session: &mut Session) -> Result<HasWaiters, Conflict> {
        if session.log.writes.is_empty() {
            return Ok(HasWaiters(false));
        }
        match snapshot.turn.is_none() && commit_one::<false>(session) {
            true => Ok(HasWaiters(false)),
            false => snapshot.commit_other(session),
        }
    }

    fn announce_waiter(inner: &Inner, seen: u64) -> bool {
        announce_by_version(inner, seen)
    }
}

/// The commit of an attempt that has written one variable and has no turn; `WAITED` says whether
/// transactions may wait for the variable. Of any other attempt, and if another commit is in the
/// way, false: nothing has been done.
#[inline(always)]
fn commit_one<const WAITED: bool>(session: &mut Session) -> bool {
    let [write] = &mut session.log.writes[..] else { return false };
    // SAFETY: the session of the log is pinned.
    let inner = unsafe { write.variable.inner() };
    let found = inner.word.load(Ordering::Relaxed);
    if found >= if WAITED { LOCKED } else { WAITERS } || !exchange(inner, found) {
        return false;
    }
    in_one_order();
    testing::take_ticket();
    let old = if WAITED { version(found) } else { found };
    let newest = old.max(world().clock.0.load(Ordering::SeqCst));
    let holds = |read: &ReadEntry| {
        // SAFETY: as above.
        let word = unsafe { read.variable.inner() }.word.load(Ordering::SeqCst);
        word == read.seen
            || if read.variable == write.variable { old == read.seen } else { word == read.seen | WAITERS }
    };
    if testing::is_shaken() || !session.log.reads.iter().all(holds) {
        give_back(inner, found);
        return false;
    }
    if WAITED {
        write.found = found;
    }
    store_value(write, &mut session.member.unlinked);
    inner.word.store(newest + 1, Ordering::Release);
    true
}

impl Snapshot {
    /// A commit for which the fast one was not enough.
    #[inline(never)]
    fn commit_other(&mut self, session: &mut Session) -> Result<HasWaiters, Conflict> {
        match self.turn.is_none() && commit_one::<true>(session) {
            true => Ok(HasWaiters::among(session.log.writes[0].found)),
            false => self.commit_all(session),
        }
    }

    fn commit_all(&mut self, session: &mut Session) -> Result<HasWaiters, Conflict> {
        let clock = &world().clock.0;
        let log = &mut session.log;
        let newest = match &mut self.turn {
            None => {
                let newest = lock_all(log)?.max(clock.load(Ordering::SeqCst));
                if testing::is_shaken() || !versions_hold_under_locks(log) {
                    unlock(&log.writes);
                    return Err(Conflict);
                }
                newest
            }
            Some(turn) => turn.lock_all(log).max(clock.load(Ordering::SeqCst)),
        };
        Ok(publish(session, newest + 1))
    }

    /// The last of these reads is newer than the stamp.
    fn meet_newer(&mut self, reads: &[ReadEntry]) -> Result<(), Conflict> {
        self.compared += reads.len();
        let compared = match self.compared > COMPARED {
            true => {
                self.raise_clock(reads);
                reads
            }
            // The last one has just been read.
            false => &reads[..reads.len() - 1],
        };
        match !testing::is_shaken() && versions_hold(compared) {
            true => Ok(()),
            false => Err(Conflict),
        }
    }

    /// Reads the clock anew, when it is beyond the version of each read.
    #[cold]
    #[inline(never)]
    fn raise_clock(&mut self, reads: &[ReadEntry]) {
        let newest = reads.iter().map(|read| read.seen).max().unwrap_or(0);
        let clock = &world().clock.0;
        self.stamp = clock.load(Ordering::SeqCst);
        if self.stamp < newest {
            let raised = newest + AHEAD;
            self.stamp = clock.fetch_max(raised, Ordering::SeqCst).max(raised);
        }
        in_one_order();
        self.compared = 0;
    }
}
