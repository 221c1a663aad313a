//! `Coroutine`: a coroutine as a value, with `resume`, `and_then`, `map` and `map_suspension`.
//! `Handover` is the place where the body and the holder meet. Users and every other file of this
//! module build on it.
//!
//! `resume` consumes the coroutine, so a resumption happens at most once. One `resume` polls the
//! body to its next suspension. The body is pending for another reason if the `Handover` is empty,
//! and then `resume` is pending too. [Pipes, Listing 9].

use crate::body::Co;
use crate::suspension::{Single, Suspension};
use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

/// A computation that suspends in the ways of `S` and ends with an `R`.
///
/// It does nothing until it is [resumed](Coroutine::resume). Dropping it drops its body: the
/// destructors run, and nothing else of it. It may go to another OS thread between two resumptions.
///
/// # Paper
/// [Pipes, Listing 9] `Coroutine s m r`.
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Resumed, Trampoline, run};
///
/// let answer = selvedge::round_robin(async {
///     let body = Trampoline::new(|mut co| async move {
///         co.pause().await;
///         42
///     });
///     match body.resume().await {
///         Resumed::Suspended(rest) => run(rest).await,
///         Resumed::Done(_) => panic!("it pauses first"),
///     }
/// })?;
/// assert_eq!(answer, 42);
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[must_use = "a coroutine does nothing until it is resumed"]
pub struct Coroutine<'a, S: Suspension + 'a, R: Send + 'a> {
    form: Form<'a, S, R>,
}

enum Form<'a, S: Suspension + 'a, R: Send + 'a> {
    Done(R),
    Body { body: Pin<Box<dyn Future<Output = R> + Send + 'a>>, handover: Arc<Handover<S>> },
    Suspended(Box<dyn FnOnce() -> S::Of<Coroutine<'a, S, R>> + Send + 'a>),
}

/// What one resumption came to.
///
/// # Paper
/// [Pipes, Listing 9] the result of `resume`; `Left` is `Suspended`, `Right` is `Done`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "it has the rest of the coroutine"]
pub enum Resumed<T, R> {
    /// The coroutine has suspended: its suspension, with the rest of the coroutine in it.
    Suspended(T),
    /// The coroutine has ended.
    Done(R),
}

impl<'a, S: Suspension + 'a, R: Send + 'a> Coroutine<'a, S, R> {
    /// A coroutine that runs the `async` block or function that `body` makes.
    ///
    /// # Complexity
    /// Two allocations: the body, pinned in a box, and the place where body and holder meet. A
    /// suspension that awaits has one more, for its values.
    pub fn new<F>(body: impl FnOnce(Co<S>) -> F) -> Self
    where
        S: Single,
        F: Future<Output = R> + Send + 'a,
    {
        let handover = Arc::new(Handover::default());
        let body = Box::pin(body(Co::new(Arc::clone(&handover))));
        Coroutine { form: Form::Body { body, handover } }
    }

    /// A coroutine that has ended with `result`. It allocates nothing.
    ///
    /// # Paper
    /// [Pipes, Listing 9] `return`.
    #[doc(alias = "return")]
    pub fn done(result: R) -> Self {
        Coroutine { form: Form::Done(result) }
    }

    /// A coroutine that runs `future` in one bounce, whatever that waits for.
    ///
    /// # Paper
    /// [Pipes, Listing 6] `lift`. Within a body it is a plain `.await`.
    pub fn lift(future: impl Future<Output = R> + Send + 'a) -> Self
    where
        S: Single,
    {
        Coroutine::new(|_| future)
    }

    /// A coroutine that suspends first, with `suspended`. Within a body, see [`Co::suspend`].
    ///
    /// # Complexity
    /// One allocation, which holds the suspension.
    ///
    /// # Paper
    /// [Pipes, Listing 9] `suspend`.
    pub fn suspend(suspended: S::Of<Self>) -> Self {
        Coroutine { form: Form::Suspended(Box::new(move || suspended)) }
    }

    /// Runs the coroutine to its next suspension, or to its end.
    ///
    /// The future waits while the body waits for anything that is not a suspension. If the future
    /// is dropped meanwhile, the coroutine is dropped too.
    ///
    /// # Complexity
    /// One poll of the body, and no allocation.
    ///
    /// # Panics
    /// If the body panics.
    ///
    /// # Paper
    /// [Pipes, Listing 9] `resume`.
    pub async fn resume(self) -> Resumed<S::Of<Self>, R> {
        let (mut body, handover) = match self.form {
            Form::Done(result) => return Resumed::Done(result),
            Form::Suspended(suspended) => return Resumed::Suspended(suspended()),
            Form::Body { body, handover } => (body, handover),
        };
        let ended = poll_fn(|cx| match body.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(Resumed::Done(result)),
            Poll::Pending => match handover.take() {
                Some(asked) => Poll::Ready(Resumed::Suspended(asked)),
                None => Poll::Pending,
            },
        });
        match ended.await {
            Resumed::Done(result) => Resumed::Done(result),
            Resumed::Suspended(asked) => {
                let mut rest = Some(Coroutine { form: Form::Body { body, handover } });
                let whole = |()| rest.take().expect("a body suspends with one resumption");
                Resumed::Suspended(S::map(asked, whole))
            }
        }
    }

