//! Running a transaction until it commits: [`atomically`] and the like.

use crate::engine::{Engine, Versioned};
use crate::primitives::{PATIENCE, give_way, relax};
use crate::transaction::{Abort, Attempted, Tried, Tx, attempt};
use crate::turn::CommitTurn;
use selvedge_core::{budget, is_indivisible, yield_now};
use selvedge_sync::wait_blocking;
use std::convert::Infallible;
use std::panic::Location;

/// Runs a transaction: the body has its effect as a whole and at one moment, or none.
///
/// The body runs again when another transaction was in its way, and when it has
/// [retried](Tx::retry) and a variable that it has read was written.
///
/// Within the body of another transaction, [`Tx::atomically`] is to be called instead.
///
/// # Cancellation
/// The future may be dropped while it waits: the transaction then has had no effect, and no
/// variable keeps anything of it.
///
/// # Panics
/// If the body panics, or retries without having read a variable; and if the future is polled
/// within the body of another transaction.
///
/// # Paper
/// [HMP05 §5]: `atomic`; [LZ07 §4.3]: transactions of threads. There a transaction cannot block,
/// because it would block its worker; here it blocks its thread alone.
///
/// # Complexity
/// As the operations of the body, and at commit one comparison for each read and two stores for
/// each write. Nothing is allocated for words once the log of the OS thread has grown, unless the
/// transaction waits. After eight conflicts in a row, the thread yields before each further
/// attempt. After 32 it takes a **turn**, which one transaction of the process has at a time: it
/// locks each variable before it reads it, and meets no further conflict. So a transaction that
/// does not retry runs its body 33 times at most. While a turn lasts, others that need one of its
/// variables wait for it.
///
/// # Examples
/// ```
/// use selvedge::stm::{TWord, atomically};
///
/// selvedge::run(async {
///     let (from, to) = (TWord::new(10_u32), TWord::new(0_u32));
///     atomically(|tx| {
///         from.modify(tx, |sum| sum - 3)?;
///         to.modify(tx, |sum| sum + 3)
///     })
///     .await;
///     assert_eq!((from.read_now(), to.read_now()), (7, 3));
/// })?;
/// # Ok::<(), selvedge::Failure>(())
/// ```
#[doc(alias = "atomic")]
#[track_caller]
pub fn atomically<R>(body: impl FnMut(&Tx) -> Tried<R>) -> impl Future<Output = R> {
    atomically_with::<Versioned, R>(body)
}

/// As [`atomically`], with an engine: `atomically_with::<GlobalLock, _>(body)`.
///
/// # Panics
/// As [`atomically`].
#[track_caller]
pub fn atomically_with<E: Engine, R>(mut body: impl FnMut(&Tx<E>) -> Tried<R>) -> impl Future<Output = R> {
    let place = Location::caller();
    async move {
        let body = move |tx: &Tx<E>| body(tx).map_err(Abort::<Infallible>::Stop);
        match run(body, place).await {
            Ok(result) => result,
        }
    }
}

/// Runs a transaction that may be given up with an error: it then has no effect.
///
/// # Errors
/// The error of [`Abort::Error`] with which the body ended.
///
/// # Panics
/// As [`atomically`].
///
/// # Examples
/// ```
/// use selvedge::stm::{Abort, TWord, try_atomically};
///
/// selvedge::run(async {
///     let account = TWord::new(2_u32);
///     let withdrawn = try_atomically(|tx| {
///         let sum = account.read(tx)?;
///         account.write(tx, sum.checked_sub(3).ok_or(Abort::Error("not so much"))?);
///         Ok(())
///     });
///     assert_eq!(withdrawn.await, Err("not so much"));
/// })?;
/// # Ok::<(), selvedge::Failure>(())
/// ```
#[track_caller]
pub fn try_atomically<R, X>(
    body: impl FnMut(&Tx) -> Result<R, Abort<X>>,
) -> impl Future<Output = Result<R, X>> {
    run(body, Location::caller())
}

/// As [`try_atomically`], with an engine: `try_atomically_with::<GlobalLock, _, _>(body)`.
///
/// # Errors
/// As [`try_atomically`].
///
/// # Panics
/// As [`atomically`].
#[track_caller]
pub fn try_atomically_with<E: Engine, R, X>(
    body: impl FnMut(&Tx<E>) -> Result<R, Abort<X>>,
) -> impl Future<Output = Result<R, X>> {
    run(body, Location::caller())
}

