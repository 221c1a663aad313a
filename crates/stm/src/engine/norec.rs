//! [`NOrec`]: one sequence lock, and values in place of versions.

use super::{Conflict, Engine, HasWaiters, sealed, store_value};
use crate::log::Log;
use crate::primitives::{AtomicU64, LOOKS, Ordering, give_way, in_one_order, relax};
use crate::reads::ReadEntry;
use crate::session::Session;
use crate::testing;
use crate::turn::{self, CommitTurn};
use crate::variable::{Borrowed, Inner, WAITERS};
use crate::world::world;
use std::fmt;

/// An engine with one sequence lock for all transactions of this engine in the process, for the
/// experiment: opaque, without versions of variables.
///
/// A transaction reads without locks, and keeps the values that it has read. Commits exclude one
/// another by the sequence lock. When another transaction has committed meanwhile, all values that
/// were read are compared. It is the fastest engine for few OS threads and small transactions, and
/// the slowest for many that commit all the time.
///
/// # Paper
/// "NOrec: Streamlining STM by Abolishing Ownership Records" (Dalessandro, Spear, Scott, 2010). It
/// is beside [HMP05 §5], to compare with.
///
/// # Differences
/// 1. A transaction that has met many conflicts gets a turn, in which it holds the sequence lock
///    from its begin.
///
/// # Complexity
/// A read costs two loads if no other transaction has committed since the last comparison, else a
/// comparison of all values read. A commit costs one exchange, and a load and a store for each
/// written variable.
///
/// # Each attempt sees one moment
/// The **sequence** is odd while a commit stores its values, and grows by two with each commit. The
/// **snapshot** of an attempt is an even sequence at which all values of its log held.
/// 1. A read loads the value first, and the sequence afterwards. A value that a commit has stored
///    was stored with Release after the sequence became odd, so the load of the sequence sees that
///    odd number or a later one. If the sequence equals the snapshot, the value therefore is that
///    of the snapshot.
/// 2. If it differs, the values of the log are compared between two loads of the same even
///    sequence. By 1. all of them hold at that sequence, which becomes the snapshot, and the read
///    begins again.
/// 3. A commit exchanges the snapshot for the odd number after it. So no other commit came between
///    the snapshot and the values that it stores.
///
/// A value that was changed and changed back is as it was read. A node cannot come back as another
/// value at the same address, because the session of the attempt is pinned.
///
/// # Examples
/// ```
/// use selvedge::stm::{NOrec, TWord, atomically_under};
///
/// let var = TWord::<_, NOrec>::with_engine(1_u64);
/// let shared = var.clone();
/// selvedge::run(async move {
///     atomically_under::<NOrec, _>(|tx| shared.modify(tx, |n| n * 2)).await;
///     assert_eq!(shared.read_now(), 2);
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub enum NOrec {}

/// An attempt of this engine.
#[expect(unnameable_types, reason = "only the engine uses it")]
pub struct Sequenced {
    /// Even.
    snapshot: u64,
    /// The sequence is `snapshot + 1`, and this attempt has made it so.
    is_locked: bool,
    turn: Option<Box<CommitTurn>>,
}

impl fmt::Debug for Sequenced {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sequenced").field("snapshot", &self.snapshot).finish_non_exhaustive()
    }
}

/// How the sequence becomes even again.
///
/// `Release` is enough: a `SeqCst` load that comes after the exchange of a commit in the order of
/// all `SeqCst` accesses does not read what was stored before that exchange (C++20
/// \[atomics.order\]). Miri lets such a load read an older value if that was not stored with
/// `SeqCst`, and so takes `announce_waiter` for a lost wake-up.
const UNLOCKS: Ordering = if cfg!(miri) { Ordering::SeqCst } else { Ordering::Release };

#[inline(always)]
fn sequence() -> &'static AtomicU64 {
    &world().sequence.0
}

impl Engine for NOrec {}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl sealed::Engine for NOrec {
    type Attempt = Sequenced;

    /// A begin during a commit takes the sequence before it, which the first read compares.
    #[inline(always)]
    fn begin(turn: Option<Box<CommitTurn>>) -> Sequenced {
        let snapshot = sequence().load(Ordering::SeqCst) & !1;
        let mut attempt = Sequenced { snapshot, is_locked: false, turn };
        if attempt.turn.is_some() {
            attempt.lock_surely();
        }
        attempt
    }

    #[inline(always)]
    fn glance(attempt: &mut Sequenced, _: &Log, inner: &Inner) -> Option<(u64, *mut ())> {
        let value = inner.value.load(Ordering::Acquire);
        (sequence().load(Ordering::SeqCst) == attempt.snapshot).then_some((value.addr() as u64, value))
    }

