//! The engines: how a transaction reads, and how it commits.

use crate::condition::Woken;
use crate::log::{Log, ReadEntry};
use crate::primitives::{LOOKS, MutexGuard, Ordering, in_one_order, lock, relax};
use crate::session::{Garbage, Session};
use crate::turn::CommitTurn;
use crate::var::{Borrowed, Inner, LOCKED, WAITERS, version, word_of};
use crate::wait;
use crate::world::world;
use std::fmt;

/// How transactions read and commit: [`Versioned`], which is the default, or [`GlobalLock`].
///
/// Variables and transactions have an engine as part of their types, so a transaction cannot touch
/// the variables of another engine. No other crate implements it.
pub trait Engine: sealed::Engine {}

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
/// one the transaction compares all versions that it has read; from the ninth such read on it
/// raises the clock once, so that the following reads are not newer. A commit locks each written
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
///    held at a moment that is not before the one of 2.
/// 5. A transaction that has the turn (`turn.rs`) has locked all variables that it has read. So all
///    of them hold at the moment of its last read, and when it commits.
///
/// The locks, the clock and the words are accessed with `SeqCst`, because 1. orders a store before
/// a load of another variable.
#[derive(Debug, Clone, Copy)]
pub enum Versioned {}

/// A simple engine: one lock for all transactions of this engine in the process, held while the
/// body runs. It is there to compare with.
///
/// # Examples
/// ```
/// use selvedge::stm::{GlobalLock, TWord, try_atomically_with};
///
/// let var = TWord::<_, GlobalLock>::with_engine(1_u64);
/// let shared = var.clone();
/// selvedge::run(async move {
///     let doubled = try_atomically_with::<GlobalLock, _, ()>(move |tx| {
///         shared.modify(tx, |n| n * 2)?;
///         Ok(shared.read(tx)?)
///     });
///     assert_eq!(doubled.await, Ok(2));
/// })?;
/// # Ok::<(), selvedge::Failure>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub enum GlobalLock {}

/// Another transaction is in the way: the attempt is to begin again.
pub(crate) struct Conflict;

pub(crate) mod sealed {
    use super::{Borrowed, CommitTurn, Conflict, Log};

    #[expect(unnameable_types, reason = "the engines rely on the log and on the words of variables")]
    #[expect(private_interfaces, reason = "as above")]
    pub trait Engine: Sized + 'static {
        /// What an attempt has besides its log.
        type Attempt;

        /// Begins an attempt, perhaps in a turn. The session is pinned.
        fn begin(turn: Option<Box<CommitTurn>>) -> Self::Attempt;

        /// The value of a variable that the attempt has not written. It is noted in the log.
        fn read(attempt: &mut Self::Attempt, log: &mut Log, inner: Borrowed<'_>)
        -> Result<*mut (), Conflict>;

        /// Locks the variables of the log's writes, and compares its reads. The version for the new
        /// values. With an error all variables are unlocked again.
        fn lock(attempt: &mut Self::Attempt, log: &mut Log) -> Result<u64, Conflict>;
    }
}

/// The number of newer reads that a transaction compares its log for before it raises the clock.
const NEWER: u32 = 8;

/// An attempt of the default engine.
#[expect(unnameable_types, reason = "only the engine uses it")]
pub struct Snapshot {
    stamp: u64,
    /// The number of reads with newer versions since the stamp was read.
    newer: u32,
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
        Snapshot { stamp, newer: 0, turn }
    }

    #[inline(always)]
    fn read(snapshot: &mut Snapshot, log: &mut Log, inner: Borrowed<'_>) -> Result<*mut (), Conflict> {
        if let Some(turn) = &mut snapshot.turn {
            return Ok(read_in_turn(turn, log, inner));
        }
        let (word, value) = load(&inner)?;
        log.note_read(ReadEntry { inner: inner.pointer(), word });
        if version(word) > snapshot.stamp {
            snapshot.meet_newer(log)?;
        }
        Ok(value)
    }

    #[inline(always)]
    fn lock(snapshot: &mut Snapshot, log: &mut Log) -> Result<u64, Conflict> {
        let stamp_after = |newest: u64| newest.max(world().clock.0.load(Ordering::SeqCst)) + 1;
        if let Some(turn) = &mut snapshot.turn {
            return Ok(stamp_after(turn.lock_all(log)));
        }
        let stamp = stamp_after(lock_all(log)?);
        let is_as_read = |read: &ReadEntry| {
            // SAFETY: the session of the log is pinned.
            let word = unsafe { read.inner.as_ref() }.word.load(Ordering::SeqCst);
            match word & LOCKED {
                0 => word & !WAITERS == read.word,
                _ => log.found(read.inner) == Some(read.word),
            }
        };
        if log.reads.iter().all(is_as_read) {
            return Ok(stamp);
        }
        unlock(log, log.writes.len());
        Err(Conflict)
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
    let word = turn.keep(inner) & !WAITERS;
    log.note_read(ReadEntry { inner: inner.pointer(), word });
    inner.value.load(Ordering::Acquire)
}

