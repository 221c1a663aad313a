//! Exceptions that cross system calls ([`catch`], [`throw`], [`Exception`]), and the end of a
//! thread by one ([`Panic`]).
//!
//! Programs call them, and so do the scopes of `scope`, which carry a child's panic to its parent.
//! A scheduler gets a [`Panic`] in the node `Trace::Panic`; `joinable.rs` makes an [`Exception`] of
//! it for a joiner instead. A caught body is dropped before its exception is returned.

use crate::quietly::quietly;
use crate::written_name::written_name;
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
    /// The value, or an [`OfThread`] with the value in it. So an exception has the size of a box,
    /// and so has the place for it in each thread.
    payload: Box<dyn Any + Send>,
}

// SAFETY: a shared reference only tests whether the payload is a &str, a String or an `OfThread`,
// and reads it then; the first two are Sync, and of the third only its name and number are read,
// and its payload in the same way. A payload of another type is reached by the exception's owner
// only.
unsafe impl Sync for Exception {}

/// An exception that has ended a thread, with the number and the name of that thread.
struct OfThread {
    id: u32,
    name: &'static str,
    payload: Box<dyn Any + Send>,
}

impl Exception {
    /// The exception that has ended the thread with this number. `name` is its future's.
    #[cold]
    pub(crate) fn that_ended(id: u32, name: &'static str, payload: Box<dyn Any + Send>) -> Exception {
        Exception { payload: Box::new(OfThread { id, name: written_name(name), payload }) }
    }

    fn thread(&self) -> Option<&OfThread> {
        self.payload.downcast_ref()
    }

    fn value(&self) -> &(dyn Any + Send) {
        self.thread().map_or(&*self.payload, |of| &*of.payload)
    }

    fn into_value(self) -> Box<dyn Any + Send> {
        self.payload.downcast::<OfThread>().map_or_else(|payload| payload, |of| of.payload)
    }

    /// Writes which thread the exception has ended, as far as it is known, and the exception.
    pub(crate) fn write_end(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.thread() {
            Some(OfThread { id, name, .. }) => {
                write!(f, "thread {id} ({name}) ended by an exception: {self}")
            }
            None => write!(f, "the thread ended by an exception: {self}"),
        }
    }

    /// The thrown value, if it is of type `E`.
    ///
    /// # Errors
    /// Returns the exception as it was, if it is of another type.
    pub fn downcast<E: Any + Send>(self) -> Result<E, Exception> {
        if !self.value().is::<E>() {
            return Err(self);
        }
        Ok(*self.into_value().downcast().unwrap_or_else(|_| unreachable!("it is of that type")))
    }

    /// The message of a panic. `None` for a thrown value that is not text.
    pub fn message(&self) -> Option<&str> {
        let text = self.value().downcast_ref::<&'static str>().copied();
        text.or_else(|| self.value().downcast_ref::<String>().map(String::as_str))
    }

    /// Throws the exception again.
    pub fn rethrow(self) -> ! {
        resume_unwind(self.into_value())
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
    pub(crate) fn new(id: u32, name: &'static str, payload: Box<dyn Any + Send>) -> Panic {
        Panic { thread: written_name(name), exception: Exception::that_ended(id, name, payload) }
    }

    /// Writes the cause of the thread's end to standard error, for a scheduler that has no other
    /// use for it. If there is no standard error, or if the thrown value panics as it is dropped,
    /// that is ignored.
    pub fn report(self) {
        quietly(|| eprintln!("{self}"));
        quietly(|| drop(self));
    }

    /// The function or the type of the program that the thread's future comes from, or "main".
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
        self.exception.write_end(f)
    }
}
