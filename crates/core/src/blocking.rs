//! Waiting for one future on an ordinary OS thread: [`run_blocking`], which `sync`'s
//! `wait_blocking` and `sched`'s `block_on` call; and [`insist`], a short loop of attempts.
//!
//! The OS thread polls its future with the waker of a `BlockedThread`, and sleeps in it while the
//! future is pending. Before it sleeps it looks at the [`Parker`] for a few microseconds, because
//! that is shorter than falling asleep and being woken. So a waker makes a system call only for an
//! OS thread that really sleeps.
//!
//! An OS thread that sleeps without a time limit is quiet (`quiet.rs`): it waits for neither the
//! kernel nor the clock. A future that does wait for the kernel has registered with an OS thread
//! that waits there, and that OS thread is active. The first waker ends the quiet, by
//! [`Parker::rouse`], before the OS thread goes on. An OS thread that sleeps with a time limit
//! waits for the clock, and is active.
//!
//! `sync`'s `tests/loom/blocking.rs` checks it.

#[cfg(not(loom))]
use crate::Quiet as Declared;
use crate::parker::Parker;
use std::cell::Cell;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::time::Instant;

#[cfg(loom)]
use loom::{sync::Notify, thread::yield_now, thread_local};
#[cfg(not(loom))]
use std::thread::{Thread as ParkToken, current, park, park_timeout};

/// A model has a ledger of its own, or none.
#[cfg(loom)]
type Declared = ();

/// The number of attempts of an OS thread before it queues or sleeps: they take a few microseconds.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 100 };

/// Repeats an attempt until it succeeds or `LOOKS` attempts have failed: about as long as another
/// thread needs to lock and unlock. Tells whether it succeeded.
#[doc(hidden)]
#[inline]
pub fn insist(mut attempt: impl FnMut() -> bool) -> bool {
    for _ in 0..LOOKS {
        if attempt() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

/// The parker of an OS thread that waits for a future, with the handle that ends its sleep.
struct BlockedThread {
    parker: Parker<Declared>,
    owner: ParkToken,
}

impl Wake for BlockedThread {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.parker.rouse(Parker::<Declared>::CALLED) {
            self.owner.unpark();
        }
    }
}

impl BlockedThread {
    /// Waits until the waker is woken, or returns at once if it was woken since the last `hear`.
    /// `false` if it is not woken by the time `until`.
    fn hear(&self, until: Option<Instant>) -> bool {
        if !insist(|| self.parker.has(Parker::<Declared>::CALLED)) {
            if !self.parker.sleep() {
                return true;
            }
            if until.is_none() {
                self.parker.declare(declaration);
            }
            // A return of `nap` without a reason is possible: each rouser leaves a token for
            // `park`, and so may other code that unparks this OS thread.
            while self.parker.is_asleep() && nap(&self.owner, until) {}
        }
        self.parker.wake()
    }
}

#[cfg(not(loom))]
fn declaration() -> Declared {
    Declared::new()
}

#[cfg(loom)]
fn declaration() -> Declared {}

/// A [`BlockedThread`] with its waker, which an OS thread keeps from one wait to the next.
type KeptThread = Box<(Arc<BlockedThread>, Waker)>;

#[cfg(not(loom))]
thread_local!(static KEPT: Cell<Option<KeptThread>> = const { Cell::new(None) });
#[cfg(loom)]
thread_local!(static KEPT: Cell<Option<KeptThread>> = Cell::new(None));

#[cold]
fn new_thread() -> KeptThread {
    let thread = Arc::new(BlockedThread { parker: Parker::default(), owner: current() });
    let waker = Waker::from(thread.clone());
    Box::new((thread, waker))
}

/// Runs a future on this OS thread, which sleeps while the future waits. `None` if the future is
/// still pending at the time `until`; it is dropped then. The caller has made sure that no step of
/// a thread runs here.
///
/// # Complexity
/// The first call on an OS thread allocates. Later calls use the same [`BlockedThread`]; a call
/// within a poll of the future, or while the OS thread ends, makes another one.
#[doc(hidden)]
pub fn run_blocking<F: Future>(future: F, until: Option<Instant>) -> Option<F::Output> {
    let kept = KEPT.try_with(Cell::take).ok().flatten().unwrap_or_else(new_thread);
    let output = {
        let (thread, waker) = &*kept;
        let mut future = pin!(future);
        let mut context = Context::from_waker(waker);
        loop {
            // It may have been woken already, by a waker that was kept since an earlier call: then
            // the future is polled once too often.
            if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
                break Some(output);
            }
            if !thread.hear(until) {
                break None;
            }
        }
    };
    // When the OS thread ends, there is no place to keep it.
    let _ = KEPT.try_with(|place| place.set(Some(kept)));
    output
}

/// Sleeps until another OS thread unparks this one; it may return early. `false`, without
/// a sleep, if the time `until` has passed.
#[cfg(not(loom))]
fn nap(_: &ParkToken, until: Option<Instant>) -> bool {
    let Some(until) = until else {
        park();
        return true;
    };
    let left = until.saturating_duration_since(Instant::now());
    if !left.is_zero() {
        park_timeout(left);
    }
    !left.is_zero()
}

/// In a model every time limit has passed as soon as another thread has run.
#[cfg(loom)]
fn nap(owner: &ParkToken, until: Option<Instant>) -> bool {
    match until {
        None => owner.0.wait(),
        Some(_) => yield_now(),
    }
    until.is_none()
}

/// The token of an OS thread in a model. Loom's own `unpark` leaves no token for a thread that is
/// blocked elsewhere, but wakes that thread there.
#[cfg(loom)]
struct ParkToken(Notify);

#[cfg(loom)]
impl ParkToken {
    fn unpark(&self) {
        self.0.notify();
    }
}

#[cfg(loom)]
fn current() -> ParkToken {
    ParkToken(Notify::new())
}
