//! The system call that performs a non-blocking action.

use crate::cpu::{Ask, direct, retract};
use crate::thread::Thread;
use std::cell::Cell;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

/// Has the scheduler perform a non-blocking action, and returns its result.
///
/// An action may as well be performed in the thread itself, at no cost: this call is for programs whose scheduler wants to
/// see or place such actions, for instance to run those that are not safe beside each other one after another.
///
/// # Paper
/// [LZ07 Figure 10] `sys_nbio`; where it runs: [LZ07 §4.1].
#[doc(alias = "sys_nbio")]
pub fn nbio<T: 'static>(action: impl FnOnce() -> T + 'static) -> Performing<T> {
    let result = Rc::new(Cell::new(None));
    let to = Rc::clone(&result);
    Performing { action: Some(Box::new(move || to.set(Some(action())))), result, asked: false }
}

/// The future of [`nbio`].
#[must_use = "nothing happens until it is awaited"]
pub struct Performing<T> {
    action: Option<Box<dyn FnOnce()>>,
    result: Rc<Cell<Option<T>>>,
    asked: bool,
}

impl<T> Unpin for Performing<T> {}

impl<T> Future for Performing<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let Some(action) = self.action.take() {
            match direct(cx) {
                Some(cpu) if cpu.ask(Rc::as_ptr(&self.result), Ask::Nbio) => {
                    self.asked = true;
                    cpu.put_nbio(Box::new(Nbio { action, thread: None }));
                    return Poll::Pending;
                }
                // Within a combinator, or elsewhere: at once.
                _ => action(),
            }
        }
        match self.result.take() {
            Some(result) => {
                self.asked = false;
                Poll::Ready(result)
            }
            None => Poll::Pending,
        }
    }
}

impl<T> Drop for Performing<T> {
    fn drop(&mut self) {
        if self.asked {
            // The future may have moved; what it shares has not.
            retract(Rc::as_ptr(&self.result));
        }
    }
}

impl<T> fmt::Debug for Performing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Performing").field("asked", &self.asked).finish_non_exhaustive()
    }
}

/// A non-blocking action that a thread asks for.
pub struct Nbio {
    action: Box<dyn FnOnce()>,
    thread: Option<Thread>,
}

impl Nbio {
    /// Performs the action, and returns the thread, which finds the result. A panic in the action passes through and
    /// cancels the thread.
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
