//! [`select!`](crate::select!): several futures in one thread, with a name for each, until the
//! first of them is ready.
//!
//! The macro makes a list of [`Branch`]es, `(first, (second, ()))`, and awaits a [`Choosing`] over
//! it, which polls the branches and gives an [`Ended`]. Only code that the macro writes names these
//! types.

use selvedge_core::draw;
use std::convert::Infallible;
use std::fmt;
use std::future::{Future, IntoFuture};
use std::pin::Pin;
use std::task::{Context, Poll};

/// A future, and the pattern that its output must match.
pub struct Branch<F, M> {
    /// `None` if the branch is disabled.
    future: Option<F>,
    /// Gives the output back if it matches the pattern.
    matching: M,
}

/// What a branch awaits. It is a call of its own, so that the compiler marks what is no future.
#[inline(always)]
pub fn future<I: IntoFuture>(awaited: I) -> I::IntoFuture {
    awaited.into_future()
}

/// A branch; without a future it is disabled.
#[inline(always)]
pub fn branch<F: Future, M>(future: Option<F>, matching: M) -> Branch<F, M>
where
    M: FnMut(F::Output) -> Option<F::Output>,
{
    Branch { future, matching }
}

/// Which branch of a list was ready first, with its output.
#[derive(Debug)]
pub enum Ended<A, B> {
    /// The first of the list.
    Here(A),
    /// One of the others.
    Later(B),
}

/// A list of branches.
pub trait Branches {
    /// The [`Ended`] of their outputs.
    type Output;
    /// How many branches there are.
    const NUMBER: u32;
    /// Polls the branch with an index. `Ready(None)` if the branch is disabled.
    fn poll_branch(self: Pin<&mut Self>, index: u32, cx: &mut Context<'_>) -> Poll<Option<Self::Output>>;
}

impl Branches for () {
    type Output = Infallible;
    const NUMBER: u32 = 0;

    #[inline(always)]
    fn poll_branch(self: Pin<&mut Self>, _: u32, _: &mut Context<'_>) -> Poll<Option<Infallible>> {
        Poll::Ready(None)
    }
}

impl<F, M, Rest> Branches for (Branch<F, M>, Rest)
where
    F: Future,
    M: FnMut(F::Output) -> Option<F::Output>,
    Rest: Branches,
{
    type Output = Ended<F::Output, Rest::Output>;
    const NUMBER: u32 = 1 + Rest::NUMBER;

    #[inline(always)]
    fn poll_branch(self: Pin<&mut Self>, index: u32, cx: &mut Context<'_>) -> Poll<Option<Self::Output>> {
        // SAFETY: the rest and the future are pinned with the list: each is reached through `Pin`
        // below, and neither is moved. `matching` is not pinned, because no `Pin` to it is made.
        let (branch, rest) = unsafe { self.get_unchecked_mut() };
        if index > 0 {
            // SAFETY: as above.
            let rest = unsafe { Pin::new_unchecked(rest) };
            return rest.poll_branch(index - 1, cx).map(|ended| ended.map(Ended::Later));
        }
        // SAFETY: as above.
        let mut future = unsafe { Pin::new_unchecked(&mut branch.future) };
        let Some(enabled) = future.as_mut().as_pin_mut() else { return Poll::Ready(None) };
        let Poll::Ready(output) = enabled.poll(cx) else { return Poll::Pending };
        let output = (branch.matching)(output);
        if output.is_none() {
            future.set(None);
        }
        Poll::Ready(output.map(Ended::Here))
    }
}

/// The future that polls a list of branches, from the first one if it is biased, and otherwise each
/// time from one that is [drawn](draw). `None` if all branches are disabled.
pub struct Choosing<B, const BIASED: bool> {
    branches: B,
}

impl<B, const BIASED: bool> Choosing<B, BIASED> {
    #[allow(missing_docs, reason = "only the macro calls it")]
    #[inline(always)]
    pub fn new(branches: B) -> Self {
        Choosing { branches }
    }
}

impl<B: Branches, const BIASED: bool> Future for Choosing<B, BIASED> {
    type Output = Option<B::Output>;

