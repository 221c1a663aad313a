//! The run of one instance of a step, and its end. `Worker::run` calls [`StepContext::run`], and
//! `Graph::initialize` calls [`StepContext::environment`].
//!
//! `run_to_end` is the loop. An instance that returns `Ok` without a missed item, a claim or a
//! boxed tag has ended there. `end_otherwise` handles the rest: the instance waits for an item,
//! returns its claims, or reports a fault. If the item came meanwhile, the instance runs again at
//! once.
//!
//! An instance that has missed an item waits, whatever it does after the miss: it may return `Ok`,
//! an error of the program, or panic. The same instance would do none of that if the item had come
//! earlier, so a fault there would depend on the schedule.
//!
//! Each path must use the instance's word exactly once: it frees the word, hands it to the item as
//! a waiter, or the code has consumed it (`takes_word`). The worker counts a suspended step after
//! `SlotState::wait` has published it. Another worker may wake the step before that, so the counts
//! are right only as a sum over all workers.

use super::flags::InstanceFlags;
use super::{MissedGet, StepContext, Worker};
use crate::core::Core;
use crate::error::{FaultCause, Halted, StepResult};
use crate::first_panic::{FirstPanic, drop_payload, take_message};
use crate::in_use::InUse;
use crate::key::NO_TAG;
use crate::ready_step::{ReadyStep, StepEntry};
use crate::slot::SlotState;
use std::error::Error;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::Ordering;
use std::thread;

impl<'g> StepContext<'g> {
    /// Runs an instance.
    pub(super) fn run(&self, ready: ReadyStep<'g>) {
        self.ran.set(self.ran.get() + 1);
        if self.attention.is_needed() {
            self.attend(ready);
        } else {
            self.run_to_end(ready, InstanceFlags::begun(false));
        }
    }

    /// Runs an instance to its end or until it waits. It begins with `flags`.
    #[inline(always)]
    pub(super) fn run_to_end(&self, ready: ReadyStep<'g>, flags: InstanceFlags) {
        let mut next = ready.into_parts();
        loop {
            let (entry, word) = next;
            let end = self.run_once(entry, word, flags);
            if matches!(end, Ok(true)) && self.flags.get().ends_simply() && !entry.drops {
                return;
            }
            match self.end_otherwise(entry, word, end) {
                Some(again) => next = again.into_parts(),
                None => return,
            }
        }
    }

    /// Runs an instance. True if it has returned `Ok`; an error of the program's is in `error`.
    #[inline(always)]
    fn run_once(&self, entry: &'g StepEntry<'g>, word: u64, flags: InstanceFlags) -> thread::Result<bool> {
        self.entry.set(entry);
        self.word.set(word);
        self.flags.set(flags);
        let end = panic::catch_unwind(AssertUnwindSafe(|| {
            // SAFETY: the word came from `ReadyStep::into_parts` of an instance of the entry.
            match unsafe { entry.code.run(word, self) } {
                Ok(()) => true,
                Err(Halted(None)) => false,
                Err(error) => self.keep_error(error),
            }
        }));
        match self.counts.get(entry.row) {
            Some(counts) => counts.runs.set(counts.runs.get() + 1),
            None => self.count_late(entry.row, 1, 0),
        }
        end
    }

    /// Keeps the error of the program's that an instance has returned. False, as `run_once` says.
    ///
    /// The error of an instance that has missed an item is dropped here. The instance would have no
    /// such error if the item had come earlier, so the error must not decide how the run ends. The
    /// error of an instance that has failed is dropped too, because its fault is noted already.
    #[cold]
    fn keep_error(&self, Halted(error): Halted) -> bool {
        if !self.is_halted() {
            self.error.set(error);
        }
        false
    }

