//! [`Completion`]: a future that is ready when a call is done, and [`Completer`], the end of it
//! that the message loop has.
//!
//! `comm.rs` makes both for each call. The reply lies in a cell of `core`. A [`Completer`] that is
//! dropped without a reply tells the waiter that the message loop has ended.

use super::error::{ErrorClass, MpiError};
use selvedge_core::{CallUnderWay, ReplyCell};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

type Reply<T> = ReplyCell<Result<T, MpiError>>;

/// A call that the message loop makes. The future gives its result.
///
/// It may be polled by any executor. Dropping it gives the result up: the call itself goes on, and
/// the memory that belongs to it is dropped afterwards.
#[must_use = "the call goes on, and its error is lost"]
pub struct Completion<T> {
    reply: Arc<Reply<T>>,
    call: &'static str,
}

/// The message loop's end of a [`Completion`].
pub(super) struct Completer<T> {
    reply: Arc<Reply<T>>,
    _under_way: CallUnderWay,
}

/// Both ends for a call with this name.
pub(super) fn completion<T>(call: &'static str) -> (Completer<T>, Completion<T>) {
    let reply = Arc::new(Reply::default());
    (Completer { reply: reply.clone(), _under_way: CallUnderWay::new() }, Completion { reply, call })
}

impl<T> Completion<T> {
    /// A call that is refused before it reaches the message loop.
    pub(super) fn refused(error: MpiError) -> Completion<T> {
        let (completer, completion) = completion(error.call);
        let _ = completer.reply(Err(error));
        completion
    }

    /// Whether the call is done, so that the future is ready.
    pub fn is_done(&self) -> bool {
        self.reply.is_over(|_| true)
    }

    /// Gives up the wait. The result, if it is there already.
    pub(super) fn abandon(&self) -> Option<T> {
        self.reply.abandon()?.ok()
    }
}

impl<T> Future for Completion<T> {
    type Output = Result<T, MpiError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T, MpiError>> {
        self.reply.poll(context.waker().clone()).map(|reply| {
            reply.unwrap_or_else(|| {
                let text = "the message loop has ended".to_string();
                Err(MpiError::refused(self.call, ErrorClass::Other, text))
            })
        })
    }
}

impl<T> Completer<T> {
    /// Ends the wait. Gives the result back if it has been given up.
    pub(super) fn reply(self, result: Result<T, MpiError>) -> Result<(), Result<T, MpiError>> {
        self.reply.put(result)
    }
}

impl<T> Drop for Completer<T> {
    fn drop(&mut self) {
        self.reply.close(|_| ());
    }
}

impl<T> fmt::Debug for Completion<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completion").field("call", &self.call).field("is_done", &self.is_done()).finish()
    }
}

impl<T> fmt::Debug for Completer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Completer").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::run_blocking;

    #[test]
    fn a_reply_reaches_the_waiter_and_a_lost_one_is_told() {
        let (completer, waiting) = completion::<u32>("MPI_Isend");
        assert!(!waiting.is_done());
        assert_eq!(completer.reply(Ok(7)), Ok(()));
        assert_eq!(run_blocking(waiting, None), Some(Ok(7)));

        let (completer, waiting) = completion::<u32>("MPI_Isend");
        drop(completer);
        let error = run_blocking(waiting, None).unwrap().unwrap_err();
        assert_eq!(error.to_string(), "MPI_Isend: the message loop has ended");
    }

    #[test]
    fn a_result_that_was_given_up_comes_back() {
        let (completer, waiting) = completion::<u32>("MPI_Imrecv");
        assert_eq!(waiting.abandon(), None);
        assert_eq!(completer.reply(Ok(7)), Err(Ok(7)));

        let (completer, waiting) = completion::<u32>("MPI_Imrecv");
        assert_eq!(completer.reply(Ok(7)), Ok(()));
        assert_eq!(waiting.abandon(), Some(7));
    }
}
