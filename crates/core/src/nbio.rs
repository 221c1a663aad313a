//! [`Nbio`]: an action that does not block, as the scheduler gets it in a `Trace::Nbio` node.
//!
//! `performing.rs` makes it from the action of a thread's `nbio` call. A scheduler performs it,
//! which gives the thread back.

use crate::thread::Thread;
use std::fmt;

/// A non-blocking action that a thread asks for.
pub struct Nbio {
    action: Box<dyn FnOnce()>,
    thread: Option<Thread>,
}

impl Nbio {
    pub(crate) fn new(action: Box<dyn FnOnce()>) -> Nbio {
        Nbio { action, thread: None }
    }

    /// Performs the action, and returns the thread, which finds the result. If the action panics,
    /// the panic goes on in the thread, when the thread runs again.
    pub fn perform(self) -> Thread {
        (self.action)();
        self.thread.expect("a node of a trace carries its thread")
    }

    pub(crate) fn carry(&mut self, thread: Thread) {
        self.thread = Some(thread);
    }

    pub(crate) fn perform_detached(self) {
        (self.action)();
    }
}

impl fmt::Debug for Nbio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Nbio({:?})", self.thread)
    }
}
