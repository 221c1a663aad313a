//! Scopes: threads that are over when the scope is: [`scope`], [`try_scope`], [`collect_scope`],
//! and the handles by which a body spawns children.
//!
//! Programs call them. `state.rs` counts the children and says what the last one tells; `child.rs`
//! is the child as a thread and as a handle. `Owner` is the rule of this file: whichever way the
//! future of a scope ends, its drop cancels the children that are left, or passes them on to the
//! scope around.

use crate::child::{Child, ChildFuture, Collect, FailFast, FailOnError, Policy, child};
use crate::state::{ChildFailure, ScopeState, within};
use selvedge_core::{JoinHandle, budget, catch, spawn, spawn_local};
use std::any::Any;
use std::fmt;
use std::future::{Future, poll_fn};
use std::marker::PhantomData;
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;

/// Runs `body`, which may spawn threads in the scope, and waits until all of them are over.
///
/// An exception (a panic, or a [`throw`](selvedge_core::throw)) in the body or in a child cancels
/// all of them; when they are over it is thrown on. The first one counts. Dropping the scope's
/// future cancels its children: see [the crate](crate).
///
/// # Panics
/// With the exception of the body or of a child.
///
/// # Examples
/// ```
/// use selvedge::{catch, round_robin, throw, yield_now};
/// use selvedge::scope::scope;
///
/// round_robin(async {
///     let thrown = catch(scope(async |s| {
///         drop(s.spawn(async { yield_now().await; throw("a thread broke") }));
///         drop(s.spawn(std::future::pending::<()>())); // is cancelled
///         std::future::pending::<()>().await // so is the body
///     }));
///     assert_eq!(thrown.await.unwrap_err().downcast::<&str>().unwrap(), "a thread broke");
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub async fn scope<B, F>(body: B) -> F::Output
where
    B: FnOnce(Scope) -> F,
    F: Future,
{
    let owner = Owner(ScopeState::new());
    let scope = Scope { state: Arc::clone(&owner.0) };
    match owner.run(body(scope)).await {
        Ok(output) => output,
        Err(failure) => failure.rethrow(),
    }
}

/// As [`scope()`], for what can fail: an `Err` of a child or of the body cancels all of them, and
/// is returned when they are over.
///
/// # Errors
/// The first error.
///
/// # Panics
/// With the exception of the body or of a child, if that comes first.
///
/// # Examples
/// ```
/// use selvedge::round_robin;
/// use selvedge::scope::try_scope;
///
/// let result: Result<u32, std::num::ParseIntError> = round_robin(async {
///     try_scope(async |s| {
///         let warp = s.spawn(async { "20".parse::<u32>() });
///         let weft = s.spawn(async { "two".parse::<u32>() });
///         Ok(warp.await.unwrap() + weft.await.unwrap())
///     })
///     .await
/// })?;
/// assert!(result.is_err());
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub async fn try_scope<B, F, T, E>(body: B) -> Result<T, E>
where
    B: FnOnce(TryScope<E>) -> F,
    F: Future<Output = Result<T, E>>,
    E: Send + 'static,
{
    let owner = Owner(ScopeState::new());
    let scope = TryScope { state: Arc::clone(&owner.0), _error: PhantomData };
    // An error of the body's counts like a child's.
    let body = async {
        let ended = body(scope).await;
        ended.map_err(|error| owner.0.fail(ChildFailure::Error(Box::new(error))))
    };
    match owner.run(body).await {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(())) => unreachable!("the failure was kept"),
        Err(ChildFailure::Error(error)) => {
            Err(*error.downcast().expect("all errors of a scope are of its type"))
        }
        Err(exception) => exception.rethrow(),
    }
}

/// As [`scope()`], but a child's exception cancels no other child: it is in the child's handle, as
/// [`JoinError::Panicked`].
///
/// [`JoinError::Panicked`]: selvedge_core::JoinError::Panicked
///
/// # Panics
/// With the exception of the body, which cancels the children.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, throw};
/// use selvedge::scope::{collect_scope, join_all};
///
/// let ends = round_robin(async {
///     collect_scope(async |s| {
///         let number = |n| async move { if n == 1 { throw(n) } else { n } };
///         join_all((0..3).map(|n| s.spawn(number(n)))).await
///     })
///     .await
/// })?;
/// assert!(matches!(ends[..], [Ok(0), Err(_), Ok(2)]));
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub async fn collect_scope<B, F>(body: B) -> F::Output
where
    B: FnOnce(CollectScope) -> F,
    F: Future,
{
    let owner = Owner(ScopeState::new());
    let scope = CollectScope { state: Arc::clone(&owner.0) };
    match owner.run(body(scope)).await {
        Ok(output) => output,
        Err(failure) => failure.rethrow(),
    }
}

/// The future that runs the scope. If it is dropped early, the children are cancelled.
struct Owner(Arc<ScopeState>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.abandon();
    }
}

