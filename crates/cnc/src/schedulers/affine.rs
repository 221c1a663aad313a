//! Steps on the workers that they name: [`Affine`].
//!
//! `Graph::run` calls `Affine::run`. `StepCol::affinity` says where a step runs;
//! `AffineQueues::push` asks for it with `ReadyStep::affinity`.
//!
//! A run ends when no worker is `active`, as the comment on [`Affine`] says. In a run that lives
//! on, the last worker waits for steps of the environment, by the protocol of `bell.rs`.
//!
//! Paper: [NCM11 §4].

use super::{GraphJob, Idle, Leave, Scheduler, Stay, run_workers};
use crate::ready_step::ReadyStep;
#[cfg(all(test, not(loom)))]
use crate::seeded::{SeededFault, is_seeded};
use crate::step::Worker;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{iter, mem};

/// Several workers with a queue each. A step runs on the worker that
/// [`StepCol::affinity`](crate::StepCol::affinity) names, so that steps with the same data run on
/// the same OS thread. A step without affinity runs on the worker that made it ready. No worker
/// takes steps of another one.
///
/// **The end.** A worker is active until it finds its queue empty. A step that is put into the
/// queue of a worker which is not active makes it active, under the lock of the queue. Only an
/// active worker puts steps there. So when no worker is active, no step is ready and none runs.
///
/// # Paper
/// [NCM11 §4]: pinned workers help.
///
/// # Differences
/// 1. Steps are bound to workers, and the kernel places the workers.
///
/// # Examples
/// ```
/// use selvedge::cnc::{self, Items, schedulers::Affine};
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// let sum = cnc::graph(|graph| {
///     let tags = graph.tags::<(u32, u32)>("rounds of tiles");
///     let tiles = graph.items_in("tiles", Items::dense((4, 11)));
///     graph.prescribe(tags, "change", move |(tile, round), step| {
///         let before: u32 = *step.get(tiles, (tile, round))?;
///         step.put(tiles, (tile, round + 1), before + tile)?;
///         if round < 9 { step.put_tag(tags, (tile, round + 1)) } else { Ok(()) }
///     })
///     .affinity(|(tile, _)| *tile as usize);
///     graph.initialize(|env| {
///         (0..4).try_for_each(|n| env.put(tiles, (n, 0), 0))?;
///         (0..4).try_for_each(|n| env.put_tag(tags, (n, 0)))
///     })?;
///     let finished = graph.run(&Affine::new(2))?;
///     Ok(finished.finalize(|view| (0..4).filter_map(|n| view.get(tiles, (n, 10))).sum::<u32>()))
/// })?;
/// assert_eq!(sum, 60);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Affine {
    workers: usize,
}

impl Affine {
    /// With this number of workers. Worker 0 is the calling OS thread.
    ///
    /// # Panics
    /// Without workers.
    pub fn new(workers: usize) -> Affine {
        assert!(workers > 0, "a scheduler has a worker at least");
        Affine { workers }
    }
}

struct AffineQueues<'g> {
    active: AtomicUsize,
    queues: Box<[AffineQueue<'g>]>,
}

#[derive(Default)]
struct AffineQueue<'g> {
    steps: Mutex<AffineSteps<'g>>,
    changed: Condvar,
}

#[derive(Default)]
struct AffineSteps<'g> {
    ready: VecDeque<ReadyStep<'g>>,
    /// The worker has left the count, and no other worker has called it.
    asleep: bool,
    ended: bool,
}

impl<'g> AffineQueue<'g> {
    fn lock(&self) -> MutexGuard<'_, AffineSteps<'g>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps until a call, or until the end.
    fn sleep(&self) {
        let mut steps = self.lock();
        while steps.asleep && !steps.ended {
            steps = self.changed.wait(steps).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<'g> AffineQueues<'g> {
    /// Puts a step into the queue of its worker, or of worker `me`.
    fn push(&self, ready: ReadyStep<'g>, me: usize) {
        let worker = ready.affinity().map_or(me, |worker| worker % self.queues.len());
        let mut steps = self.queues[worker].lock();
        steps.ready.push_back(ready);
        self.call(worker, steps);
    }

    /// Counts a worker in that is asleep, and wakes it up. False if it is not asleep.
    fn call(&self, worker: usize, mut steps: MutexGuard<'_, AffineSteps<'g>>) -> bool {
        let was_asleep = mem::take(&mut steps.asleep);
        if was_asleep {
            self.active.fetch_add(1, Ordering::Relaxed);
            drop(steps);
            self.queues[worker].changed.notify_one();
        }
        was_asleep
    }

    /// Counts a worker out, unless there is a step in its queue.
    fn leave(&self, me: usize) -> Leave {
        let mut steps = self.queues[me].lock();
        if steps.ended || !steps.ready.is_empty() {
            return Leave::Back;
        }
        steps.asleep = true;
        let active = self.active.fetch_sub(1, Ordering::Relaxed);
        #[cfg(all(test, not(loom)))]
        let active = active - usize::from(active == 2 && is_seeded(SeededFault::EarlyEnd));
        if active == 1 { Leave::Last } else { Leave::Asleep }
    }

    /// The next step of a worker; `None` at the end. In a run that lives on, it may be one of the
    /// environment, which is put into the queue of its worker first.
    fn next(&self, me: usize, worker: &mut Worker<'g>, stay: Option<&Stay<'g>>) -> Option<ReadyStep<'g>> {
        loop {
            let mut steps = self.queues[me].lock();
            if steps.ended {
                return None;
            }
            if let Some(ready) = steps.ready.pop_front() {
                return Some(ready);
            }
            drop(steps);
            let idle = match stay {
                Some(stay) => stay.idle(
                    worker,
                    || self.leave(me),
                    || {
                        self.call(me, self.queues[me].lock());
                    },
                ),
                None => match self.leave(me) {
                    Leave::Back => Idle::Work,
                    Leave::Asleep => Idle::Sleep,
                    Leave::Last => Idle::End,
                },
            };
            match idle {
                Idle::Work => {}
                Idle::Sleep => {
                    self.queues[me].sleep();
                    if let Some(stay) = stay {
                        stay.take(worker);
                    }
                }
                Idle::End => self.end(),
            }
            self.push_all(me, worker);
        }
    }

    /// Puts the steps that a worker holds into the queues.
    fn push_all(&self, me: usize, worker: &mut Worker<'g>) {
        iter::from_fn(|| worker.oldest()).for_each(|ready| self.push(ready, me));
    }

    fn work(&self, me: usize, worker: &mut Worker<'g>, stay: Option<&Stay<'g>>) {
        while let Some(ready) = self.next(me, worker, stay) {
            worker.run(ready);
            self.push_all(me, worker);
        }
    }

    fn end(&self) {
        for queue in &self.queues {
            queue.lock().ended = true;
            queue.changed.notify_one();
        }
    }
}

impl Scheduler for Affine {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        let queues = iter::repeat_with(AffineQueue::default).take(self.workers).collect();
        let shared = Arc::new(AffineQueues { active: AtomicUsize::new(self.workers), queues });
        let called = shared.clone();
        let stay = job.stay(Arc::new(move || {
            let _ = (0..called.queues.len()).any(|worker| called.call(worker, called.queues[worker].lock()));
        }));
        let start = job.start();
        if start.is_empty() && stay.is_none() {
            return;
        }
        for (number, ready) in start.into_iter().enumerate() {
            shared.push(ready, number % self.workers);
        }
        let work = |me, ()| shared.work(me, &mut job.worker(), stay.as_ref());
        run_workers(job.core, iter::repeat_n((), self.workers), || shared.end(), work);
    }
}
