//! Software transactional memory: several shared variables, read and written at one moment.
//!
//! A transaction is a closure that reads and writes variables. [`atomically`] runs it, with its
//! effect as a whole or not at all. A transaction that cannot go on [retries](Tx::retry): its
//! thread is parked until another transaction writes a variable that it has read.
//!
//! | | |
//! |---|---|
//! | variables, transactions, data structures | [`selvedge_stm`], which this module is made of |
//! | a transaction with a time limit | [`atomically_until`] |
//! | a variable that tells that a time is over | [`register_delay`] |
//!
//! The last two rows need an event loop, which `selvedge-stm` knows nothing of. So they are here.

use crate::time::{Elapsed, sleep, timeout_at};
use selvedge_core::{SleepUntil, Time};
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

#[doc(inline)]
pub use selvedge_stm::*;

/// Runs a transaction as [`atomically`] does, until a point in time at most.
///
/// The limit ends a transaction that waits, or that is in the way of others, and so has no effect.
/// A transaction that commits at its first attempt is not too late.
///
/// # Errors
/// [`Elapsed`] when the time is over before the transaction has committed.
///
/// # Panics
/// As [`atomically`].
///
/// # Complexity
/// As [`atomically`], and a timer if the transaction waits.
///
/// # Examples
/// ```
/// use selvedge::Time;
/// use selvedge::stm::{TMVar, atomically_until};
/// use std::time::Duration;
///
/// selvedge::run(async {
///     let mail = TMVar::<String>::empty();
///     let until = Time::now() + Duration::from_millis(5);
///     let letter = atomically_until(until, |tx| mail.take(tx)).await;
///     assert!(letter.is_err());
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[track_caller]
pub fn atomically_until<R>(
    until: Time,
    body: impl FnMut(&Tx) -> Tried<R>,
) -> impl Future<Output = Result<R, Elapsed>> {
    timeout_at(until, atomically(body))
}

/// A variable that is false, and becomes true when `delay` has passed. So a transaction waits for a
/// time and for other variables at once: with [`Tx::or_else`], or by a condition on both.
///
/// Within a Selvedge thread, the event loop of the worker that runs the thread keeps the timer.
/// Elsewhere, an event loop on an OS thread of its own does.
///
/// # Panics
/// Within a thread of a scheduler without an event loop, when the scheduler meets the timer.
///
/// # Complexity
/// Three allocations, and a timer that keeps them and the variable until the delay has passed, also
/// when all other handles are dropped. A limit for one transaction is better set by
/// [`atomically_until`], which takes its timer back.
///
/// # Examples
/// ```
/// use selvedge::stm::{TWord, atomically, register_delay};
/// use std::time::Duration;
///
/// selvedge::run(async {
///     let (ready, is_late) = (TWord::new(false), register_delay(Duration::from_millis(5)));
///     let in_time = atomically(|tx| match (ready.read(tx)?, is_late.read(tx)?) {
///         (true, _) => Ok(true),
///         (false, true) => Ok(false),
///         (false, false) => tx.retry(),
///     });
///     assert!(!in_time.await);
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[doc(alias = "registerDelay")]
pub fn register_delay(delay: Duration) -> TWord<bool> {
    let is_over = TWord::new(false);
    let timer = Arc::new(Timer { sleep: Mutex::new(Box::pin(sleep(delay))), is_over: is_over.clone() });
    timer.look();
    is_over
}

/// A sleep that sets a variable. The event loop has it as the waker of the sleep, and drops it when
/// it has woken it. So the timer lives as long as its sleep is asked for.
struct Timer {
    sleep: Mutex<Pin<Box<SleepUntil>>>,
    is_over: TWord<bool>,
}

impl Timer {
    /// Sets the variable if the time has come, else asks the event loop.
    fn look(self: Arc<Self>) {
        let waker = Waker::from(self.clone());
        let mut sleep = self.sleep.lock().unwrap_or_else(PoisonError::into_inner);
        if sleep.as_mut().poll(&mut Context::from_waker(&waker)) == Poll::Ready(()) {
            drop(sleep);
            self.is_over.write_now(true);
        }
    }
}

impl Wake for Timer {
    fn wake(self: Arc<Self>) {
        self.look();
    }
}
