//! Values that belong to a thread while it runs: what a thread-local is to an OS thread.

use std::cell::RefCell;
use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::thread::LocalKey;

/// A value of each thread's own, declared by [`thread_value!`](crate::thread_value!): a request's
/// number, a user's name, what all that the thread calls may want to know without being passed it.
///
/// [`with_value`](Self::with_value) gives a future the value, and what runs within that future
/// finds it; on whatever OS thread, under every scheduler and under foreign executors. A variable
/// of [`std::thread_local!`] is no replacement: it belongs to the OS thread, so that all threads
/// that run there share it, and a thread that moves finds another.
///
/// A thread that is spawned within does not inherit the value. It is passed on where that is
/// wanted: `spawn(USER.with_value(USER.get(), ..))`.
///
/// # Complexity
/// Each poll of the future swaps the value in and out: two moves of an `Option<T>`. Nothing is
/// allocated.
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
///     let requests: Vec<_> = (0..3).map(|number| spawn(REQUEST.with_value(number, log()))).collect();
///     let mut logs = Vec::new();
///     for request in requests {
///         logs.push(request.await.unwrap());
///     }
///     logs
/// })?;
/// assert_eq!(logs, ["request 0", "request 1", "request 2"]);
/// # Ok::<(), selvedge::Failure>(())
/// ```
#[doc(alias = "thread_local")]
#[doc(alias = "task_local")]
pub struct ThreadValue<T: 'static> {
    /// Where the value is while its future is polled on this OS thread.
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

    /// Runs a future that has the value, also while it is dropped. An inner value hides an outer
    /// one.
    pub fn with_value<F: Future>(&'static self, value: T, future: F) -> WithValue<T, F> {
        WithValue { of: self, value: Some(value), future: Some(future) }
    }

    /// Works on the value that the running thread has; `None` if it has none.
    ///
    /// # Panics
    /// If `f` polls a future that has another value of the same `ThreadValue`.
    pub fn try_with<R>(&'static self, f: impl FnOnce(&T) -> R) -> Option<R> {
        // The variables of an OS thread that ends are gone.
        self.place.try_with(|place| place.borrow().as_ref().map(f)).ok().flatten()
    }

    /// Works on the value that the running thread has.
    ///
    /// # Panics
    /// If it has none. Otherwise as [`try_with`](Self::try_with).
    #[track_caller]
    pub fn with<R>(&'static self, f: impl FnOnce(&T) -> R) -> R {
        match self.try_with(f) {
            Some(result) => result,
            None => panic!("this thread has no such value: it does not run within `with_value`"),
        }
    }

    /// A clone of the value that the running thread has.
    ///
    /// # Panics
    /// If it has none.
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
    /// The value while the future is not polled, and the outer one while it is.
    value: Option<T>,
    /// Pinned with us. Until it is dropped.
    future: Option<F>,
}

/// Has the value be in its place until it is dropped, by a panic too.
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
        // SAFETY: of the fields only the future is pinned; it is not moved, and `Drop` drops it in
        // place.
        let (of, value, future) = unsafe {
            let this = self.get_unchecked_mut();
            (this.of, &mut this.value, Pin::new_unchecked(&mut this.future))
        };
        let _in_place = InPlace::enter(of, value);
        future.as_pin_mut().expect("it is there until it is dropped").poll(cx)
    }
}

// A future that may move makes the whole one that may.
impl<T, F: Unpin> Unpin for WithValue<T, F> {}

/// The destructors of the future find the value, too.
impl<T, F> Drop for WithValue<T, F> {
    fn drop(&mut self) {
        let _in_place = InPlace::enter(self.of, &mut self.value);
        // Assigning drops the future in place.
        self.future = None;
    }
}

impl<T, F> fmt::Debug for WithValue<T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WithValue").finish_non_exhaustive()
    }
}
