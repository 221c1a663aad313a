//! Time for threads: sleeping, time-outs, and regular beats.
//!
//! All of it is exact to a [tick](crate::wheel::Tick::RESOLUTION) of 1 ms. Nothing fires early. A
//! timer fires late only by up to one tick and by the other work that the event loop has to do
//! first.

use selvedge_core::{SleepUntil, Time};
use std::fmt;
use std::future::{Future, poll_fn};
use std::io;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Waits until at least `duration` has passed.
///
/// # Paper
/// The timer of [LZ07 §4.2]'s event sources.
pub fn sleep(duration: Duration) -> SleepUntil {
    crate::reactor::fallback::install();
    selvedge_core::sleep(duration)
}

/// Waits until a point in time.
pub fn sleep_until(until: Time) -> SleepUntil {
    crate::reactor::fallback::install();
    selvedge_core::sleep_until(until)
}

/// Runs a future for at most `limit`, from the moment when the future first waits. After that it
/// drops the future, which cancels the future's work.
///
/// A future that never waits costs only its own poll: no clock is read and no timer is set. For
/// single reads and writes a [deadline](crate::NonBlocking::set_read_deadline) of the descriptor is
/// cheaper than a time-out, because it sets no timer even when they wait.
///
/// # Errors
/// [`Elapsed`] when the time is over before the future is ready.
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

/// Runs a future until a point in time at most, and then drops it. Otherwise like [`timeout`]: a
/// future that is ready is not too late.
///
/// # Errors
/// [`Elapsed`] when the time is over before the future is ready.
pub async fn timeout_at<F: Future>(until: Time, future: F) -> Result<F::Output, Elapsed> {
    let (mut future, mut alarm) = (pin!(future), pin!(sleep_until(until)));
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Ok(output)),
        Poll::Pending => alarm.as_mut().poll(cx).map(|()| Err(Elapsed(()))),
    })
    .await
}

/// The error that the time given to [`timeout`] is over.
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

/// A regular beat. The first beat is `period` from now.
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

/// A regular beat. The first beat is at `start`.
///
/// # Panics
/// If the period is zero.
pub fn interval_at(start: Time, period: Duration) -> Interval {
    assert!(!period.is_zero(), "an interval of no time at all");
    Interval { next: start, period, missed: Missed::Skip }
}

/// The treatment of beats that were missed, because the thread did not wait for them in time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Missed {
    /// Missed beats are left out, except for the last. The beats after it stay in step.
    #[default]
    Skip,
    /// Missed beats are delivered at once, one after the other.
    Burst,
    /// The rhythm starts anew: the next beat is a whole period after the late beat.
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
    /// Sets the treatment of missed beats.
    pub fn missed(mut self, missed: Missed) -> Interval {
        self.missed = missed;
        self
    }

    /// Waits for the next beat and returns the time at which it was due.
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
