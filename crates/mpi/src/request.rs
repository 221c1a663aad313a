//! [`Request`]: a send, a receive or a collective that has begun and goes on by itself; and
//! [`wait_all`].
//!
//! `simple.rs` and `fast.rs` make requests, and `collective/started.rs` those of collectives. A
//! request owns all that the operation needs, so it may be dropped at any time.

use crate::communicator::{Communicator, Underway, revoked};
use crate::envelope::Envelope;
use crate::error::{CallSite, Error};
use crate::mailbox::{Posted, ReceiveOutcome};
use crate::tag::{Source, Tags};
use selvedge_core::{JoinError, JoinHandle};
use std::fmt;
use std::pin::Pin;

/// A send, a receive or a collective that has begun. Its result comes by `await`,
/// [`test`](Request::test) or [`wait_all`].
///
/// # Cancellation
/// Dropping a request of a receive gives the receive up, and no message is lost: one that has come
/// is there for the next receive. A message that is being sent goes its way, and a collective goes
/// on.
///
/// # Examples
/// ```
/// use selvedge::mpi;
///
/// # selvedge::round_robin(async {
/// mpi::run(2, |world| async move {
///     let other = 1 - world.rank();
///     let coming = world.irecv::<String>(other, ());
///     world.isend(other, (), format!("from {}", world.rank())).await?;
///     let (text, _) = coming.await?;
///     assert_eq!(text, format!("from {other}"));
///     Ok::<_, mpi::Error>(())
/// })
/// .await
/// # })?.unwrap();
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[must_use = "a receive that is dropped is given up"]
#[doc(alias = "Future")]
#[doc(alias = "MPI_Request")]
pub struct Request<T> {
    communicator: Communicator,
    call: CallSite,
    state: RequestState<T>,
}

type OpenMessage<T> = Box<dyn FnOnce(Envelope) -> Result<T, Error> + Send>;

enum RequestState<T> {
    /// The operation is over.
    Ended(Result<T, Error>),
    Sending {
        to: usize,
        underway: Underway,
        output: T,
    },
    Receiving {
        posted: Posted,
        source: Source,
        tags: Tags,
        open: OpenMessage<T>,
    },
    /// A collective, in a thread of its own.
    InThread(JoinHandle<Result<T, Error>>),
    /// The result was given by `test`.
    Told,
}

