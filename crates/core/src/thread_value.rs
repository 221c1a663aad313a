//! Values that belong to a thread while it runs ([`ThreadValue`]), as a thread-local belongs to an
//! OS thread.
//!
//! Programs declare them by `thread_value!`; nothing in this crate does. The value is in a
//! thread-local of the OS thread only during a poll of its [`WithValue`] future, so each poll swaps
//! it in and out, also when the body panics.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::LocalKey;

/// A value that each thread has for itself, declared by [`thread_value!`](crate::thread_value!):
/// for example a request's number, or a user's name. The functions that the thread calls may read
/// it without being passed it.
///
/// [`with_value`](Self::with_value) gives a future the value. Code that runs within that future
/// finds the value on every OS thread, under every scheduler, and under foreign executors. A
/// variable of [`std::thread_local!`] is no replacement, because it belongs to the OS thread: all
/// threads that run there share it, and a thread that moves finds another.
///
/// A thread that is spawned within the future does not inherit the value. To pass it on, write
/// `spawn(USER.with_value(USER.get(), ..))`.
///
/// # Complexity
/// Each poll of the future swaps the value in and out, which is two moves of an `Option<T>`. There
/// is no allocation.
///
/// # Examples
/// ```
/// use selvedge::{spawn, thread_value, yield_now};
///
/// thread_value! {
///     /// The number of the request that a thread serves.
///     static REQUEST: u32;
/// }
///
/// async fn log() -> String {
///     yield_now().await;
///     format!("request {}", REQUEST.get())
/// }
///
/// let logs = selvedge::run(async {
///     let spawn_one = |number| spawn(REQUEST.with_value(number, log()));
///     let requests: Vec<_> = (0..3).map(spawn_one).collect();
///     let mut logs = Vec::new();
///     for request in requests {
///         logs.push(request.await.unwrap());
///     }
///     logs
/// })?;
/// assert_eq!(logs, ["request 0", "request 1", "request 2"]);
/// # Ok::<(), selvedge::SchedulerError>(())
/// ```
#[doc(alias = "thread_local")]
#[doc(alias = "task_local")]
pub struct ThreadValue<T: 'static> {
    /// The place of the value while its future is polled on this OS thread.
    place: LocalKey<RefCell<Option<T>>>,
}

/// Declares a [`ThreadValue`].
#[macro_export]
macro_rules! thread_value {
    ($(#[$attribute:meta])* $visibility:vis static $name:ident: $type:ty $(;)?) => {
        $(#[$attribute])*
        $visibility static $name: $crate::ThreadValue<$type> = {
            ::std::thread_local! {
                static PLACE: ::std::cell::RefCell<::std::option::Option<$type>> =
                    const { ::std::cell::RefCell::new(::std::option::Option::None) };
            }
            $crate::ThreadValue::in_place(PLACE)
        };
    };
}

impl<T: 'static> ThreadValue<T> {
    #[doc(hidden)]
    pub const fn in_place(place: LocalKey<RefCell<Option<T>>>) -> ThreadValue<T> {
        ThreadValue { place }
    }

    /// Runs a future that has the value, also while the future is dropped. An inner value hides an
    /// outer value.
    pub fn with_value<F: Future>(&'static self, value: T, future: F) -> WithValue<T, F> {
        WithValue { of: self, value: Some(value), future: Some(future) }
    }

    /// Calls `f` with the value of the running thread. `None` if the thread has no value.
    ///
    /// # Panics
    /// If `f` polls a future that has another value of the same `ThreadValue`.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Option<R> {
        // While an OS thread ends, its variables are gone.
        self.place.try_with(|place| place.borrow().as_ref().map(f)).ok().flatten()
    }

    /// Calls `f` with the value of the running thread.
    ///
    /// # Panics
    /// If the thread has no value. Otherwise as [`try_with`](Self::try_with).
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Some(result) => result,
            None => panic!("this thread has no such value: it does not run within `with_value`"),
        }
    }

    /// A clone of the value of the running thread.
    ///
    /// # Panics
    /// If the thread has no value.
    #[track_caller]
    pub fn get(&'static self) -> T
    where
        T: Clone,
    {
        self.with(T::clone)
    }
}

impl<T: 'static> fmt::Debug for ThreadValue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ThreadValue").finish_non_exhaustive()
    }
}

/// The future of [`ThreadValue::with_value`].
#[must_use = "nothing happens until it is awaited"]
pub struct WithValue<T: 'static, F> {
    of: &'static ThreadValue<T>,
    /// While the future is not polled, its value; while it is polled, the outer value.
    value: Option<T>,
    /// Pinned, as this struct is. `None` after the drop.
    future: Option<F>,
}

/// Keeps the value in its place until this is dropped, also by a panic.
struct InPlace<'a, T: 'static> {
    of: &'static ThreadValue<T>,
    value: &'a mut Option<T>,
}

impl<'a, T> InPlace<'a, T> {
    fn enter(of: &'static ThreadValue<T>, value: &'a mut Option<T>) -> InPlace<'a, T> {
        let mut entered = InPlace { of, value };
        entered.swap();
        entered
    }

    fn swap(&mut self) {
        let _ = self.of.place.try_with(|place| std::mem::swap(&mut *place.borrow_mut(), self.value));
    }
}

impl<T> Drop for InPlace<'_, T> {
    fn drop(&mut self) {
        self.swap();
    }
}

impl<T, F: Future> Future for WithValue<T, F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: only the field `future` is pinned. It is not moved here, and `Drop` drops it in
        // place.
        let (of, value, future) = unsafe {
            let this = self.get_unchecked_mut();
            (this.of, &mut this.value, Pin::new_unchecked(&mut this.future))
        };
        let _in_place = InPlace::enter(of, value);
        future.as_pin_mut().expect("it is there until it is dropped").poll(cx)
    }
}

// If the future may be moved, so may this struct.
impl<T, F: Unpin> Unpin for WithValue<T, F> {}

/// The destructors of the future find the value too.
impl<T, F> Drop for WithValue<T, F> {
    fn drop(&mut self) {
        let _in_place = InPlace::enter(self.of, &mut self.value);
        // The assignment drops the future in place.
        self.future = None;
    }
}

impl<T, F> fmt::Debug for WithValue<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithValue").finish_non_exhaustive()
    }
}
