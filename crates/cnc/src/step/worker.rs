//! The interface between a scheduler and the workers of a graph: [`Worker`], and [`Outlet`].
//!
//! A scheduler gets its workers from `GraphJob::worker` or `GraphJob::worker_to`. A worker stays
//! on its OS thread. The scheduler calls [`Worker::run`] with a ready step, and then takes the
//! steps that became ready. An `Outlet` is the scheduler's own: a worker gives it steps in the
//! middle of a long step.
//!
//! A worker adds its counts to the graph when it is dropped, and before it sleeps in a run that
//! lives on. So a scheduler drops all its workers before it returns, and runs each step that it has
//! taken.

use super::{Outlet, StepContext};
use crate::core::Core;
use crate::ready_step::ReadyStep;
use crate::tally::WorkerCounts;
use std::sync::Arc;

/// A worker of a run: it runs steps, and holds the steps that these make ready until the
/// [`Scheduler`](crate::schedulers::Scheduler) takes them.
#[derive(Debug)]
pub struct Worker<'g>(pub(super) StepContext<'g>);

impl<'g> Worker<'g> {
    pub(crate) fn new(core: &'g Core<'g>, outlet: Option<Arc<dyn Outlet<'g> + 'g>>) -> Worker<'g> {
        core.tally.note_worker();
        Worker(StepContext::new(core, outlet))
    }

    /// Runs a step, to its end or until it waits for an item.
    #[inline]
    pub fn run(&mut self, ready: ReadyStep<'g>) {
        self.0.run(ready);
    }

    /// Takes the step that became ready last.
    #[inline]
    pub fn newest(&mut self) -> Option<ReadyStep<'g>> {
        self.note_idle(self.0.ready.newest())
    }

    /// Takes the step that became ready first.
    #[inline]
    pub fn oldest(&mut self) -> Option<ReadyStep<'g>> {
        self.note_idle(self.0.ready.oldest())
    }

    /// Notes that the worker has no ready step, so that the next one does not begin when the last
    /// one has ended.
    #[inline]
    fn note_idle(&self, ready: Option<ReadyStep<'g>>) -> Option<ReadyStep<'g>> {
        if ready.is_none() {
            self.forget_end();
        }
        ready
    }

    /// Makes the next recorded step look at the clock when it begins.
    #[inline]
    pub(crate) fn forget_end(&self) {
        self.0.last_end.set(None);
    }

    /// Adds the counts of the worker to the graph, before the worker sleeps. A thread of the
    /// environment may look at a graph at rest.
    pub(crate) fn pause(&mut self) {
        if !self.0.is_paused.replace(true) {
            self.0.hand_over_record();
            self.0.account();
        }
    }

    /// Notes that the worker is awake, and may run steps.
    pub(crate) fn resume(&mut self) {
        if self.0.is_paused.replace(false) {
            self.0.core.tally.note_worker();
        }
    }

    /// Holds steps that are ready already.
    pub(crate) fn hold(&mut self, steps: Vec<ReadyStep<'g>>) {
        for ready in steps {
            self.0.ready.push(ready);
        }
    }

    /// The number of ready steps that the worker holds.
    #[inline]
    pub fn ready(&self) -> usize {
        self.0.ready.len()
    }
}

impl StepContext<'_> {
    /// Adds the counts of the worker to those of the graph.
    fn account(&self) {
        let counts = self.counts.iter().map(|of| (of.runs.take(), of.misses.take()));
        self.core.tally.account(&WorkerCounts {
            made: self.made.take(),
            ran: self.ran.take(),
            suspended: self.suspended.take(),
            handles: self.handles.take(),
            of_steps: counts.chain(self.late_counts.take()).collect(),
        });
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        self.resume();
        let step = &self.0;
        step.hand_over_record();
        let ready = step.ready.take();
        step.account();
        // The environment's steps run in the next run; those of a worker were lost by its
        // scheduler.
        step.core.pending.keep(ready);
    }
}
