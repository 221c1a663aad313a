//! [`WatchPatience`]: how long a thread looks for something before it parks.
//!
//! A park and its wake-up by the kernel take longer than most messages, so a thread that waits for
//! one looks for it first. The time for which it does so grows while that pays, and shrinks while
//! it does not. `processes/rings.rs` and `libmpi/shared_driver.rs` look by it.

use std::hint;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// What the threads of one rank have learnt.
#[derive(Debug)]
pub(crate) struct WatchPatience {
    /// How long a thread looks, in microseconds.
    limit: AtomicU32,
    /// Counts the waits.
    waits: AtomicU32,
    /// The looks after which a thread looks at the clock, and lets others have its CPU.
    looks: u32,
}

/// The longest time, in microseconds: two wake-ups by the kernel, because the other rank may have
/// parked too.
const LIMIT_MAX: u32 = 200;
const LIMIT_MIN: u32 = 10;
/// The first looks of a wait are more than the later ones by this factor.
const FIRST: u32 = 4;
/// One in this number of waits looks for the longest time, or two ranks that have parked would park
/// for ever.
const TRIES: u32 = 8;

impl WatchPatience {
    /// The thread is to let others have its CPU after this number of looks.
    pub(crate) fn new(looks: u32) -> WatchPatience {
        WatchPatience { limit: AtomicU32::new(LIMIT_MAX), waits: AtomicU32::new(0), looks }
    }

    /// Looks until `until` is true, or the time is over. Whether it was true. `look` says whether
    /// it has found anything. `until` is asked then, and now and then in any case, because another
    /// OS thread may have found something. It looks for `limit`, if there is one, and learns
    /// nothing from it.
    pub(crate) fn look(
        &self,
        limit: Option<Duration>,
        look: impl FnMut() -> bool,
        until: &mut dyn FnMut() -> bool,
    ) -> bool {
        let has_come = self.look_for(limit, look, until);
        if limit.is_none() {
            let limit = self.limit.load(Ordering::Relaxed);
            let next = if has_come { limit * 2 } else { limit / 2 }.clamp(LIMIT_MIN, LIMIT_MAX);
            if next != limit {
                self.limit.store(next, Ordering::Relaxed);
            }
        }
        has_come
    }

    fn look_for(
        &self,
        limit: Option<Duration>,
        mut look: impl FnMut() -> bool,
        until: &mut dyn FnMut() -> bool,
    ) -> bool {
        let mut end = None;
        // What comes at all mostly comes soon, and letting others have the CPU takes long.
        let mut looks = FIRST * self.looks;
        loop {
            let mut finds = |_| {
                hint::spin_loop();
                look() && until()
            };
            if (0..looks).any(&mut finds) || until() {
                return true;
            }
            let now = Instant::now();
            if now >= *end.get_or_insert_with(|| now + limit.unwrap_or_else(|| self.next_limit())) {
                return false;
            }
            // The other process may need this CPU.
            thread::yield_now();
            looks = self.looks;
        }
    }

    fn next_limit(&self) -> Duration {
        let is_try = self.waits.fetch_add(1, Ordering::Relaxed).is_multiple_of(TRIES);
        let limit = if is_try { LIMIT_MAX } else { self.limit.load(Ordering::Relaxed) };
        Duration::from_micros(limit.into())
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn a_thread_looks_until_it_finds_or_its_patience_is_over() {
        let patience = WatchPatience::new(1);
        let (mut looks, mut found) = (0, 0);
        let look = || {
            looks += 1;
            looks % 2 == 0
        };
        let mut until = || {
            found += 1;
            found == 3
        };
        assert!(patience.look(None, look, &mut until));
        // After the second look, after the fourth, and after the first four together.
        assert_eq!(looks, 4);
        assert!(!patience.look(None, || true, &mut || false));
    }

    #[test]
    fn what_another_has_found_is_noticed() {
        assert!(WatchPatience::new(1).look(None, || false, &mut || true));
    }

    #[test]
    fn it_is_patient_for_as_long_as_that_pays() {
        let patience = WatchPatience::new(1);
        for _ in 0..10 {
            assert!(!patience.look(None, || true, &mut || false));
        }
        assert_eq!(patience.limit.load(Ordering::Relaxed), LIMIT_MIN);
        for _ in 0..10 {
            assert!(patience.look(None, || true, &mut || true));
        }
        assert_eq!(patience.limit.load(Ordering::Relaxed), LIMIT_MAX);
        let (limit, before) = (Duration::from_millis(3), Instant::now());
        assert!(!patience.look(Some(limit), || true, &mut || false));
        assert!(before.elapsed() >= limit);
        assert_eq!(patience.limit.load(Ordering::Relaxed), LIMIT_MAX);
    }
}
