//! [`block_on`]: waits for a future on an ordinary OS thread, outside of every scheduler.
//!
//! Programs call it, and so do tests, to reach threads of a scheduler from `main` or from another
//! OS thread. The OS thread polls the future itself and sleeps in between (`core`'s
//! `run_blocking`), so it runs no other thread meanwhile; within a thread the call is refused.

use selvedge_core::in_thread;
use selvedge_core::internal::run_blocking;
use std::future::Future;

/// Runs a future on the calling OS thread, which sleeps while the future waits; returns its result.
///
/// Ordinary code uses it to wait for threads: to join a thread that a [`Handle`](crate::Handle) has
/// spawned, or to take from an MVar. It runs no threads itself.
///
/// While the OS thread sleeps it counts as [quiet](selvedge_core::Quiet): if it and all other OS
/// threads wait for one another, a scheduler reports the deadlock.
///
/// # Panics
/// If it is called within a thread. The OS thread then belongs to a worker. While it sleeps, none
/// of the worker's threads can run, and perhaps the awaited thread is one of them: `await` the
/// future instead.
///
/// # Examples
/// ```
/// use selvedge::block_on;
/// use selvedge::sync::MVar;
///
/// let var = MVar::empty();
/// std::thread::scope(|scope| {
///     scope.spawn(|| block_on(var.put(42)));
///     assert_eq!(block_on(var.take()), 42);
/// });
/// ```
pub fn block_on<F: Future>(future: F) -> F::Output {
    assert!(
        !in_thread(),
        "block_on() was called within a thread: while it blocked, its worker could run no other thread, and perhaps not \
         the one that it waits for. Await the future instead"
    );
    run_blocking(future, None).unwrap_or_else(|| unreachable!("there was no time limit"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use selvedge_core::{round_robin, yield_now};
    use std::panic::catch_unwind;

    #[test]
    fn a_future_that_wakes_itself_is_polled_again() {
        block_on(async {
            yield_now().await;
            yield_now().await;
        });
    }

    #[test]
    fn it_is_refused_where_a_worker_would_block() {
        let message = round_robin(async {
            let refused = catch_unwind(|| block_on(std::future::ready(()))).unwrap_err();
            *refused.downcast::<&str>().expect("a message")
        });
        assert!(message.unwrap().contains("Await the future instead"));
    }
}