impl Owner {
    async fn run<B: Future>(&self, body: B) -> Result<B::Output, ChildFailure> {
        let state = &self.0;
        // The body is dropped with this block, before the children are waited for.
        let ended = {
            let mut body = pin!(catch(body));
            poll_fn(|cx| {
                if state.has_failed() {
                    return Poll::Ready(None);
                }
                match within(state, || body.as_mut().poll(cx)) {
                    Poll::Ready(ended) => Poll::Ready(Some(ended)),
                    Poll::Pending if state.watch(cx.waker()) => Poll::Ready(None),
                    Poll::Pending => Poll::Pending,
                }
            })
            .await
        };
        let output = match ended {
            Some(Ok(output)) => Some(output),
            Some(Err(exception)) => {
                state.fail(ChildFailure::Exception(exception));
                None
            }
            None => None,
        };
        poll_fn(|cx| if state.close(cx.waker()) { budget::spend(cx, 1) } else { Poll::Pending }).await;
        match (state.take_failure(), output) {
            (Some(failure), _) => Err(failure),
            (None, output) => Ok(output.expect("without a failure the body has run to its end")),
        }
    }
}

impl ChildFailure {
    fn rethrow(self) -> ! {
        match self {
            ChildFailure::Exception(exception) => exception.rethrow(),
            ChildFailure::Error(_) => unreachable!("only a try_scope has errors"),
        }
    }
}

/// Creates a child's thread by `spawn`, in a place of its own.
fn enter<F: Future, P: Policy<F::Output>>(
    state: &Arc<ScopeState>,
    future: F,
    spawn: impl FnOnce(ChildFuture<F, P>) -> JoinHandle<()>,
) -> Child<P::Value> {
    let place = state.enter();
    let number = place.child;
    let (running, handle) = child(place, future);
    // If there is no room for the thread this panics, and the place is left as the future is
    // dropped.
    state.started(number, spawn(running));
    handle
}

/// What all scopes have, but for the results of their children.
macro_rules! common {
    () => {
        /// Cancels all present children. The body runs on, and so do children that are spawned
        /// later.
        pub fn cancel_children(&self) {
            self.state.cancel_all();
        }
    };
}

/// What `$scope` spawns.
macro_rules! spawns {
    ($policy:ty) => {
        /// Spawns a thread in the scope. It is ready at once, behind the threads that are ready
        /// already. In a [`Group`](selvedge_core::Group) of CPUs it may move among them.
        ///
        /// # Panics
        /// Outside of a thread of ours; if the arena is full; and if the scope is over.
        pub fn spawn<F>(&self, future: F) -> Child<F::Output>
        where
            F: Future + Send + 'static,
            F::Output: Send,
        {
            enter::<F, $policy>(&self.state, future, spawn)
        }

        /// As [`spawn`](Self::spawn), for a future that must stay on its OS thread.
        ///
        /// # Panics
        /// As [`spawn`](Self::spawn).
        pub fn spawn_local<F: Future + 'static>(&self, future: F) -> Child<F::Output> {
            enter::<F, $policy>(&self.state, future, spawn_local)
        }

        common!();
    };
}

/// Where the body of [`scope()`] spawns its children. A child that is to spawn siblings takes a
/// clone. What outlives the scope spawns nothing.
#[derive(Clone)]
pub struct Scope {
    state: Arc<ScopeState>,
}

impl Scope {
    spawns!(FailFast);
}

/// Where the body of [`collect_scope`] spawns its children. A child that is to spawn siblings takes
/// a clone. What outlives the scope spawns nothing.
#[derive(Clone)]
pub struct CollectScope {
    state: Arc<ScopeState>,
}

impl CollectScope {
    spawns!(Collect);
}

/// Where the body of [`try_scope`] spawns its children. A child that is to spawn siblings takes a
/// clone. What outlives the scope spawns nothing.
pub struct TryScope<E> {
    state: Arc<ScopeState>,
    _error: PhantomData<fn(E)>,
}

impl<E: Any + Send> TryScope<E> {
    /// Spawns a thread in the scope; its error is the scope's. See [`Scope::spawn`].
    ///
    /// # Panics
    /// As [`Scope::spawn`].
    pub fn spawn<T, F>(&self, future: F) -> Child<T>
    where
        F: Future<Output = Result<T, E>> + Send + 'static,
        T: Send + 'static,
    {
        enter::<F, FailOnError>(&self.state, future, spawn)
    }

    /// As [`spawn`](Self::spawn), for a future that must stay on its OS thread.
    ///
    /// # Panics
    /// As [`Scope::spawn`].
    pub fn spawn_local<T: 'static, F>(&self, future: F) -> Child<T>
    where
        F: Future<Output = Result<T, E>> + 'static,
    {
        enter::<F, FailOnError>(&self.state, future, spawn_local)
    }

    common!();
}

impl<E> Clone for TryScope<E> {
    fn clone(&self) -> Self {
        TryScope { state: Arc::clone(&self.state), _error: PhantomData }
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.describe(f.debug_struct("Scope"))
    }
}

impl fmt::Debug for CollectScope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.describe(f.debug_struct("CollectScope"))
    }
}

impl<E> fmt::Debug for TryScope<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.state.describe(f.debug_struct("TryScope"))
    }
}
