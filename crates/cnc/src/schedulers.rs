//! Schedulers of graphs, as values: which ready step runs where, and when.
//!
//! | scheduler | ready steps | idle workers |
//! |---|---|---|
//! | [`OneByOne`] | newest first, on the calling OS thread | |
//! | [`Stealing`], to begin with | newest first, each worker its own; others steal the oldest | sleep |
//! | [`TaskPool::lifo`], [`TaskPool::fifo`] | one stack or queue for all | sleep, or spin with [`TaskPool::spinning`] |
//! | [`TaskPool::priority`] | the most urgent first, by [`StepCol::priority`](crate::StepCol::priority) | sleep |
//! | [`TaskPool::fuzz`] | any, as a seed determines | sleep |
//! | [`Affine`] | each worker a queue of its own; a step runs where [`StepCol::affinity`](crate::StepCol::affinity) says | sleep |
//! | [`ThreadPerStep`] | a thread of ours for each step, under any scheduler of threads | as that scheduler has it |
//! | [`Watchdog`] | as another scheduler; it tells when there is no progress | as that one |
//! | [`Replay`] | in the order of a recorded run, on the calling OS thread | |
//!
//! The result of a graph does not depend on the scheduler. Its time does.
//!
//! # Examples
//! A scheduler of one's own is a loop that hands ready steps to a worker:
//! ```
//! use selvedge::cnc::{self, schedulers::{GraphJob, Scheduler}};
//!
//! /// Runs the step that became ready first.
//! struct OldestFirst;
//!
//! impl Scheduler for OldestFirst {
//!     fn run<'g>(&self, job: &GraphJob<'g>) {
//!         let mut worker = job.worker();
//!         for ready in job.start() {
//!             worker.run(ready);
//!         }
//!         while let Some(ready) = worker.oldest() {
//!             worker.run(ready);
//!         }
//!     }
//! }
//!
//! # fn main() -> Result<(), cnc::GraphError> {
//! let last = cnc::graph(|graph| {
//!     let tags = graph.tags::<u32>("countdown");
//!     let items = graph.items::<u32, u32>("numbers");
//!     graph.prescribe(tags, "count", move |n, step| {
//!         step.put(items, n, n)?;
//!         if n > 0 { step.put_tag(tags, n - 1) } else { Ok(()) }
//!     });
//!     graph.initialize(|env| env.put_tag(tags, 9))?;
//!     Ok(graph.run(&OldestFirst)?.finalize(|view| view.iter(items).count()))
//! })?;
//! assert_eq!(last, 10);
//! # Ok(())
//! # }
//! ```
#![deny(unsafe_code)]

mod affine;
pub(crate) mod circle;
mod pool;
mod replay;
mod sequential;
mod stealing;
mod threads;
mod watchdog;

pub use crate::bell::Leave;
pub use crate::record::RunOrder;
pub use affine::Affine;
pub use pool::TaskPool;
pub use replay::Replay;
pub use sequential::OneByOne;
pub use stealing::Stealing;
pub use threads::{MainThread, ThreadPerStep};
pub use watchdog::Watchdog;

use crate::core::Core;
use crate::monitor::Monitor;
use crate::ready_step::ReadyStep;
use crate::step::{Outlet, StepContext, Worker};
use selvedge_sched::run_beside;
use std::sync::Arc;
use std::{fmt, mem, panic, thread};

/// Runs the ready steps of a graph until there are none.
///
/// # Paper
/// [NCM11 §3.1]: several schedulers, because each is the best for some graph.
pub trait Scheduler {
    /// Runs every step of [`GraphJob::start`], and every step that becomes ready meanwhile, on
    /// workers of the job. It returns when no step is ready and none runs.
    fn run<'g>(&self, job: &GraphJob<'g>);
}

/// Runs a worker's loop. If the loop unwinds, no other step of the run begins, and `end` is called
/// to end the loops of the other workers. Without that they would wait for this worker for ever.
///
/// The faults of a step do not unwind the loop. A panic in a program's destructor or `Debug` may.
fn guard_loop(core: &Core<'_>, end: impl Fn(), work: impl FnOnce()) {
    struct EndOnUnwind<'a, 'g, E: Fn()>(&'a Core<'g>, E);

    impl<E: Fn()> Drop for EndOnUnwind<'_, '_, E> {
        fn drop(&mut self) {
            self.0.attention().stop();
            (self.1)();
        }
    }

    let guard = EndOnUnwind(core, end);
    work();
    mem::forget(guard);
}

