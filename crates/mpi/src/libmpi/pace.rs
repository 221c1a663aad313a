//! [`Pace`]: how often the message loop looks at MPI.
//!
//! MPI has no descriptor that tells of a message, so the loop has to look. `message_loop.rs` asks
//! [`Pace`] after each look what to do before the next one:
//!
//! - While nothing is outstanding, it sleeps until a thread asks for something. MPI may still have
//!   to carry on what it has said is done, so the loop goes on looking for a moment before.
//! - After something has happened, it looks without a pause, and lets other OS threads run between
//!   two looks. It does so for a time that grows while that pays, and shrinks while it does not.
//! - Then it sleeps between two looks, for twice as long each time.
//! - While threads look by themselves, it takes naps of one length.

use std::time::{Duration, Instant};

/// What the loop does before its next look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopPause {
    /// It lets other OS threads run.
    Yield,
    /// It sleeps for this time, or until a thread asks for something.
    Nap(Duration),
    /// It sleeps until a thread asks for something.
    Rest,
}

/// The longest time without a pause after something has happened.
const EAGER_MAX: Duration = Duration::from_micros(200);
/// The shortest.
const EAGER_MIN: Duration = Duration::from_micros(10);
/// The shortest nap: the kernel needs as long to end one.
const NAP_MIN: Duration = Duration::from_micros(50);
/// The longest nap. A nap's end with a look costs some 35 µs, so a rank that waits takes less than
/// 1 % of a CPU.
const NAP_MAX: Duration = Duration::from_millis(5);
/// The nap while threads look by themselves. For so long a long message to a rank that computes may
/// wait.
const WATCHED_NAP: Duration = Duration::from_millis(2);
/// How long the loop goes on when nothing is outstanding.
const GRACE: Duration = Duration::from_millis(20);

/// What the loop knows of the last time.
#[derive(Debug)]
pub(super) struct Pace {
    /// When something has happened last.
    last: Instant,
    /// How long the loop looks without a pause from then on.
    eager: Duration,
    nap: Duration,
    /// Whether the time without a pause is over.
    is_over: bool,
}

impl Pace {
    /// A loop that begins now.
    pub(super) fn new(now: Instant) -> Pace {
        Pace { last: now, eager: EAGER_MAX, nap: NAP_MIN, is_over: false }
    }

    /// The pause after a look beside threads that look by themselves.
    pub(super) fn pause_beside_watchers(&mut self) -> LoopPause {
        self.is_over = true;
        LoopPause::Nap(WATCHED_NAP)
    }

    /// The pause after a look. `has_happened` says that the look has found something or a thread
    /// has asked for something, and `is_outstanding` that a call is not done.
    pub(super) fn pause(&mut self, has_happened: bool, is_outstanding: bool, now: Instant) -> LoopPause {
        if has_happened {
            if !self.is_over {
                self.eager = (self.eager * 2).min(EAGER_MAX);
            }
            (self.last, self.nap, self.is_over) = (now, NAP_MIN, false);
            return LoopPause::Yield;
        }
        let since = now.saturating_duration_since(self.last);
        if !is_outstanding && since >= GRACE {
            return LoopPause::Rest;
        }
        if since < self.eager && !self.is_over {
            return LoopPause::Yield;
        }
        if !self.is_over {
            self.is_over = true;
            self.eager = (self.eager / 2).max(EAGER_MIN);
        }
        let nap = self.nap;
        self.nap = (nap * 2).min(NAP_MAX);
        LoopPause::Nap(nap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_eager_then_naps_longer_and_longer_then_rests() {
        let start = Instant::now();
        let mut pace = Pace::new(start);
        let mut now = start;
        assert_eq!(pace.pause(true, true, now), LoopPause::Yield);
        now += EAGER_MAX / 2;
        assert_eq!(pace.pause(false, true, now), LoopPause::Yield);
        now += EAGER_MAX;
        let naps: Vec<_> = (0..8).map(|_| pace.pause(false, true, now)).collect();
        let micros = |us| LoopPause::Nap(Duration::from_micros(us));
        assert_eq!(naps, [50, 100, 200, 400, 800, 1600, 3200, 5000].map(micros));
        assert_eq!(pace.pause(false, true, now + GRACE), micros(5000));
        assert_eq!(pace.pause(false, false, now + GRACE), LoopPause::Rest);
        assert_eq!(pace.pause(true, true, now + GRACE), LoopPause::Yield);
        assert_eq!(pace.pause(false, false, now + 2 * GRACE), LoopPause::Rest);
    }

    #[test]
    fn it_is_eager_for_as_long_as_that_pays() {
        let mut now = Instant::now();
        let mut pace = Pace::new(now);
        // Something happens every 5 ms, so that it never pays.
        for _ in 0..20 {
            now += Duration::from_millis(5);
            pace.pause(true, true, now);
            pace.pause(false, true, now + EAGER_MAX);
        }
        assert_eq!(pace.eager, EAGER_MIN);
        for _ in 0..20 {
            now += EAGER_MIN / 2;
            pace.pause(true, true, now);
        }
        assert_eq!(pace.eager, EAGER_MAX);
    }
}