impl Snapshot {
    /// The last read of the log is newer than the stamp.
    #[cold]
    fn meet_newer(&mut self, log: &Log) -> Result<(), Conflict> {
        self.newer += 1;
        if self.newer > NEWER {
            let newest = log.reads.iter().map(|read| version(read.word)).max().unwrap_or(0);
            let clock = &world().clock.0;
            self.stamp = clock.load(Ordering::SeqCst);
            if self.stamp < newest {
                self.stamp = clock.fetch_max(newest, Ordering::SeqCst).max(newest);
            }
            in_one_order();
            self.newer = 0;
        } else if log.reads.len() == 1 {
            return Ok(());
        }
        // SAFETY: the session of the log is pinned.
        let now = |read: &ReadEntry| unsafe { read.inner.as_ref() }.word.load(Ordering::SeqCst) & !WAITERS;
        match log.reads.iter().all(|read| now(read) == read.word) {
            true => Ok(()),
            false => Err(Conflict),
        }
    }
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
/// caller has locked the variables. Retires the replaced nodes, and gives the transactions to wake.
#[inline(always)]
pub(crate) fn publish(session: &mut Session, stamp: u64) -> Vec<Woken> {
    let mut woken = Vec::new();
    let log = &session.log;
    for write in &log.writes {
        // SAFETY: the session of the log is pinned.
        let inner = unsafe { write.inner.as_ref() };
        // Locked: no other transaction stores to the value.
        let old = inner.value.load(Ordering::Relaxed);
        inner.value.store(write.value, Ordering::Release);
        // A cell without a value has a null pointer (`cells.rs`), which nothing needs to free.
        let free = write.free.filter(|_| !old.is_null());
        // SAFETY: the old node has the same type as the new one, because they are of one variable.
        // It is out of reach now, and `Session::retire` keeps it for those that have it.
        session.unlinked.extend(free.map(|free| unsafe { Garbage::new(old, free) }));
    }
    for write in &log.writes {
        // SAFETY: as above.
        unsafe { write.inner.as_ref() }.word.store(word_of(stamp), Ordering::Release);
    }
    for write in log.writes.iter().filter(|write| write.found & WAITERS != 0) {
        // SAFETY: as above.
        wait::gather(unsafe { Borrowed::new(write.inner) }, &mut woken);
    }
    if !session.unlinked.is_empty() {
        session.retire();
    }
    woken
}

impl Engine for GlobalLock {}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl sealed::Engine for GlobalLock {
    type Attempt = MutexGuard<'static, ()>;

    /// A turn ends at once, because the lock is one.
    fn begin(_: Option<Box<CommitTurn>>) -> MutexGuard<'static, ()> {
        lock(&world().one.0)
    }

    /// Under the lock no variable of this engine changes; the word is noted for `retry`.
    fn read(_: &mut Self::Attempt, log: &mut Log, inner: Borrowed<'_>) -> Result<*mut (), Conflict> {
        let word = inner.word.load(Ordering::SeqCst) & !WAITERS;
        log.note_read(ReadEntry { inner: inner.pointer(), word });
        Ok(inner.value.load(Ordering::Acquire))
    }

    /// Under the lock each variable is unlocked, but a registration that ends may change its word.
    fn lock(_: &mut Self::Attempt, log: &mut Log) -> Result<u64, Conflict> {
        Ok(lock_all(log)? + 1)
    }
}
