//! [`GlobalLock`]: one lock for all transactions.

use super::{Conflict, Engine, HasWaiters, announce_by_version, lock_all, publish, sealed, unlock};
use crate::log::Log;
use crate::primitives::{MutexGuard, Ordering, lock};
use crate::session::Session;
use crate::testing;
use crate::turn::CommitTurn;
use crate::variable::{Borrowed, Inner, WAITERS};
use crate::world::world;

/// A simple engine: one lock for all transactions of this engine in the process, held while the
/// body runs. It is there to compare with.
///
/// # Examples
/// ```
/// use selvedge::stm::{GlobalLock, TWord, try_atomically_under};
///
/// let var = TWord::<_, GlobalLock>::with_engine(1_u64);
/// let shared = var.clone();
/// selvedge::run(async move {
///     let doubled = try_atomically_under::<GlobalLock, _, ()>(move |tx| {
///         shared.modify(tx, |n| n * 2)?;
///         Ok(shared.read(tx)?)
///     });
///     assert_eq!(doubled.await, Ok(2));
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[derive(Debug, Clone, Copy)]
pub enum GlobalLock {}

impl Engine for GlobalLock {}

#[expect(private_interfaces, reason = "the trait is sealed")]
impl sealed::Engine for GlobalLock {
    /// None at the end.
    type Attempt = Option<MutexGuard<'static, ()>>;

    /// A turn ends at once, because the lock is one.
    fn begin(_: Option<Box<CommitTurn>>) -> Self::Attempt {
        Some(lock(&world().one.0))
    }

    fn release(guard: &mut Self::Attempt) {
        *guard = None;
    }

    /// Under the lock no variable of this engine changes; the word is noted for `retry`.
    fn glance(_: &mut Self::Attempt, _: &Log, inner: &Inner) -> Option<(u64, *mut ())> {
        let seen = inner.word.load(Ordering::SeqCst) & !WAITERS;
        Some((seen, inner.value.load(Ordering::Acquire)))
    }

    fn read(guard: &mut Self::Attempt, log: &mut Log, inner: Borrowed<'_>) -> Result<*mut (), Conflict> {
        let (seen, value) = Self::glance(guard, log, &inner).ok_or(Conflict)?;
        log.note_read(inner.address(), seen);
        Ok(value)
    }

    /// Under the lock each variable is unlocked, but a registration that ends may change its word.
    fn commit(guard: &mut Self::Attempt, session: &mut Session) -> Result<HasWaiters, Conflict> {
        let newest = lock_all(&mut session.log)?;
        if testing::is_shaken() {
            unlock(&session.log.writes);
            return Err(Conflict);
        }
        let waiters = publish(session, newest + 1);
        *guard = None;
        Ok(waiters)
    }

    fn announce_waiter(inner: &Inner, seen: u64) -> bool {
        announce_by_version(inner, seen)
    }
}