/// Runs the loops of the workers: that of worker 0 on the calling OS thread, and the others beside
/// it. `work` gets the number of a worker, and what the worker begins with. `end` ends the loops of
/// all workers, as in [`guard_loop`].
///
/// # Panics
/// With the panic of a loop, when all have ended. If an OS thread cannot be started.
fn run_workers<B: Send>(
    core: &Core<'_>,
    begins: impl IntoIterator<Item = B>,
    end: impl Fn() + Sync,
    work: impl Fn(usize, B) + Sync,
) {
    let (work, end) = (&work, &end);
    let work = move |me, begin| guard_loop(core, end, || work(me, begin));
    let mut begins = begins.into_iter();
    let first = begins.next().expect("there is a worker at least");
    let others = (1..).zip(begins).map(|(me, begin)| (thread::Builder::new(), move || work(me, begin)));
    let missing = || {
        core.attention().stop();
        end();
    };
    let ((), ends) = run_beside(others, missing, |_| work(0, first));
    for ended in ends.into_iter().flatten() {
        match ended {
            Ok(ended) => ended.unwrap_or_else(|panic| panic::resume_unwind(panic)),
            Err(error) => panic!("an OS thread for a worker could not be started: {error}"),
        }
    }
}

/// What a [`Scheduler`] is to do: the steps that are ready, and workers to run them.
pub struct GraphJob<'g> {
    core: &'g Core<'g>,
}

impl<'g> GraphJob<'g> {
    pub(crate) fn new(core: &'g Core<'g>) -> GraphJob<'g> {
        GraphJob { core }
    }

    pub(crate) fn core(&self) -> &'g Core<'g> {
        self.core
    }

    /// Takes the steps that the environment has made ready, in the order of its puts.
    pub fn start(&self) -> Vec<ReadyStep<'g>> {
        self.core.take_start()
    }

    /// Runs the scheduler, and again whenever steps are ready after that: late ones
    /// (`step/settle.rs`), or those of the living environment. It returns when the run ends: the
    /// environment is closed, or the run was stopped.
    pub(crate) fn rounds(&self, scheduler: &(impl Scheduler + ?Sized)) {
        while !self.core.is_cancelled() {
            scheduler.run(self);
            if !StepContext::settle_or_rest(self.core) {
                break;
            }
        }
    }

    /// Keeps the workers of the scheduler while the environment of the graph lives on. `None` if no
    /// [`LiveEnvironment`](crate::LiveEnvironment) is open: then the scheduler returns when no step
    /// is ready and no step runs.
    ///
    /// `wake` counts a worker in that sleeps, if there is one, and wakes it up. A put calls `wake`
    /// under a lock. So `wake` calls nothing of the graph, and takes no lock under
    /// which another thread calls something of the graph.
    ///
    /// A scheduler that does not call this is right too. It returns at each rest of the graph, and
    /// is run again at the next put.
    ///
    /// # Examples
    /// One worker, on the calling OS thread:
    /// ```
    /// use std::sync::Arc;
    /// use std::thread;
    /// use selvedge::cnc::{self, schedulers::{GraphJob, Idle, Leave, Scheduler}};
    ///
    /// struct OneStays;
    ///
    /// impl Scheduler for OneStays {
    ///     fn run<'g>(&self, job: &GraphJob<'g>) {
    ///         let mut worker = job.worker();
    ///         for ready in job.start() {
    ///             worker.run(ready);
    ///         }
    ///         // A scheduler with one worker has none that could be woken.
    ///         let stay = job.stay(Arc::new(|| ()));
    ///         loop {
    ///             while let Some(ready) = worker.newest() {
    ///                 worker.run(ready);
    ///             }
    ///             let Some(stay) = &stay else { return };
    ///             if let Idle::End = stay.idle(&mut worker, || Leave::Last, || ()) {
    ///                 return;
    ///             }
    ///         }
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let nine = cnc::graph(|graph| {
    ///     let numbers = graph.tags::<u64>("numbers");
    ///     let squares = graph.items::<u64, u64>("squares");
    ///     graph.prescribe(numbers, "square", move |n, step| step.put(squares, n, n * n));
    ///     let live = graph.live();
    ///     thread::scope(|scope| {
    ///         let user = scope.spawn(move || {
    ///             live.put_tag(numbers, 3)?;
    ///             live.get(squares, 3).wait_blocking()
    ///         });
    ///         graph.run(&OneStays)?;
    ///         Ok::<_, cnc::GraphError>(user.join().unwrap().unwrap())
    ///     })
    /// })?;
    /// assert_eq!(nine, 9);
    /// # Ok(())
    /// # }
    /// ```
    pub fn stay(&self, wake: Arc<dyn Fn() + Send + Sync + 'g>) -> Option<Stay<'g>> {
        let bell = self.core.attention().bell();
        if !bell.is_open() {
            return None;
        }
        drop(self.core.pending.set_wake(Some(wake)));
        bell.join(|| ());
        Some(Stay { core: self.core })
    }

    /// The monitor of the graph, as [`Graph::monitor`](crate::Graph::monitor) returns it.
    pub fn monitor(&self) -> Monitor {
        self.core.monitor().clone()
    }

    /// A worker that holds all steps that it makes ready.
    pub fn worker(&self) -> Worker<'g> {
        Worker::new(self.core, None)
    }

    /// A worker that gives steps away in the middle of a step, when another worker is idle.
    pub fn worker_to(&self, outlet: Arc<dyn Outlet<'g> + 'g>) -> Worker<'g> {
        Worker::new(self.core, Some(outlet))
    }
}

