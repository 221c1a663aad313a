//! Exceptions that cross system calls ([`catch`], [`throw`], [`Exception`]), and the end of a
//! thread by one ([`Panic`]).
//!
//! Programs call them, and so do the scopes of `scope`, which carry a child's panic to its parent.
//! A scheduler gets a [`Panic`] in the node `Trace::Panic`; `joinable.rs` makes an [`Exception`] of
//! it for a joiner instead. A caught body is dropped before its exception is returned.

use crate::quietly::quietly;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs `body`, and gives its result, or the exception that ended it.
///
/// Code that can fail in the ordinary course returns a `Result` and uses `?`. `catch` is for
/// exceptions that end a body at any depth: a [`throw`], or a panic. The body may make system
/// calls. It is dropped, with its destructors, before the exception is returned.
///
/// # Paper
/// [LZ07 Figure 14] `sys_catch`.
///
/// # Differences
/// 1. The body returns a result, and the end of the body is not the end of the thread.
/// 2. There is no stack of handlers, because the body is a future inside the thread.
///
/// # Examples
/// ```
/// use selvedge::{catch, round_robin, throw, yield_now};
///
/// #[derive(Debug, PartialEq)]
/// struct Closed(u16);
///
/// round_robin(async {
///     let read = catch(async {
///         yield_now().await;
///         if true { throw(Closed(7)) }
///         "a line"
///     });
///     let exception = read.await.unwrap_err();
///     assert_eq!(exception.downcast::<Closed>().unwrap(), Closed(7));
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "sys_catch")]
pub fn catch<F: Future>(body: F) -> Catch<F> {
    Catch { body: Some(body) }
}

/// Ends the innermost [`catch`] body with an exception of any type. Without a `catch` around it, it
/// ends the thread.
///
/// The panic hook is not called, because an exception that is caught is no bug.
///
/// # Paper
/// [LZ07 Figure 14] `sys_throw`.
#[doc(alias = "sys_throw")]
pub fn throw<E: Any + Send>(exception: E) -> ! {
    resume_unwind(Box::new(exception))
}

/// The future of [`catch`].
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct Catch<F> {
    /// The body is pinned. `None` once it has ended.
    body: Option<F>,
}

impl<F: Future> Future for Catch<F> {
    type Output = Result<F::Output, Exception>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the body is pinned in its place: no code here moves it, and `set` drops it in
        // place.
        let mut slot = unsafe { self.map_unchecked_mut(|c| &mut c.body) };
        let body = slot.as_mut().as_pin_mut().expect("a catch is not polled after it has ended");
        let polled = match catch_unwind(AssertUnwindSafe(|| body.poll(cx))) {
            Ok(Poll::Pending) => return Poll::Pending,
            Ok(Poll::Ready(output)) => Ok(output),
            Err(payload) => Err(Exception { payload }),
        };
        slot.set(None);
        Poll::Ready(polled)
    }
}

/// The cause that ended a body or a thread early: the value given to [`throw`], or the payload of a
/// panic.
pub struct Exception {
    payload: Box<dyn Any + Send>,
}

// SAFETY: a shared reference only tests whether the payload is a &str or String, and reads it then;
// these are Sync. A payload of another type is reached by the exception's owner only.
unsafe impl Sync for Exception {}

impl Exception {
    pub(crate) fn new(payload: Box<dyn Any + Send>) -> Exception {
        Exception { payload }
    }

    /// The thrown value, if it is of type `E`.
    ///
    /// # Errors
    /// Returns the exception as it was, if it is of another type.
    pub fn downcast<E: Any + Send>(self) -> Result<E, Exception> {
        self.payload.downcast().map(|e| *e).map_err(Exception::new)
    }

    /// The message of a panic. `None` for a thrown value that is not text.
    pub fn message(&self) -> Option<&str> {
        let text = self.payload.downcast_ref::<&'static str>().copied();
        text.or_else(|| self.payload.downcast_ref::<String>().map(String::as_str))
    }

    /// Throws the exception again.
    pub fn rethrow(self) -> ! {
        resume_unwind(self.payload)
    }
}

impl fmt::Display for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.message().unwrap_or("an exception that is not text"))
    }
}

impl fmt::Debug for Exception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exception({:?})", self.to_string())
    }
}

impl std::error::Error for Exception {}

/// The end of a thread by an exception that was neither caught nor given to a join handle.
#[derive(Debug)]
pub struct Panic {
    thread: &'static str,
    exception: Exception,
}

impl Panic {
    pub(crate) fn new(thread: &'static str, payload: Box<dyn Any + Send>) -> Panic {
        Panic { thread, exception: Exception::new(payload) }
    }

    /// Writes the cause of the thread's end to standard error, for a scheduler that has no other
    /// use for it. If there is no standard error, or if the thrown value panics as it is dropped,
    /// that is ignored.
    pub fn report(self) {
        quietly(|| eprintln!("{self}"));
        quietly(|| drop(self));
    }

    /// The type name of the thread's future, or "main".
    pub fn thread(&self) -> &'static str {
        self.thread
    }

    /// The exception that ended the thread.
    pub fn into_exception(self) -> Exception {
        self.exception
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} ended by an exception: {}", self.thread, self.exception)
    }
}
