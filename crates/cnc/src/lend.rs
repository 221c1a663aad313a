//! Parts of a run for code that takes only what is `'static`, as threads do: [`GraphJob::lend`].
//!
//! **No lent part outlives the graph.** The lent job, each lent worker and each lent step have a
//! share of the loan. A share is returned after its part was dropped. `lend` returns, or unwinds,
//! when all shares were returned. A part that is never dropped has its share for ever, so that
//! `lend` does not return.
//!
//! **No part of one loan gets into a part of another.** All parts have the lifetime `'static`, so
//! the types do not tell the graphs apart. [`LentWorker::run`] is the only method that takes a part
//! of a loan, and it compares the loans.
//!
//! `ThreadPerStep` calls `lend`, and a scheduler of the program may. All other schedulers use
//! scoped OS threads and need no loan.

use crate::core::Core;
use crate::ready_step::ReadyStep;
use crate::schedulers::GraphJob;
use crate::step::Worker;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::{fmt, mem};

#[derive(Debug, Default)]
struct Loan {
    shares: Mutex<usize>,
    returned: Condvar,
}

impl Loan {
    fn shares(&self) -> MutexGuard<'_, usize> {
        self.shares.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A part of a loan that is not returned yet.
#[derive(Debug)]
struct LoanShare(Arc<Loan>);

impl LoanShare {
    fn of(loan: &Arc<Loan>) -> LoanShare {
        *loan.shares() += 1;
        LoanShare(loan.clone())
    }
}

impl Drop for LoanShare {
    fn drop(&mut self) {
        let mut shares = self.0.shares();
        *shares -= 1;
        if *shares == 0 {
            self.0.returned.notify_all();
        }
    }
}

/// Waits for all shares, also when `lend` unwinds.
struct WaitsForShares<'a>(&'a Loan);

impl Drop for WaitsForShares<'_> {
    fn drop(&mut self) {
        let mut shares = self.0.shares();
        while *shares > 0 {
            shares = self.0.returned.wait(shares).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl<'g> GraphJob<'g> {
    /// Lends the job to `work`, as parts that are `'static`. Returns when `work` has returned and
    /// all lent parts were dropped.
    ///
    /// # Examples
    /// A scheduler that starts an OS thread for each step that the environment has made ready:
    /// ```
    /// use selvedge::cnc::{self, schedulers::{GraphJob, Scheduler}};
    /// use std::thread;
    ///
    /// struct OsThreads;
    ///
    /// impl Scheduler for OsThreads {
    ///     fn run<'g>(&self, job: &GraphJob<'g>) {
    ///         job.lend(|job| {
    ///             for first in job.start() {
    ///                 let job = job.clone();
    ///                 thread::spawn(move || {
    ///                     let mut worker = job.worker();
    ///                     let mut next = Some(first);
    ///                     while let Some(step) = next {
    ///                         worker.run(step);
    ///                         next = worker.oldest();
    ///                     }
    ///                 });
    ///             }
    ///         });
    ///     }
    /// }
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let sum = cnc::graph(|graph| {
    ///     let tags = graph.tags::<u32>("tags");
    ///     let items = graph.items("items");
    ///     graph.prescribe(tags, "square", move |n, step| step.put(items, n, n * n));
    ///     graph.initialize(|env| (0..5).try_for_each(|n| env.put_tag(tags, n)))?;
    ///     let finished = graph.run(&OsThreads)?;
    ///     Ok(finished.finalize(|view| view.iter(items).map(|(_, n)| n).sum::<u32>()))
    /// })?;
    /// assert_eq!(sum, 30);
    /// # Ok(())
    /// # }
    /// ```
    pub fn lend<R>(&self, work: impl FnOnce(LentJob) -> R) -> R {
        let loan = Arc::new(Loan::default());
        let _waits = WaitsForShares(&loan);
        // SAFETY: the reference is used by parts with a share alone. `_waits` keeps this function
        // from ending before all shares are returned, and `self` is borrowed until then. The
        // lifetimes have no influence on the layout.
        let core = unsafe { mem::transmute::<&'g Core<'g>, &'static Core<'static>>(self.core()) };
        work(LentJob { core, share: LoanShare::of(&loan) })
    }
}

/// A [`GraphJob`] that was lent. It goes to other OS threads, where it makes workers.
pub struct LentJob {
    core: &'static Core<'static>,
    share: LoanShare,
}

impl LentJob {
    /// As [`GraphJob::start`].
    pub fn start(&self) -> Vec<LentStep> {
        self.core.take_start().into_iter().map(|ready| self.step(ready)).collect()
    }

    /// As [`GraphJob::worker`].
    pub fn worker(&self) -> LentWorker {
        LentWorker { worker: Worker::new(self.core, None), job: self.clone() }
    }

    /// Stops the run: no other step begins.
    pub fn stop(&self) {
        self.core.attention().stop();
    }

    fn step(&self, ready: ReadyStep<'static>) -> LentStep {
        LentStep { ready, share: LoanShare::of(&self.share.0) }
    }
}

impl Clone for LentJob {
    fn clone(&self) -> LentJob {
        LentJob { core: self.core, share: LoanShare::of(&self.share.0) }
    }
}

impl fmt::Debug for LentJob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LentJob").finish_non_exhaustive()
    }
}

/// A [`ReadyStep`] that was lent.
#[derive(Debug)]
pub struct LentStep {
    // Dropped before the share is returned, as in the other parts.
    ready: ReadyStep<'static>,
    share: LoanShare,
}

/// A [`Worker`] that was lent.
#[derive(Debug)]
pub struct LentWorker {
    worker: Worker<'static>,
    job: LentJob,
}

impl LentWorker {
    /// As [`Worker::run`].
    ///
    /// # Panics
    /// If the step is from another [`GraphJob::lend`] than the worker: its graph may end while this
    /// worker still uses it.
    pub fn run(&mut self, step: LentStep) {
        assert!(
            Arc::ptr_eq(&step.share.0, &self.job.share.0),
            "a lent worker runs the steps of its own loan only"
        );
        let LentStep { ready, share } = step;
        self.worker.run(ready);
        // The thread may do something else before its next step.
        self.worker.forget_end();
        drop(share);
    }

    /// As [`Worker::newest`].
    pub fn newest(&mut self) -> Option<LentStep> {
        self.worker.newest().map(|ready| self.job.step(ready))
    }

    /// As [`Worker::oldest`].
    pub fn oldest(&mut self) -> Option<LentStep> {
        self.worker.oldest().map(|ready| self.job.step(ready))
    }
}