    /// Handles an instance that did not simply end in `run_to_end`. Returns it if it missed an item
    /// that is there now.
    #[inline(never)]
    fn end_otherwise(
        &self,
        entry: &'g StepEntry<'g>,
        word: u64,
        end: thread::Result<bool>,
    ) -> Option<ReadyStep<'g>> {
        let flags = self.flags.get();
        if matches!(end, Ok(true)) && !flags.is_halted() {
            self.end_with_drops(entry, word);
            return None;
        }
        let missed = self.missed.take();
        let error = self.error.take();
        if let (Ok(_), None, Some(MissedGet::Item(state, _))) = (&end, &error, &missed)
            && flags.has_only_missed()
            && !entry.takes_word
        {
            // The most common case: before the miss, the instance has got kept items only.
            return self.wait_for(state, ReadyStep { entry, word: self.word.get() });
        }
        self.end_badly(entry, end.map(|_| error), missed)
    }

    /// Suspends an instance until an item is there. Returns the instance if the item is there now.
    fn wait_for(&self, state: &'g SlotState<ReadyStep<'g>>, this: ReadyStep<'g>) -> Option<ReadyStep<'g>> {
        self.count_miss(this.entry.row);
        self.note_wait(&this);
        match state.wait(this, &self.waiters) {
            Ok(()) => {
                self.suspended.set(self.suspended.get().wrapping_add(1));
                None
            }
            Err(this) => {
                self.note_no_wait(&this);
                state.until_full();
                Some(this)
            }
        }
    }

    fn count_miss(&self, row: usize) {
        match self.counts.get(row) {
            Some(counts) => counts.misses.set(counts.misses.get() + 1),
            None => self.count_late(row, 0, 1),
        }
    }

    /// Counts for a step collection that is younger than the worker.
    #[cold]
    fn count_late(&self, row: usize, runs: u64, misses: u64) {
        let mut counts = self.late_counts.borrow_mut();
        let at = row - self.counts.len();
        if counts.len() <= at {
            counts.resize(at + 1, (0, 0));
        }
        counts[at].0 += runs;
        counts[at].1 += misses;
    }

    /// Frees the tag of an instance that has ended, and returns its claims. Both may run
    /// destructors of the program. If one of them panics, the others run all the same.
    #[inline(never)]
    fn end_with_drops(&self, entry: &'g StepEntry<'g>, word: u64) {
        let tag = (!entry.takes_word).then_some(ReadyStep { entry, word });
        if let Some(panic) = self.clean_up(tag).take() {
            self.fault_of(entry, 0, NO_TAG.to_owned(), FaultCause::Panicked(take_message(panic)));
        }
    }

    /// Drops the tag, and returns the claims of the instance, which has ended.
    fn clean_up(&self, mut tag: Option<ReadyStep<'g>>) -> FirstPanic {
        let mut panics = FirstPanic::default();
        let mut claims = self.claims.take();
        let mut returned = 0;
        let mut part = || {
            drop(tag.take());
            while let Some(claim) = claims.get(returned) {
                returned += 1;
                claim.items.give_back(claim, &mut |ready| self.push_taker(ready));
            }
        };
        while !panics.run(&mut part) {}
        // The same memory for the next instance.
        claims.clear();
        self.claims.replace(claims);
        panics
    }

    /// Drops an instance that has ended or is not to run. If the destructor of its tag panics, that
    /// is a fault.
    pub(crate) fn drop_ended(&self, ready: ReadyStep<'g>) {
        let (entry, mut panics) = (ready.entry, FirstPanic::default());
        panics.run(|| drop(ready));
        if let Some(panic) = panics.take() {
            self.fault_of(entry, 0, NO_TAG.to_owned(), FaultCause::Panicked(take_message(panic)));
        }
    }

    /// Handles an instance that has failed, or that has missed an item and needs more than
    /// `wait_for`.
    #[cold]
    #[inline(never)]
    fn end_badly(
        &self,
        entry: &'g StepEntry<'g>,
        end: thread::Result<Option<Box<Box<dyn Error + Send + Sync>>>>,
        missed: Option<MissedGet<'g>>,
    ) -> Option<ReadyStep<'g>> {
        let rest = self.rest.take();
        let mut this = if entry.takes_word { rest } else { Some(ReadyStep { entry, word: self.word.get() }) };
        for claim in self.claims.borrow_mut().drain(..) {
            claim.items.unclaim(&claim);
            entry.missed_with_claims.store(true, Ordering::Relaxed);
        }
        let again = self.wait_or_fail(entry, end, missed, &mut this);
        if let Some(this) = this {
            self.drop_ended(this);
        }
        again
    }

    /// Suspends an instance, which it takes out of `this`, or notes the fault of the instance.
    fn wait_or_fail(
        &self,
        entry: &'g StepEntry<'g>,
        end: thread::Result<Option<Box<Box<dyn Error + Send + Sync>>>>,
        missed: Option<MissedGet<'g>>,
        this: &mut Option<ReadyStep<'g>>,
    ) -> Option<ReadyStep<'g>> {
        // Without `this`, the code has freed its word, so the tag cannot be read any more.
        let fault = |why| match this {
            Some(_) => self.fault(why),
            None => self.fault_of(entry, 0, NO_TAG.to_owned(), why),
        };
        match end {
            Err(panic) => {
                let flags = self.flags.get();
                if !flags.is_halted() {
                    fault(FaultCause::Panicked(take_message(panic)));
                } else {
                    drop_payload(panic);
                }
                // The panic of an instance that has missed an item is dropped, as `keep_error` does
                // with its error: the next attempt finds the item and may come to its end.
                if !flags.has_missed() || flags.has_failed() {
                    return None;
                }
            }
            _ if self.flags.get().has_failed() => return None,
            Ok(Some(error)) => {
                fault(FaultCause::Error(*error));
                return None;
            }
            _ => {}
        }
        let Some(missed) = missed else {
            fault(FaultCause::Foreign);
            return None;
        };
        let Some(this) = this.take() else {
            self.fault_of(entry, 0, NO_TAG.to_owned(), FaultCause::Foreign);
            return None;
        };
        match missed {
            MissedGet::Item(state, _page) => self.wait_for(state, this),
            MissedGet::InUse(items, slot, why, _page) => {
                self.count_miss(entry.row);
                self.note_wait(&this);
                if why == InUse::ForAGet {
                    self.core.tally.note_late();
                }
                let given_back = items.wait_for_users(slot, this, why).err();
                match &given_back {
                    None => self.suspended.set(self.suspended.get().wrapping_add(1)),
                    Some(this) => self.note_no_wait(this),
                }
                given_back
            }
        }
    }

    /// Makes a step ready that waited for the users of an item.
    pub(crate) fn push_taker(&self, ready: ReadyStep<'g>) {
        self.note_taken_out(&ready);
        self.push(ready);
    }

    /// Notes that a step waits no more.
    pub(super) fn note_taken_out(&self, ready: &ReadyStep<'g>) {
        self.suspended.set(self.suspended.get().wrapping_sub(1));
        if let Some(monitor) = self.core.monitor_if_any() {
            monitor.woken(ready.entry.number, ready.word);
        }
    }

    /// Repeats the gets of the steps that wait, at the end of a run in which no step can run. No
    /// such step has an effect, because it has not passed its gets.
    ///
    /// A step that may run again gives its claims back when it misses an item. Then another step
    /// may claim the last get of an item, and end well. In the other order the waiting step claims
    /// the last get, and the other step comes too late. The report must not depend on the order, so
    /// here all waiting steps claim the items that they need at the same time.
    pub(crate) fn get_again(core: &'g Core<'g>, waiting: Vec<(&'g StepEntry<'g>, u64)>) {
        let claimed = |entry: &StepEntry<'g>| entry.missed_with_claims.load(Ordering::Relaxed);
        if !waiting.iter().any(|(entry, _)| claimed(entry) && !entry.takes_word) {
            return;
        }
        let worker = Worker::new(core, None);
        let step = &worker.0;
        step.refuses_late.set(true);
        let (mut held, mut told) = (Vec::new(), Vec::new());
        for (entry, word) in waiting {
            // The word of an async step belongs to the run, and its handle keeps its claims.
            if !claimed(entry) || entry.takes_word || core.tally.was_told(entry.number, word) {
                continue;
            }
            let end = step.run_once(entry, word, InstanceFlags::repeated());
            if step.flags.get().has_failed() {
                told.push((entry.number, word));
            }
            if let Err(panic) = end {
                drop_payload(panic);
            }
            held.append(&mut step.claims.borrow_mut());
            drop((step.missed.take(), step.error.take()));
        }
        // This is no run that is counted.
        step.counts.iter().for_each(|counts| counts.runs.set(0));
        held.iter().for_each(|claim| claim.items.unclaim(claim));
        // After the loop, because another instance in it may have the same tag.
        told.into_iter().for_each(|(entry, word)| core.tally.note_told(entry, word));
    }

    /// Runs code of the environment.
    pub(crate) fn environment<A>(
        core: &'g Core<'g>,
        work: impl FnOnce(&StepContext<'g>) -> StepResult<A>,
    ) -> Option<A> {
        let worker = Worker::new(core, None);
        let step = &worker.0;
        let is_observed = core.recorder().is_some() || core.monitor_if_any().is_some();
        step.flags.set(InstanceFlags::of_environment(is_observed));
        let end = panic::catch_unwind(AssertUnwindSafe(|| work(step)));
        let panics = step.clean_up(None);
        let end = end.unwrap_or_else(|panic| panic::resume_unwind(panic));
        panics.go_on();
        match end {
            Ok(answer) if !step.is_halted() => Some(answer),
            Err(Halted(Some(error))) => {
                step.fault(FaultCause::Error(*error));
                None
            }
            _ => None,
        }
    }
}
