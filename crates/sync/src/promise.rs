//! The promise: a value that comes later, once, for any number of readers.

use crate::blocking::wait_blocking;
use crate::holder::{self, Holder, Record};
use selvedge_core::{Local, Mode, Queue, Role, Shared, WaitQueue, budget};
use std::fmt;
use std::panic::Location;
use std::sync::{Arc, OnceLock};

/// A proxy for a value that is not there yet. Any number of readers may [`claim`](Promise::claim) it, and hold clones of the promise.
///
/// It is *blocked* until its [`Fulfiller`] gives the value; then it is *ready* for ever. If the fulfiller is dropped, it is
/// *broken*, and claiming it is an error.
///
/// # Paper
/// [Del §5.3]: the state Ready or Blocked with waiters, `fullfill`, and the claim that `bind` performs; after Liskov and Shrira.
///
/// # Differences
/// 1. Claiming is a wait like any other, not the composition of promises; so there is no state Linked, and no `connect`.
/// 2. Only who holds the fulfiller can fulfil it, once, by type; in the paper a second time is an error at run time.
/// 3. It can be broken.
///
/// # Cancellation
/// Dropping a claim leaves the queue; nothing is lost by it.
///
/// # Complexity
/// Claiming a ready promise is one load. Fulfilling is one critical section, as long as threads wait.
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
///         readers.push(spawn_local(async move { promise.claim().await.map(|text: &String| text.len()) }));
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
    inner: Arc<Inner<T, M>>,
}

/// Gives a [`Promise`] its value; dropped, it breaks it.
#[must_use = "dropping it breaks the promise"]
pub struct Fulfiller<T, M: Mode = Shared> {
    inner: Arc<Inner<T, M>>,
}

/// The fulfiller of a [`Promise`] was dropped, so that its value will never come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Broken;

impl fmt::Display for Broken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the promise was broken: who was to fulfil it is gone")
    }
}

impl std::error::Error for Broken {}

struct Inner<T, M: Mode> {
    value: OnceLock<T>,
    /// Whether it is settled: with the value, or without it for ever.
    queue: WaitQueue<bool, (), M>,
    /// Who has said that it will fulfil it.
    owner: Record,
}

impl<T, M: Mode> Inner<T, M> {
    /// Lets all go on who wait.
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
    /// A blocked promise, and what fulfils it.
    pub fn new() -> (Fulfiller<T>, Promise<T>) {
        Promise::blocked()
    }
}

impl<T> Promise<T, Local> {
    /// A blocked promise that stays on its OS thread, and what fulfils it.
    pub fn new_local() -> (Fulfiller<T, Local>, Promise<T, Local>) {
        Promise::blocked()
    }
}

impl<T, M: Mode> Promise<T, M> {
    fn blocked() -> (Fulfiller<T, M>, Promise<T, M>) {
        let inner = Arc::new(Inner {
            value: OnceLock::new(),
            queue: WaitQueue::new(false),
            owner: Record::default(),
        });
        (Fulfiller { inner: inner.clone() }, Promise { inner })
    }

    /// Waits for the value.
    ///
    /// # Errors
    /// When the promise is broken.
    #[track_caller]
    pub fn claim(&self) -> impl Future<Output = Result<&T, Broken>> {
        let place = Location::caller();
        async move {
            if let Some(value) = self.get() {
                budget::pay(1).await;
                return Ok(value);
            }
            let waiting = self.inner.queue.wait_at::<Claim>((), place);
            self.inner.owner.told("which owns the promise", waiting).await;
            self.get().ok_or(Broken)
        }
    }

    /// Waits for the value, blocking this OS thread.
    ///
    /// # Errors
    /// When the promise is broken.
    ///
    /// # Panics
    /// Within a step of one of our threads.
    #[track_caller]
    pub fn claim_blocking(&self) -> Result<&T, Broken> {
        wait_blocking(self.claim())
    }

    /// The value, if it is there.
    #[inline]
    pub fn get(&self) -> Option<&T> {
        self.inner.value.get()
    }

    /// The thread that is to fulfil it, if one has [owned](Fulfiller::own) up to it.
    pub fn owner(&self) -> Option<Holder> {
        self.inner.owner.get()
    }

    /// Whether its value is there, or will never be.
    pub fn is_settled(&self) -> bool {
        self.inner.queue.with(|settled, _| *settled)
    }
}

impl<T, M: Mode> Fulfiller<T, M> {
    /// Gives the promise its value, and lets all go on who wait for it.
    #[doc(alias = "fullfill")]
    pub fn fulfil(self, value: T) {
        let set = self.inner.value.set(value);
        debug_assert!(set.is_ok(), "a promise has one fulfiller, which is gone once it has been used");
        // Settled by the drop that follows.
    }

    /// From now on the running thread is the owner of the promise: the one that is named as who would wake those that claim it, in dumps
    /// and reports of deadlocks. Who passes the fulfiller on has the next one own it.
    ///
    /// A fulfiller is a value, whose moves from thread to thread nobody sees: that a thread has created it says nothing about who will use it.
    /// So until this is called nobody is named.
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

    /// Whether nobody is left who could claim it.
    pub fn is_unclaimed(&self) -> bool {
        Arc::strong_count(&self.inner) == 1
    }
}

impl<T, M: Mode> Drop for Fulfiller<T, M> {
    fn drop(&mut self) {
        self.inner.settle();
    }
}

enum Claim {}

impl Role<bool, ()> for Claim {
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
