//! All steps on the calling OS thread: [`Sequential`].

use super::{Job, Scheduler};

/// Runs the steps on the calling OS thread. The environment's tags run in their order; a step that
/// another step makes ready runs before the rest of them, the newest first.
///
/// # Examples
/// See [`Graph::prescribe_depends`](crate::Graph::prescribe_depends).
#[derive(Clone, Copy, Debug, Default)]
pub struct Sequential;

impl Scheduler for Sequential {
    fn run<'g>(&self, job: &Job<'g>) {
        let mut worker = job.worker();
        for ready in job.start() {
            worker.run(ready);
            while let Some(ready) = worker.newest() {
                worker.run(ready);
            }
        }
    }
}
