//! `Suspension`: the types that a coroutine hands out when it suspends, which are the functors of
//! the paper. Here are `Identity`, `Yield`, `Await`, `Compose`, `EitherFunctor` and `Many`. `Co`
//! uses them in the body, and users may add their own.
//!
//! A suspension is `Single` if it has exactly one resumption. Only a `Single` works behind an
//! `async` body, because the body has one rest. An await allocates nothing: its value goes through
//! a `FeedSlot` that is made once for each `Co`. [Pipes, Listings 9 and 10].

use std::fmt;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A way to suspend: a type that holds resumptions.
///
/// `S::Of<X>` is the value that the holder of a coroutine gets when the coroutine suspends; `X` is
/// the rest of the coroutine. Implementors are markers that never exist as values.
///
/// # Laws
/// `map(s, |x| x)` is `s`. `map(map(s, f), g)` is `map(s, |x| g(f(x)))`.
///
/// # Paper
/// [Pipes, Listing 9] the `Functor s` of `Coroutine s m r`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no suspension",
    label = "expected a suspension, such as `Yield<A>`, `Await<A>` or `Identity`",
    note = "a marker type becomes one when `Suspension` is implemented for it, and then `Single`"
)]
pub trait Suspension {
    /// The suspension with resumptions of type `X`.
    type Of<X: Send>: Send;

    /// Replaces each resumption `x` by `f(x)`, in the order in which they stand.
    fn map<X: Send, Y: Send>(suspended: Self::Of<X>, f: impl FnMut(X) -> Y) -> Self::Of<Y>;
}

/// A suspension with exactly one resumption, so that a body can go on behind it.
///
/// An `async` body has one rest, and cannot be two resumptions. [`Many`] is no such suspension;
/// all the others here are.
#[diagnostic::on_unimplemented(
    message = "no body can suspend with `{Self}`",
    label = "expected a suspension with exactly one resumption, because a body has one rest",
    note = "coroutines with other suspensions are put together with `Coroutine::suspend` and `Coroutine::done`"
)]
pub trait Single: Suspension {
    /// The places into which the holder puts values for the body. Each [`Co`](crate::Co) has its
    /// own, made once, so that asking for a value allocates nothing.
    type Places: Clone + Default + Send + Sync;

    /// As [`map`](Suspension::map), with a function that is called once.
    ///
    /// # Panics
    /// If the suspension has several resumptions, so that it should not be `Single`.
    fn map_once<X: Send, Y: Send>(suspended: Self::Of<X>, f: impl FnOnce(X) -> Y) -> Self::Of<Y> {
        let mut f = Some(f);
        Self::map(suspended, |rest| f.take().expect("a single suspension has one resumption")(rest))
    }
}

/// The suspension of a [`Trampoline`](crate::Trampoline): the resumption, and nothing else.
///
/// # Paper
/// [Pipes, Listing 10] `Identity`.
#[derive(Debug)]
pub enum Identity {}

impl Suspension for Identity {
    type Of<X: Send> = X;

    fn map<X: Send, Y: Send>(rest: X, mut f: impl FnMut(X) -> Y) -> Y {
        f(rest)
    }
}

impl Single for Identity {
    type Places = ();
}

/// The suspension of a [`Generator`](crate::Generator): a value, and the resumption.
///
/// # Paper
/// [Pipes, Listing 10] the functor `(,) a`.
pub struct Yield<A>(PhantomData<fn() -> A>);

impl<A: Send> Suspension for Yield<A> {
    type Of<X: Send> = (A, X);

    fn map<X: Send, Y: Send>((value, rest): (A, X), mut f: impl FnMut(X) -> Y) -> (A, Y) {
        (value, f(rest))
    }
}

impl<A: Send> Single for Yield<A> {
    type Places = ();
}

impl<A> fmt::Debug for Yield<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Yield")
    }
}

/// The suspension of an [`Iteratee`](crate::Iteratee): a resumption that needs a value first.
///
/// # Paper
/// [Pipes, Listing 10] the functor `(->) a`.
pub struct Await<A>(PhantomData<fn() -> A>);

impl<A: Send> Suspension for Await<A> {
    type Of<X: Send> = Feed<A, X>;

    fn map<X: Send, Y: Send>(Feed { slot, rest }: Feed<A, X>, mut f: impl FnMut(X) -> Y) -> Feed<A, Y> {
        Feed { slot, rest: f(rest) }
    }
}

impl<A: Send> Single for Await<A> {
    type Places = FeedSlot<A>;
}

impl<A> fmt::Debug for Await<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Await")
    }
}

/// A resumption that can be reached only with a value: the paper's function `a -> x`.
///
/// # Paper
/// [Pipes, Listing 8] the `cont` of an iteratee.
#[must_use = "the coroutine is dropped with it"]
pub struct Feed<A, X> {
    slot: FeedSlot<A>,
    rest: X,
}

impl<A, X> Feed<A, X> {
    /// Puts `value` where the coroutine will read it, and returns the resumption. The coroutine
    /// does not run yet.
    pub fn feed(self, value: A) -> X {
        self.slot.put(Filling::Value(value));
        self.rest
    }

