//! Exceptions that cross system calls, and the panics that end a thread.

use crate::thread::quietly;
use std::any::Any;
use std::fmt;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs `body`; its result, or the exception that ended it.
///
/// What can fail in the ordinary course returns a `Result` and uses `?`. `catch` is for what ends a body at any depth: a
/// [`throw`], or a panic. The body may make system calls; it is dropped, destructors and all, before the exception is
/// returned.
///
/// # Paper
/// [LZ07 Figure 14] `sys_catch`.
///
/// # Differences
/// 1. The body returns a result, and ending the body is not ending the thread.
/// 2. There is no stack of handlers to keep: the body is a future inside the thread.
///
/// # Examples
/// ```
/// use selvedge_core::{catch, round_robin, throw, yield_now};
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
/// # Ok::<(), selvedge_core::RunError>(())
/// ```
#[doc(alias = "sys_catch")]
pub fn catch<F: Future>(body: F) -> Catch<F> {
    Catch { body: Some(body) }
}

/// Ends the innermost [`catch`] body with an exception of any type; without one, the thread.
///
/// It unwinds without a word from the panic hook: an exception is no bug, unless nobody catches it.
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
    /// Pinned; `None` once it has ended.
    body: Option<F>,
}

impl<F: Future> Future for Catch<F> {
    type Output = Result<F::Output, Exception>;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // SAFETY: the body is pinned where it is: it is never moved, and `set` drops it in place.
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

/// What ended a body or a thread before its time: the value given to [`throw`], or the payload of a panic.
pub struct Exception {
    payload: Box<dyn Any + Send>,
}

// SAFETY: by reference the payload is only looked at to see whether it is a &str or String, which are Sync; whatever else it is,
// only the exception's owner reaches it.
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

    /// The message of a panic; `None` for a thrown value that is not text.
    pub fn message(&self) -> Option<&str> {
        let text = self.payload.downcast_ref::<&'static str>().copied();
        text.or_else(|| self.payload.downcast_ref::<String>().map(String::as_str))
    }

    /// Throws it on.
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

/// The end of a thread by an exception that nobody caught or joined for.
#[derive(Debug)]
pub struct Panic {
    thread: &'static str,
    exception: Exception,
}

impl Panic {
    pub(crate) fn new(thread: &'static str, payload: Box<dyn Any + Send>) -> Panic {
        Panic { thread, exception: Exception::new(payload) }
    }

    /// Says on standard error what ended the thread: for a scheduler that has no other use for it. Nothing comes of it if there is no
    /// standard error, or if what was thrown panics as it is dropped.
    pub fn report(self) {
        quietly(|| eprintln!("{self}"));
        quietly(|| drop(self));
    }

    /// The type name of the thread's future, or "main".
    pub fn thread(&self) -> &'static str {
        self.thread
    }

    /// What ended it.
    pub fn into_exception(self) -> Exception {
        self.exception
    }
}

impl fmt::Display for Panic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "thread {} ended by an exception: {}", self.thread, self.exception)
    }
}
