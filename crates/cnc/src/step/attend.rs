//! What a worker does before it runs a step, in special cases: the run was stopped, the step was
//! cancelled, the living environment has made other steps ready, or the step is to be recorded or
//! monitored.
//!
//! `StepContext::run` calls `attend` if `Attention` says so. The gets and puts of a step call
//! `note`, which adds an edge to the worker's record and tells the monitor if the instance began
//! as an observed one.
//!
//! A step that `attend` refuses is dropped here, with its tag. It still counts as run, so that
//! `Tally::outstanding` is 0 at the end of the run.

use super::StepContext;
use super::flags::InstanceFlags;
use crate::item_store::ItemStore;
use crate::key::ItemKey;
use crate::monitor::{MissedItem, Monitor};
use crate::ready_step::{ReadyStep, StepEntry};
use crate::record::{Edge, EdgeEnd};
use std::ptr;
use std::sync::atomic::Ordering;

impl<'g> StepContext<'g> {
    /// Runs an instance, if it is to run at all.
    #[cold]
    #[inline(never)]
    pub(super) fn attend(&self, ready: ReadyStep<'g>) {
        let attention = self.core.attention();
        if attention.bell().is_rung() {
            return self.take_in(ready);
        }
        if attention.is_stopped() {
            self.drop_ended(ready);
            return;
        }
        if attention.are_some_cancelled() && ready.is_cancelled() {
            ready.entry.cancelled.fetch_add(1, Ordering::Relaxed);
            self.drop_cancelled(ready);
            return;
        }
        match self.core.monitor_if_any() {
            Some(monitor) => self.run_monitored(ready, monitor),
            None => self.run_recorded(ready),
        }
    }

    /// Takes the steps that the living environment has made ready. They come after `ready`, which
    /// has not begun. So a worker that runs its newest step runs them next, also if `ready` and its
    /// successors go on without end.
    #[inline(never)]
    fn take_in(&self, ready: ReadyStep<'g>) {
        self.ran.set(self.ran.get() - 1);
        self.core.attention().bell().answer();
        let mut held = self.ready.push(ready);
        for ready in self.core.pending.take_later() {
            // The environment's worker has counted the step.
            held = self.ready.push(ready);
        }
        if held > 1 {
            self.share(held);
        }
    }

    /// Runs an instance, and tells the monitor.
    fn run_monitored(&self, ready: ReadyStep<'g>, monitor: &Monitor) {
        // Only this worker has the address while it exists.
        let (worker, code) = (ptr::from_ref(self).addr(), &ready.entry.code);
        monitor.begin(worker, ready.entry.number, ready.step(), ready.tag());
        self.run_recorded(ready);
        let has_ended = !self.flags.get().has_missed();
        monitor.end(worker, has_ended.then(|| code.parts(self.word.get())));
    }

    /// Runs an instance, and records it if the program wants that.
    fn run_recorded(&self, ready: ReadyStep<'g>) {
        let Some(recorder) = self.core.recorder() else {
            let is_monitored = self.core.monitor_if_any().is_some();
            return self.run_to_end(ready, InstanceFlags::begun(is_monitored));
        };
        let step = (ready.entry.number, ready.recorded_tag());
        let began = self.last_end.take().unwrap_or_else(|| recorder.now());
        self.run_to_end(ready, InstanceFlags::begun(true));
        let missed = self.flags.get().has_missed();
        let ended = recorder.now();
        self.last_end.set(Some(ended));
        let mut record = self.record.borrow_mut();
        let record = record.get_or_insert_default();
        record.add(recorder, step, (began, ended), missed);
        if record.is_full() {
            recorder.take(record);
        }
    }

    /// Notes the collection that the running code uses, if the code is recorded.
    #[inline]
    pub(crate) fn note(&self, end: EdgeEnd) {
        if self.flags.get().is_observed() {
            self.note_edge(end);
        }
    }

    #[cold]
    #[inline(never)]
    pub(super) fn note_edge(&self, end: EdgeEnd) {
        let edge = Edge { step: self.entry.get().number, end };
        if let Some(monitor) = self.core.monitor_if_any() {
            monitor.used(edge);
        }
        if self.core.recorder().is_some() {
            self.record.borrow_mut().get_or_insert_default().note(edge);
        }
    }

    /// Tells the monitor that an instance was made.
    #[cold]
    #[inline(never)]
    pub(super) fn note_made(&self, entry: &'g StepEntry<'g>, word: u64) {
        if let Some(monitor) = self.core.monitor_if_any()
            && !monitor.made(entry.number, entry.code.parts(word))
        {
            self.core.show_to_monitor();
        }
    }

    /// Notes the item that the running instance has missed, or one that was put, if the instance
    /// waits to be the last one with a get of it.
    #[inline]
    pub(crate) fn note_missed<K: ItemKey, V>(&self, store: &ItemStore<'g, K, V>, key: &K, was_put: bool) {
        if self.flags.get().is_observed() && self.core.monitor_if_any().is_some() {
            let (collection, text) = store.name_and_key(key);
            let (number, order, by_step) = (store.number, ItemStore::<K, V>::order(key), store.by_step);
            let item = MissedItem { number, collection, order, key: text, was_put, by_step };
            *self.missed_item.borrow_mut() = Some(item);
        }
    }

    /// Tells the monitor that an instance waits, before it is where another worker finds it.
    #[inline]
    pub(super) fn note_wait(&self, ready: &ReadyStep<'g>) {
        if self.flags.get().is_observed()
            && let (Some(monitor), Some(item)) = (self.core.monitor_if_any(), self.missed_item.take())
        {
            monitor.waits(ready.entry.number, ready.word, ready.describe(), item);
        }
    }

    /// Tells the monitor that an instance waits no more, because its item has come.
    #[inline]
    pub(super) fn note_no_wait(&self, ready: &ReadyStep<'g>) {
        if self.flags.get().is_observed()
            && let Some(monitor) = self.core.monitor_if_any()
        {
            monitor.woken(ready.entry.number, ready.word);
        }
    }

    /// Hands the record of this worker over to the recorder.
    pub(super) fn hand_over_record(&self) {
        if let (Some(recorder), Some(record)) = (self.core.recorder(), &mut *self.record.borrow_mut()) {
            recorder.take(record);
        }
    }
}
