//! `Chooser`: the ways to choose what happens next, a step of a ready thread or an arrival.
//! `Running` asks it once for each step.
//!
//! There are three: at random, by priorities (`Pct`), and as given (`Replay`, for
//! [`Explorer`](crate::Explorer) and `Simulation::replay`). A choice may depend on the seed and on
//! the numbers of the threads, and on nothing else, because a run must be repeatable. Each way is
//! fair: it lets every ready thread run at some time, so a thread that yields until something has
//! happened cannot hang a run.

use super::Random;
use selvedge_core::Thread;

/// A ready thread, with its number in this run.
pub(super) type ReadyThread = (Thread, u32);

/// How many steps in a row preferred threads may make while another thread is ready and makes none.
/// Threads that yield, or wake each other, until something has happened must not keep the other
/// threads from making it happen.
const STREAK_MAX: u32 = 200;

/// What happens next.
#[derive(Debug)]
pub(super) enum NextStep {
    /// A thread makes a step. The number is the choice that was made, for the digest.
    Step(ReadyThread, u32),
    /// One of the arrivals that are due happens.
    Arrival(usize),
}

#[derive(Debug)]
pub(super) enum Chooser {
    /// Any ready thread, with the same chance.
    Random(Random),
    /// The thread with the highest priority.
    Pct(Pct),
    /// The choices of a given list; after its end, choice 0.
    Replay(Replay),
}

impl Chooser {
    /// Chooses among the threads in `ready` and this number of `arrivals`; one of the two is not
    /// empty.
    /// `last` is the number of the thread that made the last step. Only a replay chooses an
    /// arrival, so the other ways are given none.
    #[inline]
    pub(super) fn take(&mut self, ready: &mut Vec<ReadyThread>, arrivals: usize, last: u32) -> NextStep {
        match self {
            Chooser::Random(random) => {
                let chosen = if ready.len() == 1 { 0 } else { random.below(ready.len() as u64) as usize };
                NextStep::Step(ready.swap_remove(chosen), chosen as u32)
            }
            Chooser::Pct(pct) => {
                let chosen = pct.choose(ready);
                NextStep::Step(ready.swap_remove(chosen), chosen as u32)
            }
            Chooser::Replay(replay) => {
                let chosen = replay.choose(ready, arrivals, last);
                match chosen.checked_sub(ready.len()) {
                    Some(arrival) => NextStep::Arrival(arrival),
                    None => NextStep::Step(ready.remove(chosen), chosen as u32),
                }
            }
        }
    }
}

/// Probabilistic concurrency testing: each thread has a priority drawn at random, and the ready
/// thread with the highest priority runs. At a few steps drawn at random the running thread sinks
/// below all others. A run meets a bug that needs `d` ordered events with a probability of at least
/// 1/(n k^(d-1)), for n threads and k steps (Burckhardt, Kothari, Musuvathi, Nagarakatte, ASPLOS
/// 2010).
#[derive(Debug)]
pub(super) struct Pct {
    random: Random,
    /// The priority of each thread, by its number.
    priorities: Vec<u64>,
    /// The steps at which the running thread sinks, in descending order.
    changes: Vec<u64>,
    /// The priority that the thread that sank last has.
    bottom: u64,
    step: u64,
    /// The window in which each thread ran last, by the thread's number.
    ran: Vec<u64>,
    /// The number of the current window. A window begins when all ready threads have run, or when
    /// the threads that had run sink.
    window: u64,
    /// How many steps the current window has.
    length: u32,
}

impl Pct {
    pub(super) fn new(mut random: Random, depth: usize, steps: u64) -> Pct {
        let mut changes: Vec<u64> = (1..depth).map(|_| random.below(steps.max(1))).collect();
        changes.sort_unstable_by(|a, b| b.cmp(a));
        Pct {
            random,
            priorities: Vec::new(),
            changes,
            bottom: u64::MAX / 2,
            step: 0,
            ran: Vec::new(),
            window: 1,
            length: 0,
        }
    }

    fn choose(&mut self, ready: &[ReadyThread]) -> usize {
        if ready.iter().all(|r| self.ran.get(r.1 as usize) == Some(&self.window)) {
            self.begin_window();
        } else if self.length >= STREAK_MAX {
            // The threads that ran may wake each other for ever, so all of them sink.
            for number in 0..self.ran.len() {
                if self.ran[number] == self.window {
                    self.sink(number);
                }
            }
            self.begin_window();
        }
        if self.changes.last().is_some_and(|&at| at <= self.step) {
            self.changes.pop();
            let running = self.highest(ready);
            self.sink(ready[running].1 as usize);
        }
        let chosen = self.highest(ready);
        self.ran[ready[chosen].1 as usize] = self.window;
        self.length += 1;
        self.step += 1;
        chosen
    }

    /// The index of the ready thread with the highest priority. Draws the priorities of new
    /// threads.
    fn highest(&mut self, ready: &[ReadyThread]) -> usize {
        let (mut highest, mut at) = (0, 0);
        for (i, (_, number)) in ready.iter().enumerate() {
            let number = *number as usize;
            while self.priorities.len() <= number {
                self.priorities.push(u64::MAX / 2 + self.random.below(u64::MAX / 2));
                self.ran.push(0);
            }
            if self.priorities[number] > highest {
                (highest, at) = (self.priorities[number], i);
            }
        }
        at
    }

    fn sink(&mut self, number: usize) {
        self.bottom -= 1;
        self.priorities[number] = self.bottom;
    }

    fn begin_window(&mut self) {
        self.window += 1;
        self.length = 0;
    }
}

/// A given schedule, and the choices that the run has made.
#[derive(Debug)]
pub(super) struct Replay {
    given: Vec<u32>,
    /// How many preemptions are left. A preemption is a step of another thread, or an arrival,
    /// while the thread of the last step is ready.
    preemptions: u32,
    /// Each choice among several candidates, with their number.
    pub(super) made: Vec<(u32, u32)>,
    streak: u32,
}

impl Replay {
    pub(super) fn new(given: Vec<u32>, preemptions: u32) -> Replay {
        Replay { given, preemptions, made: Vec::new(), streak: 0 }
    }

    /// Choice 0 is the thread of the last step, if it is ready. The other threads follow in the
    /// order in which they became ready, and then the arrivals. The result is an index of `ready`,
    /// or, for an arrival, its index plus the length of `ready`.
    fn choose(&mut self, ready: &[ReadyThread], arrivals: usize, last: u32) -> usize {
        let goes_on = ready.iter().position(|r| r.1 == last);
        self.streak = if goes_on.is_some() { self.streak + 1 } else { 0 };
        let candidates = ready.len() + arrivals;
        if candidates == 1 {
            return 0;
        }
        if self.streak >= STREAK_MAX {
            self.streak = 0;
            return usize::from(goes_on == Some(0));
        }
        if let Some(goes_on) = goes_on
            && self.preemptions == 0
        {
            return goes_on;
        }
        let choice = self.given.get(self.made.len()).copied().unwrap_or(0).min(candidates as u32 - 1);
        self.made.push((choice, candidates as u32));
        match (goes_on, choice as usize) {
            (None, choice) => choice,
            (Some(goes_on), 0) => goes_on,
            (Some(goes_on), choice) => {
                self.preemptions -= 1;
                self.streak = 0;
                if choice <= goes_on { choice - 1 } else { choice }
            }
        }
    }
}
