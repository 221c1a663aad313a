//! Parking ([`park`]): a thread hands out its waker and waits until the waker is woken.
//!
//! Programs use it to wait for what no scheduler knows. The objects of `sync` use `WaitQueue`
//! instead, which keeps waiters in order and passes a grant on if its waiter has gone.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

/// Hands a waker of this thread to `give`, and waits until it is woken.
///
/// Event sources that know nothing of schedulers are built with this call: a callback, another OS
/// thread, a foreign library. As [`std::thread::park`], it may return although the waker was not
/// woken. So check your condition, and park again if need be.
///
/// # Examples
/// ```
/// use selvedge::{park, round_robin};
/// use std::sync::atomic::{AtomicBool, Ordering};
/// use std::sync::Arc;
///
/// round_robin(async {
///     let done = Arc::new(AtomicBool::new(false));
///     while !done.load(Ordering::Acquire) {
///         let done = done.clone();
///         park(move |waker| {
///             std::thread::spawn(move || {
///                 done.store(true, Ordering::Release);
///                 waker.wake();
///             });
///         })
///         .await;
///     }
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
///
/// # Complexity
/// No allocation. Waking from the same OS thread is as fast as a hand-over.
pub fn park<G: FnOnce(Waker)>(give: G) -> Park<G> {
    Park { give: Some(give) }
}

/// The future of [`park`].
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct Park<G> {
    give: Option<G>,
}

impl<G> Unpin for Park<G> {}

impl<G: FnOnce(Waker)> Future for Park<G> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.give.take() {
            Some(give) => {
                give(cx.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}
