//! Schedulers of graphs, as values: which ready step runs where, and when.
//!
//! | scheduler | ready steps | idle workers |
//! |---|---|---|
//! | [`Sequential`] | newest first, on the calling OS thread | |
//! | [`WorkStealing`], to begin with | newest first, each worker its own; others steal the oldest | sleep |
//! | [`Pool::lifo`], [`Pool::fifo`] | one stack or queue for all | sleep, or spin with [`Pool::spinning`] |
//! | [`Pool::priority`] | the most urgent first, by [`StepCol::priority`](crate::StepCol::priority) | sleep |
//! | [`Pool::fuzz`] | any, as a seed determines | sleep |
//!
//! The result of a graph does not depend on the scheduler. Its time does.
//!
//! # Examples
//! A scheduler of one's own is a loop that hands ready steps to a worker:
//! ```
//! use selvedge::cnc::{self, schedulers::{Job, Scheduler}};
//!
//! /// Runs the step that became ready first.
//! struct OldestFirst;
//!
//! impl Scheduler for OldestFirst {
//!     fn run<'g>(&self, job: &Job<'g>) {
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
//! # fn main() -> Result<(), cnc::RunError> {
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

pub(crate) mod circle;
mod pool;
mod sequential;
mod stealing;

pub use pool::Pool;
pub use sequential::Sequential;
pub use stealing::WorkStealing;

use std::fmt;
use std::sync::Arc;

use crate::code::Ready;
use crate::core::Core;
use crate::step::{Outlet, Worker};

/// Runs the ready steps of a graph until there are none.
///
/// # Paper
/// [NCM11 §3.1]: several schedulers, because each is the best for some graph.
pub trait Scheduler {
    /// Runs every step of [`Job::start`], and every step that becomes ready meanwhile, on workers
    /// of the job. It returns when no step is ready and none runs.
    fn run<'g>(&self, job: &Job<'g>);
}

/// What a [`Scheduler`] is to do: the steps that are ready, and workers to run them.
pub struct Job<'g> {
    core: &'g Core<'g>,
}

impl<'g> Job<'g> {
    pub(crate) fn new(core: &'g Core<'g>) -> Job<'g> {
        Job { core }
    }

    /// Takes the steps that the environment has made ready, in the order of its puts.
    pub fn start(&self) -> Vec<Ready<'g>> {
        self.core.take_pending()
    }

    /// A worker that holds all steps that it makes ready.
    pub fn worker(&self) -> Worker<'g> {
        Worker::new(self.core, None)
    }

    /// A worker that gives steps away in the middle of a step, when another worker is idle.
    pub fn worker_with(&self, outlet: Arc<dyn Outlet<'g> + 'g>) -> Worker<'g> {
        Worker::new(self.core, Some(outlet))
    }
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job").finish_non_exhaustive()
    }
}
