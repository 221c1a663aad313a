//! [`Pairing`]: when a worker polls its event source a second time, to bring two threads together
//! that talk through the kernel.
//!
//! The worker's turn (`worker.rs`) counts turns with `is_due`, and the second poll
//! (`second_poll.rs`) tells what it has found. A second poll costs a system call, so it must become
//! rare where it brings no threads together.

/// When a worker looks for threads that another worker keeps waking.
///
/// Two threads that talk to each other through the kernel, by a pipe or a socket, may be on two
/// workers. With every message, each worker then wakes a thread of the other. If both workers have
/// enough other threads, neither runs out of work, so neither steals and the two threads stay
/// apart. But each message costs more than on one worker, because two processors share its cache
/// lines and a lock of the kernel.
///
/// The kernel does not tell which worker made a descriptor ready. But if a worker polls its event
/// source twice and runs no thread in between, an event of the second poll comes from elsewhere. So
/// a worker polls twice from time to time, and hands the threads that the second poll has woken off
/// to the other worker that has the least to do. With two workers that is the worker on which the
/// partners run. With more workers both of a pair go there. Two threads that have come together are
/// not found again, and so stay together.
///
/// A worker that has less to do than all others hands none off. Otherwise a worker with few
/// threads, which polls more often, would lose them to the one with many, and in the end one worker
/// would have all threads while the other sleeps.
///
/// The second poll also finds threads that another process wakes. To hand them off is of no use.
/// Where such threads are common, the second polls become rare.
pub(super) struct Pairing {
    /// The number of turns until the next second poll.
    turns_left: u32,
    /// The number of turns from one second poll to the next.
    turns: u32,
}

impl Pairing {
    const TURNS_MIN: u32 = 8;
    const TURNS_MAX: u32 = 32;

    pub(super) fn new() -> Pairing {
        Pairing { turns_left: Self::TURNS_MIN, turns: Self::TURNS_MIN }
    }

    /// Counts a turn; whether the worker is to poll twice.
    #[inline]
    pub(super) fn is_due(&mut self) -> bool {
        self.turns_left -= 1;
        self.turns_left == 0
    }

    /// Notes that a worker sleeps, so that it made no second poll.
    pub(super) fn put_off(&mut self) {
        self.turns_left = self.turns;
    }

    /// Notes whether a second poll has woken a thread. Polls that mostly do bring no threads
    /// together, so they become rarer.
    pub(super) fn polled(&mut self, found: bool) {
        let turns = if found { 2 * self.turns } else { self.turns / 2 };
        self.turns = turns.clamp(Self::TURNS_MIN, Self::TURNS_MAX);
        self.turns_left = self.turns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn second_polls_become_rare_where_they_always_wake_a_thread() {
        let mut pairing = Pairing::new();
        (0..20).for_each(|_| pairing.polled(true));
        assert_eq!(pairing.turns_left, Pairing::TURNS_MAX);
        (0..20).for_each(|_| pairing.polled(false));
        assert_eq!(pairing.turns_left, Pairing::TURNS_MIN);
    }
}
