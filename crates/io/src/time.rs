//! Time as threads see it: sleeping, giving up, and doing something regularly.
//!
//! All of it is exact to a [tick](crate::wheel::Tick::RESOLUTION) of 1 ms, never early, and late only by that and by what
//! else the event loop has to do.

use selvedge_core::{SleepUntil, Time};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
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

/// Runs a future for at most `limit`, from when it first has to wait; then drops it, which cancels what it does.
///
/// A future that never has to wait costs nothing but its own poll: no clock is read and no timer is set. A time-out of single reads
/// and writes is cheaper still as a [deadline](crate::NonBlocking::set_read_deadline) of the descriptor, which sets no timer even
/// when they wait.
///
/// # Errors
/// [`Elapsed`] when the time is up first.
///
/// # Examples
/// ```
/// # futures::executor::block_on(async {
/// use selvedge::time::timeout;
/// use std::time::Duration;
///
/// let answer = timeout(Duration::from_millis(5), std::future::pending::<()>()).await;
/// assert!(answer.is_err());
/// # })
/// ```
pub async fn timeout<F: Future>(limit: Duration, future: F) -> Result<F::Output, Elapsed> {
    let (mut future, mut alarm) = (pin!(future), pin!(None));
    poll_fn(|cx| {
        if let Poll::Ready(output) = future.as_mut().poll(cx) {
            return Poll::Ready(Ok(output));
        }
        if alarm.is_none() {
            alarm.set(Some(sleep_until(Time::now() + limit)));
        }
        let alarm = alarm.as_mut().as_pin_mut().expect("just set");
        alarm.poll(cx).map(|()| Err(Elapsed(())))
    })
    .await
}

/// Runs a future until a point in time at most; then drops it. As [`timeout`] otherwise: a future that is ready is not too late.
///
/// # Errors
/// [`Elapsed`] when the time is up first.
pub async fn timeout_at<F: Future>(until: Time, future: F) -> Result<F::Output, Elapsed> {
    let (mut future, mut alarm) = (pin!(future), pin!(sleep_until(until)));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => alarm.as_mut().poll(cx).map(|()| Err(Elapsed(()))),
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
/// let mut interval = selvedge::time::interval(Duration::from_millis(2));
/// let first = interval.tick().await;
/// let second = interval.tick().await;
/// assert!(second.since(first) >= Duration::from_millis(2));
/// # })
/// ```
pub fn interval(period: Duration) -> Interval {
    interval_at(Time::now() + period, period)
}

/// A regular beat, the first one at `start`.
///
/// # Panics
/// If the period is zero.
pub fn interval_at(start: Time, period: Duration) -> Interval {
    assert!(!period.is_zero(), "an interval of no time at all");
    Interval { next: start, period, missed: Missed::Skip }
}

/// What becomes of beats that nobody waited for in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missed {
    /// They are left out, but for the last; the others stay in step.
    #[default]
    Skip,
    /// They are made up for, one at once after the other.
    Burst,
    /// The beat starts anew: the next is a whole period after the late one.
    Delay,
}

/// A regular beat, created by [`interval`].
#[derive(Clone, Debug)]
pub struct Interval {
    next: Time,
    period: Duration,
    missed: Missed,
}

impl Interval {
    /// Sets what becomes of beats that were missed.
    pub fn missed(mut self, missed: Missed) -> Interval {
        self.missed = missed;
        self
    }

    /// Waits for the next beat and returns the time it was due.
    ///
    /// Giving up loses no beat.
    pub async fn tick(&mut self) -> Time {
        let now = Time::now();
        let late = now.since(self.next);
        if self.missed == Missed::Skip && late >= self.period {
            let missed = late.as_nanos() / self.period.as_nanos();
            self.next = self.next + self.period.saturating_mul(missed.try_into().unwrap_or(u32::MAX));
        }
        let due = self.next;
        sleep_until(due).await;
        let from = if self.missed == Missed::Delay { due.max(Time::now()) } else { due };
        self.next = from + self.period;
        due
    }
}
