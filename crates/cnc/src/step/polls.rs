//! Which async steps an OS thread polls now: the list of its [`PollEntry`]s. The handle of an async
//! step finds the worker of its step there, by the number of the step.
//!
//! It is a list and not one entry, because a step may run within the poll of another one, and
//! because a direct-style thread may wait within a poll while another thread begins one; such polls
//! end in any order.

use super::StepContext;
use crate::ready_step::ReadyStep;
use std::cell::Cell;
use std::process;
use std::ptr;

thread_local! {
    /// The innermost poll of an async step on this OS thread: the poll that began last and has not
    /// ended. Null if there is none.
    static POLLS: Cell<*const PollEntry> = const { Cell::new(ptr::null()) };
}

/// A poll of an async step that has begun on this OS thread and has not ended. It is in the list of
/// `POLLS`.
pub(crate) struct PollEntry {
    /// The number of the step, which is the same in all its polls.
    pub(crate) serial: u64,
    pub(crate) core: *const (),
    /// The `StepContext` of the worker that polls.
    step: *const (),
    /// The poll that began before it.
    outer: Cell<*const PollEntry>,
}

impl PollEntry {
    pub(crate) fn of(serial: u64, step: &StepContext<'_>) -> PollEntry {
        let core = ptr::from_ref(step.core()).cast();
        PollEntry { serial, core, step: ptr::from_ref(step).cast(), outer: Cell::new(ptr::null()) }
    }

    /// The innermost poll of this OS thread that `is_it` accepts.
    pub(crate) fn find(is_it: impl Fn(&PollEntry) -> bool) -> Option<*const ()> {
        let mut at = POLLS.get();
        // SAFETY: `PollGuard` keeps each entry of the list alive, and takes it out at its end.
        while let Some(entry) = unsafe { at.as_ref() } {
            if is_it(entry) {
                return Some(entry.step);
            }
            at = entry.outer.get();
        }
        None
    }
}

/// Keeps an entry in the list of `POLLS` while it exists.
pub(crate) struct PollGuard<'a>(&'a PollEntry);

impl<'a> PollGuard<'a> {
    pub(crate) fn enter(entry: &'a PollEntry) -> PollGuard<'a> {
        entry.outer.set(POLLS.replace(entry));
        PollGuard(entry)
    }
}

impl Drop for PollGuard<'_> {
    fn drop(&mut self) {
        let mut inner = POLLS.get();
        if ptr::eq(inner, self.0) {
            return POLLS.set(self.0.outer.get());
        }
        // A step of another direct-style thread began later, and waits within its poll.
        // SAFETY: as in `find`.
        while let Some(entry) = unsafe { inner.as_ref() } {
            if ptr::eq(entry.outer.get(), self.0) {
                return entry.outer.set(self.0.outer.get());
            }
            inner = entry.outer.get();
        }
        // The list of the OS thread on which the poll began would keep the entry for ever.
        process::abort();
    }
}

impl<'g> StepContext<'g> {
    /// Drops a step of any kind that was cancelled. The handle of an async step finds the worker as
    /// in a poll.
    pub(super) fn drop_cancelled(&self, ready: ReadyStep<'g>) {
        // No step has this number.
        let entry = PollEntry::of(u64::MAX, self);
        let _entered = PollGuard::enter(&entry);
        let (frame, word) = (ready.entry.code.frame(), ready.word);
        self.drops_cancelled.set(true);
        self.drop_ended(ready);
        self.drops_cancelled.set(false);
        if let Some(size) = frame {
            // SAFETY: the word was the address of a frame of this size, which was dropped above.
            // `free_frame` has left its place.
            unsafe { self.frames.give_place(size, ptr::with_exposed_provenance_mut(word as usize)) };
        }
    }
}
