//! [`Figure3`]: the paper's commit, and nothing that makes the reads consistent before it.

use super::{
    Conflict, Engine, HasWaiters, announce_by_version, lock_all, look, look_again, publish, sealed, unlock,
    versions_hold, versions_hold_under_locks,
};
use crate::log::Log;
use crate::session::Session;
use crate::testing;
use crate::turn::{self, CommitTurn};
use crate::variable::{Borrowed, Inner, WAITERS};
use std::fmt;

/// The paper's engine, for the experiment: optimistic, without any shared counter, and not opaque.
///
/// A transaction reads without locks and without comparisons. Its commit follows the three steps of
/// Figure 3: it locks the variables that it writes and compares the versions of the variables that
/// it has read; it compares these versions once more; it stores the values and unlocks.
///
/// # Zombies
/// An attempt that will not commit may see values of different moments: `x` before a commit, and
/// `y` after it. Such an attempt is a **zombie**. Its memory is safe, because the values that it
/// reads were committed at some time and are not freed before its end. What its body computes from
/// them is arbitrary: it may index out of bounds, or loop for ever. Use [`Versioned`] for bodies
/// that rely on an invariant between variables.
///
/// A zombie is found and run again
/// - when it commits, also when it has written nothing;
/// - when its body panics or gives up with an error: the reads are compared first. If they do not
///   hold, the panic or the error goes no further. The panic hook has printed its message by then;
/// - when it retries, because the registration compares each variable;
/// - at its 64th read, and from then on whenever it has read as often as it has entries in its log.
///   The paper validates when a thread returns to the scheduler. A body here does not yield, so its
///   reads are the only moments. A body that loops for ever without a read is never abandoned.
///
/// # Paper
/// [HMP05 §5, Figure 3], with the validation of [HMP05 §4.3].
///
/// # Differences
/// 1. The lock is a bit of the version, not a mark in the value. So the exchange that locks does
///    not compare; the first comparison follows at once and covers the written variables too.
/// 2. The pseudo-code compares versions between its two passes only; the text demands that each
///    variable still has the value that was read. Here both passes compare with the version that
///    was read. As versions never repeat, the second pass alone would suffice, and the first finds
///    a conflict early.
/// 3. A variable that another commit has locked is a conflict for a commit that has read it.
/// 4. A read of a locked variable looks about 100 times; then the attempt begins again. In the
///    paper the lock replaces the value, so a read waits.
/// 5. A write without a read expects no value.
/// 6. A transaction that has met many conflicts gets a turn, in which it locks what it reads.
///
/// # Complexity
/// A read costs three loads, and one comparison at most on average. A commit locks each written
/// variable with one exchange, and loads the word of each variable read twice.
///
/// # Examples
/// ```
/// use selvedge::stm::{Figure3, TWord, atomically_under};
///
/// let var = TWord::<_, Figure3>::with_engine(1_u64);
/// let shared = var.clone();
/// selvedge::run(async move {
///     atomically_under::<Figure3, _>(|tx| shared.modify(tx, |n| n * 2)).await;
///     assert_eq!(shared.read_now(), 2);
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
///
/// [`Versioned`]: crate::Versioned
#[derive(Debug, Clone, Copy)]
pub enum Figure3 {}

/// The number of reads before the first comparison of an attempt that runs.
const READS: usize = if cfg!(loom) { 2 } else { 64 };

/// An attempt of this engine.
#[expect(unnameable_types, reason = "only the engine uses it")]
pub struct Passes {
    /// The number of reads until the log is compared.
    until_compared: usize,
    turn: Option<Box<CommitTurn>>,
}

impl fmt::Debug for Passes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Passes").field("until_compared", &self.until_compared).finish_non_exhaustive()
    }
}

impl Engine for Figure3 {}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl sealed::Engine for Figure3 {
    type Attempt = Passes;

    const OPAQUE: bool = false;

    #[inline(always)]
    fn begin(turn: Option<Box<CommitTurn>>) -> Passes {
        Passes { until_compared: READS, turn }
    }

    #[inline]
    fn turn(passes: &mut Passes) -> Option<&mut CommitTurn> {
        passes.turn.as_deref_mut()
    }

    /// This does not count the read that compares.
    #[inline(always)]
    fn glance(passes: &mut Passes, _: &Log, inner: &Inner) -> Option<(u64, *mut ())> {
        if passes.until_compared == 1 {
            return None;
        }
        let (word, value) = look(inner)?;
        if word >= WAITERS {
            return None;
        }
        passes.until_compared -= 1;
        Some((word, value))
    }

    #[inline(never)]
    fn read(passes: &mut Passes, log: &mut Log, inner: Borrowed<'_>) -> Result<*mut (), Conflict> {
        let (seen, value) = look_again(&inner)?;
        log.note_read(inner.address(), seen);
        passes.until_compared -= 1;
        if passes.until_compared == 0 {
            passes.compare(log)?;
        }
        Ok(value)
    }

    #[inline(always)]
    fn release(passes: &mut Passes) {
        turn::end(&mut passes.turn);
    }

    /// One pass is enough: each version was read before the pass and is found again in it, so all
    /// of them held when the pass began.
    fn holds(passes: &mut Passes, log: &Log) -> bool {
        passes.turn.is_some() || versions_hold(&log.reads)
    }

    #[inline(always)]
    fn commit(passes: &mut Passes, session: &mut Session) -> Result<HasWaiters, Conflict> {
        let log = &mut session.log;
        let newest = match &mut passes.turn {
            Some(turn) => turn.lock_all(log),
            None => {
                let newest = lock_all(log)?;
                let holds = versions_hold_under_locks(log) && versions_hold_under_locks(log);
                if testing::is_shaken() || !holds {
                    unlock(&log.writes);
                    return Err(Conflict);
                }
                newest
            }
        };
        Ok(publish(session, newest + 1))
    }

    fn announce_waiter(inner: &Inner, seen: u64) -> bool {
        announce_by_version(inner, seen)
    }
}

impl Passes {
    /// Abandons a zombie that runs. The log is compared again after as many reads as it has
    /// entries, so the comparisons of an attempt are no more than its reads.
    #[cold]
    fn compare(&mut self, log: &Log) -> Result<(), Conflict> {
        self.until_compared = log.reads.len().max(READS);
        match !testing::is_shaken() && versions_hold(&log.reads) {
            true => Ok(()),
            false => Err(Conflict),
        }
    }
}
