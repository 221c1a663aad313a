//! The deterministic scheduler: one OS thread, a virtual clock, and a repeatable choice among the
//! ready threads.
//!
//! The program and a seed determine a run, step by step, and nothing else does: the same seed gives
//! the same run. So a test tries thousands of seeds, and a failing run is a number that an engineer
//! can write down. There are four ways to choose the next thread:
//!
//! - at random ([`Simulation::new`]), which is the best way for most programs;
//! - by priorities that change a few times ([`Simulation::pct`]), which finds bugs that need a few
//!   rare events;
//! - in every order, one run after the other ([`Explorer`]), for programs of a few threads and
//!   steps;
//! - as in an earlier run ([`Simulation::replay`]).
//!
//! Threads are cooperative, so the scheduler interleaves them at their system calls. A test that
//! wants more places to switch at has its threads [yield](selvedge_core::yield_now) there.
//!
//! # When a run can be repeated
//! The program must not depend on anything else: not on OS threads of its own, on a clock other
//! than [`Time`], or on the order of a `HashMap`. The event source provides descriptors and time:
//! [`World`](crate::World) simulates both, and [`VirtualTime`] is enough for programs without
//! descriptors.
//!
//! The files: `running.rs` is the loop, `choice.rs` the ways to choose, `explore.rs` the search
//! through every order, `time.rs` the event source without descriptors, `failed.rs` and `seeds.rs`
//! the report of a failure and the loop over seeds, `spare.rs` the CPU that runs share.

mod choice;
mod explore;
mod failed;
mod random;
mod running;
mod seeds;
mod spare;
mod time;

use choice::{Chooser, Pct, Replay};
pub(crate) use running::Arrivals;
use running::Running;
use selvedge_core::{Events, ThreadInfo, VirtualClock};
use std::future::Future;
use std::time::Duration;

pub use explore::{Explored, Explorer};
pub use failed::{SimulationError, Why};
pub use random::Random;
pub use seeds::each_seed;
pub use time::VirtualTime;

/// Runs `main` and the threads it creates until `main` has ended, in an order that `seed`
/// determines, with a virtual clock; returns the result of `main`. The run cancels the threads that
/// are left.
///
/// # Errors
/// [`SimulationError`], which says how to repeat the run: a panic in `main` or in a thread that no
/// thread joins, a deadlock, or too many steps.
///
/// # Examples
/// A program that is right in most orders:
/// ```
/// use selvedge::{spawn_local, yield_now};
/// use selvedge::sched::{VirtualTime, simulated};
/// use std::{cell::Cell, rc::Rc};
///
/// async fn lost_update() -> u32 {
///     let counter = Rc::new(Cell::new(0));
///     let add_one = |counter: Rc<Cell<u32>>| async move {
///         let seen = counter.get();
///         yield_now().await;
///         counter.set(seen + 1);
///     };
///     let threads = [(), ()].map(|()| spawn_local(add_one(counter.clone())));
///     for thread in threads {
///         thread.await.unwrap();
///     }
///     counter.get()
/// }
///
/// let run = |seed| simulated(seed, &mut VirtualTime::new(), lost_update()).unwrap();
/// let wrong = (0..100).find(|&seed| run(seed) == 1).expect("some order loses an update");
/// assert_eq!(run(wrong), 1, "and it does so again");
/// ```
///
/// # Complexity
/// The figure `simulation` has the time of a step.
pub fn simulated<F: Future + 'static>(
    seed: u64,
    events: &mut impl Events,
    main: F,
) -> Result<F::Output, SimulationError> {
    Simulation::new(seed).run(events, main).map(|run| run.output)
}

/// How the scheduler chooses the next thread, and how many steps a run may take.
#[derive(Clone, Debug)]
pub struct Simulation {
    order: Order,
    steps_max: u64,
}

#[derive(Clone, Debug)]
enum Order {
    Random(u64),
    Pct { seed: u64, depth: usize, steps: u64 },
    Replay { choices: Vec<u32>, preemptions_max: u32 },
}

