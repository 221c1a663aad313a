//! Each worker its own ready steps, and others steal: [`WorkStealing`].

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::{fmt, hint, thread, vec};

use selvedge_sched::{IdleWorkers, RunRing};

use super::{Job, Scheduler};
use crate::code::Ready;
use crate::step::{Outlet, Worker};

/// The number of steps that a worker takes of the environment's at once.
const BATCH: usize = 32;

/// How often a worker looks for steps to steal before it sleeps.
const LOOKS: u32 = 200;

/// A worker shows others so many of its steps at least, if it has them.
const SHOWN: usize = 8;

/// Several workers, each with ready steps of its own. A worker runs its newest step, and shows its
/// oldest ones to the others, which steal them when they have none.
///
/// A worker's newest steps are private, so that a step that makes one other ready costs no atomic
/// operation. The others are in the ring of [`selvedge_sched::RunRing`]. Idle workers sleep, by the
/// protocol of [`selvedge_sched::IdleWorkers`].
///
/// **The end.** `active` counts the workers that are not asleep, and those that were called and
/// have not woken up yet: the caller counts them. A worker falls asleep only after its own steps
/// are gone and it has seen no other's; and only the worker that owns a ring pushes to it. So when
/// `active` becomes 0, no step runs and no ring holds one.
///
/// # Paper
/// [NCM11 §3.3] `ContT_WS`, with replays or continuations as the step says.
///
/// # Examples
/// See [`graph`](crate::graph()).
#[derive(Clone, Copy, Debug)]
pub struct WorkStealing {
    workers: usize,
}

impl WorkStealing {
    /// With so many workers. One of them is the calling OS thread.
    ///
    /// # Panics
    /// Without workers.
    pub fn new(workers: usize) -> WorkStealing {
        assert!(workers > 0, "a scheduler has a worker at least");
        WorkStealing { workers }
    }
}

impl Default for WorkStealing {
    /// With a worker for each CPU.
    fn default() -> WorkStealing {
        WorkStealing::new(thread::available_parallelism().map_or(1, Into::into))
    }
}

struct Stealing<'g> {
    idle: IdleWorkers<Ready<'g>, Ready<'g>>,
    /// The environment's steps.
    start: Mutex<vec::IntoIter<Ready<'g>>>,
    started: AtomicBool,
    active: AtomicUsize,
    /// The number of workers that look for steps or sleep.
    wanting: AtomicUsize,
    ended: AtomicBool,
    sleepers: Box<[Sleeper]>,
}

/// A worker that may be called.
#[derive(Default)]
struct Sleeper {
    called: AtomicBool,
    thread: OnceLock<thread::Thread>,
}

impl<'g> Stealing<'g> {
    /// Wakes a worker that `idle` has called.
    fn call(&self, worker: Option<usize>) {
        let Some(worker) = worker else { return };
        self.active.fetch_add(1, Ordering::SeqCst);
        self.sleepers[worker].called.store(true, Ordering::Release);
        if let Some(thread) = self.sleepers[worker].thread.get() {
            thread.unpark();
        }
    }

    fn take_start(&self, batch: &mut VecDeque<Ready<'g>>) -> Option<Ready<'g>> {
        if self.started.load(Ordering::Relaxed) {
            return None;
        }
        let mut start = self.start.lock().unwrap_or_else(PoisonError::into_inner);
        let share = (start.len() / (2 * self.sleepers.len())).clamp(1, BATCH);
        batch.extend(start.by_ref().take(share));
        if start.len() == 0 {
            self.started.store(true, Ordering::Relaxed);
        }
        batch.pop_front()
    }

    fn end(&self) {
        self.ended.store(true, Ordering::SeqCst);
        self.sleepers.iter().filter_map(|sleeper| sleeper.thread.get()).for_each(thread::Thread::unpark);
    }
}

impl<'g> Outlet<'g> for Stealing<'g> {
    fn is_wanted(&self) -> bool {
        self.wanting.load(Ordering::Relaxed) > 0
    }

    fn give(&self, ready: Vec<Ready<'g>>) {
        for ready in ready {
            match self.idle.inject(ready) {
                Ok(worker) => self.call(worker),
                Err(_) => unreachable!("the injector is never closed"),
            }
        }
    }
}

impl fmt::Debug for Stealing<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealing").finish_non_exhaustive()
    }
}

