//! How a worker runs an instance of a step, and how the instance ends.

use std::panic::{self, AssertUnwindSafe};

use crate::code::{ReadyStep, StepEntry};
use crate::collections::NO_TAG;
use crate::core::Core;
use crate::error::{FaultCause, Halted, StepResult, message};
use crate::first_panic::FirstPanic;
use crate::slot::SuspendedStep;

use super::{ENVIRONMENT, FAILED, MISSED, MissedGet, StepContext, Worker};

impl<'g> StepContext<'g> {
    /// Runs an instance.
    pub(super) fn run(&self, ready: ReadyStep<'g>) {
        self.ran.set(self.ran.get() + 1);
        if self.core.is_cancelled() {
            return;
        }
        let mut next = Some(ready);
        while let Some(ready) = next {
            next = self.run_once(ready);
        }
    }

    /// Runs an instance; returns it if it missed an item that is there now.
    #[inline]
    fn run_once(&self, ready: ReadyStep<'g>) -> Option<ReadyStep<'g>> {
        let (entry, word) = ready.into_parts();
        self.entry.set(entry);
        self.word.set(word);
        self.flags.set(0);
        // SAFETY: `into_parts` gave the word to this function.
        let end = panic::catch_unwind(AssertUnwindSafe(|| unsafe { entry.code.run(word, self) }));
        if let Some((runs, _)) = self.counts.borrow_mut().get_mut(entry.number) {
            *runs += 1;
        }
        match end {
            Ok(Ok(())) if self.flags.get() & (MISSED | FAILED) == 0 => {
                if entry.free.is_some() && !entry.takes_word || !self.claims.borrow().is_empty() {
                    self.end_with_drops(entry, word);
                }
                None
            }
            end => self.end_badly(entry, end),
        }
    }

    /// Frees the tag of an instance that has ended, and returns its claims. Both may run
    /// destructors of the program's. One that panics keeps no other one from running.
    #[inline(never)]
    fn end_with_drops(&self, entry: &'g StepEntry<'g>, word: u64) {
        let tag = (!entry.takes_word).then_some(ReadyStep { entry, word });
        if let Some(panic) = self.clean_up(tag).take() {
            self.fault_of(entry, 0, NO_TAG.to_owned(), FaultCause::Panicked(message(&*panic)));
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
                claim.items.give_back(claim, &mut |ready| self.push(ready));
            }
        };
        while !panics.run(&mut part) {}
        // The same memory for the next instance.
        claims.clear();
        self.claims.replace(claims);
        panics
    }

    /// What becomes of an instance that has not come to its end.
    #[cold]
    #[inline(never)]
    fn end_badly(
        &self,
        entry: &'g StepEntry<'g>,
        end: std::thread::Result<StepResult>,
    ) -> Option<ReadyStep<'g>> {
        let rest = self.rest.take();
        let this = if entry.takes_word { rest } else { Some(ReadyStep { entry, word: self.word.get() }) };
        for claim in self.claims.borrow_mut().drain(..) {
            claim.items.unclaim(&claim);
        }
        let missed = self.missed.take();
        // Without `this`, the code has freed its word, so the tag cannot be read any more. `this`
        // lives until the end of this function.
        let fault = |why| match &this {
            Some(_) => self.fault(why),
            None => self.fault_of(entry, 0, NO_TAG.to_owned(), why),
        };
        match end {
            Err(panic) => {
                fault(FaultCause::Panicked(message(&*panic)));
                return None;
            }
            _ if self.flags.get() & FAILED != 0 => return None,
            Ok(Err(Halted(Some(error)))) => {
                fault(FaultCause::Error(*error));
                return None;
            }
            _ => {}
        }
        let Some(missed) = missed else {
            fault(FaultCause::Foreign);
            return None;
        };
        let Some(this) = this else {
            self.fault_of(entry, 0, NO_TAG.to_owned(), FaultCause::Foreign);
            return None;
        };
        if let Some((_, misses)) = self.counts.borrow_mut().get_mut(entry.number) {
            *misses += 1;
        }
        match missed {
            MissedGet::Item(state) => state.wait(SuspendedStep::new(this)).err().map(|waiter| waiter.ready),
            MissedGet::ToBeLast(items, slot) => items.wait_as_last(slot, this).err(),
        }
    }

    /// Runs code of the environment.
    pub(crate) fn environment<A>(
        core: &'g Core<'g>,
        work: impl FnOnce(&StepContext<'g>) -> StepResult<A>,
    ) -> Option<A> {
        let worker = Worker::new(core, None);
        let step = &worker.0;
        step.flags.set(ENVIRONMENT);
        let end = panic::catch_unwind(AssertUnwindSafe(|| work(step)));
        let panics = step.clean_up(None);
        let end = end.unwrap_or_else(|panic| panic::resume_unwind(panic));
        panics.go_on();
        match end {
            Ok(answer) if step.flags.get() & (MISSED | FAILED) == 0 => Some(answer),
            Err(Halted(Some(error))) => {
                step.fault(FaultCause::Error(*error));
                None
            }
            _ => None,
        }
    }
}
