//! Trampolines that bounce in lock-step: `mzip_with` for two, `interleave` for many, and both with
//! a `Binder`. Users call them.
//!
//! No trampoline begins a bounce before all others have ended the bounce before. A trampoline that
//! has ended keeps its result until the others end. `interleave` is a loop, because the paper's
//! fold needs a stack as deep as the number of trampolines; `interleave_by` keeps the fold. [Pipes,
//! Listing 6].

use crate::binder::{Binder, Sequential};
use crate::coroutine::Resumed;
use crate::roles::Trampoline;

/// One trampoline that bounces two: each of its bounces is one of `t1`, and then one of `t2`.
///
/// It ends when both have ended. If their numbers of bounces differ, the coroutine that has ended
/// keeps its result until the other ends.
///
/// # Paper
/// [Pipes, Listing 6] and the section around it, `mzipWith`.
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Trampoline, mzip_with, run};
///
/// let warp = Trampoline::new(|mut co| async move { co.pause().await; "warp" });
/// let weft = Trampoline::done("weft");
/// let both = mzip_with(|a, b| format!("{a} and {b}"), warp, weft);
/// assert_eq!(selvedge::round_robin(run(both))?, "warp and weft");
/// # Ok::<(), selvedge::RunError>(())
/// ```
#[doc(alias = "mzipWith")]
pub fn mzip_with<'a, A, B, C>(
    f: impl FnOnce(A, B) -> C + Send + 'a,
    t1: Trampoline<'a, A>,
    t2: Trampoline<'a, B>,
) -> Trampoline<'a, C>
where
    A: Send + 'a,
    B: Send + 'a,
    C: Send + 'a,
{
    mzip_with_by(Sequential, f, t1, t2)
}

/// As [`mzip_with`], where `binder` runs the two bounces.
///
/// # Paper
/// [Pipes, Trampolining a monad computation]: with another `liftM2`, the bounces run in parallel.
pub fn mzip_with_by<'a, A, B, C>(
    binder: impl Binder<'a>,
    f: impl FnOnce(A, B) -> C + Send + 'a,
    mut t1: Trampoline<'a, A>,
    mut t2: Trampoline<'a, B>,
) -> Trampoline<'a, C>
where
    A: Send + 'a,
    B: Send + 'a,
    C: Send + 'a,
{
    Trampoline::new(|mut co| async move {
        loop {
            match binder.both(t1.resume(), t2.resume()).await {
                (Resumed::Done(a), Resumed::Done(b)) => return f(a, b),
                (a, b) => (t1, t2) = (rest(a), rest(b)),
            }
            co.pause().await;
        }
    })
}

/// What is left after a bounce: of one that has ended, a trampoline that has the result.
fn rest<'a, R: Send + 'a>(bounced: Resumed<Trampoline<'a, R>, R>) -> Trampoline<'a, R> {
    match bounced {
        Resumed::Suspended(rest) => rest,
        Resumed::Done(result) => Trampoline::done(result),
    }
}

/// One trampoline that bounces all: each of its bounces is one of every trampoline that has not
/// ended, in their order. The result has their results, in their order.
///
/// No trampoline begins bounce `k + 1` before all have ended bounce `k`. An endless loop in one of
/// them stops all.
///
/// # Complexity
/// A bounce looks at each trampoline, and allocates nothing. The depth of the stack does not depend
/// on their number, unlike that of [`interleave_by`].
///
/// # Paper
/// [Pipes, Listing 6] and the section around it, `interleave`.
///
/// # Differences
/// 1. It is a loop, with the same bounces in the same order as the paper's fold of `mzipWith`.
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Trampoline, interleave, run};
/// use std::sync::Mutex;
///
/// static SAID: Mutex<String> = Mutex::new(String::new());
///
/// let hello = || {
///     Trampoline::new(|mut co| async move {
///         SAID.lock().unwrap().push_str("Hello, ");
///         co.pause().await;
///         SAID.lock().unwrap().push_str("World!\n");
///     })
/// };
/// let ended = selvedge::round_robin(run(interleave([hello(), hello(), hello()])))?;
/// assert_eq!(ended, [(), (), ()]);
/// assert_eq!(*SAID.lock().unwrap(), "Hello, Hello, Hello, World!\nWorld!\nWorld!\n");
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn interleave<'a, R: Send + 'a>(
    trampolines: impl IntoIterator<Item = Trampoline<'a, R>>,
) -> Trampoline<'a, Vec<R>> {
    let mut bounced: Vec<_> = trampolines.into_iter().map(|it| Some(Resumed::Suspended(it))).collect();
    Trampoline::new(|mut co| async move {
        loop {
            let mut all_ended = true;
            for place in &mut bounced {
                *place = match place.take() {
                    Some(Resumed::Suspended(trampoline)) => Some(trampoline.resume().await),
                    ended => ended,
                };
                all_ended &= matches!(place, Some(Resumed::Done(_)));
            }
            if all_ended {
                let results = bounced.into_iter().filter_map(|place| match place {
                    Some(Resumed::Done(result)) => Some(result),
                    _ => None,
                });
                return results.collect();
            }
            co.pause().await;
        }
    })
}

/// As [`interleave`], where `binder` runs the bounces: the first, and all the others.
///
/// # Complexity
/// Two allocations for each trampoline. A bounce of `n` of them polls `n` deep, because it is one
/// combinator within the other.
///
/// # Paper
/// [Pipes, Trampolining a monad computation] `foldr (mzipWith (:)) (return [])`.
pub fn interleave_by<'a, R, I>(binder: impl Binder<'a>, trampolines: I) -> Trampoline<'a, Vec<R>>
where
    R: Send + 'a,
    I: IntoIterator<Item = Trampoline<'a, R>>,
    I::IntoIter: DoubleEndedIterator,
{
    let cons = |first, mut others: Vec<R>| {
        others.insert(0, first);
        others
    };
    let none = Trampoline::done(Vec::new());
    trampolines.into_iter().rfold(none, |others, first| mzip_with_by(binder, cons, first, others))
}