impl Simulation {
    /// The scheduler chooses at random among the ready threads.
    pub fn new(seed: u64) -> Simulation {
        Simulation { order: Order::Random(seed), steps_max: 10_000_000 }
    }

    /// The scheduler runs the ready thread with the highest priority. It draws the priorities at
    /// random, and changes one at `depth - 1` of the first `steps` steps (probabilistic concurrency
    /// testing: Burckhardt et al., ASPLOS 2010). This finds bugs that need `depth` events in a
    /// certain order.
    pub fn pct(seed: u64, depth: usize, steps: u64) -> Simulation {
        Simulation { order: Order::Pct { seed, depth, steps }, ..Simulation::new(seed) }
    }

    /// The scheduler makes the choices of a [failed](SimulationError::schedule) run of an
    /// [`Explorer`].
    ///
    /// # Panics
    /// If `schedule` is not a text that [`SimulationError::schedule`] returns.
    pub fn replay(schedule: &str) -> Simulation {
        let number = |text: &str| text.parse().unwrap_or_else(|_| panic!("{schedule} is no schedule"));
        let choices = schedule.split('.').filter(|text| !text.is_empty()).map(number).collect();
        Simulation::given(choices, u32::MAX)
    }

    /// Whether the choices are given. Then the scheduler chooses the order of arrivals too.
    pub(crate) fn is_given(&self) -> bool {
        matches!(self.order, Order::Replay { .. })
    }

    fn given(choices: Vec<u32>, preemptions_max: u32) -> Simulation {
        Simulation { order: Order::Replay { choices, preemptions_max }, ..Simulation::new(0) }
    }

    /// A run that takes more steps fails with [`Why::TooManySteps`]. The default is ten million.
    pub fn steps_max(self, steps_max: u64) -> Simulation {
        Simulation { steps_max, ..self }
    }

    /// Runs `main` as [`simulated`] does. If this OS thread has no [virtual clock](VirtualClock),
    /// the run installs one until it ends.
    ///
    /// # Errors
    /// As for [`simulated`].
    pub fn run<F: Future + 'static>(
        &self,
        events: &mut impl Events,
        main: F,
    ) -> Result<Run<F::Output>, SimulationError> {
        self.run_noting(events, main, None, &mut Vec::new())
    }

    /// As [`run`](Simulation::run). If the order is a replay, `made` gets each choice, with the
    /// number of alternatives.
    pub(crate) fn run_noting<F: Future + 'static>(
        &self,
        events: &mut impl Events,
        main: F,
        arrivals: Option<&dyn Arrivals>,
        made: &mut Vec<(u32, u32)>,
    ) -> Result<Run<F::Output>, SimulationError> {
        let _clock = VirtualClock::now().is_none().then(VirtualClock::install);
        let (seed, chooser) = match &self.order {
            &Order::Random(seed) => (seed, Chooser::Random(Random::new(seed))),
            &Order::Pct { seed, depth, steps } => {
                (seed, Chooser::Pct(Pct::new(Random::new(seed), depth, steps)))
            }
            Order::Replay { choices, preemptions_max } => {
                (0, Chooser::Replay(Replay::new(choices.clone(), *preemptions_max)))
            }
        };
        let mut running = Running::new(chooser, Random::new(!seed), arrivals);
        let result = running.run(events, main, self.steps_max);
        let steps = running.steps();
        if let Some(choices) = running.into_choices() {
            *made = choices;
        }
        result.map_err(|why| match self.order {
            Order::Replay { .. } => SimulationError::in_schedule(why, steps, made),
            _ => SimulationError::with_seed(why, steps, seed),
        })
    }
}

/// A simulated run that has come to its end.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Run<T> {
    /// The result of the main thread.
    pub output: T,
    /// How many steps all threads made together.
    pub steps: u64,
    /// How much virtual time passed.
    pub time: Duration,
    /// A digest of all that happened: which thread made which step, which system call ended the
    /// step, which choices the scheduler made, and when. Two runs with the same digest are the same
    /// run.
    pub digest: u64,
    /// The threads that were left when the main thread ended. The run has cancelled them.
    pub left: Vec<ThreadInfo>,
}
