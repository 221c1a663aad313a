//! [`shield()`]: a section that a cancellation of its thread does not interrupt.
//!
//! A pending [`Shield`] tells the CPU, so that the step ends as one within a shield. The thread's
//! body (`joinable.rs`) then puts the cancellation off.

use crate::cpu::inner::current;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

/// Runs `future`. While it runs, the thread cannot be [cancelled](crate::JoinHandle::cancel): a
/// cancellation takes effect after it has ended.
///
/// It is for a section that must not be left half-way. It does not protect the future from a drop,
/// by a combinator around it or with the scheduler.
///
/// # Examples
/// ```
/// use selvedge::{round_robin, shield, spawn, yield_now};
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// static BALANCE: AtomicU32 = AtomicU32::new(0);
/// round_robin(async {
///     let transfer = spawn(async {
///         shield(async {
///             BALANCE.fetch_add(1, Ordering::Relaxed);
///             yield_now().await;
///             BALANCE.fetch_sub(1, Ordering::Relaxed);
///         })
///         .await;
///         std::future::pending::<()>().await;
///     });
///     yield_now().await;
///     transfer.cancel();
///     assert!(transfer.await.is_err());
///     assert_eq!(BALANCE.load(Ordering::Relaxed), 0);
/// })?;
/// # Ok::<(), selvedge::RunError>(())
/// ```
pub fn shield<F: Future>(future: F) -> Shield<F> {
    Shield { future }
}

/// The future of [`shield`].
#[derive(Debug)]
#[must_use = "nothing happens until it is awaited"]
pub struct Shield<F> {
    future: F,
}

impl<F: Future> Future for Shield<F> {
    type Output = F::Output;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: the future is pinned with the shield, and no code here moves it.
        let polled = unsafe { self.map_unchecked_mut(|shield| &mut shield.future) }.poll(cx);
        if polled.is_pending()
            && let Some(cpu) = current()
        {
            cpu.shield();
        }
        polled
    }
}
