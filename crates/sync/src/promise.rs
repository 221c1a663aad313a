//! The promise: [`Promise`], a value that comes once, later, for any number of readers, and
//! [`Fulfiller`], which gives it.
//!
//! The programs of users call it. The value lies in a `OnceLock`; the [`WaitQueue`] holds the
//! readers until the promise is settled.

use crate::blocking::wait_blocking;
use crate::holder::{self, Holder, OwnerRecord};
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, budget};
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, OnceLock};

/// A proxy for a value that is not there yet. Any number of readers may [`claim`](Promise::claim)
/// the value, and hold clones of the promise.
///
/// A promise is *blocked* until its [`Fulfiller`] gives the value. Then it is *ready* for ever. If
/// the fulfiller is dropped without a value, the promise is *broken*, and claiming it is an error.
///
/// # Paper
/// [Del §5.3]: the state Ready or Blocked with waiters, `fullfill`, and the claim that `bind`
/// performs; after Liskov and Shrira.
///
/// # Differences
/// 1. Claiming is a wait like any other, and not a composition of promises. So there is no state
///    Linked, and no `connect`.
/// 2. The type system lets only the holder of the fulfiller fulfil the promise, and only once. In
///    the paper a second time is an error at run time.
/// 3. A promise can be broken.
///
/// # Cancellation
/// Dropping a claim removes it from the queue. No value is lost.
///
/// # Complexity
/// Claiming a ready promise is one load. Fulfilling is one critical section; its length grows
/// with the number of waiting threads.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, spawn_local};
/// use selvedge::sync::Promise;
///
/// let lengths = round_robin(async {
///     let (fulfiller, promise) = Promise::new_local();
///     let mut readers = vec![];
///     for _ in 0..3 {
///         let promise = promise.clone();
///         readers.push(spawn_local(async move {
///             promise.claim().await.map(|text: &String| text.len())
///         }));
///     }
///     fulfiller.fulfil("weft".to_string());
///     let mut lengths = vec![];
///     for reader in readers {
///         lengths.push(reader.await.unwrap());
///     }
///     lengths
/// })?;
/// assert_eq!(lengths, [Ok(4), Ok(4), Ok(4)]);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct Promise<T, M: Mode = Shared> {
    inner: Arc<PromiseState<T, M>>,
}

/// Gives a [`Promise`] its value. Dropping the fulfiller without that breaks the promise.
#[must_use = "dropping it breaks the promise"]
pub struct Fulfiller<T, M: Mode = Shared> {
    inner: Arc<PromiseState<T, M>>,
}

/// The fulfiller of a [`Promise`] was dropped, so its value will never come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BrokenPromiseError;

impl fmt::Display for BrokenPromiseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the promise was broken: its fulfiller is gone")
    }
}

impl std::error::Error for BrokenPromiseError {}

struct PromiseState<T, M: Mode> {
    value: OnceLock<T>,
    /// Whether it is settled: it has its value, or will never have one.
    queue: WaitQueue<bool, (), M>,
    /// The thread that has said with [`own`](Fulfiller::own) that it will fulfil the promise.
    owner: OwnerRecord,
}

impl<T, M: Mode> PromiseState<T, M> {
    /// Lets all waiting threads go on.
    fn settle(&self) {
        self.queue.with(|settled, queue| {
            *settled = true;
            while !queue.is_empty() {
                queue.grant();
            }
        });
    }
}

impl<T> Promise<T> {
    /// A blocked promise, and its fulfiller.
    pub fn new() -> (Fulfiller<T>, Promise<T>) {
        Promise::blocked()
    }
}

impl<T> Promise<T, Local> {
    /// A blocked promise that stays on its OS thread, and its fulfiller.
    pub fn new_local() -> (Fulfiller<T, Local>, Promise<T, Local>) {
        Promise::blocked()
    }
}

impl<T, M: Mode> Promise<T, M> {
    fn blocked() -> (Fulfiller<T, M>, Promise<T, M>) {
        let inner = Arc::new(PromiseState {
            value: OnceLock::new(),
            queue: WaitQueue::new(false),
            owner: OwnerRecord::default(),
        });
        (Fulfiller { inner: inner.clone() }, Promise { inner })
    }

