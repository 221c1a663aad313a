//! [`Ongoing`]: a future that is ready when a call of MPI is done; and [`CallEnd`], what the driver
//! does when a call is done.
//!
//! `comm.rs` makes a [`CallEnd`] for each call: it leaves the result in the cell of an [`Ongoing`],
//! or runs a closure of the engine. A [`CallEnd`] that is dropped says that the message loop has
//! ended.

use super::error::{MpiError, MpiErrorClass};
use selvedge_core::internal::{CallUnderWay, ReplyCell, quietly};
use std::fmt;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// A call that the message loop makes. The future gives its result.
///
/// It may be polled by any executor. Dropping it gives the result up: the call itself goes on, and
/// the memory that belongs to it is dropped afterwards.
#[must_use = "the call goes on, and its error is lost"]
pub struct Ongoing<T> {
    cell: Arc<ReplyCell<Result<T, MpiError>>>,
}

/// What happens at the end of a call.
pub(super) struct CallEnd<T> {
    call: &'static str,
    action: EndAction<T>,
    _under_way: CallUnderWay,
}

enum EndAction<T> {
    Reply(Arc<ReplyCell<Result<T, MpiError>>>),
    Run(Box<dyn FnOnce(Result<T, MpiError>) + Send>),
    /// It has happened, or there is none.
    Nothing,
}

/// A future for a call with this name, and the end that makes it ready.
pub(super) fn ongoing<T>(call: &'static str) -> (CallEnd<T>, Ongoing<T>) {
    let cell = Arc::new(ReplyCell::default());
    (CallEnd::new(call, EndAction::Reply(cell.clone())), Ongoing { cell })
}

impl<T> Ongoing<T> {
    /// Whether the call is done, so that the future is ready.
    pub fn is_done(&self) -> bool {
        self.cell.is_over(|_| true)
    }
}

impl<T> Future for Ongoing<T> {
    type Output = Result<T, MpiError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, MpiError>> {
        self.cell.poll(context.waker().clone()).map(|reply| reply.expect("each end has a result"))
    }
}

impl<T> CallEnd<T> {
    fn new(call: &'static str, action: EndAction<T>) -> CallEnd<T> {
        CallEnd { call, action, _under_way: CallUnderWay::new() }
    }

    /// An end that runs a closure, on the OS thread that finds the call done.
    pub(super) fn run(
        call: &'static str,
        action: impl FnOnce(Result<T, MpiError>) + Send + 'static,
    ) -> CallEnd<T> {
        CallEnd::new(call, EndAction::Run(Box::new(action)))
    }

    /// An end of which nothing is to be told.
    pub(super) fn of_none(call: &'static str) -> CallEnd<T> {
        CallEnd::new(call, EndAction::Nothing)
    }

    /// The call's name in MPI's standard.
    pub(super) fn call(&self) -> &'static str {
        self.call
    }

    /// The call is done. A panic of the closure or of a foreign waker ends here.
    pub(super) fn come(mut self, result: Result<T, MpiError>) {
        self.act(result);
    }

    fn act(&mut self, result: Result<T, MpiError>) {
        match mem::replace(&mut self.action, EndAction::Nothing) {
            // An `Ongoing` that was dropped takes no result.
            EndAction::Reply(cell) => quietly(|| drop(cell.put(result))),
            EndAction::Run(closure) => quietly(|| closure(result)),
            EndAction::Nothing => {}
        }
    }
}

impl<T> Drop for Ongoing<T> {
    fn drop(&mut self) {
        // A result that is there is dropped here, and one that comes later is dropped by `CallEnd`.
        drop(self.cell.abandon());
    }
}

impl<T> Drop for CallEnd<T> {
    fn drop(&mut self) {
        if !matches!(self.action, EndAction::Nothing) {
            let text = "the message loop has ended".to_string();
            self.act(Err(MpiError::refused(self.call, MpiErrorClass::Other, text)));
        }
    }
}

impl<T> fmt::Debug for Ongoing<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ongoing").field("is_done", &self.is_done()).finish_non_exhaustive()
    }
}

impl<T> fmt::Debug for CallEnd<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallEnd").field("call", &self.call).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::internal::run_blocking;
    use std::sync::Mutex;

    #[test]
    fn a_result_reaches_the_waiter_and_a_lost_call_is_told() {
        let (end, waiting) = ongoing::<u32>("MPI_Isend");
        assert!(!waiting.is_done());
        end.come(Ok(7));
        assert!(waiting.is_done());
        assert_eq!(run_blocking(waiting, None), Some(Ok(7)));

        let (end, waiting) = ongoing::<u32>("MPI_Isend");
        drop(end);
        let error = run_blocking(waiting, None).unwrap().unwrap_err();
        assert_eq!(error.to_string(), "MPI_Isend: the message loop has ended");
    }

    #[test]
    fn a_closure_runs_once_with_the_result_or_the_loss() {
        let results = Arc::new(Mutex::new(Vec::new()));
        let there = results.clone();
        let end = CallEnd::run("MPI_Isend", move |result| there.lock().unwrap().push(result));
        end.come(Ok(7));
        let there = results.clone();
        drop(CallEnd::<u32>::run("MPI_Isend", move |result| there.lock().unwrap().push(result)));
        let results = results.lock().unwrap();
        assert_eq!(results[0], Ok(7));
        assert_eq!(results[1].as_ref().unwrap_err().call, "MPI_Isend");
        assert_eq!(results.len(), 2);
    }

    #[test]
    fn a_result_that_is_not_wanted_is_dropped_and_not_lost() {
        let value = Arc::new(());
        let (end, waiting) = ongoing("MPI_Isend");
        end.come(Ok(value.clone()));
        drop(waiting);
        let (end, waiting) = ongoing("MPI_Isend");
        drop(waiting);
        end.come(Ok(value.clone()));
        assert_eq!(Arc::strong_count(&value), 1);
    }
}
