//! `Co`: the handle through which the body of a coroutine suspends, with one operation for each
//! suspension. `Coroutine::new` makes the handle and passes it to the body.
//!
//! An operation puts its suspension into the `Handover` of `coroutine.rs` and is pending once. The
//! holder then takes the suspension out. The operations borrow the handle by `&mut`, so a body has
//! at most one suspension at a time. [Pipes, Listings 6 to 9].

use crate::coroutine::Handover;
use crate::roles::{InOrOut, Request};
use crate::suspension::{Await, Either, EitherFunctor, Fed, Identity, Single, Suspension, Yield};
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

/// The handle through which the body of a [`Coroutine`](crate::Coroutine) suspends.
///
/// The operations that it has depend on the suspension `S`. They take the handle by `&mut`, so that
/// a body suspends once at a time; functions that the body calls borrow the handle.
///
/// An operation suspends the coroutine that the handle was made for, and works only while that
/// coroutine is being resumed. A handle that is passed to another thread waits there for ever.
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Co, Generator, Yield, run_generator};
///
/// async fn count(co: &mut Co<Yield<u32>>, end: u32) {
///     for number in 0..end {
///         co.yield_(number).await;
///     }
/// }
///
/// let numbers = Generator::new(|mut co| async move {
///     count(&mut co, 2).await;
///     count(&mut co, 3).await;
/// });
/// let (numbers, ()) = selvedge::round_robin(run_generator(numbers))?;
/// assert_eq!(numbers, [0, 1, 0, 1, 2]);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub struct Co<S: Single> {
    handover: Arc<Handover<S>>,
    places: S::Places,
}

impl<S: Single> Co<S> {
    pub(crate) fn new(handover: Arc<Handover<S>>) -> Co<S> {
        Co { handover, places: S::Places::default() }
    }

    /// The places of this body, to build a suspension of one's own around.
    pub fn places(&self) -> &S::Places {
        &self.places
    }

    /// Suspends with `suspended`, and returns its `V` when the holder resumes the coroutine.
    ///
    /// The holder gets `suspended` with the rest of the coroutine in the place of the `V`.
    ///
    /// # Paper
    /// [Pipes, Listing 9] `suspend (fmap return s)`.
    ///
    /// # Examples
    /// ```
    /// use selvedge::coroutine::{Generator, run_generator};
    ///
    /// let squares = Generator::new(|mut co| async move {
    ///     let mut number = 1;
    ///     while number < 4 {
    ///         number = co.suspend((number * number, number + 1)).await;
    ///     }
    /// });
    /// let (squares, ()) = selvedge::round_robin(run_generator(squares))?;
    /// assert_eq!(squares, [1, 4, 9]);
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    pub async fn suspend<V: Send>(&mut self, suspended: S::Of<V>) -> V {
        let mut value = None;
        let asked = S::map_once(suspended, |inner| value = Some(inner));
        Suspending { handover: &self.handover, asked: Some(asked), waits: false }.await;
        value.expect("a single suspension has one resumption")
    }
}

impl Co<Identity> {
    /// Suspends, and goes on when the holder resumes the coroutine.
    ///
    /// # Paper
    /// [Pipes, Listing 6] `pause`.
    pub async fn pause(&mut self) {
        self.suspend(()).await;
    }
}

impl<A: Send> Co<Yield<A>> {
    /// Suspends and gives `value` to the holder.
    ///
    /// # Paper
    /// [Pipes, Listing 7] `yield`.
    #[doc(alias = "yield")]
    pub async fn yield_(&mut self, value: A) {
        self.suspend((value, ())).await;
    }
}

impl<A: Send> Co<Await<A>> {
    /// Suspends until the holder feeds a value, and returns the value.
    ///
    /// # Panics
    /// If the holder has no value: `No more values to feed.`
    ///
    /// # Paper
    /// [Pipes, Listing 8] `await`.
    #[doc(alias = "await")]
    pub async fn await_(&mut self) -> A {
        self.await_fed().await.get()
    }

