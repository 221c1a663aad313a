//! The function by which an operation tells observers the object that its thread waits for.

use selvedge_core::observe::{self, Errand};
use std::future::poll_fn;
use std::pin::pin;

/// Waits for `future`. Meanwhile observers of the running thread are told `errand` as the reason of
/// the wait, instead of the reason that the future itself tells.
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
