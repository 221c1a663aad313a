//! The ready steps that no scheduler has taken: [`PendingSteps`], and how a put of the living
//! environment wakes a worker for them. `Core` owns both.
//!
//! `Graph::run` calls [`PendingSteps::begin_run`], and a scheduler takes the steps of a round with
//! `Core::take_start`. The steps are dropped in `Core::close`, before the arena of the graph.

use crate::primitives::{Mutex, lock};
use std::collections::VecDeque;
use std::mem::{self, ManuallyDrop};
use std::sync::Arc;

/// Wakes a worker of the scheduler. A put of the living environment calls it.
pub(crate) type WakeWorker<'g> = Arc<dyn Fn() + Send + Sync + 'g>;

/// The ready steps that no scheduler has taken. `R` is such a step.
///
/// No field has a destructor, because a graph is borrowed for the lifetime that is in `R`.
pub(crate) struct PendingSteps<'g, R> {
    steps: Mutex<ManuallyDrop<Queues<R>>>,
    /// How a put wakes a worker, in a run with workers that stay. The scheduler takes it away
    /// before it returns.
    wake: Mutex<ManuallyDrop<Option<WakeWorker<'g>>>>,
}

struct Queues<R> {
    /// The steps that were ready when the run began, and the steps that late steps have made ready
    /// between two rounds.
    first: Vec<R>,
    /// The steps that came later: from the environment between two runs, or while it lives on.
    later: Vec<R>,
}

impl<'g, R> PendingSteps<'g, R> {
    pub(crate) fn new() -> PendingSteps<'g, R> {
        let steps = Queues { first: Vec::new(), later: Vec::new() };
        PendingSteps {
            steps: Mutex::new(ManuallyDrop::new(steps)),
            wake: Mutex::new(ManuallyDrop::new(None)),
        }
    }

    /// Keeps ready steps for a scheduler that starts, or for a worker that looks at the bell.
    pub(crate) fn keep(&self, ready: VecDeque<R>) {
        let later = &mut lock(&self.steps).later;
        if later.is_empty() {
            *later = ready.into();
        } else {
            later.extend(ready);
        }
    }

    /// Keeps ready steps for a scheduler that starts another round.
    pub(crate) fn keep_first(&self, ready: VecDeque<R>) {
        lock(&self.steps).first.extend(ready);
    }

    /// A run begins, and with it the puts of the living environment.
    pub(crate) fn begin_run(&self) {
        let mut steps = lock(&self.steps);
        let Queues { first, later } = &mut **steps;
        if first.is_empty() {
            mem::swap(first, later);
        } else {
            first.append(later);
        }
    }

    /// Takes the steps that were ready when the run began. If there are none, takes the oldest step
    /// of the living environment; then `true` says that it has left later ones.
    pub(crate) fn take_start(&self) -> (Vec<R>, bool) {
        let mut steps = lock(&self.steps);
        if !steps.first.is_empty() || steps.later.is_empty() {
            return (mem::take(&mut steps.first), false);
        }
        let oldest = steps.later.remove(0);
        (vec![oldest], !steps.later.is_empty())
    }

    /// Takes the steps that the living environment has made ready.
    pub(crate) fn take_later(&self) -> Vec<R> {
        mem::take(&mut lock(&self.steps).later)
    }

    /// Takes all steps that no scheduler has taken.
    pub(crate) fn take_all(&self) -> Vec<R> {
        let mut first = mem::take(&mut lock(&self.steps).first);
        first.append(&mut self.take_later());
        first
    }

    /// Sets how a put of the living environment wakes a worker, and returns what was set before.
    pub(crate) fn set_wake(&self, wake: Option<WakeWorker<'g>>) -> Option<WakeWorker<'g>> {
        mem::replace(&mut **lock(&self.wake), wake)
    }

    /// Wakes a worker that sleeps, by the scheduler's own call, if the workers stay.
    pub(crate) fn wake_worker(&self) {
        if let Some(wake) = &**lock(&self.wake) {
            wake();
        }
    }
}
