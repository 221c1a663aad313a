//! Which of the threads that events woke a worker keeps for itself: [`Arrivals`].
//!
//! The worker's turn (`worker.rs`) and its sleep (`idle.rs`) tell it how they went. `next.rs` takes
//! in the threads of a poll, and asks whether to keep them, and whether the worker is tired.
//!
//! # Why a worker keeps them
//! A thread that waits for a descriptor is registered in the event loop of the worker on which it
//! waits. If another worker steals the thread, the descriptor is registered there too. Its next
//! event comes to both loops and wakes both workers, until the first loop takes the descriptor out.
//! That costs about two system calls for each loop, and for a short request as much as the request
//! itself. A server with short requests on several workers would pay it with each message, because
//! one worker has just run out of threads whenever another one has taken in some.
//!
//! So a worker does not offer the threads of a poll if its steps have been short lately. Long steps
//! are worth the move: a worker with such steps offers the threads at once. If a step makes another
//! thread ready behind the kept ones, the worker offers all of them.
//!
//! # How the load is balanced
//! A worker that has worked for [`WORK_MAX`] without a sleep, while another one sleeps that does
//! not stand aside (`crowding.rs`), has more descriptors than its share. It moves a few of the kept
//! threads to its ring, and calls the sleeper by the claim that follows. The threads that the
//! sleeper steals wait there from then on, and the worker waits for another [`WORK_MAX`]. So the
//! descriptors are spread after some such times, and few threads move while all workers are busy.
//!
//! # What bounds the wait
//! The kept threads are the worker's overflow (`desk.rs`), first come, first served. A poll takes
//! some hundred events, and the steps are short. A worker in a long step admits guests to its desk,
//! and these take the overflow as they take other threads.

use selvedge_core::Time;
use std::time::Duration;

/// Threads with longer steps than this are not kept.
const STEP_MAX: Duration = Duration::from_micros(50);
/// The time after which a worker that has not slept gives some of the threads to one that sleeps.
const WORK_MAX: Duration = Duration::from_millis(5);
/// The number of kept threads after which the worker looks at the clock.
const SERVED_PER_LOOK: u32 = 8;

/// What a worker expects of the threads that events wake.
#[derive(Debug)]
pub(super) struct Arrivals {
    /// The time that a step takes, from the last turns.
    step: Duration,
    /// When the worker last slept, or last gave threads away.
    rested: Time,
    /// The number of kept threads that the worker has served.
    served: u32,
}

impl Arrivals {
    pub(super) fn new() -> Arrivals {
        Arrivals { step: Duration::ZERO, rested: Time::default(), served: 0 }
    }

    /// Notes that a turn of this number of `steps` took the time `turn`. A longer time counts less
    /// than a shorter one, because another process may have had the CPU meanwhile.
    pub(super) fn measured(&mut self, steps: u32, turn: Duration) {
        let step = turn / steps.max(1);
        self.step = if step < self.step { (self.step + step) / 2 } else { (7 * self.step + step) / 8 };
    }

    /// Notes that the worker has slept until `now`, or gives threads away.
    pub(super) fn rested(&mut self, now: Time) {
        self.rested = now;
    }

    /// Whether the worker keeps the threads that events wake.
    pub(super) fn keeps(&self) -> bool {
        self.step <= STEP_MAX
    }

    /// Whether the worker, which serves another one of the kept threads, has worked for long
    /// without a rest. Then that is the time of the answer.
    pub(super) fn is_tired(&mut self, now: impl FnOnce() -> Time) -> Option<Time> {
        self.served = self.served.wrapping_add(1);
        if !self.served.is_multiple_of(SERVED_PER_LOOK) {
            return None;
        }
        let now = now();
        (now.since(self.rested) > WORK_MAX).then_some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);
    const NOW: Time = Time::from_nanos(1_000_000_000);

    fn after(steps: u32, step: Duration) -> Arrivals {
        let mut arrivals = Arrivals::new();
        (0..40).for_each(|_| arrivals.measured(steps, steps * step));
        arrivals
    }

    #[test]
    fn threads_with_short_steps_are_kept() {
        assert!(after(100, 4 * US).keeps());
        assert!(!after(1, 60 * US).keeps());
    }

    #[test]
    fn one_long_turn_is_enough_to_share_and_short_turns_undo_it() {
        let mut arrivals = after(100, 4 * US);
        arrivals.measured(1, 5_000 * US);
        assert!(!arrivals.keeps());
        (0..8).for_each(|_| arrivals.measured(100, 400 * US));
        assert!(arrivals.keeps());
    }

    #[test]
    fn a_worker_without_sleep_is_tired_until_it_rests() {
        let mut arrivals = after(100, 4 * US);
        arrivals.rested(NOW);
        let mut tired = |at: Time| (0..SERVED_PER_LOOK).find_map(|_| arrivals.is_tired(|| at)).is_some();
        assert!(!tired(NOW + WORK_MAX));
        assert!(tired(NOW + WORK_MAX + US));
        assert!(tired(NOW + WORK_MAX + US), "it has found no sleeper");
        arrivals.rested(NOW + WORK_MAX);
        for _ in 1..SERVED_PER_LOOK {
            assert!(arrivals.is_tired(|| panic!("the clock is read for one thread in some")).is_none());
        }
    }
}
