//! [`nbio`]: the system call by which a thread has its scheduler perform an action that does not
//! block.
//!
//! Programs call [`nbio`]. Its future puts the action into the request slot of the CPU. The
//! scheduler gets it as a `Trace::Nbio` node (`nbio.rs`), performs it, and goes on with the thread.
//! Within a combinator the CPU performs the action itself at the end of the step
//! (`cpu/conclude.rs`).

use crate::budget;
use crate::cpu::ask::{direct, retract};
use crate::cpu::slot::Ask;
use crate::nbio::Nbio;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

/// Hands a non-blocking action to the scheduler, which performs it. Returns the result of the
/// action.
///
/// A thread may as well perform an action itself, at no cost. This call is for programs with a
/// scheduler that wants to see or place such actions: for example, to run actions one after another
/// that are not safe beside each other.
///
/// # Panics
/// In the thread, if the action panics.
///
/// # Paper
/// [LZ07 Figure 10] `sys_nbio`; where it runs: [LZ07 §4.1].
#[doc(alias = "sys_nbio")]
pub fn nbio<T: 'static, A: FnOnce() -> T + 'static>(action: A) -> Performing<T, A> {
    Performing { action: Some(action), result: Arc::default(), asked: false }
}

/// The future of [`nbio`].
#[must_use = "nothing happens until it is awaited"]
pub struct Performing<T, A> {
    action: Option<A>,
    /// The lock makes it `Send`, so that the thread may go on with another CPU. No thread ever
    /// waits for this lock.
    result: Arc<Mutex<Option<std::thread::Result<T>>>>,
    asked: bool,
}

impl<T, A> Unpin for Performing<T, A> {}

impl<T: 'static, A: FnOnce() -> T + 'static> Future for Performing<T, A> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if let Some(action) = self.action.take() {
            match direct(cx) {
                Some(cpu) if cpu.ask(Arc::as_ptr(&self.result), Ask::Nbio) => {
                    self.asked = true;
                    let to = Arc::clone(&self.result);
                    let action = Box::new(move || {
                        let result = catch_unwind(AssertUnwindSafe(action));
                        *to.lock().expect("no panic under this lock") = Some(result);
                    });
                    cpu.put_nbio(Box::new(Nbio::new(action)));
                    return Poll::Pending;
                }
                // Within a combinator, or outside of a thread, the action is performed at once.
                _ => {
                    if budget::spend(cx, 1).is_pending() {
                        self.action = Some(action);
                        return Poll::Pending;
                    }
                    return Poll::Ready(action());
                }
            }
        }
        let result = self.result.lock().expect("no panic under this lock").take();
        match result {
            Some(result) => {
                self.asked = false;
                Poll::Ready(result.unwrap_or_else(|panic| resume_unwind(panic)))
            }
            None => Poll::Pending,
        }
    }
}

impl<T, A> Drop for Performing<T, A> {
    fn drop(&mut self) {
        if self.asked {
            // The request is known by the address of the shared result, because the future itself
            // may have moved.
            retract(Arc::as_ptr(&self.result));
        }
    }
}

impl<T, A> fmt::Debug for Performing<T, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Performing").field("asked", &self.asked).finish_non_exhaustive()
    }
}
