//! The steps that a worker does not just run: the run was stopped, the step was cancelled, or the
//! step is to be recorded.
//!
//! `StepContext::run` calls `attend` if `Attention` says so. The gets and puts of a step call
//! `note`, which adds an edge to the worker's record if the instance began with `OBSERVED`.
//!
//! A step that `attend` refuses is dropped here, with its tag. It still counts as run, so that
//! `Core::outstanding` is 0 at the end of the run.

use std::sync::atomic::Ordering;

use crate::code::ReadyStep;
use crate::record::{Edge, EdgeEnd, RunRecord};

use super::{MISSED, OBSERVED, StepContext};

impl<'g> StepContext<'g> {
    /// Runs an instance, if it is to run at all.
    #[cold]
    #[inline(never)]
    pub(super) fn attend(&self, ready: ReadyStep<'g>) {
        let attention = self.core.attention();
        if attention.is_stopped() {
            return;
        }
        if attention.are_some_cancelled() && ready.is_cancelled() {
            ready.entry.cancelled.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let Some(recorder) = self.core.recorder() else { return self.run_to_end(ready, 0) };
        let (step, tag) = (ready.entry.number, ready.recorded_tag());
        let began = recorder.now();
        self.run_to_end(ready, OBSERVED);
        let missed = self.flags.get() & MISSED != 0;
        let ended = recorder.now();
        let mut record = self.record.borrow_mut();
        let record = record.get_or_insert_default();
        let worker = record.number(recorder);
        record.add(RunRecord { worker, step, tag, began, ended, missed });
        if record.is_full() {
            recorder.take(record);
        }
    }

    /// Notes the collection that the running code uses, if the code is recorded.
    #[inline]
    pub(crate) fn note(&self, end: EdgeEnd) {
        if self.flags.get() & OBSERVED != 0 {
            self.note_edge(end);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn note_edge(&self, end: EdgeEnd) {
        let mut record = self.record.borrow_mut();
        let record = record.get_or_insert_default();
        record.note(Edge { step: self.entry.get().number, end });
    }

    /// Hands the record of this worker over to the recorder.
    pub(super) fn hand_over_record(&self) {
        if let (Some(recorder), Some(record)) = (self.core.recorder(), &mut *self.record.borrow_mut()) {
            recorder.take(record);
        }
    }
}
