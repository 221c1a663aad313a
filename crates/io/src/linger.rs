//! How long an event loop looks for events before it sleeps.
//!
//! To fall asleep and be woken takes longer than many a peer on the same machine takes to answer. So a loop that has nothing to
//! do looks again for a moment, about as long as a sleep and a wake-up cost, and at worst doubles that cost. Where moments pass
//! in vain it becomes rare: each miss doubles the number of sleeps before the next attempt, and a hit ends that.

use std::time::Duration;

/// About what it costs to fall asleep and be woken.
pub(crate) const MOMENT: Duration = Duration::from_micros(6);

/// The most sleeps between two attempts.
const SLEEPS_MAX: u32 = 256;

/// Whether it is worth it.
#[derive(Debug, Default)]
pub(crate) struct Linger {
    /// Sleeps until the next attempt, and how many there are after the next miss.
    sleeps_left: u32,
    sleeps: u32,
}

impl Linger {
    /// The loop is about to sleep: whether it is to look for a [`MOMENT`] first.
    #[inline]
    pub(crate) fn is_due(&mut self) -> bool {
        let due = self.sleeps_left == 0;
        self.sleeps_left = self.sleeps_left.saturating_sub(1);
        due
    }

    /// How that went.
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
        let mut linger = Linger::default();
        let mut attempts = 0;
        for _ in 0..10_000 {
            if linger.is_due() {
                attempts += 1;
                linger.looked(false);
            }
        }
        assert!((30..60).contains(&attempts), "{attempts}");
    }

    #[test]
    fn a_hit_is_followed_by_an_attempt() {
        let mut linger = Linger::default();
        for _ in 0..100 {
            if linger.is_due() {
                linger.looked(false);
            }
        }
        while !linger.is_due() {}
        linger.looked(true);
        assert!(linger.is_due());
        linger.looked(true);
        assert!(linger.is_due());
    }
}