    /// Waits for the value.
    ///
    /// # Errors
    /// When the promise is broken.
    #[track_caller]
    pub fn claim(&self) -> impl Future<Output = Result<&T, BrokenPromiseError>> {
        let place = Location::caller();
        async move {
            if let Some(value) = self.get() {
                budget::pay(1).await;
                return Ok(value);
            }
            let waiting = self.inner.queue.wait_at::<AwaitSettled>((), place);
            self.inner.owner.told("which owns the promise", waiting).await;
            self.get().ok_or(BrokenPromiseError)
        }
    }

    /// Waits for the value, and blocks this OS thread.
    ///
    /// # Errors
    /// When the promise is broken.
    ///
    /// # Panics
    /// When it is called within a step of a Selvedge thread.
    #[track_caller]
    pub fn claim_blocking(&self) -> Result<&T, BrokenPromiseError> {
        wait_blocking(self.claim())
    }

    /// The value, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.inner.value.get()
    }

    /// The thread that is to fulfil the promise, if a thread has [owned](Fulfiller::own) it.
    pub fn owner(&self) -> Option<Holder> {
        self.inner.owner.get()
    }

    /// Whether its value is there, or will never be.
    pub fn is_settled(&self) -> bool {
        self.inner.queue.with(|settled, _| *settled)
    }
}

impl<T, M: Mode> Fulfiller<T, M> {
    /// Gives the promise its value, and lets all threads that wait for it go on.
    #[doc(alias = "fullfill")]
    pub fn fulfil(self, value: T) {
        let set = self.inner.value.set(value);
        debug_assert!(set.is_ok(), "a promise has one fulfiller, which is gone once it has been used");
        // The drop of `self` that follows settles the promise.
    }

    /// Makes the running thread the owner of the promise. Dumps and reports of deadlocks name the
    /// owner as the thread that would wake the claiming threads. A thread that passes the fulfiller
    /// on should have the receiving thread call `own` again.
    ///
    /// A fulfiller is a value, and the promise does not see its moves from thread to thread. That a
    /// thread has created the fulfiller does not say which thread will use it. So until `own` is
    /// called, no owner is named.
    ///
    /// # Examples
    /// ```
    /// use selvedge::{round_robin, spawn_local, this_thread, yield_now};
    /// use selvedge::sync::{Holder, Promise};
    ///
    /// round_robin(async {
    ///     let (fulfiller, promise) = Promise::new_local();
    ///     let maker = spawn_local(async move {
    ///         let fulfiller = fulfiller.own();
    ///         yield_now().await;
    ///         fulfiller.fulfil(this_thread());
    ///     });
    ///     assert_eq!(promise.owner(), None);
    ///     yield_now().await;
    ///     let owner = promise.owner().unwrap();
    ///     assert_eq!(promise.claim().await.unwrap().map(Holder::Thread), Some(owner));
    ///     maker.await.unwrap();
    /// })?;
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    pub fn own(self) -> Self {
        self.inner.owner.set(holder::thread());
        self
    }

    /// Whether all clones of the promise are gone, so that no thread can claim it.
    pub fn is_unclaimed(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }
}

impl<T, M: Mode> Drop for Fulfiller<T, M> {
    fn drop(&mut self) {
        self.inner.settle();
    }
}

enum AwaitSettled {}

impl Role<bool, ()> for AwaitSettled {
    type Output = ();

    fn attempt(settled: &mut bool, _: &mut Queue<'_, ()>, _: &mut ()) -> Option<()> {
        settled.then_some(())
    }

    fn granted(_: &mut ()) {}

    fn abandoned(_: &mut bool, _: &mut Queue<'_, ()>, _: &mut ()) {}
}

impl<T, M: Mode> Clone for Promise<T, M> {
    fn clone(&self) -> Self {
        Promise { inner: self.inner.clone() }
    }
}

impl<T: fmt::Debug, M: Mode> fmt::Debug for Promise<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.get() {
            Some(value) => f.debug_tuple("Promise").field(value).finish(),
            None if self.is_settled() => f.write_str("Promise(broken)"),
            None => f.write_str("Promise(blocked)"),
        }
    }
}

impl<T, M: Mode> fmt::Debug for Fulfiller<T, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fulfiller").finish_non_exhaustive()
    }
}
