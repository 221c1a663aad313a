//! Destructors of the program that panic while the graph cleans up: [`FirstPanic`].
//!
//! Code that drops several values of the program runs each drop with [`FirstPanic::run`], then
//! calls [`FirstPanic::go_on`] or [`FirstPanic::take`]: `Arena`, `Core::close`, the storages,
//! `AsyncStep`, and the end of a step in `step/run.rs`. The panic of a step itself ends with
//! [`take_message`].
//!
//! A part that panics may be run again. So a part first notes that a value is gone, and then drops
//! the value.

use crate::error::message;
use crate::primitives::{Mutex, lock};
use std::any::Any;
use std::collections::HashSet;
use std::panic::{self, AssertUnwindSafe};
use std::{mem, thread};

/// Runs the parts of a cleaning, each to its end, and remembers the first panic. So a destructor
/// that panics keeps no other part from being cleaned.
#[derive(Default)]
pub(crate) struct FirstPanic(Option<Box<dyn Any + Send>>);

impl FirstPanic {
    /// Runs a part. False if it has panicked.
    pub(crate) fn run(&mut self, part: impl FnOnce()) -> bool {
        match panic::catch_unwind(AssertUnwindSafe(part)) {
            Ok(()) => true,
            Err(panic) if self.0.is_none() => {
                self.0 = Some(panic);
                false
            }
            Err(panic) => {
                drop_payload(panic);
                false
            }
        }
    }

    /// What the first panic carries.
    pub(crate) fn take(self) -> Option<Box<dyn Any + Send>> {
        self.0
    }

    /// Lets the first panic go on, unless the OS thread unwinds already.
    pub(crate) fn go_on(self) {
        match self.0 {
            Some(panic) if !thread::panicking() => panic::resume_unwind(panic),
            Some(panic) => drop_payload(panic),
            None => (),
        }
    }
}

/// What a panic said. What it carries is dropped.
pub(crate) fn take_message(payload: Box<dyn Any + Send>) -> String {
    let text = message(&*payload);
    drop_payload(payload);
    text
}

/// Drops what a panic carries. Its destructor may panic too; what that panic carries is leaked.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(another) = panic::catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        mem::forget(another);
    }
}

/// Drops the tags of a set, and keeps its memory. Their destructors run without the lock.
pub(crate) fn clear<T>(set: &Mutex<HashSet<T>>) {
    let mut tags = std::mem::take(&mut *lock(set));
    let mut panics = FirstPanic::default();
    panics.run(|| tags.clear());
    *lock(set) = tags;
    panics.go_on();
}
