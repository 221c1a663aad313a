//! Destructors of the program that panic while the graph cleans up: [`FirstPanic`].

use std::any::Any;
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
                // The destructor of what a panic carries may panic too.
                mem::forget(panic);
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
            panic => mem::forget(panic),
        }
    }
}
