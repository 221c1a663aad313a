//! A Selvedge thread for each step, under any scheduler of threads: [`ThreadPerStep`].
//!
//! `Graph::run` calls `ThreadPerStep::run`. It lends the job (`lend.rs`), because a thread takes
//! only what is `'static`, and gives the main thread to a closure of the program.
//!
//! The main thread ends after all other threads. So a thread stores the handle of each thread that
//! it spawns before it ends itself.
//!
//! Paper: [NCM11 §3.2].

use super::{GraphJob, Scheduler};
use crate::lend::{LentJob, LentStep};
use selvedge_core::{JoinHandle, spawn};
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

/// The main thread of a run, for a scheduler of threads.
pub type MainThread = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A thread of Selvedge's for each ready step. A scheduler of threads runs them: `round_robin`,
/// `work_stealing`, `priority`, or `simulated`, so that a seed determines the order of the steps.
///
/// The graph and the scheduler of threads know nothing of each other: the graph gives the main
/// thread to a closure of the program's, and the threads ask the scheduler that runs them to spawn
/// others. [`Graph::run`](crate::Graph::run) blocks its OS thread, so it is called outside of any
/// thread of ours.
///
/// # Paper
/// [NCM11 §3.2]: a light thread for each step.
///
/// # Differences
/// 1. A get that misses its item ends the thread, and a put starts another one. So no thread waits.
///
/// # Examples
/// ```
/// use selvedge::cnc::{self, schedulers::ThreadPerStep};
/// use selvedge::sim::{Simulation, VirtualTime};
///
/// # fn main() -> Result<(), cnc::GraphError> {
/// for seed in 0..5 {
///     let simulated = ThreadPerStep::under(|main| {
///         Simulation::new(seed).run(&mut VirtualTime::new(), main).expect("no thread waits");
///     });
///     let last = cnc::graph(|graph| {
///         let tags = graph.tags::<u32>("tags");
///         let items = graph.items::<u32, u32>("items");
///         graph.prescribe(tags, "next", move |n, step| {
///             step.put(items, n + 1, step.get(items, n)? + 1)
///         });
///         graph.initialize(|env| {
///             (0..20).try_for_each(|n| env.put_tag(tags, n))?;
///             env.put(items, 0, 0)
///         })?;
///         Ok(graph.run(&simulated)?.finalize(|view| view.get(items, 20).copied()))
///     })?;
///     assert_eq!(last, Some(20));
/// }
/// # Ok(())
/// # }
/// ```
pub struct ThreadPerStep<R> {
    run: R,
}

impl<R: Fn(MainThread)> ThreadPerStep<R> {
    /// Under the scheduler in which `run` runs the main thread, to its end.
    pub fn under(run: R) -> ThreadPerStep<R> {
        ThreadPerStep { run }
    }
}

impl<R> fmt::Debug for ThreadPerStep<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadPerStep").finish_non_exhaustive()
    }
}

/// The threads of a run.
struct StepThreads {
    job: LentJob,
    /// A thread puts the handles of the threads that it spawns before it ends. So when the main
    /// thread has joined all that are here and none is left, no thread is left.
    handles: Mutex<Vec<JoinHandle<()>>>,
}

impl StepThreads {
    fn spawn(self: &Arc<Self>, step: LentStep) {
        let threads = self.clone();
        let handle = spawn(async move {
            let mut worker = threads.job.worker();
            worker.run(step);
            while let Some(ready) = worker.oldest() {
                threads.spawn(ready);
            }
        });
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).push(handle);
    }

    fn next(&self) -> Option<JoinHandle<()>> {
        self.handles.lock().unwrap_or_else(PoisonError::into_inner).pop()
    }

    /// The main thread.
    async fn run(self: Arc<Self>) {
        for step in self.job.start() {
            self.spawn(step);
        }
        let mut failure = None;
        while let Some(handle) = self.next() {
            if let Err(error) = handle.await {
                // The faults of a step do not end its thread. A panic in a destructor may.
                self.job.stop();
                failure.get_or_insert(error);
            }
        }
        if let Some(error) = failure {
            panic!("a thread has not run its step to the end: {error}");
        }
    }
}

impl<R: Fn(MainThread)> Scheduler for ThreadPerStep<R> {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        job.lend(|job| {
            let threads = Arc::new(StepThreads { job, handles: Mutex::default() });
            (self.run)(Box::pin(threads.run()));
        });
    }
}
