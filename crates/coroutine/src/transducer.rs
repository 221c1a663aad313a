//! `Transducer`: a coroutine that awaits values from upstream and yields values downstream;
//! `lift_one_to_one`, `lift_stateless` and `lift_stateful` make one of a function. `pipe`, or `>>`,
//! makes one transducer of two. Users call them.
//!
//! `pipe` resumes both sides before a suspension reaches the holder. If upstream awaits, that await
//! goes out first. `Side` notes which of the two has been resumed already, so that no side takes
//! two steps in one. [Pipes, Listing 12] `=>=`.

use crate::binder::{Binder, Sequential};
use crate::coroutine::{Coroutine, Resumed};
use crate::roles::Generator;
use crate::suspension::{Await, Either, EitherFunctor, Suspension, Yield};
use std::ops::Shr;

/// A coroutine that awaits values of type `A` from upstream, and yields values of type `B`
/// downstream. `None` from upstream is its end.
///
/// # Paper
/// [Pipes, Transducers in the middle] `Transducer a b m x`.
pub type Transducer<'a, A, B, R> = Coroutine<'a, EitherFunctor<Await<Option<A>>, Yield<B>>, R>;

/// Yields `f(value)` for each value.
///
/// # Paper
/// [Pipes, Transducers in the middle] `lift121`.
#[doc(alias = "lift121")]
pub fn lift_one_to_one<'a, A, B>(mut f: impl FnMut(A) -> B + Send + 'a) -> Transducer<'a, A, B, ()>
where
    A: Send + 'a,
    B: Send + 'a,
{
    Transducer::new(|mut co| async move {
        while let Some(value) = co.await_().await {
            co.yield_(f(value)).await;
        }
    })
}

/// Yields all that `f(value)` has, for each value.
///
/// # Paper
/// [Pipes, Transducers in the middle] `liftStateless`.
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Generator, from_generator, lift_stateless};
/// use selvedge::coroutine::{run_generator, to_generator};
///
/// let numbers = Generator::new(|mut co| async move {
///     co.yield_(1).await;
///     co.yield_(2).await;
///     3
/// });
/// let doubled = to_generator(from_generator(numbers) >> lift_stateless(|a| [a, a]));
/// let ended = selvedge::round_robin(run_generator(doubled))?;
/// assert_eq!(ended, (vec![1, 1, 2, 2], (3, ())));
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "liftStateless")]
pub fn lift_stateless<'a, A, B, I>(mut f: impl FnMut(A) -> I + Send + 'a) -> Transducer<'a, A, B, ()>
where
    A: Send + 'a,
    B: Send + 'a,
    I: IntoIterator<Item = B, IntoIter: Send>,
{
    Transducer::new(|mut co| async move {
        while let Some(value) = co.await_().await {
            let all = f(value).into_iter();
            for output in all {
                co.yield_(output).await;
            }
        }
    })
}

/// Yields for each value what `step` gives for it and the state, and at the end what `end` makes of
/// the state.
///
/// # Paper
/// [Pipes, Transducers in the middle] `liftStateful`.
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Generator, from_generator, lift_stateful};
/// use selvedge::coroutine::{run_generator, to_generator};
///
/// let numbers = Generator::new(|mut co| async move {
///     for number in [1, 2, 3] {
///         co.yield_(number).await;
///     }
/// });
/// let sums = lift_stateful(|sum, number| (sum + number, [sum]), |sum| [sum], 0);
/// let sums = to_generator(from_generator(numbers) >> sums);
/// let (sums, ((), ())) = selvedge::round_robin(run_generator(sums))?;
/// assert_eq!(sums, [0, 1, 3, 6]);
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "liftStateful")]
pub fn lift_stateful<'a, A, B, T, I, J>(
    mut step: impl FnMut(T, A) -> (T, I) + Send + 'a,
    end: impl FnOnce(T) -> J + Send + 'a,
    mut state: T,
) -> Transducer<'a, A, B, ()>
where
    A: Send + 'a,
    B: Send + 'a,
    T: Send + 'a,
    I: IntoIterator<Item = B, IntoIter: Send>,
    J: IntoIterator<Item = B, IntoIter: Send>,
{
    Transducer::new(|mut co| async move {
        while let Some(value) = co.await_().await {
            let (next, outputs) = step(state, value);
            state = next;
            let outputs = outputs.into_iter();
            for output in outputs {
                co.yield_(output).await;
            }
        }
        let outputs = end(state).into_iter();
        for output in outputs {
            co.yield_(output).await;
        }
    })
}