/// One worker's loop.
struct Loop<'a, 'g> {
    me: usize,
    shared: &'a Stealing<'g>,
    worker: Worker<'g>,
    ring: RunRing<Ready<'g>>,
    /// Steps of the environment, in their order.
    batch: VecDeque<Ready<'g>>,
}

impl<'g> Loop<'_, 'g> {
    fn work(mut self) {
        while let Some(ready) = self.next() {
            self.worker.run(ready);
            if self.worker.ready() > 1 {
                self.show();
            }
            if !self.ring.is_empty() && self.ring.is_wanted() {
                self.shared.call(self.shared.idle.surplus(self.me));
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
    fn next(&mut self) -> Option<Ready<'g>> {
        self.worker
            .newest()
            .or_else(|| self.batch.pop_front())
            .or_else(|| self.from_ring())
            .or_else(|| self.shared.take_start(&mut self.batch))
            .or_else(|| self.from_injector())
            .or_else(|| self.search())
    }

    fn from_ring(&mut self) -> Option<Ready<'g>> {
        if let Some(ready) = self.ring.take() {
            return Some(ready);
        }
        if self.ring.is_empty() {
            return None;
        }
        let claim = self.ring.claim(self.shared.sleepers.len() as u32);
        if claim.left > 0 && claim.wanted {
            self.shared.call(self.shared.idle.surplus(self.me));
        }
        self.ring.take()
    }

    fn from_injector(&mut self) -> Option<Ready<'g>> {
        let injector = self.shared.idle.injector();
        if injector.is_empty() {
            return None;
        }
        self.batch.extend(injector.take(self.shared.sleepers.len(), BATCH));
        self.batch.pop_front()
    }

    /// Looks for a step elsewhere, and sleeps; `None` when the run has ended.
    #[cold]
    fn search(&mut self) -> Option<Ready<'g>> {
        self.shared.wanting.fetch_add(1, Ordering::Relaxed);
        let found = self.look_and_sleep();
        self.shared.wanting.fetch_sub(1, Ordering::Relaxed);
        found
    }

    fn look_and_sleep(&mut self) -> Option<Ready<'g>> {
        let shared = self.shared;
        let mut searching = shared.idle.search();
        loop {
            if searching {
                for look in 0..LOOKS {
                    let stolen = shared.idle.steal(self.me, &mut self.ring, self.me + look as usize);
                    if let Some(ready) = stolen.or_else(|| self.from_injector()) {
                        shared.call(shared.idle.found());
                        return Some(ready);
                    }
                    if look % 16 == 15 { thread::yield_now() } else { hint::spin_loop() }
                }
            }
            if !shared.idle.fall_asleep(self.me, searching) {
                searching = true;
                continue;
            }
            if shared.active.fetch_sub(1, Ordering::SeqCst) == 1 {
                shared.end();
                return None;
            }
            while !shared.sleepers[self.me].called.swap(false, Ordering::Acquire) {
                if shared.ended.load(Ordering::SeqCst) {
                    return None;
                }
                thread::park();
            }
            searching = shared.idle.wake_up(self.me);
            if !searching && let Some(ready) = self.from_injector() {
                return Some(ready);
            }
        }
    }
}

impl Scheduler for WorkStealing {
    fn run<'g>(&self, job: &Job<'g>) {
        let (idle, mut rings) = IdleWorkers::new(self.workers);
        let start = job.start();
        let shared = Arc::new(Stealing {
            idle,
            started: AtomicBool::new(start.is_empty()),
            start: Mutex::new(start.into_iter()),
            active: AtomicUsize::new(self.workers),
            wanting: AtomicUsize::new(0),
            ended: AtomicBool::new(false),
            sleepers: (0..self.workers).map(|_| Sleeper::default()).collect(),
        });
        let work = |me: usize, ring: RunRing<Ready<'g>>| {
            let _ = shared.sleepers[me].thread.set(thread::current());
            let worker = if self.workers > 1 { job.worker_with(shared.clone()) } else { job.worker() };
            Loop { me, shared: &shared, worker, ring, batch: VecDeque::new() }.work();
        };
        thread::scope(|scope| {
            for (me, ring) in rings.drain(1..).enumerate() {
                let work = &work;
                scope.spawn(move || work(me + 1, ring));
            }
            work(0, rings.pop().expect("there is a worker at least"));
        });
    }
}