    /// Returns the resumption without a value: the coroutine panics if it opens what it was fed.
    ///
    /// # Paper
    /// [Pipes, Listing 10] `cont $ error "No more values to feed."`.
    pub fn starve(self) -> X {
        self.slot.put(Filling::Starved);
        self.rest
    }
}

impl<A, X> fmt::Debug for Feed<A, X> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Feed").finish_non_exhaustive()
    }
}

/// The place through which a holder passes values to a body.
///
/// It is for suspensions of your own; [`Co::await_`](crate::Co::await_) uses one. A clone is the
/// same place.
pub struct FeedSlot<A>(Arc<Mutex<Filling<A>>>);

enum Filling<A> {
    Empty,
    Value(A),
    Starved,
}

impl<A> FeedSlot<A> {
    /// The function that takes a value for this place and returns `rest`.
    pub fn demand<X>(&self, rest: X) -> Feed<A, X> {
        Feed { slot: self.clone(), rest }
    }

    /// Takes out what was fed.
    ///
    /// # Panics
    /// If nothing was fed since the last call. A body that was resumed through a [`Feed`] of this
    /// place cannot see that.
    pub fn take(&self) -> Fed<A> {
        match std::mem::replace(&mut *self.lock(), Filling::Empty) {
            Filling::Value(value) => Fed(Some(value)),
            Filling::Starved => Fed(None),
            Filling::Empty => panic!("the place was read before a value was fed"),
        }
    }

    fn put(&self, place: Filling<A>) {
        let before = std::mem::replace(&mut *self.lock(), place);
        drop(before); // Its destructor runs without the lock.
    }

    fn lock(&self) -> MutexGuard<'_, Filling<A>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<A> Clone for FeedSlot<A> {
    fn clone(&self) -> FeedSlot<A> {
        FeedSlot(Arc::clone(&self.0))
    }
}

impl<A> Default for FeedSlot<A> {
    fn default() -> FeedSlot<A> {
        FeedSlot(Arc::new(Mutex::new(Filling::Empty)))
    }
}

impl<A> fmt::Debug for FeedSlot<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FeedSlot").finish_non_exhaustive()
    }
}

/// What an iteratee was fed: a value, or the end of the values, which fails when it is opened.
///
/// # Paper
/// [Pipes, Listing 8]: `runIteratee []` feeds `error "No more values to feed."`.
pub struct Fed<A>(Option<A>);

impl<A> Fed<A> {
    /// The value.
    ///
    /// # Panics
    /// If there was none: `No more values to feed.`
    #[track_caller]
    pub fn get(self) -> A {
        self.0.expect("No more values to feed.")
    }
}

impl<A> fmt::Debug for Fed<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Fed").field("has_value", &self.0.is_some()).finish()
    }
}

/// The suspension that offers several resumptions: for its holder to choose from, or to run all.
///
/// No body suspends so, because a body has one rest: such coroutines are put together with
/// [`Coroutine::suspend`](crate::Coroutine::suspend).
///
/// # Paper
/// [Pipes, Other possible suspension types] the list functor.
#[doc(alias = "list")]
#[derive(Debug)]
pub enum Many {}

impl Suspension for Many {
    type Of<X: Send> = Vec<X>;

    fn map<X: Send, Y: Send>(rests: Vec<X>, f: impl FnMut(X) -> Y) -> Vec<Y> {
        rests.into_iter().map(f).collect()
    }
}

/// A suspension `F` with the suspension `G` in the place of its resumption.
///
/// # Paper
/// [Pipes, Other possible suspension types] `Compose f g a`.
pub struct Compose<F, G>(PhantomData<fn() -> (F, G)>);

impl<F: Suspension, G: Suspension> Suspension for Compose<F, G> {
    type Of<X: Send> = F::Of<G::Of<X>>;

    fn map<X: Send, Y: Send>(suspended: Self::Of<X>, mut f: impl FnMut(X) -> Y) -> Self::Of<Y> {
        F::map(suspended, |inner| G::map(inner, &mut f))
    }
}

impl<F: Single, G: Single> Single for Compose<F, G> {
    type Places = (F::Places, G::Places);
}

impl<F, G> fmt::Debug for Compose<F, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Compose")
    }
}

/// A suspension that is `L` or `R`, each time anew.
///
/// # Paper
/// [Pipes, Other possible suspension types] `EitherFunctor l r x`.
pub struct EitherFunctor<L, R>(PhantomData<fn() -> (L, R)>);

/// One of two: a suspension of [`EitherFunctor`].
///
/// # Paper
/// [Pipes, Other possible suspension types] `LeftF` and `RightF`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Either<L, R> {
    /// The first of the two.
    Left(L),
    /// The second of the two.
    Right(R),
}

impl<L: Suspension, R: Suspension> Suspension for EitherFunctor<L, R> {
    type Of<X: Send> = Either<L::Of<X>, R::Of<X>>;

    fn map<X: Send, Y: Send>(suspended: Self::Of<X>, f: impl FnMut(X) -> Y) -> Self::Of<Y> {
        match suspended {
            Either::Left(left) => Either::Left(L::map(left, f)),
            Either::Right(right) => Either::Right(R::map(right, f)),
        }
    }
}

impl<L: Single, R: Single> Single for EitherFunctor<L, R> {
    type Places = (L::Places, R::Places);
}

impl<L, R> fmt::Debug for EitherFunctor<L, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("EitherFunctor")
    }
}