/// One transducer of two: what `upstream` yields, `downstream` awaits. The operator `>>` does it
/// too.
///
/// Both are resumed before either's suspension reaches the outside. If upstream awaits, that
/// surfaces first, also before a value that downstream has ready. When upstream has ended,
/// downstream gets `None` for ever. When downstream has ended, upstream is drained: its values are
/// dropped.
///
/// # Complexity
/// Three allocations when it is made; none when it is stepped.
///
/// # Paper
/// [Pipes, Listing 12] `=>=`.
#[doc(alias = "=>=")]
pub fn pipe<'a, A, B, C, X, Y>(
    upstream: Transducer<'a, A, B, X>,
    downstream: Transducer<'a, B, C, Y>,
) -> Transducer<'a, A, C, (X, Y)>
where
    A: Send + 'a,
    B: Send + 'a,
    C: Send + 'a,
    X: Send + 'a,
    Y: Send + 'a,
{
    pipe_by(Sequential, upstream, downstream)
}

/// As [`pipe`], where `binder` runs the two steps.
///
/// # Paper
/// [Pipes, Listing 12] `=>=` with another `bindM2`.
pub fn pipe_by<'a, A, B, C, X, Y>(
    binder: impl Binder<'a>,
    upstream: Transducer<'a, A, B, X>,
    downstream: Transducer<'a, B, C, Y>,
) -> Transducer<'a, A, C, (X, Y)>
where
    A: Send + 'a,
    B: Send + 'a,
    C: Send + 'a,
    X: Send + 'a,
    Y: Send + 'a,
{
    use Resumed::{Done, Suspended};
    Transducer::new(|mut co| async move {
        let (mut upstream, mut downstream) = (Side::Rest(upstream), Side::Rest(downstream));
        loop {
            (upstream, downstream) = match binder.both(upstream.step(), downstream.step()).await {
                (Suspended(Either::Left(demand)), other) => {
                    let rest = co.suspend(Either::Left(demand)).await;
                    (Side::Rest(rest), Side::Stepped(other))
                }
                (other, Suspended(Either::Right(yielded))) => {
                    let rest = co.suspend(Either::Right(yielded)).await;
                    (Side::Stepped(other), Side::Rest(rest))
                }
                (Suspended(Either::Right((value, rest))), Suspended(Either::Left(demand))) => {
                    (Side::Rest(rest), Side::Rest(demand.feed(Some(value))))
                }
                (Suspended(Either::Right((_, rest))), Done(y)) => (Side::Rest(rest), Side::Stepped(Done(y))),
                (Done(x), Suspended(Either::Left(demand))) => {
                    (Side::Stepped(Done(x)), Side::Rest(demand.feed(None)))
                }
                (Done(x), Done(y)) => return (x, y),
            }
        }
    })
}

/// One of the two in a step.
enum Side<'a, S: Suspension + 'a, R: Send + 'a> {
    /// It is to be resumed.
    Rest(Coroutine<'a, S, R>),
    /// It has been resumed already, and waits while the suspension of the other one is outside.
    Stepped(Resumed<S::Of<Coroutine<'a, S, R>>, R>),
}

impl<'a, S: Suspension + 'a, R: Send + 'a> Side<'a, S, R> {
    async fn step(self) -> Resumed<S::Of<Coroutine<'a, S, R>>, R> {
        match self {
            Side::Rest(coroutine) => coroutine.resume().await,
            Side::Stepped(resumed) => resumed,
        }
    }
}

/// [`pipe`] as an operator: the paper's `=>=`.
impl<'a, A, B, C, X, Y> Shr<Transducer<'a, B, C, Y>> for Transducer<'a, A, B, X>
where
    A: Send + 'a,
    B: Send + 'a,
    C: Send + 'a,
    X: Send + 'a,
    Y: Send + 'a,
{
    type Output = Transducer<'a, A, C, (X, Y)>;

    fn shr(self, downstream: Transducer<'a, B, C, Y>) -> Self::Output {
        pipe(self, downstream)
    }
}

/// What may stand downstream of a [`Generator`] that is not cast to a transducer: nothing. No type
/// has this trait. With it the compiler says which cast is missing.
#[diagnostic::on_unimplemented(
    message = "a generator stands upstream of `>>` only as a transducer",
    label = "`>>` joins transducers: write `from_generator(..) >> ..`, and `from_iteratee(..)` downstream",
    note = "`pipe1` and `pipe2` run a generator and an iteratee together without a cast"
)]
pub trait AfterUncast {
    /// The two as one.
    type Whole;

    /// Puts the generator before `self`.
    fn after(self) -> Self::Whole;
}

impl<'a, A: Send + 'a, R: Send + 'a, D: AfterUncast> Shr<D> for Generator<'a, A, R> {
    type Output = D::Whole;

    fn shr(self, downstream: D) -> D::Whole {
        downstream.after()
    }
}