    #[inline(never)]
    fn read(attempt: &mut Sequenced, log: &mut Log, inner: Borrowed<'_>) -> Result<*mut (), Conflict> {
        let value = match attempt.is_locked {
            true => inner.value.load(Ordering::Acquire),
            false => attempt.read_anew(log, &inner)?,
        };
        log.note_read(inner.address(), value.addr() as u64);
        Ok(value)
    }

    /// A turn that ends without a commit has stored nothing, so the sequence is as before.
    #[inline(always)]
    fn release(attempt: &mut Sequenced) {
        if attempt.is_locked {
            attempt.unlock(attempt.snapshot);
        }
        turn::end(&mut attempt.turn);
    }

    #[inline(always)]
    fn commit(attempt: &mut Sequenced, session: &mut Session) -> Result<HasWaiters, Conflict> {
        if session.log.writes.is_empty() {
            return Ok(HasWaiters(false));
        }
        if !attempt.is_locked {
            attempt.lock(&session.log)?;
        }
        in_one_order();
        testing::take_ticket();
        let mut found = 0;
        for write in &mut session.log.writes {
            // SAFETY: the session of the log is pinned.
            write.found = unsafe { write.variable.inner() }.word.load(Ordering::SeqCst);
            found |= write.found;
            store_value(write, &mut session.member.unlinked);
        }
        attempt.unlock(attempt.snapshot + 2);
        Ok(HasWaiters::among(found))
    }

    /// A commit that has changed the sequence before it is loaded here has stored its values, or
    /// the sequence is odd. A commit that changes it later loads the word later, and finds
    /// `WAITERS`.
    fn announce_waiter(inner: &Inner, seen: u64) -> bool {
        inner.word.fetch_or(WAITERS, Ordering::SeqCst);
        in_one_order();
        for _ in 0..LOOKS {
            if sequence().load(Ordering::SeqCst) & 1 == 0 {
                return inner.value.load(Ordering::Acquire).addr() as u64 == seen;
            }
            relax();
        }
        false
    }

    fn moment() -> u64 {
        sequence().load(Ordering::SeqCst)
    }
}

impl Sequenced {
    /// The value of a variable at this snapshot, or at a later one at which the log holds as well.
    ///
    /// The log is compared only if the sequence has changed: a variable that an undone branch has
    /// written is read by this function each time.
    #[cold]
    fn read_anew(&mut self, log: &Log, inner: &Inner) -> Result<*mut (), Conflict> {
        let mut comparisons = 0..LOOKS;
        loop {
            let value = inner.value.load(Ordering::Acquire);
            if sequence().load(Ordering::SeqCst) == self.snapshot {
                return Ok(value);
            }
            comparisons.next().ok_or(Conflict)?;
            self.compare(log)?;
        }
    }

    /// Moves the snapshot on to a sequence at which the log holds.
    fn compare(&mut self, log: &Log) -> Result<(), Conflict> {
        // SAFETY: the session of the log is pinned.
        let now = |read: &ReadEntry| unsafe { read.variable.inner() }.value.load(Ordering::Acquire);
        for _ in 0..LOOKS {
            let before = sequence().load(Ordering::SeqCst);
            if before & 1 == 0 {
                if testing::is_shaken() || !log.reads.iter().all(|read| now(read).addr() as u64 == read.seen)
                {
                    return Err(Conflict);
                }
                if sequence().load(Ordering::SeqCst) == before {
                    self.snapshot = before;
                    return Ok(());
                }
            }
            relax();
        }
        Err(Conflict)
    }

    /// Locks the sequence at a snapshot at which the log holds.
    #[inline(always)]
    fn lock(&mut self, log: &Log) -> Result<(), Conflict> {
        if testing::is_shaken() {
            return Err(Conflict);
        }
        for _ in 0..LOOKS {
            if self.try_lock() {
                return Ok(());
            }
            self.compare(log)?;
        }
        Err(Conflict)
    }

    #[inline(always)]
    fn try_lock(&mut self) -> bool {
        let (from, to) = (self.snapshot, self.snapshot + 1);
        self.is_locked = sequence().compare_exchange(from, to, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        self.is_locked
    }

    /// Locks the sequence for a turn, which has read nothing yet. A commit that has it locked runs
    /// no code of the program, and there is no second turn.
    #[cold]
    fn lock_surely(&mut self) {
        while !self.try_lock() {
            give_way();
            self.snapshot = sequence().load(Ordering::SeqCst) & !1;
        }
    }

    #[inline(always)]
    fn unlock(&mut self, sequence_now: u64) {
        self.is_locked = false;
        sequence().store(sequence_now, UNLOCKS);
    }
}
