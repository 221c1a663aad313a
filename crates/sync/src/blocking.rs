//! Waiting from ordinary OS threads: [`wait_blocking`] and [`wait_blocking_for`] run a future
//! there.
//!
//! All blocking operations of this crate end here when they must wait.

use selvedge_core::in_thread;
use selvedge_core::internal::run_blocking;
use std::time::{Duration, Instant};

/// Runs a future on this OS thread, which sleeps while the future waits. The future may be any wait
/// of this crate, or of another.
///
/// # Panics
/// When it is called within a step of a Selvedge thread. It would stop all threads of its CPU,
/// perhaps for ever, because the thread that would wake it may be among them. There, await the
/// future.
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
/// The first call on an OS thread allocates. The OS thread polls for a few microseconds whether it
/// was woken before it sleeps. A waker makes a system call only if the OS thread sleeps.
#[track_caller]
pub fn wait_blocking<F: Future>(future: F) -> F::Output {
    run(future, None).unwrap_or_else(|| unreachable!("there was no time limit"))
}

/// Runs a future as [`wait_blocking`] does, but drops it when `limit` has passed: `None` then. A
/// limit beyond the range of the clock is no limit.
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

/// Refuses a blocking operation within a step.
///
/// # Panics
/// When it is called within a step of a Selvedge thread. It panics also if the operation need not
/// wait now, because it may have to the next time.
#[inline(always)]
#[track_caller]
pub(crate) fn refuse_within_step() {
    assert!(
        !in_thread(),
        "a blocking operation was called within a step of a Selvedge thread: it would stop every thread of its CPU; \
         await the operation instead"
    );
}
