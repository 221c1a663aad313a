//! Time as threads see it: sleeping, giving up, and doing something regularly.
//!
//! All of it is exact to a [tick](crate::wheel::Tick::RESOLUTION) of 1 ms, never early, and late only by that and by what
//! else the event loop has to do.

use selvedge_core::{SleepUntil, Time};
use std::fmt;
use std::future::Future;
use std::io;
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

/// Lets at least `duration` pass.
///
/// # Paper
/// The timer of [LZ07 §4.2]'s event sources.
pub fn sleep(duration: Duration) -> SleepUntil {
    crate::global::install();
    selvedge_core::sleep(duration)
}

/// Waits for a point in time.
pub fn sleep_until(until: Time) -> SleepUntil {
    crate::global::install();
    selvedge_core::sleep_until(until)
}

/// Runs a future for at most `limit`; then drops it, which cancels what it does.
///
/// A time-out of single reads and writes is cheaper as a [deadline](crate::NonBlocking::set_read_deadline) of the
/// descriptor: no timer is set for it.
///
/// # Errors
/// [`Elapsed`] when the time is up first.
///
/// # Examples
/// ```
/// # futures::executor::block_on(async {
/// use selvedge_io::time::timeout;
/// use std::time::Duration;
///
/// let answer = timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
/// assert!(answer.is_err());
/// # })
/// ```
pub async fn timeout<F: Future>(limit: Duration, future: F) -> Result<F::Output, Elapsed> {
    let until = Time::now() + limit;
    let mut future = pin!(future);
    let mut alarm = pin!(sleep_until(until));
    let mut asked_by: Option<Waker> = None;
    std::future::poll_fn(|cx: &mut Context<'_>| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        // The alarm is a request to the event loop: it is asked once for each task that comes here, not for each poll.
        let waker = cx.waker().clone();
        if asked_by.as_ref().is_some_and(|before| before.will_wake(&waker)) && Time::now() < until {
            return Poll::Pending;
        }
        asked_by = Some(waker);
        alarm.as_mut().poll(cx).map(|()| Err(Elapsed(())))
    })
    .await
}

/// The time given to [`timeout`] is up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Elapsed(());

impl fmt::Display for Elapsed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the time is up")
    }
}

impl std::error::Error for Elapsed {}

impl From<Elapsed> for io::Error {
    fn from(elapsed: Elapsed) -> io::Error {
        io::Error::new(io::ErrorKind::TimedOut, elapsed)
    }
}

/// A regular beat, the first one `period` from now.
///
/// # Panics
/// If the period is zero.
///
/// # Examples
/// ```
/// # futures::executor::block_on(async {
/// use std::time::Duration;
///
/// let mut interval = selvedge_io::time::interval(Duration::from_millis(2));
/// let first = interval.tick().await;
/// let second = interval.tick().await;
/// assert!(second.since(first) >= Duration::from_millis(2));
/// # })
/// ```
pub fn interval(period: Duration) -> Interval {
    assert!(!period.is_zero(), "an interval of no time at all");
    Interval { next: Time::now() + period, period }
}

/// A regular beat, created by [`interval`].
#[derive(Clone, Debug)]
pub struct Interval {
    next: Time,
    period: Duration,
}

impl Interval {
    /// Waits for the next beat and returns the time it was due. Beats that nobody waited for in time are left out; the
    /// others stay in step.
    pub async fn tick(&mut self) -> Time {
        let now = Time::now();
        if now > self.next {
            let missed = now.since(self.next).as_nanos() / self.period.as_nanos();
            self.next = self.next + self.period.saturating_mul(missed.try_into().unwrap_or(u32::MAX));
        }
        let due = self.next;
        sleep_until(due).await;
        self.next = due + self.period;
        due
    }
}
