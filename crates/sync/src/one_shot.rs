//! The one-shot channel: [`one_shot`] makes a [`Replier`], which sends one value, and a [`Reply`],
//! which takes it and then owns it.
//!
//! The programs of users call it. The [`WaitQueue`] of a channel holds the taker while no value has
//! come, and the future of [`unwanted`](Replier::unwanted) while the [`Reply`] is there.

use crate::blocking::wait_blocking;
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue};
use std::fmt;
use std::sync::Arc;

/// A channel for one value. The value belongs to the thread that takes it; a
/// [`Promise`](crate::Promise) lends its value to any number of readers.
///
/// # Examples
/// A thread that answers questions:
/// ```
/// use selvedge::sync::{BoundedFifo, Replier, one_shot};
///
/// selvedge::run(async {
///     let (ask, questions) = BoundedFifo::<(String, Replier<String>)>::ends(8);
///     let oracle = selvedge::spawn(async move {
///         while let Some((question, answer)) = questions.take().await {
///             let _ = answer.reply(question.to_uppercase()); // the thread that asked may be gone
///         }
///     });
///     let (replier, mut reply) = one_shot();
///     ask.put(("warp".to_string(), replier)).await.unwrap();
///     assert_eq!(reply.take().await.as_deref(), Ok("WARP"));
///     drop(ask);
///     oracle.await.unwrap();
/// })?;
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[doc(alias = "oneshot")]
pub fn one_shot<T>() -> (Replier<T>, Reply<T>) {
    channel()
}

/// As [`one_shot`], between threads of a single OS thread.
pub fn one_shot_local<T>() -> (Replier<T, Local>, Reply<T, Local>) {
    channel()
}

fn channel<T, M: Mode>() -> (Replier<T, M>, Reply<T, M>) {
    let state = ReplyState { value: None, replier_is_gone: false, is_unwanted: false };
    let shared = Arc::new(WaitQueue::new(state));
    (Replier { shared: shared.clone() }, Reply { shared })
}

type Channel<T, M> = WaitQueue<ReplyState<T>, Option<T>, M>;

struct ReplyState<T> {
    /// The value that was sent and has not been taken.
    value: Option<T>,
    replier_is_gone: bool,
    is_unwanted: bool,
}

/// The end of a [one-shot channel](one_shot) that sends the value.
#[must_use = "dropping it says that there will be no reply"]
#[doc(alias = "Sender")]
pub struct Replier<T, M: Mode = Shared> {
    shared: Arc<Channel<T, M>>,
}

/// The end of a [one-shot channel](one_shot) that takes the value.
#[doc(alias = "Receiver")]
pub struct Reply<T, M: Mode = Shared> {
    shared: Arc<Channel<T, M>>,
}

/// The [`Replier`] is gone. Its value has been taken already, or will never come.
#[doc(alias = "RecvError")]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoReplyError;

impl fmt::Display for NoReplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no reply: the replier was dropped")
    }
}

impl std::error::Error for NoReplyError {}

impl<T, M: Mode> Replier<T, M> {
    /// Sends the value.
    ///
    /// # Errors
    /// Gives the value back if the [`Reply`] is gone.
    ///
    /// # Complexity
    /// Two critical sections.
    pub fn reply(self, value: T) -> Result<(), T> {
        self.shared.with(|state, queue| {
            if state.is_unwanted {
                return Err(value);
            }
            // The waiter, if there is one, is the taker: `self` is moved here, so no `unwanted`
            // borrows it.
            match queue.front() {
                Some(taker) => {
                    *taker = Some(value);
                    queue.grant();
                }
                None => state.value = Some(value),
            }
            Ok(())
        })
    }

    /// Whether the [`Reply`] is gone, so that the program need not make the value.
    pub fn is_unwanted(&self) -> bool {
        self.shared.with(|state, _| state.is_unwanted)
    }

    /// Waits until the [`Reply`] is gone. In a `select`, it stops the making of a value that no
    /// thread will take.
    #[track_caller]
    pub fn unwanted(&self) -> impl Future<Output = ()> {
        self.shared.wait::<Unwanted>(None)
    }
}

impl<T, M: Mode> Drop for Replier<T, M> {
    fn drop(&mut self) {
        self.shared.with(|state, queue| {
            state.replier_is_gone = true;
            queue.grant();
        });
    }
}

impl<T, M: Mode> Reply<T, M> {
    /// Waits for the value, and takes it.
    ///
    /// # Errors
    /// When the replier was dropped without a value, or the value has been taken already.
    ///
    /// # Cancellation
    /// Dropping the future loses nothing: the next call takes a value that has come.
    #[track_caller]
    pub fn take(&mut self) -> impl Future<Output = Result<T, NoReplyError>> {
        self.shared.wait::<TakeReply>(None)
    }

    /// Waits for the value, and blocks this OS thread.
    ///
    /// # Errors
    /// As for [`take`](Self::take).
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn take_blocking(&mut self) -> Result<T, NoReplyError> {
        wait_blocking(self.take())
    }

    /// The value, if it has come and has not been taken.
    pub fn try_take(&mut self) -> Option<T> {
        self.shared.with(|state, _| state.value.take())
    }
}

impl<T, M: Mode> Drop for Reply<T, M> {
    fn drop(&mut self) {
        let value = self.shared.with(|state, queue| {
            state.is_unwanted = true;
            // Every waiter is in `unwanted`, of which one replier may have several futures: no
            // taker is left, because it would borrow `self`.
            while !queue.is_empty() {
                queue.grant();
            }
            state.value.take()
        });
        drop(value); // not under the lock, because its destructor is code of the program
    }
}

enum TakeReply {}

impl<T> Role<ReplyState<T>, Option<T>> for TakeReply {
    type Output = Result<T, NoReplyError>;

    fn attempt(
        state: &mut ReplyState<T>,
        _: &mut Queue<'_, Option<T>>,
        _: &mut Option<T>,
    ) -> Option<Result<T, NoReplyError>> {
        match state.value.take() {
            Some(value) => Some(Ok(value)),
            None => state.replier_is_gone.then_some(Err(NoReplyError)),
        }
    }

    fn granted(payload: &mut Option<T>) -> Result<T, NoReplyError> {
        payload.take().ok_or(NoReplyError)
    }

    fn abandoned(state: &mut ReplyState<T>, _: &mut Queue<'_, Option<T>>, payload: &mut Option<T>) {
        state.value = payload.take();
    }
}

enum Unwanted {}

impl<T> Role<ReplyState<T>, Option<T>> for Unwanted {
    type Output = ();

    fn attempt(state: &mut ReplyState<T>, _: &mut Queue<'_, Option<T>>, _: &mut Option<T>) -> Option<()> {
        state.is_unwanted.then_some(())
    }

    fn granted(_: &mut Option<T>) {}

    fn abandoned(_: &mut ReplyState<T>, _: &mut Queue<'_, Option<T>>, _: &mut Option<T>) {}
}

impl<T, M: Mode> fmt::Debug for Replier<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Replier").field("is_unwanted", &self.is_unwanted()).finish()
    }
}

impl<T, M: Mode> fmt::Debug for Reply<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_come = self.shared.with(|state, _| state.value.is_some());
        f.debug_struct("Reply").field("has_come", &has_come).finish()
    }
}
