//! Steps on the workers that they name: [`Affine`].
//!
//! `Graph::run` calls `Affine::run`. `StepCol::affinity` says where a step runs;
//! `AffineQueues::push` asks for it with `ReadyStep::affinity`.
//!
//! A run ends when `left` is 0. So a worker pushes the steps that its step has made ready before it
//! takes that step off `left`.
//!
//! Paper: [NCM11 §4].

use std::collections::VecDeque;
use std::iter;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

use super::{GraphJob, Scheduler, run_workers};
use crate::code::ReadyStep;
#[cfg(all(test, not(loom)))]
use crate::seeded::{SeededFault, is_seeded};
use crate::step::Worker;

/// Several workers with a queue each. A step runs on the worker that
/// [`StepCol::affinity`](crate::StepCol::affinity) names, so that steps with the same data run on
/// the same OS thread. A step without affinity runs on the worker that made it ready. No worker
/// takes steps of another one.
///
/// **The end.** `left` counts the steps that are in a queue or run. A step that is made ready is
/// counted before the one that made it is taken out of the count. So `left` becomes 0 once, when no
/// step is ready and none runs.
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
///     let tiles = graph.items_with("tiles", Items::dense((4, 11)));
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
    /// With so many workers. Worker 0 is the calling OS thread.
    ///
    /// # Panics
    /// Without workers.
    pub fn new(workers: usize) -> Affine {
        assert!(workers > 0, "a scheduler has a worker at least");
        Affine { workers }
    }
}

struct AffineQueues<'g> {
    left: AtomicUsize,
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
    ended: bool,
}

impl<'g> AffineQueue<'g> {
    fn lock(&self) -> MutexGuard<'_, AffineSteps<'g>> {
        self.steps.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a step; `None` at the end.
    fn take(&self) -> Option<ReadyStep<'g>> {
        let mut steps = self.lock();
        while !steps.ended {
            if let Some(ready) = steps.ready.pop_front() {
                return Some(ready);
            }
            steps = self.changed.wait(steps).unwrap_or_else(PoisonError::into_inner);
        }
        None
    }
}

impl<'g> AffineQueues<'g> {
    /// Puts a step into the queue of its worker, or of worker `me`.
    fn push(&self, ready: ReadyStep<'g>, me: usize) {
        let worker = ready.affinity().map_or(me, |worker| worker % self.queues.len());
        self.left.fetch_add(1, Ordering::Relaxed);
        self.queues[worker].lock().ready.push_back(ready);
        self.queues[worker].changed.notify_one();
    }

    fn work(&self, me: usize, worker: &mut Worker<'g>) {
        while let Some(ready) = self.queues[me].take() {
            worker.run(ready);
            iter::from_fn(|| worker.oldest()).for_each(|ready| self.push(ready, me));
            let left = self.left.fetch_sub(1, Ordering::Relaxed);
            #[cfg(all(test, not(loom)))]
            let left = left - usize::from(left == 2 && is_seeded(SeededFault::EarlyEnd));
            if left == 1 {
                self.end();
            }
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
        let shared = AffineQueues { left: AtomicUsize::new(0), queues };
        let start = job.start();
        if start.is_empty() {
            return;
        }
        for (number, ready) in start.into_iter().enumerate() {
            shared.push(ready, number % self.workers);
        }
        let work = |me, ()| shared.work(me, &mut job.worker());
        run_workers(job.core, iter::repeat_n((), self.workers), || shared.end(), work);
    }
}