    /// As [`await_`](Co::await_), but the lack of a value panics only when the body opens it.
    ///
    /// # Paper
    /// [Pipes, Listing 8] `await`, with the laziness of Haskell.
    pub async fn await_fed(&mut self) -> Fed<A> {
        let demand = self.places.demand(());
        self.suspend(demand).await;
        self.places.take()
    }
}

impl<Q: Send, P: Send> Co<Request<Q, P>> {
    /// Suspends with a request for the holder, and returns the holder's response.
    ///
    /// # Panics
    /// If the holder resumes with [`Feed::starve`](crate::Feed::starve).
    ///
    /// # Paper
    /// [Pipes, Other possible suspension types] `request`.
    pub async fn request(&mut self, request: Q) -> P {
        let demand = self.places.1.demand(());
        self.suspend((request, demand)).await;
        self.places.1.take().get()
    }
}

impl<A: Send, B: Send> Co<InOrOut<A, B>> {
    /// Suspends and gives `value` to the holder.
    ///
    /// # Paper
    /// [Pipes, Other possible suspension types] `InOrOut`, which supplies a value here.
    pub async fn yield_(&mut self, value: A) {
        self.suspend(Either::Left((value, ()))).await;
    }

    /// Suspends until the holder feeds a value, and returns the value.
    ///
    /// # Panics
    /// If the holder resumes with [`Feed::starve`](crate::Feed::starve).
    ///
    /// # Paper
    /// [Pipes, Other possible suspension types] `InOrOut`, which demands a value here.
    pub async fn await_(&mut self) -> B {
        let demand = self.places.1.demand(());
        self.suspend(Either::Right(demand)).await;
        self.places.1.take().get()
    }
}

impl<A: Send, B: Send> Co<EitherFunctor<Await<Option<A>>, Yield<B>>> {
    /// Suspends until upstream has a value or has ended, which is `None`, as often as it is asked.
    ///
    /// # Panics
    /// If the holder resumes with [`Feed::starve`](crate::Feed::starve).
    ///
    /// # Paper
    /// [Pipes, Transducers in the middle] `awaitT`.
    #[doc(alias = "awaitT")]
    pub async fn await_(&mut self) -> Option<A> {
        let demand = self.places.0.demand(());
        self.suspend(Either::Left(demand)).await;
        self.places.0.take().get()
    }

    /// Suspends and passes `value` downstream.
    ///
    /// # Paper
    /// [Pipes, Transducers in the middle] `yieldT`.
    #[doc(alias = "yieldT")]
    pub async fn yield_(&mut self, value: B) {
        self.suspend(Either::Right((value, ()))).await;
    }
}

impl<S: Single> fmt::Debug for Co<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Co").finish_non_exhaustive()
    }
}

/// The future of a suspension. Its first poll leaves the suspension in the handover, where the
/// resumption that polls the body finds it; it is ready once that was taken away and the body is
/// polled again.
struct Suspending<'c, S: Suspension> {
    handover: &'c Handover<S>,
    asked: Option<S::Of<()>>,
    /// The suspension was left in the handover.
    waits: bool,
}

/// The fields are moved, never pinned.
impl<S: Suspension> Unpin for Suspending<'_, S> {}

impl<S: Suspension> Future for Suspending<'_, S> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<()> {
        if let Some(asked) = self.asked.take() {
            self.handover.leave(asked);
            self.waits = true;
        }
        if self.waits && self.handover.is_left() {
            return Poll::Pending;
        }
        self.waits = false;
        Poll::Ready(())
    }
}

impl<S: Suspension> Drop for Suspending<'_, S> {
    /// A body that gives up the suspension before the resumption has seen it did not suspend.
    fn drop(&mut self) {
        if self.waits {
            drop(self.handover.take());
        }
    }
}
