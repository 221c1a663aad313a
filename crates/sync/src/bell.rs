//! The bell that wakes an OS thread: one byte, rung by a waker.
//!
//! Who waits first listens, looking at the byte for a few microseconds, which is less than falling asleep and being woken
//! take; only then does it write down that it sleeps. So whoever rings makes a system call only for a sleeper.
//!
//! ```text
//!          sleep (owner)               ring: unpark
//!   quiet ──────────────▶ asleep ───────────────────▶ rung
//!     │                                                ▲ │
//!     └────────────────────────────────────────────────┘ └──▶ quiet: heard (owner)
//!                          ring
//! ```
//!
//! All changes are exchanges, and what rings releases what hears acquires: a ring that finds the bell rung already adds
//! nothing, because its owner, who exchanges it for quiet before he looks at what he waits for, sees all that was done before
//! the last ring. `tests/loom_blocking.rs` checks it.

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
/// Its owner sleeps, or is about to.
const ASLEEP: u8 = 1;
const RUNG: u8 = 2;

/// How often an OS thread looks before it queues or sleeps: a few microseconds.
const LOOKS: u32 = if cfg!(loom) { 0 } else { 100 };

/// Looks again and again, for as long as it may take others to come and go, whether an attempt succeeds.
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
    /// Does something with this OS thread's bell, which is kept for the next time. Within `f`, or when the OS thread ends, it is
    /// another one.
    ///
    /// It may have been rung, by a waker that somebody kept from an earlier time.
    #[inline]
    pub(crate) fn with<T>(f: impl FnOnce(&Bell) -> T) -> T {
        let bell = MINE.try_with(Cell::take).ok().flatten().unwrap_or_else(Bell::new);
        let result = f(&bell);
        // There is nowhere to keep it when the OS thread ends.
        let _ = MINE.try_with(|mine| mine.set(Some(bell)));
        result
    }

    #[cold]
    fn new() -> Box<Bell> {
        let clapper = Arc::new(Clapper { state: AtomicU8::new(QUIET), owner: current() });
        Box::new(Bell { waker: Waker::from(clapper.clone()), clapper })
    }

    /// Rings it.
    pub(crate) fn waker(&self) -> &Waker {
        &self.waker
    }

    /// Waits until it is rung, or was since the last time: `false` if it is not by the time `until`.
    pub(crate) fn hear(&self, until: Option<Instant>) -> bool {
        let state = &self.clapper.state;
        if !insist(|| state.load(Ordering::Relaxed) == RUNG)
            && state.compare_exchange(QUIET, ASLEEP, Ordering::Relaxed, Ordering::Relaxed).is_ok()
        {
            // Who rings a sleeper leaves a token, and so may others have done for reasons of their own.
            while state.load(Ordering::Relaxed) == ASLEEP && sleep(until) {}
        }
        state.swap(QUIET, Ordering::Acquire) == RUNG
    }
}

/// Sleeps until somebody unparks this OS thread, or for no reason; `false` without sleeping if it is later than `until`.
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

/// In a model every limit has passed when somebody else has run.
#[cfg(loom)]
fn sleep(until: Option<Instant>) -> bool {
    match until {
        None => park(),
        Some(_) => yield_now(),
    }
    until.is_none()
}
