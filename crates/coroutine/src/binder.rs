//! `Binder`: the order in which the steps of two coroutines run. `Sequential` runs one after the
//! other, `Concurrent` lets one run while the other waits, and `Parallel` runs the first in a
//! thread of its own. `pipe.rs`, `interleave.rs` and `transducer.rs` take a binder in their
//! functions with `_by`.
//!
//! A binder must end only when both steps have ended, and must not change the values that come out.
//! It may change the order of effects only. [Pipes, Listing 11] `bindM2`.

use selvedge_core::{JoinError, JoinHandle, spawn};
use selvedge_scope::join;

/// Runs the steps of two coroutines, and ends when both have ended.
///
/// The values that come out do not depend on the binder; the order of effects does.
///
/// # Paper
/// [Pipes, Listing 11] `bindM2`, from `base` or from the package `monad-parallel`.
#[doc(alias = "bindM2")]
pub trait Binder<'a>: Copy + Send + 'a {
    /// The results of both futures.
    fn both<A, B>(
        self,
        first: impl Future<Output = A> + Send + 'a,
        second: impl Future<Output = B> + Send + 'a,
    ) -> impl Future<Output = (A, B)> + Send + 'a
    where
        A: Send + 'a,
        B: Send + 'a;
}

/// The first step runs to its end before the second begins.
///
/// # Paper
/// [Pipes, Producer-consumer]: it resumes the producer, and then the consumer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sequential;

impl<'a> Binder<'a> for Sequential {
    async fn both<A, B>(
        self,
        first: impl Future<Output = A> + Send + 'a,
        second: impl Future<Output = B> + Send + 'a,
    ) -> (A, B)
    where
        A: Send + 'a,
        B: Send + 'a,
    {
        let first = first.await;
        (first, second.await)
    }
}

/// While one step waits, the other runs. Both stay in the thread that awaits them.
///
/// Steps that wait for nothing run one after the other, as in [`Sequential`].
///
/// # Paper
/// [Pipes, Producer-consumer]: both steps at once, for a base that waits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Concurrent;

impl<'a> Binder<'a> for Concurrent {
    async fn both<A, B>(
        self,
        first: impl Future<Output = A> + Send + 'a,
        second: impl Future<Output = B> + Send + 'a,
    ) -> (A, B)
    where
        A: Send + 'a,
        B: Send + 'a,
    {
        join((first, second)).await
    }
}

/// The first step runs in a thread of its own, which may be on another core; the second in the
/// thread that awaits both.
///
/// It pays where steps are long and take similar time, because each step costs a thread, and the
/// shorter one waits for the longer one. The coroutines must be `'static`.
///
/// If the future is dropped, the thread is cancelled. A panic in the thread goes on in the thread
/// that awaits both.
///
/// # Panics
/// Outside of a thread of this library.
///
/// # Paper
/// [Pipes, Producer-consumer]: the `bindM2` of `monad-parallel`, which steps both in parallel.
///
/// # Examples
/// ```
/// use selvedge::coroutine::{Parallel, Trampoline, interleave_by, run};
///
/// let squares = selvedge::run(async {
///     let square = |n: u64| {
///         Trampoline::new(move |mut co| async move {
///             co.pause().await;
///             n * n
///         })
///     };
///     run(interleave_by(Parallel, [2, 3, 4].map(square))).await
/// })
/// .unwrap();
/// assert_eq!(squares, [4, 9, 16]);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parallel;

impl Binder<'static> for Parallel {
    async fn both<A, B>(
        self,
        first: impl Future<Output = A> + Send + 'static,
        second: impl Future<Output = B> + Send + 'static,
    ) -> (A, B)
    where
        A: Send + 'static,
        B: Send + 'static,
    {
        let mut first = OwnThread(Some(spawn(first)));
        let second = second.await;
        (first.ended().await, second)
    }
}

/// A thread that is cancelled if it is not waited for.
struct OwnThread<A>(Option<JoinHandle<A>>);

impl<A> OwnThread<A> {
    async fn ended(&mut self) -> A {
        let ended = match &mut self.0 {
            Some(handle) => handle.await,
            None => unreachable!("it is waited for once"),
        };
        self.0 = None;
        match ended {
            Ok(result) => result,
            Err(JoinError::Panicked(exception)) => exception.rethrow(),
            Err(error @ JoinError::Cancelled) => panic!("a step has no result: {error}"),
        }
    }
}

impl<A> Drop for OwnThread<A> {
    fn drop(&mut self) {
        if let Some(handle) = &self.0 {
            handle.cancel();
        }
    }
}
