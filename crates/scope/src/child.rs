//! [`Child`]: the handle to a child of a scope; and the future of the child's thread.
//!
//! `scope.rs` makes both when a program spawns a child. The future tells the scope its end, by the
//! [`Policy`] of the scope, and leaves the result in the [`ReplyCell`] that it shares with the
//! handle.

use crate::state::{ChildFailure, Membership, ScopeState, within};
use selvedge_core::internal::ReplyCell;
use selvedge_core::{Catch, Exception, JoinError, budget, catch};
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

/// What becomes of a child that has ended.
pub(crate) trait Policy<O>: 'static {
    /// What its handle gives.
    type Value;

    /// The value for the handle, or the failure for the scope.
    fn judge(ended: Result<O, Exception>) -> Result<Result<Self::Value, JoinError>, ChildFailure>;
}

/// An exception fails the scope.
pub(crate) struct FailFast;

impl<T> Policy<T> for FailFast {
    type Value = T;

    fn judge(ended: Result<T, Exception>) -> Result<Result<T, JoinError>, ChildFailure> {
        ended.map(Ok).map_err(ChildFailure::Exception)
    }
}

/// An exception or an error fails the scope.
pub(crate) struct FailOnError;

impl<T, E: Any + Send> Policy<Result<T, E>> for FailOnError {
    type Value = T;

    fn judge(ended: Result<Result<T, E>, Exception>) -> Result<Result<T, JoinError>, ChildFailure> {
        match ended {
            Ok(Ok(value)) => Ok(Ok(value)),
            Ok(Err(error)) => Err(ChildFailure::Error(Box::new(error))),
            Err(exception) => Err(ChildFailure::Exception(exception)),
        }
    }
}

/// Nothing fails the scope.
pub(crate) struct Collect;

impl<T> Policy<T> for Collect {
    type Value = T;

    fn judge(ended: Result<T, Exception>) -> Result<Result<T, JoinError>, ChildFailure> {
        Ok(ended.map_err(JoinError::Panicked))
    }
}

/// The future of a child's thread.
pub(crate) struct ChildFuture<F: Future, P: Policy<F::Output>> {
    // In the order in which they are dropped: what the child did last, what its handle is told, and
    // that it is gone.
    future: Catch<F>,
    result: ResultSetter<P::Value>,
    place: Membership,
}

/// A child's future and its handle, given its place.
pub(crate) fn child<F: Future, P: Policy<F::Output>>(
    place: Membership,
    future: F,
) -> (ChildFuture<F, P>, Child<P::Value>) {
    let cell = Arc::new(ReplyCell::default());
    let number = place.child;
    let handle = Child { cell: Arc::clone(&cell), scope: Arc::clone(place.state()), number };
    (ChildFuture { future: catch(future), result: ResultSetter(cell), place }, handle)
}

impl<F: Future, P: Policy<F::Output>> Future for ChildFuture<F, P> {
    type Output = ();

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        // SAFETY: the future is pinned with us and not moved; nothing else needs to be.
        let (future, result, place) = unsafe {
            let this = self.get_unchecked_mut();
            (Pin::new_unchecked(&mut this.future), &this.result, &this.place)
        };
        let Poll::Ready(ended) = within(place.state(), || future.poll(cx)) else { return Poll::Pending };
        match P::judge(ended) {
            Ok(value) => result.set(value),
            Err(failure) => place.state().fail(failure),
        }
        Poll::Ready(())
    }
}

/// What a child's thread and its handle share.
type ResultCell<T> = Arc<ReplyCell<Result<T, JoinError>>>;

/// The thread's side. A child that is dropped without a result was cancelled.
struct ResultSetter<T>(ResultCell<T>);

impl<T> ResultSetter<T> {
    fn set(&self, result: Result<T, JoinError>) {
        // A child that is dropped after its end has a result already.
        let _ = self.0.put(result);
    }
}

impl<T> Drop for ResultSetter<T> {
    fn drop(&mut self) {
        self.set(Err(JoinError::Cancelled));
    }
}

/// The handle to a child: a future of its result. Dropping it lets the child run on; its scope
/// waits for it all the same.
///
/// A child that fails its scope gives no result. A thread that awaits it gets
/// [`JoinError::Cancelled`], unless that thread is cancelled itself first.
///
/// # Panics
/// When awaited again after it has returned the result.
#[must_use = "drop it to let the child run unobserved; its scope waits for it"]
pub struct Child<T> {
    cell: ResultCell<T>,
    scope: Arc<ScopeState>,
    number: (u32, u64),
}

impl<T> Child<T> {
    /// Cancels the child: it does not run on, and its destructors run. No other child of the scope
    /// is cancelled with it.
    pub fn cancel(&self) {
        self.scope.cancel(self.number);
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.cell.is_over(|_| true)
    }
}

impl<T> Future for Child<T> {
    type Output = Result<T, JoinError>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        ready!(budget::spend(cx, 1));
        match self.cell.poll(cx.waker().clone()) {
            Poll::Pending => {
                budget::refund(1);
                Poll::Pending
            }
            Poll::Ready(result) => {
                Poll::Ready(result.expect("a child's handle is not polled after it has ended"))
            }
        }
    }
}

impl<T> fmt::Debug for Child<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("is_finished", &self.is_finished()).finish_non_exhaustive()
    }
}
