//! Waiting from ordinary OS threads.

use selvedge_core::in_thread;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

/// Runs a future on this OS thread, which sleeps while the future waits: any wait of this crate, or of another.
///
/// # Panics
/// Within a step of one of our threads: it would stop all threads of its CPU, perhaps for ever, since the one that is waited for
/// may be among them. There, await the future.
///
/// # Examples
/// ```
/// use selvedge_sync::{MVar, wait_blocking};
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
/// Nothing is allocated if the future need not wait.
#[track_caller]
pub fn wait_blocking<F: Future>(future: F) -> F::Output {
    run(future, None).unwrap_or_else(|| unreachable!("there was no time limit"))
}

/// The same, but gives up, by dropping the future, when `limit` has passed: `None` then.
///
/// # Panics
/// As [`wait_blocking`].
///
/// # Examples
/// ```
/// use selvedge_sync::{MVar, wait_blocking_for};
/// use std::time::Duration;
///
/// let var = MVar::<u8>::empty();
/// assert_eq!(wait_blocking_for(Duration::from_millis(5), var.take()), None);
/// ```
#[track_caller]
pub fn wait_blocking_for<F: Future>(limit: Duration, future: F) -> Option<F::Output> {
    run(future, Some(Instant::now() + limit))
}

struct Bell {
    rung: AtomicBool,
    sleeper: std::thread::Thread,
}

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.rung.store(true, Ordering::Release);
        self.sleeper.unpark();
    }
}

#[track_caller]
fn run<F: Future>(future: F, until: Option<Instant>) -> Option<F::Output> {
    assert!(
        !in_thread(),
        "a blocking operation was called within a step of a Selvedge thread: it would stop every thread of its CPU; \
         await the operation instead"
    );
    let mut future = pin!(future);
    if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
        return Some(output);
    }
    // A bell of its own: what the future does may park this OS thread as well.
    let bell = Arc::new(Bell { rung: AtomicBool::new(false), sleeper: std::thread::current() });
    let waker = Waker::from(bell.clone());
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return Some(output);
        }
        while !bell.rung.swap(false, Ordering::Acquire) {
            match until {
                None => std::thread::park(),
                Some(until) => match until.checked_duration_since(Instant::now()) {
                    Some(left) if !left.is_zero() => std::thread::park_timeout(left),
                    _ => return None,
                },
            }
        }
    }
}
