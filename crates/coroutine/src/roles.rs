//! The coroutines with a name of their own, as aliases of `Coroutine`: `Trampoline`, `Generator`,
//! `Iteratee`; the suspensions `Request` and `InOrOut`; and the functions `bounce`, `run`,
//! `run_generator` and `run_iteratee`. Users call them.
//!
//! An alias adds nothing to `Coroutine`: all of it follows from the suspension. The functions are
//! loops around `resume`, so they use no stack for a step. [Pipes, Listings 6 to 8 and 10].

use crate::coroutine::{Coroutine, Resumed};
use crate::suspension::{Await, Compose, EitherFunctor, Identity, Yield};

/// A coroutine that pauses, and tells its holder nothing but that.
///
/// # Paper
/// [Pipes, Listing 6] `Trampoline`; [Pipes, Listing 10] as an alias.
pub type Trampoline<'a, R> = Coroutine<'a, Identity, R>;

/// A coroutine that yields values of type `A`.
///
/// # Paper
/// [Pipes, Listing 7] `Generator`; [Pipes, Listing 10] as an alias.
pub type Generator<'a, A, R> = Coroutine<'a, Yield<A>, R>;

/// A coroutine that awaits values of type `A`.
///
/// # Paper
/// [Pipes, Listing 8] `Iteratee`; [Pipes, Listing 10] as an alias.
pub type Iteratee<'a, A, R> = Coroutine<'a, Await<A>, R>;

/// A suspension that gives a `Q` and takes a `P` for it, in one.
///
/// # Paper
/// [Pipes, Other possible suspension types] `Request`, defined as a composition.
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Co, Coroutine, Request, Resumed};
///
/// async fn area(mut co: Co<Request<&'static str, u32>>) -> u32 {
///     co.request("width").await * co.request("height").await
/// }
///
/// let area = selvedge::round_robin(async {
///     let mut coroutine = Coroutine::new(area);
///     loop {
///         coroutine = match coroutine.resume().await {
///             Resumed::Suspended((name, response)) => response.feed(name.len() as u32),
///             Resumed::Done(area) => return area,
///         }
///     }
/// })?;
/// assert_eq!(area, 5 * 6);
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub type Request<Q, P> = Compose<Yield<Q>, Await<P>>;

/// A suspension that gives an `A` or takes a `B`, one of them each time.
///
/// # Paper
/// [Pipes, Other possible suspension types] `InOrOut`.
pub type InOrOut<A, B> = EitherFunctor<Yield<A>, Await<B>>;

/// Runs a trampoline to its next pause or to its end.
///
/// # Paper
/// [Pipes, Listing 6] `bounce`.
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Resumed, Trampoline, bounce, run};
/// use std::sync::Mutex;
///
/// static SAID: Mutex<String> = Mutex::new(String::new());
/// fn say(words: &str) {
///     SAID.lock().unwrap().push_str(words);
/// }
///
/// selvedge::round_robin(async {
///     let hello = Trampoline::new(|mut co| async move {
///         say("Hello, ");
///         co.pause().await;
///         say("World!");
///     });
///     if let Resumed::Suspended(rest) = bounce(hello).await {
///         say("Wonderful ");
///         run(rest).await;
///     }
/// })?;
/// assert_eq!(*SAID.lock().unwrap(), "Hello, Wonderful World!");
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub async fn bounce<'a, R: Send + 'a>(trampoline: Trampoline<'a, R>) -> Resumed<Trampoline<'a, R>, R> {
    trampoline.resume().await
}

/// Runs a trampoline to its end, through all pauses.
///
/// # Complexity
/// No allocation.
///
/// # Paper
/// [Pipes, Listing 6] `run`; [Pipes, Listing 10].
pub async fn run<'a, R: Send + 'a>(mut trampoline: Trampoline<'a, R>) -> R {
    loop {
        match trampoline.resume().await {
            Resumed::Suspended(rest) => trampoline = rest,
            Resumed::Done(result) => return result,
        }
    }
}

/// Runs a generator to its end; returns the values that it has yielded, and its result.
///
/// # Complexity
/// No allocation but the vector.
///
/// # Paper
/// [Pipes, Listing 7] `runGenerator`; [Pipes, Listing 10].
#[doc(alias = "runGenerator")]
pub async fn run_generator<'a, A, R>(mut generator: Generator<'a, A, R>) -> (Vec<A>, R)
where
    A: Send + 'a,
    R: Send + 'a,
{
    let mut yielded = Vec::new();
    loop {
        match generator.resume().await {
            Resumed::Suspended((value, rest)) => {
                yielded.push(value);
                generator = rest;
            }
            Resumed::Done(result) => return (yielded, result),
        }
    }
}

/// Runs an iteratee to its end, and feeds it the values. Values that it does not ask for are
/// dropped.
///
/// # Panics
/// If the iteratee opens more values than there are: `No more values to feed.` It may await them
/// with [`Co::await_fed`](crate::Co::await_fed) and not open them.
///
/// # Complexity
/// No allocation.
///
/// # Paper
/// [Pipes, Listing 8] `runIteratee`; [Pipes, Listing 10].
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Iteratee, run_iteratee};
///
/// let sum = Iteratee::new(|mut co| async move { co.await_().await + co.await_().await });
/// let sum: i32 = selvedge::round_robin(run_iteratee([4, 5], sum))?;
/// assert_eq!(sum, 9);
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "runIteratee")]
pub async fn run_iteratee<'a, A, R>(
    values: impl IntoIterator<Item = A>,
    mut iteratee: Iteratee<'a, A, R>,
) -> R
where
    A: Send + 'a,
    R: Send + 'a,
{
    let mut values = values.into_iter();
    loop {
        match iteratee.resume().await {
            Resumed::Suspended(demand) => {
                iteratee = match values.next() {
                    Some(value) => demand.feed(value),
                    None => demand.starve(),
                }
            }
            Resumed::Done(result) => return result,
        }
    }
}
