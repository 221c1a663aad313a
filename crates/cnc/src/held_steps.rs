//! The ready steps that a worker holds: [`HeldSteps`].
//!
//! `StepContext::push` adds a step. `Worker::newest` and `Worker::oldest` take one for the
//! scheduler, and `StepContext::share` takes the older half for an idle worker.
//!
//! The list is in an `UnsafeCell` without a count of borrows. So a method must not call code of the
//! program: it moves steps, and neither drops nor compares them.

use std::cell::UnsafeCell;
use std::collections::VecDeque;

/// The ready steps of one worker, the oldest first.
///
/// No method calls code of the program: a method moves steps, and neither drops nor compares them.
/// So no method runs inside another one, and no count of borrows is needed.
pub(crate) struct HeldSteps<R>(UnsafeCell<VecDeque<R>>);

impl<R> HeldSteps<R> {
    pub(crate) fn new() -> HeldSteps<R> {
        HeldSteps(UnsafeCell::new(VecDeque::new()))
    }

    /// Gives `work` the steps. `work` calls no code of the program.
    #[inline(always)]
    fn with<A>(&self, work: impl FnOnce(&mut VecDeque<R>) -> A) -> A {
        // SAFETY: the type is not `Sync`, so no two calls on two OS threads overlap. Each caller in
        // this file passes a closure that calls no code of the program, so no call is within
        // another one. So there is no other reference while `work` runs.
        work(unsafe { &mut *self.0.get() })
    }

    /// Adds a step. Returns how many there are now.
    #[inline]
    pub(crate) fn push(&self, ready: R) -> usize {
        self.with(|steps| {
            steps.push_back(ready);
            steps.len()
        })
    }

    #[inline]
    pub(crate) fn newest(&self) -> Option<R> {
        self.with(VecDeque::pop_back)
    }

    #[inline]
    pub(crate) fn oldest(&self) -> Option<R> {
        self.with(VecDeque::pop_front)
    }

    /// Takes the older half out.
    pub(crate) fn older_half(&self) -> Vec<R> {
        self.with(|steps| {
            let half = steps.len().div_ceil(2);
            steps.drain(..half).collect()
        })
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.with(|steps| steps.len())
    }

    /// Takes all steps out.
    pub(crate) fn take(&self) -> VecDeque<R> {
        self.with(std::mem::take)
    }
}