/// Runs a transaction on an ordinary OS thread, which sleeps while the transaction waits. For the
/// other kinds of transactions there is [`wait_blocking`].
///
/// # Panics
/// As [`atomically`]; and when it is called within a step of a Selvedge thread.
///
/// # Examples
/// ```
/// use selvedge::stm::{TWord, atomically_blocking};
///
/// let ready = TWord::new(false);
/// let other = ready.clone();
/// let waits = std::thread::spawn(move || {
///     atomically_blocking(|tx| {
///         let is_ready = other.read(tx)?;
///         tx.check(is_ready)
///     })
/// });
/// atomically_blocking(|tx| Ok(ready.write(tx, true)));
/// waits.join().unwrap();
/// ```
#[track_caller]
pub fn atomically_blocking<R>(body: impl FnMut(&Tx) -> Tried<R>) -> R {
    wait_blocking(atomically(body))
}

/// Waits until a predicate over variables holds. No write of the variables wakes the thread in
/// vain: see [`Tx::wait_for`], which is this within a transaction.
///
/// The predicate held at one moment before the future is ready. A thread that relies on it, because
/// it takes what it has waited for, calls [`Tx::wait_for`] in the transaction that takes it.
///
/// # Cancellation
/// As [`atomically`].
///
/// # Panics
/// If the predicate panics, or does not hold and has read no variable; and as [`atomically`].
///
/// # Complexity
/// As [`Tx::wait_for`]. The predicate is cloned once for each time that the thread waits.
///
/// # Examples
/// ```
/// use selvedge::stm::{TWord, atomically, wait_for};
///
/// selvedge::run(async {
///     let (done, all) = (TWord::new(0_u32), TWord::new(3_u32));
///     let counter = done.clone();
///     let waits = selvedge::spawn(wait_for(move |tx| Ok(done.read(tx)? >= all.read(tx)?)));
///     for _ in 0..3 {
///         atomically(|tx| counter.modify(tx, |n| n + 1)).await;
///     }
///     waits.await.unwrap();
/// })?;
/// # Ok::<(), selvedge::Failure>(())
/// ```
#[track_caller]
pub fn wait_for(
    predicate: impl Fn(&Tx) -> Tried<bool> + Clone + Send + Sync + 'static,
) -> impl Future<Output = ()> {
    atomically(move |tx| tx.wait_for(predicate.clone()))
}

/// The number of conflicts after which a thread yields before it tries again.
const SPINS: u32 = 8;

async fn run<E: Engine, R, X>(
    mut body: impl FnMut(&Tx<E>) -> Result<R, Abort<X>>,
    place: &'static Location<'static>,
) -> Result<R, X> {
    let mut conflicts = 0;
    loop {
        budget::pay(1).await;
        refuse_within_body(place);
        let outcome = match conflicts < PATIENCE {
            true => Some(attempt(&mut body, None)),
            false => attempt_in_turn(&mut body),
        };
        match outcome {
            Some(Attempted::Committed(result)) => return Ok(result),
            Some(Attempted::Aborted(error)) => return Err(error),
            Some(Attempted::Retry(registration)) => {
                registration.woken(place).await;
                conflicts = 0;
            }
            Some(Attempted::Conflict) if conflicts < SPINS => {
                (0..1 << conflicts).for_each(|_| std::hint::spin_loop());
                conflicts += 1;
            }
            Some(Attempted::Conflict) => {
                conflicts += 1;
                yield_now().await;
            }
            None => {
                relax();
                yield_now().await;
            }
        }
    }
}

/// Runs a body that does not retry, without a future: it loops while other transactions are in its
/// way.
///
/// # Panics
/// Within the body of a transaction, and if this body retries.
#[track_caller]
pub(crate) fn run_now<E: Engine, R>(mut body: impl FnMut(&Tx<E>) -> Tried<R>) -> R {
    refuse_within_body(Location::caller());
    let mut body = move |tx: &Tx<E>| body(tx).map_err(Abort::<Infallible>::Stop);
    let mut conflicts = 0;
    loop {
        let outcome = match conflicts < PATIENCE {
            true => Some(attempt(&mut body, None)),
            false => attempt_in_turn(&mut body),
        };
        match outcome {
            Some(Attempted::Committed(result)) => return result,
            Some(Attempted::Aborted(never)) => match never {},
            Some(Attempted::Retry(_)) => panic!("a body that must not retry has retried"),
            Some(Attempted::Conflict) => conflicts += 1,
            None => {}
        }
        give_way();
    }
}

/// `None` if another transaction has the turn. The turn does not outlive the call, so a thread has
/// none while it waits.
#[cold]
fn attempt_in_turn<E: Engine, R, X>(
    body: &mut impl FnMut(&Tx<E>) -> Result<R, Abort<X>>,
) -> Option<Attempted<R, X>> {
    CommitTurn::take().map(|turn| attempt(body, Some(turn)))
}

/// # Panics
/// Within the body of a transaction.
#[inline(always)]
fn refuse_within_body(place: &'static Location<'static>) {
    assert!(
        !is_indivisible(),
        "the transaction of {place} was begun within the body of another one: it would take effect without that one. \
         Tx::atomically makes it a part of the other"
    );
}
