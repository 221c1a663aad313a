//! A scheduler of the program's own: the steps of a graph on rayon's thread pool. `figures`
//! measures this file too.

use rayon::{Scope, ThreadPool, ThreadPoolBuilder};
use selvedge_cnc::ReadyStep;
use selvedge_cnc::schedulers::{GraphJob, Scheduler};
use std::fmt;

/// Runs steps as tasks of rayon's. The pool's threads steal them from each other.
pub(crate) struct OnRayon(ThreadPool);

impl OnRayon {
    pub(crate) fn new(workers: usize) -> OnRayon {
        let pool = ThreadPoolBuilder::new().num_threads(workers).build();
        OnRayon(pool.expect("the machine has threads"))
    }
}

/// Runs steps one after the other, and each step that they make ready. Of these, the newest runs
/// here, and the others become tasks.
fn run<'s, 'g: 's>(scope: &Scope<'s>, job: &'s GraphJob<'g>, first: ReadyStep<'g>) {
    let mut worker = job.worker();
    let mut next = Some(first);
    while let Some(ready) = next {
        worker.run(ready);
        next = worker.newest();
        while let Some(other) = worker.oldest() {
            scope.spawn(move |scope| run(scope, job, other));
        }
    }
}

impl Scheduler for OnRayon {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        let start = job.start();
        self.0.scope(|scope| {
            for ready in start {
                scope.spawn(move |scope| run(scope, job, ready));
            }
        });
    }
}

impl fmt::Debug for OnRayon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnRayon").field(&self.0.current_num_threads()).finish()
    }
}
