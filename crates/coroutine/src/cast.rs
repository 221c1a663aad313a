//! The casts between the kinds of coroutines: a generator, an iteratee or a trampoline as a
//! transducer, and back. Users need them to build a chain with `>>` and to run it.
//!
//! A side at which there is nothing has the item `Naught`, which has no values. So a yield of
//! `Naught` cannot happen, and the match on it is empty. A transducer that awaits where nothing can
//! come is fed `None`. [Pipes, Listing 13].

use crate::coroutine::{Natural, Resumed};
use crate::roles::{Generator, Iteratee, Trampoline};
use crate::suspension::{Await, Either, EitherFunctor, Feed, Suspension, Yield};
use crate::transducer::Transducer;

/// The item of a side at which there is nothing: it has no values.
///
/// # Paper
/// [Pipes, Listing 13] `Naught`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Naught {}

/// [`Either::Left`] for each suspension.
struct ToLeft;

impl<L: Suspension, R: Suspension> Natural<L, EitherFunctor<L, R>> for ToLeft {
    fn apply<X: Send>(&self, suspended: L::Of<X>) -> Either<L::Of<X>, R::Of<X>> {
        Either::Left(suspended)
    }
}

/// [`Either::Right`] for each suspension.
struct ToRight;

impl<L: Suspension, R: Suspension> Natural<R, EitherFunctor<L, R>> for ToRight {
    fn apply<X: Send>(&self, suspended: R::Of<X>) -> Either<L::Of<X>, R::Of<X>> {
        Either::Right(suspended)
    }
}

/// A generator as a transducer that asks for no input.
///
/// # Paper
/// [Pipes, Listing 13] `fromGenerator`.
#[doc(alias = "fromGenerator")]
pub fn from_generator<'a, A, R>(generator: Generator<'a, A, R>) -> Transducer<'a, Naught, A, R>
where
    A: Send + 'a,
    R: Send + 'a,
{
    generator.map_suspension(ToRight)
}

/// An iteratee as a transducer with no output.
///
/// # Paper
/// [Pipes, Listing 13] `fromIteratee`.
#[doc(alias = "fromIteratee")]
pub fn from_iteratee<'a, A, R>(iteratee: Iteratee<'a, Option<A>, R>) -> Transducer<'a, A, Naught, R>
where
    A: Send + 'a,
    R: Send + 'a,
{
    iteratee.map_suspension(ToLeft)
}

/// A trampoline as a transducer with neither. Its pauses are not seen from outside.
///
/// # Paper
/// [Pipes, Transducer piping]: casts for plain trampolines, which Listing 13 leaves out.
pub fn from_trampoline<'a, R: Send + 'a>(trampoline: Trampoline<'a, R>) -> Transducer<'a, Naught, Naught, R> {
    Transducer::lift(crate::roles::run(trampoline))
}

/// A transducer that has no input as a generator.
///
/// A transducer that awaits all the same is fed `None`: its input has ended.
///
/// # Paper
/// [Pipes, Listing 13] `toGenerator`.
///
/// # Differences
/// 1. The paper's function fails when such a transducer awaits.
///
/// # Examples
/// A transducer with an input does not fit:
/// ```compile_fail,E0308
/// use selvedge::coroutine::{lift_one_to_one, to_generator};
///
/// let _ = to_generator(lift_one_to_one(|number: u32| number + 1));
/// ```
#[doc(alias = "toGenerator")]
pub fn to_generator<'a, A, R>(transducer: Transducer<'a, Naught, A, R>) -> Generator<'a, A, R>
where
    A: Send + 'a,
    R: Send + 'a,
{
    Generator::new(|mut co| async move {
        let mut transducer = transducer;
        loop {
            transducer = match transducer.resume().await {
                Resumed::Suspended(Either::Left(demand)) => demand.feed(None),
                Resumed::Suspended(Either::Right(yielded)) => co.suspend(yielded).await,
                Resumed::Done(result) => return result,
            }
        }
    })
}

/// The awaits of a transducer that has no output.
struct Awaits;

impl<A: Send> Natural<EitherFunctor<Await<A>, Yield<Naught>>, Await<A>> for Awaits {
    fn apply<X: Send>(&self, suspended: Either<Feed<A, X>, (Naught, X)>) -> Feed<A, X> {
        match suspended {
            Either::Left(demand) => demand,
            Either::Right((naught, _)) => match naught {},
        }
    }
}

/// A transducer that has no output as an iteratee.
///
/// # Paper
/// [Pipes, Listing 13] `toIteratee`.
#[doc(alias = "toIteratee")]
pub fn to_iteratee<'a, A, R>(transducer: Transducer<'a, A, Naught, R>) -> Iteratee<'a, Option<A>, R>
where
    A: Send + 'a,
    R: Send + 'a,
{
    transducer.map_suspension(Awaits)
}

/// A transducer that has neither as a trampoline, which never pauses.
///
/// A transducer that awaits all the same is fed `None`: its input has ended.
///
/// # Paper
/// [Pipes, Listing 13] `toTrampoline`.
///
/// # Differences
/// 1. The paper's function fails when such a transducer awaits.
#[doc(alias = "toTrampoline")]
pub fn to_trampoline<'a, R: Send + 'a>(transducer: Transducer<'a, Naught, Naught, R>) -> Trampoline<'a, R> {
    Trampoline::lift(async move {
        let mut transducer = transducer;
        loop {
            transducer = match transducer.resume().await {
                Resumed::Suspended(Either::Left(demand)) => demand.feed(None),
                Resumed::Suspended(Either::Right((naught, _))) => match naught {},
                Resumed::Done(result) => return result,
            }
        }
    })
}
