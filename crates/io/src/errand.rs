//! Telling who looks on what a thread waits for.

use selvedge_core::observe::{self, Errand};
use std::future::poll_fn;
use std::pin::pin;

/// Waits for `future`. While that takes, whoever observes the running thread is told that it waits for this, instead of what the future
/// itself says.
pub(crate) async fn told<T>(errand: impl Fn() -> Errand, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            observe::waits_on(&errand);
        }
        polled
    })
    .await
}
