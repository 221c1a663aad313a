//! The decision whether an event loop looks for events for a moment before it sleeps.
//! [`EventLoop`](crate::EventLoop) holds one [`BusyPoll`].
//!
//! Falling asleep and being woken take longer than many peers on the same machine take to answer.
//! So a loop without work looks again for a moment that is about as long as a sleep and a wake-up
//! cost. At worst this doubles that cost. Where such moments find nothing, they become rare: each
//! miss doubles the number of sleeps before the next attempt, and a hit resets that number.

use std::time::Duration;

/// About the time that falling asleep and being woken cost.
pub(crate) const MOMENT: Duration = Duration::from_micros(6);

/// The most sleeps between two attempts.
const SLEEPS_MAX: u32 = 256;

/// Decides whether the loop looks for a [`MOMENT`] before it sleeps.
#[derive(Debug, Default)]
pub(crate) struct BusyPoll {
    /// The number of sleeps until the next attempt. `sleeps` is that number after the last miss.
    sleeps_left: u32,
    sleeps: u32,
}

impl BusyPoll {
    /// The loop is about to sleep. True if it must look for a [`MOMENT`] first.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.sleeps_left == 0;
        self.sleeps_left = self.sleeps_left.saturating_sub(1);
        due
    }

    /// The loop has looked for a moment; `found` says whether an event came.
    pub(crate) fn looked(&mut self, found: bool) {
        self.sleeps = if found { 0 } else { (2 * self.sleeps).clamp(1, SLEEPS_MAX) };
        self.sleeps_left = self.sleeps;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_become_rare_while_nothing_is_found() {
        let mut busy_poll = BusyPoll::default();
        let mut attempts = 0;
        for _ in 0..10_000 {
            if busy_poll.is_due() {
                attempts += 1;
                busy_poll.looked(false);
            }
        }
        assert!((30..60).contains(&attempts), "{attempts}");
    }

    #[test]
    fn a_hit_is_followed_by_an_attempt() {
        let mut busy_poll = BusyPoll::default();
        for _ in 0..100 {
            if busy_poll.is_due() {
                busy_poll.looked(false);
            }
        }
        while !busy_poll.is_due() {}
        busy_poll.looked(true);
        assert!(busy_poll.is_due());
        busy_poll.looked(true);
        assert!(busy_poll.is_due());
    }
}
