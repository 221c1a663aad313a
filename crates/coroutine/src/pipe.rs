//! `pipe1` and `pipe2` run a generator and an iteratee together, and return both results. Users
//! call them; the forms with `_by` take a `Binder`.
//!
//! Each step resumes the producer, then the consumer, and then feeds the value. So the producer is
//! one step ahead, and the order of effects is the paper's. If the consumer ends first, the loop
//! drains the producer. `pipe1` panics if the producer ends first; `pipe2` feeds `None`. [Pipes,
//! Listing 11].

use crate::binder::{Binder, Sequential};
use crate::coroutine::Resumed;
use crate::roles::{Generator, Iteratee};

/// Runs `producer` and `consumer` together to both their ends, and returns both results.
///
/// In each step it resumes the producer, then the consumer; then the consumer is fed the value that
/// the producer yielded. So the producer runs one step ahead of its consumer. When the consumer
/// ends first, the producer is drained: it runs to its end, and its values are dropped. With a
/// producer that never ends, that never ends either.
///
/// # Panics
/// If the producer ends while the consumer awaits: `The producer ended too soon.` The consumer made
/// its step before.
///
/// # Complexity
/// No allocation.
///
/// # Paper
/// [Pipes, Listing 11] `pipe1`.
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Generator, Iteratee, pipe1};
///
/// let three = Generator::new(|mut co| async move {
///     for number in [1, 2, 3] {
///         co.yield_(number).await;
///     }
///     "drained"
/// });
/// let first = Iteratee::new(|mut co| async move { co.await_().await });
/// assert_eq!(selvedge::round_robin(pipe1(three, first))?, ("drained", 1));
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub async fn pipe1<'a, A, X, Y>(producer: Generator<'a, A, X>, consumer: Iteratee<'a, A, Y>) -> (X, Y)
where
    A: Send + 'a,
    X: Send + 'a,
    Y: Send + 'a,
{
    pipe1_by(Sequential, producer, consumer).await
}

/// As [`pipe1`], where `binder` runs the two steps.
///
/// # Panics
/// As [`pipe1`].
///
/// # Paper
/// [Pipes, Producer-consumer]: `pipe1` with another `bindM2`.
pub async fn pipe1_by<'a, A, X, Y>(
    binder: impl Binder<'a>,
    mut producer: Generator<'a, A, X>,
    mut consumer: Iteratee<'a, A, Y>,
) -> (X, Y)
where
    A: Send + 'a,
    X: Send + 'a,
    Y: Send + 'a,
{
    use Resumed::{Done, Suspended};
    loop {
        (producer, consumer) = match binder.both(producer.resume(), consumer.resume()).await {
            (Suspended((value, rest)), Suspended(demand)) => (rest, demand.feed(value)),
            (Suspended((_, rest)), Done(y)) => (rest, Iteratee::done(y)),
            (Done(_), Suspended(_)) => panic!("The producer ended too soon."),
            (Done(x), Done(y)) => return (x, y),
        }
    }
}

/// As [`pipe1`], for a consumer that is told of the producer's end: it is fed `Some(value)`, and
/// `None` for ever when the producer has ended.
///
/// # Complexity
/// No allocation.
///
/// # Paper
/// [Pipes, Listing 11] `pipe2`.
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Generator, Iteratee, pipe2};
///
/// let nothing = Generator::<u32, _>::done("the end");
/// let ends = Iteratee::new(|mut co| async move { (co.await_().await, co.await_().await) });
/// assert_eq!(selvedge::round_robin(pipe2(nothing, ends))?, ("the end", (None, None)));
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub async fn pipe2<'a, A, X, Y>(producer: Generator<'a, A, X>, consumer: Iteratee<'a, Option<A>, Y>) -> (X, Y)
where
    A: Send + 'a,
    X: Send + 'a,
    Y: Send + 'a,
{
    pipe2_by(Sequential, producer, consumer).await
}

/// As [`pipe2`], where `binder` runs the two steps.
///
/// # Paper
/// [Pipes, Producer-consumer]: `pipe2` with another `bindM2`.
pub async fn pipe2_by<'a, A, X, Y>(
    binder: impl Binder<'a>,
    mut producer: Generator<'a, A, X>,
    mut consumer: Iteratee<'a, Option<A>, Y>,
) -> (X, Y)
where
    A: Send + 'a,
    X: Send + 'a,
    Y: Send + 'a,
{
    use Resumed::{Done, Suspended};
    loop {
        (producer, consumer) = match binder.both(producer.resume(), consumer.resume()).await {
            (Suspended((value, rest)), Suspended(demand)) => (rest, demand.feed(Some(value))),
            (Suspended((_, rest)), Done(y)) => (rest, Iteratee::done(y)),
            (Done(x), Suspended(demand)) => (Generator::done(x), demand.feed(None)),
            (Done(x), Done(y)) => return (x, y),
        }
    }
}
