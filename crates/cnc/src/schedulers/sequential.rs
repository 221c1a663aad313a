//! All steps on the calling OS thread: [`OneByOne`]. `Graph::run` calls it. The order is
//! determined, so this is the scheduler for examples, and for tests of other schedulers to compare
//! with.

use super::{GraphJob, Scheduler};

/// Runs the steps on the calling OS thread. The environment's tags run in their order; a step that
/// another step makes ready runs before the rest of them, the newest first.
///
/// # Examples
/// See [`Graph::prescribe_depends`](crate::Graph::prescribe_depends).
#[derive(Clone, Copy, Debug, Default)]
pub struct OneByOne;

impl Scheduler for OneByOne {
    fn run<'g>(&self, job: &GraphJob<'g>) {
        let mut worker = job.worker();
        for ready in job.start() {
            worker.run(ready);
            while let Some(ready) = worker.newest() {
                worker.run(ready);
            }
        }
    }
}
