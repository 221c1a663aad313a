//! The bell that wakes an OS thread: [`Bell`], one byte that a waker rings; and [`insist`], a short
//! loop of attempts.
//!
//! [`wait_blocking`](crate::wait_blocking) polls a future with the waker of a bell, and hears the
//! bell while the future is pending. The blocking operations of the locks call [`insist`] before
//! they queue.
//!
//! The owner of the bell is the OS thread that waits. It first polls the byte for a few
//! microseconds, because that is shorter than falling asleep and being woken. Only after that it
//! exchanges the byte for asleep. So a ring makes a system call only for a sleeping owner.
//!
//! ```text
//!          sleep (owner)               ring: unpark
//!   quiet ──────────────▶ asleep ───────────────────▶ rung
//!     │                                                ▲ │
//!     └────────────────────────────────────────────────┘ └──▶ quiet: heard (owner)
//!                          ring
//! ```
//!
//! All changes of the byte are exchanges. A ring is a Release, and the exchange by which the owner
//! hears is an Acquire. A ring that finds the bell rung already adds nothing. It need not, because
//! the owner exchanges the byte for quiet before it polls its future again. By this exchange the
//! owner sees all that was done before the last ring. `tests/loom_blocking.rs` checks it.

use std::cell::Cell;
use std::sync::Arc;
use std::task::{Wake, Waker};
use std::time::Instant;

#[cfg(loom)]
use loom::{
    sync::atomic::{AtomicU8, Ordering},
    thread::{Thread, current, park, yield_now},
    thread_local,
};
#[cfg(not(loom))]
use std::{
    sync::atomic::{AtomicU8, Ordering},
    thread::{Thread, current, park, park_timeout},
};

const QUIET: u8 = 0;
/// The owner sleeps, or is about to sleep.
const ASLEEP: u8 = 1;
const RUNG: u8 = 2;

/// The number of attempts of an OS thread before it queues or sleeps: they take a few microseconds.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 100 };

/// Repeats an attempt until it succeeds or [`LOOKS`] attempts have failed: about as long as another
/// thread needs to lock and unlock. Tells whether it succeeded.
#[inline]
pub(crate) fn insist(mut attempt: impl FnMut() -> bool) -> bool {
    for _ in 0..LOOKS {
        if attempt() {
            return true;
        }
        std::hint::spin_loop();
    }
    false
}

struct Clapper {
    state: AtomicU8,
    owner: Thread,
}

impl Wake for Clapper {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if self.state.swap(RUNG, Ordering::Release) == ASLEEP {
            self.owner.unpark();
        }
    }
}

/// A bell, with the waker that rings it.
pub(crate) struct Bell {
    clapper: Arc<Clapper>,
    waker: Waker,
}

#[cfg(not(loom))]
thread_local!(static MINE: Cell<Option<Box<Bell>>> = const { Cell::new(None) });
#[cfg(loom)]
thread_local!(static MINE: Cell<Option<Box<Bell>>> = Cell::new(None));

impl Bell {
    /// Calls `f` with the bell of this OS thread, and keeps the bell for the next call. A call
    /// within `f`, or while the OS thread ends, uses another bell.
    ///
    /// The bell may be rung already, by a waker that has been kept since an earlier call.
    #[inline]
    pub(crate) fn with<T>(f: impl FnOnce(&Bell) -> T) -> T {
        let bell = MINE.try_with(Cell::take).ok().flatten().unwrap_or_else(Bell::new);
        let result = f(&bell);
        // When the OS thread ends, there is no place to keep the bell.
        let _ = MINE.try_with(|mine| mine.set(Some(bell)));
        result
    }

    #[cold]
    fn new() -> Box<Bell> {
        let clapper = Arc::new(Clapper { state: AtomicU8::new(QUIET), owner: current() });
        Box::new(Bell { waker: Waker::from(clapper.clone()), clapper })
    }

    /// The waker that rings the bell.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Waits until the bell is rung, or returns at once if it was rung since the last `hear`.
    /// `false` if it is not rung by the time `until`.
    pub(crate) fn hear(&self, until: Option<Instant>) -> bool {
        let state = &self.clapper.state;
        if !insist(|| state.load(Ordering::Relaxed) == RUNG)
            && state.compare_exchange(QUIET, ASLEEP, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            // `sleep` may return although the bell was not rung, because each ring of a sleeping
            // owner leaves a token for `park`, and so may other code that unparks this OS thread.
            while state.load(Ordering::Relaxed) == ASLEEP && sleep(until) {}
        }
        state.swap(QUIET, Ordering::Acquire) == RUNG
    }
}

/// Sleeps until this OS thread is unparked, or returns for no reason. `false`, without sleeping, if
/// `until` has passed.
#[cfg(not(loom))]
fn sleep(until: Option<Instant>) -> bool {
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

/// In a loom model each time limit passes as soon as another thread has run.
#[cfg(loom)]
fn sleep(until: Option<Instant>) -> bool {
    match until {
        None => park(),
        Some(_) => yield_now(),
    }
    until.is_none()
}
