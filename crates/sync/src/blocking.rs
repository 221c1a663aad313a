//! Waiting from ordinary OS threads.

use selvedge_core::{in_thread, run_blocking};
use std::time::{Duration, Instant};

/// Runs a future on this OS thread, which sleeps while the future waits: any wait of this crate, or
/// of another.
///
/// # Panics
/// Within a step of one of our threads: it would stop all threads of its CPU, perhaps for ever,
/// since the one that is waited for may be among them. There, await the future.
///
/// # Examples
/// ```
/// use selvedge::sync::{MVar, wait_blocking};
/// use std::sync::Arc;
///
/// let var = Arc::new(MVar::empty());
/// let other = var.clone();
/// let os_thread = std::thread::spawn(move || wait_blocking(other.take()));
/// wait_blocking(var.put("weft"));
/// assert_eq!(os_thread.join().unwrap(), "weft");
/// ```
///
/// # Complexity
/// An OS thread that does it for the first time allocates its bell. Before it sleeps it looks for a
/// few microseconds whether it is woken; only a sleeper costs whoever wakes it a system call.
#[track_caller]
pub fn wait_blocking<F: Future>(future: F) -> F::Output {
    run(future, None).unwrap_or_else(|| unreachable!("there was no time limit"))
}

/// The same, but gives up, by dropping the future, when `limit` has passed: `None` then. A limit
/// that is beyond the clock is none.
///
/// # Panics
/// As [`wait_blocking`].
///
/// # Examples
/// ```
/// use selvedge::sync::{MVar, wait_blocking_for};
/// use std::time::Duration;
///
/// let var = MVar::<u8>::empty();
/// assert_eq!(wait_blocking_for(Duration::from_millis(5), var.take()), None);
/// ```
#[track_caller]
pub fn wait_blocking_for<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    run(future, Instant::now().checked_add(limit))
}

#[track_caller]
fn run<F: Future>(future: F, until: Option<Instant>) -> Option<F::Output> {
    refuse_within_step();
    run_blocking(future, until)
}

/// # Panics
/// Within a step of one of our threads, also if nothing need be waited for: the next time it may.
#[inline(always)]
#[track_caller]
pub(crate) fn refuse_within_step() {
    assert!(
        !in_thread(),
        "a blocking operation was called within a step of a Selvedge thread: it would stop every thread of its CPU; \
         await the operation instead"
    );
}
