//! The function by which an operation names the reason of its thread's wait for observers.

use selvedge_core::observe::{self, WaitReason};
use std::future::poll_fn;
use std::pin::pin;

/// Waits for `future`. Meanwhile observers of the running thread see `reason` as the reason of the
/// wait, instead of the reason that the future itself names.
pub(crate) async fn with_reason<T>(reason: impl Fn() -> WaitReason, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    poll_fn(|cx| {
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            observe::waits_on(&reason);
        }
        polled
    })
    .await
}