    #[inline(always)]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<B::Output>> {
        // SAFETY: the only field, pinned with us.
        let mut branches = unsafe { self.map_unchecked_mut(|this| &mut this.branches) };
        let mut next = if BIASED || B::NUMBER < 2 { 0 } else { draw::below(B::NUMBER) };
        let mut is_disabled = true;
        for _ in 0..B::NUMBER {
            match branches.as_mut().poll_branch(next, cx) {
                Poll::Ready(Some(output)) => return Poll::Ready(Some(output)),
                Poll::Ready(None) => {}
                Poll::Pending => is_disabled = false,
            }
            next += 1;
            if next == B::NUMBER {
                next = 0;
            }
        }
        if is_disabled { Poll::Ready(None) } else { Poll::Pending }
    }
}

impl<F, M> fmt::Debug for Branch<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Branch").field("is_enabled", &self.future.is_some()).finish_non_exhaustive()
    }
}

impl<B, const BIASED: bool> fmt::Debug for Choosing<B, BIASED> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Choosing").finish_non_exhaustive()
    }
}

/// What a `select!` without `else` does when all its branches are disabled.
#[cold]
#[track_caller]
pub fn all_disabled() -> ! {
    panic!("all branches of this select! are disabled, and it has no else")
}

/// Waits until one of any number of futures is ready, drops the others, and goes on with what is
/// written behind its name.
///
/// ```text
/// select! {
///     biased;                                      // only if the order is to decide
///     pattern = future => expression,
///     pattern = future, if condition => expression,
///     else => expression,                          // only where all branches may be disabled
/// }
/// ```
///
/// - **Fair.** Each time that the thread polls the futures, it begins with another one, which is
///   drawn at random. So a branch that is always ready keeps no other branch from its turn. With
///   `biased;` in front, the futures are polled in their order, and of several that are ready the
///   first wins.
/// - **Conditions.** A branch with a condition that is false is disabled. Its future is not even
///   made, so `text = file.as_ref().unwrap().read(), if file.is_some()` does not panic.
/// - **Patterns.** If the output of a future does not match the pattern, the output is dropped, the
///   branch is disabled, and the others go on. So `Some(line) = lines.next()` waits for the other
///   branches once there is no line.
/// - **`else`** is what happens when all branches are disabled.
/// - **Expressions.** The expression runs when all futures have been dropped. It may await, return,
///   break and use `?`, and what the futures borrow is free again. So may a condition and what
///   makes a future. The comma behind a block may be left out.
///
/// Under the simulated scheduler the seed determines which branch is first
/// ([`selvedge_core::draw`]).
///
/// # Panics
/// If all branches are disabled and there is no `else`.
///
/// # Complexity
/// Two multiplications for the draw, and one comparison for each branch, beside the polls.
///
/// # Examples
/// ```
/// use selvedge::scope::select;
/// use selvedge::sync::Fifo;
/// use selvedge::sleep;
/// use std::time::Duration;
///
/// let said = selvedge::run_local(async {
///     let (words, numbers, stop) = (Fifo::new_local(), Fifo::new_local(), Fifo::new_local());
///     words.put("warp");
///     numbers.put(7);
///     let mut said = Vec::new();
///     loop {
///         select! {
///             () = stop.take() => break,
///             word = words.take() => said.push(word.to_string()),
///             number = numbers.take(), if !said.is_empty() => said.push(number.to_string()),
///             () = sleep(Duration::from_millis(5)) => stop.put(()),
///         }
///     }
///     said
/// })?;
/// assert_eq!(said, ["warp", "7"]);
/// # Ok::<(), selvedge::RunError>(())
/// ```
///
/// Two streams, until both are at their end:
/// ```
/// use selvedge::scope::select;
///
/// # struct Lines(std::vec::IntoIter<&'static str>);
/// # impl Lines { async fn next(&mut self) -> Option<&'static str> { self.0.next() } }
/// # let mut warp = Lines(vec!["a", "b"].into_iter());
/// # let mut weft = Lines(vec!["c"].into_iter());
/// selvedge::run_local(async move {
///     let mut seen = 0;
///     loop {
///         select! {
///             Some(_line) = warp.next() => seen += 1,
///             Some(_line) = weft.next() => seen += 1,
///             else => break,
///         }
///     }
///     assert_eq!(seen, 3);
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
///
/// # What the compiler says
/// An error is about the branch that is wrong. A future that is none is marked where it is written
/// (E0277):
/// ```compile_fail,E0277
/// # async fn program() {
/// selvedge::scope::select! {
///     () = async {} => {},
///     seven = 7 => drop::<i32>(seven), // `i32` is not a future
/// }
/// # }
/// ```
/// So is a pattern of another type (E0308):
/// ```compile_fail,E0308
/// # async fn program() {
/// selvedge::scope::select! {
///     () = async {} => {},
///     Some(word) = async { "weft" } => assert_eq!(word, "weft"), // found `Option<_>`
/// }
/// # }
/// ```
/// What is no branch is quoted, as in "not a branch of `select!`: `number => {}`".
#[macro_export]
macro_rules! select {
    // The branches that are read already are in brackets: `{ (pattern) (future) (expression) }`.
    (@read $biased:tt [$($read:tt)+]) => {
        $crate::select!(@await $biased [$($read)+] $crate::branches::all_disabled())
    };
    (@read $biased:tt [$($read:tt)*] else => $body:expr $(,)?) => {
        $crate::select!(@await $biased [$($read)*] $body)
    };
    (@read $biased:tt $read:tt $pattern:pat = $future:expr => $($rest:tt)+) => {
        $crate::select!(@body $biased $read
            ($pattern) (::core::option::Option::Some($crate::branches::future($future))) $($rest)+)
    };
    (@read $biased:tt $read:tt $pattern:pat = $future:expr, if $condition:expr => $($rest:tt)+) => {
        $crate::select!(@body $biased $read
            ($pattern)
            (match $condition {
                true => ::core::option::Option::Some($crate::branches::future($future)),
                false => ::core::option::Option::None,
            })
            $($rest)+)
    };
    (@read $biased:tt $read:tt $($wrong:tt)*) => {
        ::core::compile_error!(::core::concat!(
            "not a branch of `select!`: `", ::core::stringify!($($wrong)*),
            "`; a branch is `pattern = future => expression,` or `pattern = future, if condition => expression,`, \
             and the last may be `else => expression`",
        ))
    };
    // A block ends its branch, as in a `match`.
    (@body $biased:tt [$($read:tt)*] $pattern:tt $future:tt $body:block $(, $($rest:tt)*)?) => {
        $crate::select!(@read $biased [$($read)* { $pattern $future ($body) }] $($($rest)*)?)
    };
    (@body $biased:tt [$($read:tt)*] $pattern:tt $future:tt $body:block $($rest:tt)+) => {
        $crate::select!(@read $biased [$($read)* { $pattern $future ($body) }] $($rest)+)
    };
    (@body $biased:tt [$($read:tt)*] $pattern:tt $future:tt $body:expr $(, $($rest:tt)*)?) => {
        $crate::select!(@read $biased [$($read)* { $pattern $future ($body) }] $($($rest)*)?)
    };
    (@body $biased:tt $read:tt ($pattern:pat) $future:tt $($wrong:tt)+) => {
        ::core::compile_error!(::core::concat!(
            "in `select!`, the branch `", ::core::stringify!($pattern), "` needs an expression and a comma, not `",
            ::core::stringify!($($wrong)+), "`",
        ))
    };
    (@await $biased:tt [$($branch:tt)*] $otherwise:expr) => {{
        let ended = $crate::branches::Choosing::<_, $biased>::new(
            $crate::select!(@list $($branch)*)
        ).await;
        match ended {
            ::core::option::Option::Some(ended) => $crate::select!(@match ended $($branch)*),
            ::core::option::Option::None => $otherwise,
        }
    }};
    (@list) => { () };
    (@list { ($pattern:pat) ($future:expr) $body:tt } $($rest:tt)*) => {
        (
            $crate::branches::branch($future, |output| {
                let mut fits = false;
                // The condition is never true. So the pattern moves nothing out of the output.
                match output {
                    #[allow(unused)]
                    $pattern if { fits = true; false } => ::core::unreachable!(),
                    _ => {}
                }
                if fits { ::core::option::Option::Some(output) } else { ::core::option::Option::None }
            }),
            $crate::select!(@list $($rest)*),
        )
    };
    (@match $ended:ident) => { match $ended {} };
    (@match $ended:ident { ($pattern:pat) $future:tt ($body:expr) } $($rest:tt)*) => {
        match $ended {
            $crate::branches::Ended::Here($pattern) => $body,
            $crate::branches::Ended::Later(ended) => $crate::select!(@match ended $($rest)*),
            #[allow(unreachable_patterns)]
            $crate::branches::Ended::Here(_) => ::core::unreachable!(),
        }
    };
    (biased; $($branches:tt)*) => { $crate::select!(@read true [] $($branches)*) };
    ($($branches:tt)*) => { $crate::select!(@read false [] $($branches)*) };
}
