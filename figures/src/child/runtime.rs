//! Two runtimes behind one trait, so that a program about several workers is one text under both.
//!
//! Zero workers stand for the scheduler that has one OS thread and moves nothing: round-robin here,
//! the current-thread runtime of tokio.
//!
//! `abstractions.rs`, `cores.rs`, `pipes.rs` and `timers.rs` are generic over `Runtime`. A function
//! of the trait must do the same work under both.

use selvedge_core::{NoEvents, fork, round_robin_over};
use selvedge_io::EventLoop;
use selvedge_sched::work_stealing;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use tokio::runtime::Builder;

/// The things outside that the threads of a program wait for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Waits {
    /// Nothing: a runtime without drivers is a runtime at its fastest.
    Nothing,
    /// Descriptors and time.
    World,
}

/// A runtime under which a program can be measured.
pub(super) trait Runtime: Sized + 'static {
    /// Waits for the result of a thread that does not panic.
    type Handle<T: Send + 'static>: Future<Output = T> + Send;

    /// Runs `main` as a thread of the runtime.
    fn run<F>(workers: usize, waits: Waits, main: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    /// Starts a thread that can be joined.
    fn spawn<F>(future: F) -> Self::Handle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static;

    /// Cancels a thread that is waiting.
    fn cancel<T: Send + 'static>(handle: &Self::Handle<T>);

    /// Starts a thread without a joiner.
    fn detach<F>(future: F) -> impl Future<Output = ()> + Send
    where
        F: Future<Output = ()> + Send + 'static;

    /// Lets the others run.
    fn yield_now() -> impl Future<Output = ()> + Send + 'static;

    /// The cheapest way to let the others run.
    fn pause() -> impl Future<Output = ()> + Send + 'static;
}

/// Ours.
#[derive(Debug)]
pub(super) struct Ours;

/// tokio.
#[derive(Debug)]
pub(super) struct Tokio;

/// Runs `main` on this number of workers, between which threads move.
fn multi<F>(workers: usize, waits: Waits, main: F) -> F::Output
where
    F: Future + Send + 'static,
    F::Output: Send + 'static,
{
    let ended = match waits {
        Waits::Nothing => work_stealing(workers, |_| Ok(NoEvents::new()), main),
        Waits::World => work_stealing(workers, |_| EventLoop::new(), main),
    };
    ended.expect("no worker fails")
}

/// Runs `main` on this OS thread.
fn single<F: Future + 'static>(waits: Waits, main: F) -> F::Output {
    let ended = match waits {
        Waits::Nothing => round_robin_over(&mut NoEvents::new(), main),
        Waits::World => round_robin_over(&mut EventLoop::new().expect("there are descriptors left"), main),
    };
    ended.expect("no deadlock")
}

impl Runtime for Ours {
    type Handle<T: Send + 'static> = OurHandle<T>;

    fn run<F>(workers: usize, waits: Waits, main: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        if workers == 0 { single(waits, main) } else { multi(workers, waits, main) }
    }

    #[inline]
    fn spawn<F>(future: F) -> OurHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        OurHandle(selvedge_core::spawn(future))
    }

    fn cancel<T: Send + 'static>(handle: &OurHandle<T>) {
        handle.0.cancel();
    }

    #[inline]
    fn detach<F>(future: F) -> impl Future<Output = ()> + Send
    where
        F: Future<Output = ()> + Send + 'static,
    {
        fork(future)
    }

    #[inline]
    fn yield_now() -> impl Future<Output = ()> + Send + 'static {
        selvedge_core::yield_now()
    }

    #[inline]
    fn pause() -> impl Future<Output = ()> + Send + 'static {
        selvedge_core::yield_now()
    }
}

/// A handle of ours.
pub(super) struct OurHandle<T>(selvedge_core::JoinHandle<T>);

impl<T> Future for OurHandle<T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        Poll::Ready(ready!(Pin::new(&mut self.0).poll(context)).expect("the thread does not panic"))
    }
}

impl Runtime for Tokio {
    type Handle<T: Send + 'static> = TokioHandle<T>;

    fn run<F>(workers: usize, waits: Waits, main: F) -> F::Output
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        let mut builder =
            if workers == 0 { Builder::new_current_thread() } else { Builder::new_multi_thread() };
        if workers > 0 {
            builder.worker_threads(workers);
        }
        if waits == Waits::World {
            builder.enable_all();
        }
        let runtime = builder.build().expect("the system has what a runtime needs");
        // The main program is a task like the others, on one of the workers.
        let main = runtime.spawn(main);
        let ended = runtime.block_on(main).expect("the main task does not panic");
        // Tasks that are left are not waited for.
        runtime.shutdown_background();
        ended
    }

    #[inline]
    fn spawn<F>(future: F) -> TokioHandle<F::Output>
    where
        F: Future + Send + 'static,
        F::Output: Send + 'static,
    {
        TokioHandle(tokio::spawn(future))
    }

    fn cancel<T: Send + 'static>(handle: &TokioHandle<T>) {
        handle.0.abort();
    }

    #[inline]
    fn detach<F>(future: F) -> impl Future<Output = ()> + Send
    where
        F: Future<Output = ()> + Send + 'static,
    {
        drop(tokio::spawn(future));
        std::future::ready(())
    }

    #[inline]
    fn yield_now() -> impl Future<Output = ()> + Send + 'static {
        tokio::task::yield_now()
    }

    #[inline]
    fn pause() -> impl Future<Output = ()> + Send + 'static {
        self_wake()
    }
}

/// The cheapest way for a tokio task to go to the back of the queue: it wakes itself and is pending
/// once. `yield_now` would put it off to the end of the tick.
#[inline]
pub(super) fn self_wake() -> impl Future<Output = ()> + Send + 'static {
    let mut woken = false;
    poll_fn(move |context| {
        if woken {
            return Poll::Ready(());
        }
        woken = true;
        context.waker().wake_by_ref();
        Poll::Pending
    })
}

/// A handle of tokio.
pub(super) struct TokioHandle<T>(tokio::task::JoinHandle<T>);

impl<T> Future for TokioHandle<T> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        Poll::Ready(ready!(Pin::new(&mut self.0).poll(context)).expect("the task does not panic"))
    }
}