impl fmt::Debug for GraphJob<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GraphJob").finish_non_exhaustive()
    }
}

/// How the workers of a scheduler stay while the environment of their graph lives on, and sleep
/// while there is no step. [`GraphJob::stay`] makes it.
///
/// The scheduler counts its active workers: the workers that do not sleep. It counts a worker out
/// in the `leave` of [`idle`](Stay::idle), and in before it wakes the worker up. `bell.rs` has
/// the argument that no put is lost, and that there is one last worker.
pub struct Stay<'g> {
    core: &'g Core<'g>,
}

/// What a worker does that had no step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// It is active, and looks for a step. It may hold some.
    Work,
    /// It sleeps. When it is awake, it calls [`Stay::take`] first.
    Sleep,
    /// It ends, and makes all others end: the run has ended.
    End,
}

impl<'g> Stay<'g> {
    /// Counts out a worker without a step. The last active worker waits here until there are steps,
    /// or until the run ends.
    ///
    /// `leave` counts the worker out of the active workers, unless there is a step in the
    /// scheduler. Either the scheduler has noted before that the worker may be woken, or `leave`
    /// notes it. `join` counts the last worker in again. Puts call `wake` under a lock, and both
    /// calls are made under the same lock.
    pub fn idle(&self, worker: &mut Worker<'g>, leave: impl FnOnce() -> Leave, join: impl FnOnce()) -> Idle {
        let bell = self.core.attention().bell();
        worker.pause();
        let steps = match bell.leave(leave) {
            None => self.core.pending.take_later(),
            Some(Leave::Back) => Vec::new(),
            Some(Leave::Asleep) => return Idle::Sleep,
            Some(Leave::Last) => {
                let Some(steps) = self.rest() else { return Idle::End };
                bell.join(join);
                steps
            }
        };
        worker.resume();
        worker.hold(steps);
        Idle::Work
    }

    /// Waits for steps as the last worker, which has left.
    fn rest(&self) -> Option<Vec<ReadyStep<'g>>> {
        while StepContext::settle_or_rest(self.core) {
            let steps = self.core.take_start();
            if !steps.is_empty() {
                return Some(steps);
            }
        }
        None
    }

    /// Takes the steps that the environment has made ready, for a worker that was asleep and is
    /// active now. The worker may hold some of them afterwards.
    pub fn take(&self, worker: &mut Worker<'g>) {
        let bell = self.core.attention().bell();
        worker.resume();
        if bell.is_rung() && bell.answer() {
            worker.hold(self.core.pending.take_later());
        }
    }
}

impl Drop for Stay<'_> {
    fn drop(&mut self) {
        drop(self.core.pending.set_wake(None));
    }
}

impl fmt::Debug for Stay<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stay").finish_non_exhaustive()
    }
}
