//! [`Stealing`]: each worker has ready steps of its own, and idle workers steal from the others.
//!
//! `Graph::run` calls `Stealing::run`, which starts an OS thread with a `Loop` for each worker but
//! the first. `Loop::next` finds a worker's next step. How workers sleep and end together is in
//! `circle.rs`.
//!
//! A worker's private steps and its `batch` are used by that worker alone. Other workers see its
//! ring and the injector. So others can help only after `Loop::show` or `StepContext::share` has
//! moved some of its older steps there.
//!
//! Paper: [NCM11 §3.3].

use super::circle::{Closed, LOOKS_LIVING, LeftAs, Outside, WorkerCircle};
use super::{GraphJob, Idle, Leave, Scheduler, Stay, run_workers};
use crate::ready_step::ReadyStep;
use crate::step::{Outlet, Worker};
use selvedge_sched::RunRing;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::{fmt, thread};

/// The number of steps that a worker can show.
const SLOTS: usize = 256;

/// The largest number of the environment's steps that a worker takes at once.
const SHARE: usize = 128;

/// A worker shows at least this number of its steps to others, if it has that number.
const SHOWN: usize = 8;

/// Several workers, each with ready steps of its own. A worker runs its newest step, and shows its
/// oldest ones to the others, which steal them when they have none.
///
/// A worker's newest steps are private, so that a step that makes one other ready costs no atomic
/// operation. The others are in the ring of [`selvedge_sched::RunRing`]. Idle workers sleep, by the
/// protocol of [`selvedge_sched::IdleWorkers`].
///
/// # Paper
/// [NCM11 §3.3] `ContT_WS`, with replays or continuations as the step says.
///
/// # Examples
/// See [`graph`](crate::graph()).
#[derive(Clone, Copy, Debug)]
pub struct Stealing {
    workers: usize,
}

impl Stealing {
    /// With this number of workers. One of them is the calling OS thread.
    ///
    /// # Panics
    /// Without workers.
    pub fn new(workers: usize) -> Stealing {
        assert!(workers > 0, "a scheduler has a worker at least");
        Stealing { workers }
    }
}

impl Default for Stealing {
    /// With a worker for each CPU.
    fn default() -> Stealing {
        Stealing::new(thread::available_parallelism().map_or(1, Into::into))
    }
}

struct StealingShared<'g> {
    circle: WorkerCircle<ReadyStep<'g>, SLOTS>,
    /// The environment's steps, the last one first.
    start: Mutex<Vec<ReadyStep<'g>>>,
    started: AtomicBool,
    /// The number of workers that look for steps or sleep.
    wanting: AtomicUsize,
}

impl<'g> StealingShared<'g> {
    /// Takes some of the environment's steps. `batch` is empty.
    fn take_start(&self, batch: &mut Vec<ReadyStep<'g>>) -> Option<ReadyStep<'g>> {
        if self.started.load(Ordering::Relaxed) {
            return None;
        }
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        let share = (start.len() / (2 * self.circle.workers())).clamp(1, SHARE).min(start.len());
        let rest = start.len() - share;
        *batch = start.split_off(rest);
        if rest == 0 {
            self.started.store(true, Ordering::Relaxed);
        }
        batch.pop()
    }
}

impl<'g> Outlet<'g> for StealingShared<'g> {
    fn is_wanted(&self) -> bool {
        self.wanting.load(Ordering::Relaxed) > 0
    }

    fn give(&self, ready: Vec<ReadyStep<'g>>) {
        ready.into_iter().for_each(|ready| self.circle.give(ready));
    }
}

impl fmt::Debug for StealingShared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StealingShared").finish_non_exhaustive()
    }
}

/// One worker's loop.
struct Loop<'a, 'g> {
    me: usize,
    /// There is no other worker.
    is_alone: bool,
    shared: &'a StealingShared<'g>,
    worker: Worker<'g>,
    /// The environment of the graph lives on.
    stay: Option<&'a Stay<'g>>,
    ring: RunRing<ReadyStep<'g>, SLOTS>,
    /// Steps of the environment or of the injector, the last one first.
    batch: Vec<ReadyStep<'g>>,
}

impl<'g> Loop<'_, 'g> {
    fn work(mut self) {
        while let Some(ready) = self.next() {
            self.worker.run(ready);
            if self.is_alone {
                continue;
            }
            if self.worker.ready() > 1 {
                self.show();
            }
            if !self.ring.is_empty() && self.ring.is_wanted() {
                self.shared.circle.surplus(self.me);
            }
        }
    }

    /// Shows the oldest steps to the others.
    fn show(&mut self) {
        if self.ring.len() < SHOWN {
            let half = self.worker.ready() / 2;
            self.ring.push_from(|| self.worker.oldest(), half);
        }
    }

    #[inline]
    fn next(&mut self) -> Option<ReadyStep<'g>> {
        self.worker
            .newest()
            .or_else(|| self.batch.pop())
            .or_else(|| self.shared.circle.own(self.me, &mut self.ring))
            .or_else(|| self.shared.take_start(&mut self.batch))
            .or_else(|| self.shared.circle.given(&mut self.batch))
            .or_else(|| self.search())
    }

    /// Looks for a step elsewhere, and sleeps; `None` when the run has ended.
    #[cold]
    fn search(&mut self) -> Option<ReadyStep<'g>> {
        self.shared.wanting.fetch_add(1, Ordering::Relaxed);
        let circle = &self.shared.circle;
        let found = match self.stay {
            None => circle.find(self.me, &mut self.ring, &mut self.batch, &mut Closed),
            Some(stay) => {
                let mut environment = Environment { stay, worker: &mut self.worker };
                circle.find(self.me, &mut self.ring, &mut self.batch, &mut environment)
            }
        };
        self.shared.wanting.fetch_sub(1, Ordering::Relaxed);
        found
    }
}

/// The living environment of the graph, as a worker without a step sees it.
struct Environment<'a, 'g> {
    stay: &'a Stay<'g>,
    worker: &'a mut Worker<'g>,
}

impl<'g> Outside<ReadyStep<'g>> for Environment<'_, 'g> {
    const LOOKS: u32 = LOOKS_LIVING;

    fn take(&mut self) -> Option<ReadyStep<'g>> {
        self.stay.take(self.worker);
        self.worker.newest()
    }

    fn leave(&mut self, leave: impl FnOnce() -> Leave, join: impl FnOnce()) -> LeftAs<ReadyStep<'g>> {
        match self.stay.idle(self.worker, leave, join) {
            Idle::Work => self.worker.newest().map_or(LeftAs::Back, LeftAs::Found),
            Idle::Sleep => LeftAs::Asleep,
            Idle::End => LeftAs::End,
        }
    }
}

impl Scheduler for Stealing {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        let (circle, rings) = WorkerCircle::new(self.workers);
        let mut start = job.start();
        start.reverse();
        let shared = Arc::new(StealingShared {
            circle,
            started: AtomicBool::new(start.is_empty()),
            start: Mutex::new(start),
            wanting: AtomicUsize::new(0),
        });
        let called = shared.clone();
        let stay = job.stay(Arc::new(move || called.circle.wake()));
        let stay = stay.as_ref();
        run_workers(
            job.core,
            rings,
            || shared.circle.end(),
            |me, ring| {
                let is_alone = self.workers == 1;
                let worker = if is_alone { job.worker() } else { job.worker_to(shared.clone()) };
                Loop { me, is_alone, shared: &shared, worker, stay, ring, batch: Vec::new() }.work();
            },
        );
    }
}
