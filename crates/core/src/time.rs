//! The clock of the system calls: [`Time`], in nanoseconds, [`VirtualClock`], and [`Deadline`], a
//! coarse form for time-outs.
//!
//! All code that waits for time or sets a deadline asks here; `std::time::Instant` would not see
//! the virtual clock, which `crates/sim` installs. `Deadline` is for what exists a million times:
//! an event loop's entry for a waiting thread (`io`'s `reactor/readiness.rs`).

use std::cell::Cell;
use std::fmt;
use std::marker::PhantomData;
use std::ops::Add;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// A point on the monotonic clock: nanoseconds since the process first asked for the time.
///
/// # Examples
/// ```
/// use selvedge::Time;
/// use std::time::Duration;
///
/// let before = Time::now();
/// assert!(before + Duration::from_millis(5) > before);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// Reads the clock (20-30 ns). If this OS thread has a [virtual](VirtualClock) clock, it reads
    /// that.
    pub fn now() -> Time {
        if let Some(now) = VirtualClock::now() {
            return now;
        }
        static START: OnceLock<Instant> = OnceLock::new();
        Time(START.get_or_init(Instant::now).elapsed().as_nanos() as u64)
    }

    /// The time of day, for people. It may jump. If this OS thread has a [virtual](VirtualClock)
    /// clock, the time of day follows it, from the beginning of the year 2000.
    pub fn of_day() -> SystemTime {
        match VirtualClock::now() {
            Some(now) => UNIX_EPOCH + YEAR_2000 + Duration::from_nanos(now.0),
            None => SystemTime::now(),
        }
    }

    /// The point `nanoseconds` after the clock's origin.
    pub const fn from_nanos(nanoseconds: u64) -> Time {
        Time(nanoseconds)
    }

    /// Nanoseconds since the clock's origin.
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// The time from `earlier` to this point. Zero if this point is before `earlier`.
    pub const fn since(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Time {
    type Output = Time;

    /// Saturates at the clock's end, 584 years after its origin.
    fn add(self, d: Duration) -> Time {
        Time(self.0.saturating_add(u64::try_from(d.as_nanos()).unwrap_or(u64::MAX)))
    }
}

/// The time from 1970 to the first second of the year 2000.
const YEAR_2000: Duration = Duration::from_secs(946_684_800);

thread_local! {
    /// The virtual time of this OS thread; `REAL` if it has the real clock.
    static VIRTUAL: Cell<u64> = const { Cell::new(REAL) };
}

const REAL: u64 = u64::MAX;

/// A clock that stands still until it is told to move on. While it lives, [`Time::now`] and all
/// waits for time on this OS thread use it. Simulations set it.
///
/// # Examples
/// ```
/// use selvedge::{Time, VirtualClock};
/// use std::time::Duration;
///
/// let clock = VirtualClock::install();
/// let before = Time::now();
/// VirtualClock::advance(before + Duration::from_secs(3600));
/// assert_eq!(Time::now().since(before), Duration::from_secs(3600));
/// drop(clock);
/// ```
#[derive(Debug)]
#[must_use = "dropping it brings the real clock back"]
pub struct VirtualClock {
    /// Not `Send`, because it must be dropped on the OS thread where it was installed.
    _local: PhantomData<*const ()>,
}

impl VirtualClock {
    /// Makes the clock of this OS thread a virtual one, which begins at its first second.
    ///
    /// # Panics
    /// If this OS thread has a virtual clock already.
    pub fn install() -> VirtualClock {
        assert!(VirtualClock::now().is_none(), "this OS thread has a virtual clock already");
        VIRTUAL.set(Duration::from_secs(1).as_nanos() as u64);
        VirtualClock { _local: PhantomData }
    }

    /// The time of this OS thread's virtual clock. `None` if it has the real one.
    #[inline]
    pub fn now() -> Option<Time> {
        let now = VIRTUAL.get();
        (now != REAL).then_some(Time(now))
    }

    /// Moves the virtual clock of this OS thread on to `until`. It never goes back.
    ///
    /// # Panics
    /// If this OS thread has no virtual clock.
    #[inline]
    pub fn advance(until: Time) {
        let now = VirtualClock::now().expect("a virtual clock is installed on this OS thread");
        VIRTUAL.set(until.max(now).0.min(REAL - 1));
    }
}

impl Drop for VirtualClock {
    fn drop(&mut self) {
        VIRTUAL.set(REAL);
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", Duration::from_nanos(self.0))
    }
}

/// A coarse time-out in 4 bytes: whole milliseconds on the clock of [`Time`], modulo 2³².
///
/// It tells before from after within 24 days. A time-out of more than 12 days is cut down to 12
/// days. Except for that, a deadline never expires before the time it was made for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Deadline(u32);

impl Deadline {
    /// No time-out.
    pub const NEVER: Deadline = Deadline(0);

    const FURTHEST_MS: u64 = (i32::MAX / 2) as u64;

    /// The deadline `after` a point in time.
    pub fn after(now: Time, after: Duration) -> Deadline {
        let now_ms = now.as_nanos() / 1_000_000;
        let at = (now + after).as_nanos().div_ceil(1_000_000).min(now_ms + Deadline::FURTHEST_MS);
        Deadline((at as u32).max(1))
    }

    /// Whether the deadline is `NEVER`.
    pub const fn is_never(self) -> bool {
        self.0 == 0
    }

    /// Whether it has passed at `now`.
    pub fn expired(self, now: Time) -> bool {
        !self.is_never() && self.left_ms(now) <= 0
    }

    /// The point in time it stands for, as seen from a `now` at most 24 days away. `None` for
    /// `NEVER`.
    pub fn time(self, now: Time) -> Option<Time> {
        let now_ms = (now.as_nanos() / 1_000_000) as i64;
        (!self.is_never())
            .then(|| Time::from_nanos((now_ms + self.left_ms(now) as i64).max(0) as u64 * 1_000_000))
    }

    fn left_ms(self, now: Time) -> i32 {
        self.0.wrapping_sub((now.as_nanos() / 1_000_000) as u32) as i32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_virtual_clock_never_goes_back_and_leaves_the_real_one_as_it_was() {
        let real = Time::now();
        let clock = VirtualClock::install();
        let start = Time::now();
        VirtualClock::advance(start + Duration::from_secs(5));
        VirtualClock::advance(start);
        assert_eq!(Time::now(), start + Duration::from_secs(5));
        assert_eq!(Time::of_day(), Time::of_day());
        assert!(std::thread::spawn(Time::now).join().unwrap() >= real, "it is this OS thread's alone");
        drop(clock);
        assert!(Time::now() >= real);
    }

    #[test]
    fn deadlines_order_across_the_wrap() {
        for start_ms in [0u64, 5, u32::MAX as u64 - 3, (1 << 40) + 17] {
            let now = Time::from_nanos(start_ms * 1_000_000 + 1);
            let d = Deadline::after(now, Duration::from_millis(10));
            assert!(!d.expired(now));
            assert!(!d.expired(now + Duration::from_millis(9)));
            assert!(d.expired(now + Duration::from_millis(12)));
            let at = d.time(now).unwrap();
            assert!(at >= now + Duration::from_millis(10) && at <= now + Duration::from_millis(12));
        }
        assert!(!Deadline::NEVER.expired(Time::from_nanos(u64::MAX / 2)));
    }
}
