//! `with_reason`: runs a future so that observers of the thread (a dump, a report of a deadlock)
//! see the operation and its object as the reason of the wait.
//!
//! Operations that wait through another one call it: the look-up of a name in `net/tcp.rs`, and
//! `pipe.rs`, `process.rs`, `signal.rs`. `reason` is called only if the thread has an observer.

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
