//! What is done when no step of a run is ready: [`StepContext::settle_or_rest`], which
//! `GraphJob::rounds` calls after each round of the scheduler, and `Stay` for the last worker that
//! stays.
//!
//! 1. The steps that wait and were cancelled are dropped. So the claims of an async step are free
//!    again. A step of another kind gives its claims back when it misses an item. So the reports at
//!    the end of the run are the same for all kinds.
//! 2. The steps that are late (`in_use.rs`) look for their items once more, one after the other. If
//!    none of them comes further, no step can free a claim for them, and each of them is told that
//!    it gets an item too often.
//!
//! The first part takes the lists of waiters apart, so neither a worker nor a put of the living
//! environment may be under way. The second part is a run of steps as any other.
//!
//! `Graph::run` and `Graph::initialize` do the first part too, because the program may have
//! cancelled steps since the last round. `Graph::reset` drops all steps that wait
//! ([`StepContext::drop_all`]).

use super::{StepContext, Worker};
use crate::core::Core;
use crate::first_panic::FirstPanic;
use crate::ready_step::ReadyStep;
use std::sync::atomic::Ordering;

impl<'g> StepContext<'g> {
    /// Settles the graph while no step is ready, and rests at the bell if none is ready after that.
    /// False if the run ends.
    pub(crate) fn settle_or_rest(core: &'g Core<'g>) -> bool {
        // Steps may have made collections.
        core.show_to_monitor();
        StepContext::settle(core) || core.attention().bell().rest()
    }

    /// Frees the claims of cancelled steps, and lets the late ones look again. True if steps are
    /// ready now.
    fn settle(core: &'g Core<'g>) -> bool {
        if core.some_wait_cancelled() {
            // A put that is under way leaves steps for another round, and that one is settled.
            let Some(quiet) = core.attention().bell().between_rounds() else { return false };
            StepContext::drop_waiting(core, || drop(quiet));
        }
        core.tally.outstanding() == 0 && StepContext::look_again(core)
    }

    /// Drops the steps that wait and were cancelled, between two runs or at the end of one. No
    /// worker and no put is under way.
    pub(crate) fn settle_cancelled(core: &'g Core<'g>) {
        if core.some_wait_cancelled() {
            StepContext::drop_waiting(core, || ());
        }
    }

    /// Drops the steps that wait and were cancelled. After `taken_out`, workers and puts may be
    /// under way: destructors of the program run then.
    fn drop_waiting(core: &'g Core<'g>, taken_out: impl FnOnce()) {
        let worker = Worker::new(core, None);
        let step = &worker.0;
        core.tally.note_settled(core.attention().cancellations());
        let items = core.catalogue.each_items();
        let all: Vec<ReadyStep<'g>> = items
            .iter()
            .flat_map(|items| items.take_waiting(&step.waiters, ReadyStep::is_cancelled))
            .collect();
        taken_out();
        for ready in all {
            step.note_taken_out(&ready);
            ready.entry.cancelled.fetch_add(1, Ordering::Relaxed);
            step.drop_cancelled(ready);
        }
    }

    /// Drops the ready steps and the waiting steps, between two runs. A destructor that panics
    /// stops nothing; `panics` has the first panic.
    pub(crate) fn drop_all(core: &'g Core<'g>, panics: &mut FirstPanic) {
        let some_may_wait = core.tally.some_may_wait();
        let worker = Worker::new(core, None);
        let step = &worker.0;
        for ready in core.pending.take_all() {
            panics.run(|| step.drop_cancelled(ready));
        }
        let items = if some_may_wait { core.catalogue.each_items() } else { Vec::new() };
        let waiting: Vec<ReadyStep<'g>> =
            items.iter().flat_map(|items| items.take_waiting(&step.waiters, |_| true)).collect();
        for ready in waiting {
            step.note_taken_out(&ready);
            panics.run(|| step.drop_cancelled(ready));
        }
    }

    /// Lets the late steps look again, until other steps are ready or no step is late. True if
    /// steps are ready.
    fn look_again(core: &'g Core<'g>) -> bool {
        let mut late = core.take_late();
        if late.is_empty() {
            return false;
        }
        let worker = Worker::new(core, None);
        let step = &worker.0;
        while !late.is_empty() {
            let before = late.len();
            for ready in late {
                step.note_taken_out(&ready);
                step.made.set(step.made.get() + 1);
                step.run(ready);
            }
            if worker.ready() > 0 {
                core.pending.keep_first(step.ready.take());
                return true;
            }
            late = core.take_late();
            step.refuses_late.set(late.len() == before);
        }
        false
    }
}
