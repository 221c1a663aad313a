//! [`OperationFuture`]: the future of one operation on a file.
//!
//! The methods of `File` and the functions of `fs` await it. Its first poll puts the operation into
//! a [queue](super::queue), and tells the event loop's [disk side](super::disk) that one more waits
//! there. In a simulation the future performs the operation itself, after a delay.

use super::disk;
use super::operation::{Operation, RawOutcome};
use super::queue::{OperationQueue, Performer};
use crate::sys;
use crate::time::sleep;
use selvedge_core::{SleepUntil, budget, observe};
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// The future of one operation.
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub(super) struct OperationFuture(Progress);

enum Progress {
    Unsent(Operation),
    Sent(Arc<OperationQueue>, u32),
    /// In a simulation this future performs the operation itself, at the time at which it would be
    /// over.
    Simulated(Box<Delayed>),
    Over,
}

struct Delayed {
    operation: Operation,
    delay: Pin<Box<SleepUntil>>,
}

impl fmt::Debug for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Progress::Unsent(_) => "unsent",
            Progress::Sent(..) => "sent",
            Progress::Simulated(..) => "simulated",
            Progress::Over => "over",
        })
    }
}

impl OperationFuture {
    pub(super) fn new(operation: Operation) -> OperationFuture {
        OperationFuture(Progress::Unsent(operation))
    }

    /// Whether nothing has been asked of the queue yet, so that dropping this undoes the operation.
    pub(super) fn is_unsent(&self) -> bool {
        matches!(self.0, Progress::Unsent(_))
    }
}

impl Unpin for OperationFuture {}

impl Future for OperationFuture {
    type Output = (RawOutcome, Operation);

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        if let Progress::Sent(queue, slot) = &self.0 {
            let Some(answer) = queue.take(*slot, cx.waker()) else { return Poll::Pending };
            self.0 = Progress::Over;
            return Poll::Ready(answer);
        }
        if let Progress::Simulated(delayed) = &mut self.0 {
            ready!(delayed.delay.as_mut().poll(cx));
        }
        let mut operation = match std::mem::replace(&mut self.0, Progress::Over) {
            Progress::Unsent(operation) => operation,
            Progress::Simulated(mut delayed) => {
                let outcome = delayed.operation.perform();
                return Poll::Ready((outcome, delayed.operation));
            }
            _ => panic!("an operation is not polled after it has ended"),
        };
        if let Some(delay) = sys::simulated_delay() {
            let delay = Box::pin(sleep(delay));
            self.0 = Progress::Simulated(Box::new(Delayed { operation, delay }));
            return self.poll(cx);
        }
        let queue = OperationQueue::here();
        // A ring makes this attempt itself.
        if queue.lock().performer() == Performer::Pool {
            if budget::spend_on_call(cx).is_pending() {
                self.0 = Progress::Unsent(operation);
                return Poll::Pending;
            }
            if let Some(outcome) = operation.perform_cached() {
                return Poll::Ready((outcome, operation));
            }
            budget::refund(budget::CALL);
        }
        observe::waits_on(|| operation.reason());
        let (slot, listed) = queue.submit(operation, Some(cx.waker().clone()));
        self.0 = Progress::Sent(queue, slot);
        disk::asked(listed);
        Poll::Pending
    }
}

impl Drop for OperationFuture {
    fn drop(&mut self) {
        match &mut self.0 {
            Progress::Sent(queue, slot) => queue.withdraw(*slot),
            // The simulation draws whether the operation had begun.
            Progress::Simulated(delayed) if sys::goes_on() => {
                delayed.operation.perform();
            }
            _ => {}
        }
    }
}