impl<T: Send + 'static> Request<T> {
    /// The request of a send. `output` is its result.
    pub(crate) fn of_send(
        communicator: &Communicator,
        call: CallSite,
        to: usize,
        begun: Result<Underway, Error>,
        output: T,
    ) -> Request<T> {
        let state = match begun {
            Ok(None) => RequestState::Ended(Ok(output)),
            Ok(underway) => RequestState::Sending { to, underway, output },
            Err(error) => RequestState::Ended(Err(error)),
        };
        Request { communicator: communicator.clone(), call, state }
    }

    /// The request of a receive. `open` makes the result of the message.
    pub(crate) fn of_receive(
        communicator: &Communicator,
        call: CallSite,
        source: Source,
        tags: Tags,
        open: impl FnOnce(Envelope) -> Result<T, Error> + Send + 'static,
    ) -> Request<T> {
        let state = match communicator.post(call, communicator.own(), source, tags, true) {
            Ok(posted) => RequestState::Receiving { posted, source, tags, open: Box::new(open) },
            Err(error) => RequestState::Ended(Err(error)),
        };
        Request { communicator: communicator.clone(), call, state }
    }

    /// The request of a collective. The thread has its result.
    pub(crate) fn of_collective(
        communicator: &Communicator,
        call: CallSite,
        begun: Result<JoinHandle<Result<T, Error>>, Error>,
    ) -> Request<T> {
        let state = match begun {
            Ok(thread) => RequestState::InThread(thread),
            Err(error) => RequestState::Ended(Err(error)),
        };
        Request { communicator: communicator.clone(), call, state }
    }

    /// The result, if the operation is over. The result is given once; afterwards it is `None`.
    #[doc(alias = "MPI_Test")]
    #[doc(alias = "pollFuture")]
    #[doc(alias = "requestNull")]
    #[doc(alias = "testPtr")]
    #[doc(alias = "getFutureStatus")]
    pub fn test(&mut self) -> Option<Result<T, Error>> {
        let is_over = match &mut self.state {
            RequestState::Ended(_) => true,
            RequestState::Sending { underway, .. } => underway.as_ref().is_none_or(|it| it.has_come()),
            RequestState::Receiving { posted, .. } => posted.has_come(),
            RequestState::InThread(thread) => thread.is_finished(),
            RequestState::Told => false,
        };
        if !is_over {
            return None;
        }
        let state = std::mem::replace(&mut self.state, RequestState::Told);
        match state {
            RequestState::Ended(result) => Some(result),
            RequestState::Sending { underway, output, .. } => {
                let end = underway.and_then(|completion| completion.take());
                Some(self.communicator.sent(self.call, end).map(|()| output))
            }
            RequestState::Receiving { mut posted, source, tags, open } => {
                Some(match posted.try_collect()? {
                    ReceiveOutcome::Took(arrived) => open(arrived.into_envelope()),
                    ReceiveOutcome::Ended(ended) => {
                        Err(self.communicator.no_message(self.call, ended, source, tags))
                    }
                    ReceiveOutcome::Revoked => Err(revoked(self.call)),
                    ReceiveOutcome::Saw(_) => unreachable!("a receive takes its message"),
                })
            }
            RequestState::InThread(mut thread) => Some(joined(thread.try_join()?)),
            RequestState::Told => None,
        }
    }

    /// Waits until the operation is over. `request.await` does the same.
    ///
    /// # Errors
    /// Those of the operation.
    ///
    /// # Panics
    /// If [`test`](Self::test) has given the result.
    #[doc(alias = "MPI_Wait")]
    #[doc(alias = "waitFuture")]
    #[doc(alias = "waitPtr")]
    pub async fn wait(self) -> Result<T, Error> {
        let Request { communicator, call, state } = self;
        match state {
            RequestState::Ended(result) => result,
            RequestState::Sending { to, underway, output } => {
                communicator.end_send(call, to, underway).await?;
                Ok(output)
            }
            RequestState::Receiving { mut posted, source, tags, open } => {
                match communicator.outcome(call, communicator.own(), &mut posted, source, tags).await? {
                    ReceiveOutcome::Took(arrived) => open(arrived.into_envelope()),
                    other => unreachable!("a receive takes its message: {other:?}"),
                }
            }
            RequestState::InThread(thread) => joined(thread.await),
            RequestState::Told => panic!("the result of the request was given before"),
        }
    }

    /// Gives the operation up. The result, if it was over before; a message that is being sent goes
    /// its way, and a collective goes on.
    #[doc(alias = "MPI_Cancel")]
    #[doc(alias = "cancelFuture")]
    #[doc(alias = "cancelPtr")]
    pub fn cancel(mut self) -> Option<Result<T, Error>> {
        self.test()
    }
}

impl<T: Send + 'static> IntoFuture for Request<T> {
    type Output = Result<T, Error>;
    type IntoFuture = Pin<Box<dyn Future<Output = Result<T, Error>> + Send>>;

    fn into_future(self) -> Self::IntoFuture {
        Box::pin(self.wait())
    }
}

/// The result of a collective's thread. A panic goes on in the caller.
fn joined<T>(end: Result<Result<T, Error>, JoinError>) -> Result<T, Error> {
    match end {
        Ok(result) => result,
        Err(JoinError::Panicked(exception)) => exception.rethrow(),
        Err(JoinError::Cancelled) => unreachable!("the request alone has the handle, and cancels nothing"),
    }
}

/// Waits for all of these requests, and gives their results in the order of the requests.
///
/// # Errors
/// The first error in that order. The requests after it are dropped.
#[doc(alias = "waitall")]
#[doc(alias = "MPI_Waitall")]
pub async fn wait_all<T: Send + 'static>(
    requests: impl IntoIterator<Item = Request<T>, IntoIter: Send>,
) -> Result<Vec<T>, Error> {
    let mut results = Vec::new();
    // Each goes on by itself, so it does not matter in which order they are waited for.
    for request in requests {
        results.push(request.wait().await?);
    }
    Ok(results)
}

impl<T> fmt::Debug for Request<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match self.state {
            RequestState::Ended(_) => "over",
            RequestState::Sending { .. } | RequestState::Receiving { .. } | RequestState::InThread(_) => {
                "under way"
            }
            RequestState::Told => "told",
        };
        write!(f, "Request({}, {state})", self.call)
    }
}