    /// Goes on, after this coroutine has ended, with the coroutine that `f` makes of the result.
    ///
    /// # Complexity
    /// Two allocations, and a third for a suspension that awaits.
    ///
    /// # Paper
    /// [Pipes, Listing 9] `>>=`. Within a body it is `;`.
    ///
    /// # Examples
    /// ```
    /// use selvedge::coroutine::{Generator, run_generator};
    ///
    /// let twice = |from| {
    ///     Generator::new(move |mut co| async move {
    ///         co.yield_(from).await;
    ///         co.yield_(from + 1).await;
    ///         from + 2
    ///     })
    /// };
    /// let (all, end) = selvedge::round_robin(run_generator(twice(0).and_then(twice)))?;
    /// assert_eq!((all, end), (vec![0, 1, 2, 3], 4));
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = ">>=")]
    pub fn and_then<Q: Send + 'a>(
        self,
        f: impl FnOnce(R) -> Coroutine<'a, S, Q> + Send + 'a,
    ) -> Coroutine<'a, S, Q>
    where
        S: Single,
    {
        Coroutine::new(|mut co| async move {
            let result = self.within(&mut co).await;
            f(result).within(&mut co).await
        })
    }

    /// Runs this coroutine as a part of a body that suspends in the same ways: each suspension of
    /// the part becomes one of the body.
    ///
    /// # Paper
    /// [Pipes, Listing 9] a line of a `do` block.
    ///
    /// # Examples
    /// ```
    /// use selvedge::coroutine::{Generator, run_generator};
    ///
    /// let inner = Generator::new(|mut co| async move { co.yield_(1).await; 2 });
    /// let outer = Generator::new(|mut co| async move {
    ///     let two = inner.within(&mut co).await;
    ///     co.yield_(two).await;
    /// });
    /// let (all, ()) = selvedge::round_robin(run_generator(outer))?;
    /// assert_eq!(all, [1, 2]);
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    pub async fn within(mut self, co: &mut Co<S>) -> R
    where
        S: Single,
    {
        loop {
            match self.resume().await {
                Resumed::Suspended(suspended) => self = co.suspend(suspended).await,
                Resumed::Done(result) => return result,
            }
        }
    }

    /// The same computation, with each suspension turned into one of another kind.
    ///
    /// # Complexity
    /// Two allocations, and a third for a suspension that awaits.
    ///
    /// # Paper
    /// [Pipes, Relating the suspension types] `mapSuspension`.
    ///
    /// # Examples
    /// ```
    /// use selvedge::coroutine::{Generator, Identity, Natural, Yield, run};
    ///
    /// struct Forget;
    /// impl<A: Send> Natural<Yield<A>, Identity> for Forget {
    ///     fn apply<X: Send>(&self, (_, rest): (A, X)) -> X {
    ///         rest
    ///     }
    /// }
    ///
    /// let generator = Generator::new(|mut co| async move { co.yield_(1).await; "end" });
    /// let end = selvedge::round_robin(run(generator.map_suspension(Forget)))?;
    /// assert_eq!(end, "end");
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    #[doc(alias = "mapSuspension")]
    pub fn map_suspension<T: Single + 'a>(
        self,
        natural: impl Natural<S, T> + Send + 'a,
    ) -> Coroutine<'a, T, R> {
        Coroutine::new(|mut co| async move {
            let mut inner = self;
            loop {
                match inner.resume().await {
                    Resumed::Suspended(suspended) => inner = co.suspend(natural.apply(suspended)).await,
                    Resumed::Done(result) => return result,
                }
            }
        })
    }
}

/// A function from the suspensions of `S` to those of `T` that knows nothing of the resumption.
///
/// # Paper
/// [Pipes, Relating the suspension types] the argument of `mapSuspension`.
pub trait Natural<S: Suspension, T: Suspension> {
    /// Turns one suspension into the other, and passes its resumption on.
    fn apply<X: Send>(&self, suspended: S::Of<X>) -> T::Of<X>;
}

impl<'a, S: Suspension + 'a, R: Send + 'a> fmt::Debug for Coroutine<'a, S, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_ended = matches!(self.form, Form::Done(_));
        f.debug_struct("Coroutine").field("has_ended", &has_ended).finish_non_exhaustive()
    }
}

/// Where the body leaves its suspension, and where the resumption that polls the body finds it.
///
/// The suspension is here from the end of the future that left it, within a poll of the body, to
/// the end of that poll. So the lock is never waited for.
pub(crate) struct Handover<S: Suspension>(Mutex<Option<S::Of<()>>>);

impl<S: Suspension> Handover<S> {
    pub(crate) fn leave(&self, suspended: S::Of<()>) {
        let before = self.lock().replace(suspended);
        drop(before); // Its destructor runs without the lock.
    }

    pub(crate) fn is_left(&self) -> bool {
        self.lock().is_some()
    }

    pub(crate) fn take(&self) -> Option<S::Of<()>> {
        self.lock().take()
    }

    fn lock(&self) -> MutexGuard<'_, Option<S::Of<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S: Suspension> Default for Handover<S> {
    fn default() -> Handover<S> {
        Handover(Mutex::new(None))
    }
}
