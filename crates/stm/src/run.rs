//! Running a transaction until it commits: [`atomically`] and the like.

use crate::attempt::Attempted;
use crate::body::attempt;
use crate::engine::Engine;
use crate::primitives::{PATIENCE, give_way, relax};
use crate::registration::{Registration, WaitsForWrite};
use crate::stop::{Abort, Tried};
use crate::transaction::Tx;
use crate::turn::CommitTurn;
use selvedge_core::internal::is_indivisible;
use selvedge_core::{YieldNow, budget, yield_now};
use selvedge_sync::wait_blocking;
use std::convert::Infallible;
use std::future::Future;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::panic::Location;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

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
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[doc(alias = "atomic")]
#[track_caller]
pub fn atomically<R>(body: impl FnMut(&Tx) -> Tried<R>) -> impl Future<Output = R> {
    until_committed(body, Location::caller())
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
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[track_caller]
pub fn try_atomically<R, X>(
    body: impl FnMut(&Tx) -> Result<R, Abort<X>>,
) -> impl Future<Output = Result<R, X>> {
    until_ended(body, |result| result, Location::caller())
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
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[track_caller]
pub fn wait_for(
    predicate: impl Fn(&Tx) -> Tried<bool> + Clone + Send + Sync + 'static,
) -> impl Future<Output = ()> {
    atomically(move |tx| tx.wait_for(predicate.clone()))
}

/// The number of conflicts after which a thread yields before it tries again.
const SPINS: u32 = 8;

/// A transaction that runs until it commits.
pub(crate) fn until_committed<E: Engine, R>(
    mut body: impl FnMut(&Tx<E>) -> Tried<R>,
    place: &'static Location<'static>,
) -> impl Future<Output = R> {
    let body = move |tx: &Tx<E>| body(tx).map_err(Abort::<Infallible>::Stop);
    until_ended(body, |Ok(result)| result, place)
}

/// A transaction that runs until it commits or is given up; `output` makes its result out of that.
pub(crate) fn until_ended<E: Engine, R, X, O>(
    body: impl FnMut(&Tx<E>) -> Result<R, Abort<X>>,
    output: impl Fn(Result<R, X>) -> O,
    place: &'static Location<'static>,
) -> impl Future<Output = O> {
    let past = PastAttempts { wait: ManuallyDrop::new(None), yields: None, conflicts: 0, place };
    RunningTx { body, output, past, _engine: PhantomData }
}

/// The future of a transaction.
///
/// It is no `async` block, because a transaction that commits at its first attempt then has no
/// state to store but its fields.
struct RunningTx<E, R, X, B, O> {
    body: B,
    output: O,
    /// Pinned.
    past: PastAttempts,
    _engine: PhantomData<fn(E) -> Result<R, X>>,
}

/// What the attempts up to now have left. It lies in the memory of each thread that waits, so it is
/// small.
struct PastAttempts {
    /// Pinned. The wait of a transaction that has retried. Dropped by this type's `drop`, which has
    /// less to do when there is none.
    wait: ManuallyDrop<Option<WaitsForWrite>>,
    /// Lets other threads run after a conflict.
    yields: Option<YieldNow>,
    /// Those in a row; one more while there is a `wait`; `ENDED` after the end. So the number is 0
    /// if there is nothing to do before the next attempt.
    conflicts: u32,
    place: &'static Location<'static>,
}

/// In place of the number of conflicts, of a transaction that has ended.
const ENDED: u32 = u32::MAX;

impl PastAttempts {
    #[cold]
    #[inline(never)]
    fn retry(&mut self, registration: Registration) {
        self.conflicts = 1;
        *self.wait = Some(registration.woken(self.place));
    }

    /// Spins, or yields after several conflicts in a row.
    #[cold]
    #[inline(never)]
    fn meet_conflict(&mut self) {
        match self.conflicts {
            few @ ..SPINS => (0..1 << few).for_each(|_| std::hint::spin_loop()),
            _ => self.yields = Some(yield_now()),
        }
        self.conflicts += 1;
    }

    /// Waits or yields as the last attempt has left it to do; then the turn, if this transaction is
    /// to have it.
    ///
    /// # Safety
    /// The value is pinned.
    ///
    /// # Panics
    /// After the end.
    #[cold]
    #[inline(never)]
    unsafe fn before_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Box<CommitTurn>>> {
        assert!(self.conflicts != ENDED, "a transaction that has ended was polled again");
        if let Some(wait) = &mut *self.wait {
            // SAFETY: the caller's contract. `wait` is dropped in its place, here or by `drop`.
            ready!(unsafe { Pin::new_unchecked(wait) }.poll(cx, self.place));
            *self.wait = None;
            self.conflicts = 0;
        }
        loop {
            if let Some(yields) = &mut self.yields {
                ready!(Pin::new(yields).poll(cx));
                self.yields = None;
            }
            if self.conflicts < PATIENCE {
                return Poll::Ready(None);
            }
            if let Some(turn) = CommitTurn::take() {
                return Poll::Ready(Some(turn));
            }
            relax();
            self.yields = Some(yield_now());
        }
    }
}

impl Drop for PastAttempts {
    #[inline(always)]
    fn drop(&mut self) {
        if self.wait.is_some() {
            give_up(&mut self.wait);
        }
    }
}

/// Drops a wait in its place.
#[cold]
#[inline(never)]
fn give_up(wait: &mut Option<WaitsForWrite>) {
    *wait = None;
}

impl<E, R, X, T, B, O> Future for RunningTx<E, R, X, B, O>
where
    E: Engine,
    B: FnMut(&Tx<E>) -> Result<R, Abort<X>>,
    O: Fn(Result<R, X>) -> T,
{
    type Output = T;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // SAFETY: `past` is not moved. The other fields are not pinned.
        let this = unsafe { self.get_unchecked_mut() };
        loop {
            let turn = match this.past.conflicts {
                0 => None,
                // SAFETY: it is pinned with the future.
                _ => ready!(unsafe { this.past.before_next(cx) }),
            };
            ready!(budget::spend(cx, 1));
            refuse_within_body(this.past.place);
            match attempt(&mut this.body, turn) {
                Attempted::Committed(result) => {
                    this.past.conflicts = ENDED;
                    return Poll::Ready((this.output)(Ok(result)));
                }
                Attempted::Aborted(error) => {
                    this.past.conflicts = ENDED;
                    return Poll::Ready((this.output)(Err(error)));
                }
                Attempted::Retry(registration) => this.past.retry(registration),
                Attempted::Conflict => this.past.meet_conflict(),
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
        let turn = if conflicts < PATIENCE { None } else { CommitTurn::take() };
        if turn.is_some() || conflicts < PATIENCE {
            match attempt(&mut body, turn) {
                Attempted::Committed(result) => return result,
                Attempted::Aborted(never) => match never {},
                Attempted::Retry(_) => panic!("a body that must not retry has retried"),
                Attempted::Conflict => conflicts += 1,
            }
        }
        give_way();
    }
}

/// # Panics
/// Within the body of a transaction.
#[inline(always)]
fn refuse_within_body(place: &'static Location<'static>) {
    if is_indivisible() {
        refuse(place);
    }
}

#[cold]
#[inline(never)]
fn refuse(place: &'static Location<'static>) -> ! {
    panic!(
        "the transaction of {place} was begun within the body of another one: it would take effect without that one. \
         Tx::atomically makes it a part of the other"
    );
}
