//! Who owns a mobile thread: the protocol on its head word.
//!
//! A thread of one CPU alone is handed about on one OS thread, and its state is a plain note. A **mobile** thread can be woken on any OS
//! thread while it runs on another, so that its state changes hands by atomic exchange:
//!
//! ```text
//!                      wake: NOTED                         wake (anybody): OURS
//!            ┌───────────────────────────┐        ┌───────────────────────────────────┐
//!            ▼                           │        ▼                                   │
//!      owned + noted ◀──────────────── owned ─────────────────▶ waiting ──────────────┘
//!            │                           ▲      park: PARKED
//!            └───────────────────────────┘
//!               park: STAYS; heed
//! ```
//!
//! 1. [`park`], by the owner at the end of a step: owned → waiting, with Release. From then on the thread belongs to nobody, and may run
//!    elsewhere before `park` has returned. If it has been notified meanwhile it stays owned, and must run again.
//! 2. [`wake`], by anybody: waiting → owned, with Acquire: the caller has the thread now, and makes it ready. Or owned → noted.
//! 3. [`heed`], by the owner after `park` has failed: the notification is used up by the step that follows. Acquire, so that the step
//!    sees what the waker did before it woke.
//!
//! **No wake-up is lost.** Of a `wake` and a `park` one comes first in the order of the word's changes. If it is `park`, the wake finds
//! the thread waiting and gets it. If it is `wake`, `park` finds the thread notified and fails; `heed` clears the notification, and the
//! step that follows sees what the waker had done. (A thread that is notified before its step and waits after it has one step in vain.
//! To look for that before each step would cost every thread more.)
//!
//! **No thread has two owners.** Out of waiting leads only a successful exchange, which one waker makes.
//!
//! A stale wake-up, whose thread is over, finds a free or foreign head, which it leaves alone unless the word is that of a live mobile
//! thread; then it wakes that one without cause, which futures must bear. `tests/loom_state.rs` checks the protocol.

use crate::thread::{MOBILE, NOTED, OWNED, STATE, WAITING};
use std::sync::atomic::{AtomicU32, Ordering};

/// An atomic word: std's, and in the model loom's.
#[doc(hidden)]
pub trait Word {
    /// As [`AtomicU32::load`].
    fn load(&self, order: Ordering) -> u32;
    /// As [`AtomicU32::compare_exchange`].
    ///
    /// # Errors
    /// The value found instead.
    fn compare_exchange(&self, from: u32, to: u32, ok: Ordering, err: Ordering) -> Result<u32, u32>;
    /// As [`AtomicU32::fetch_and`].
    fn fetch_and(&self, bits: u32, order: Ordering) -> u32;
}

impl Word for AtomicU32 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u32 {
        self.load(order)
    }

    #[inline(always)]
    fn compare_exchange(&self, from: u32, to: u32, ok: Ordering, err: Ordering) -> Result<u32, u32> {
        self.compare_exchange(from, to, ok, err)
    }

    #[inline(always)]
    fn fetch_and(&self, bits: u32, order: Ordering) -> u32 {
        self.fetch_and(bits, order)
    }
}

/// What a [`wake`] has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Woken {
    /// The thread was waiting: the caller owns it now.
    Ours,
    /// Its owner will run it again.
    Noted,
    /// It is over, or none of ours.
    Nothing,
}

/// Wakes the mobile thread whose head this is, if it is one. `head` is what the word was a moment ago.
#[inline(always)]
#[doc(hidden)]
pub fn wake(word: &impl Word, mut head: u32) -> Woken {
    loop {
        let (to, woken) = match head & (STATE | MOBILE) {
            WAITING_MOBILE => (head & !(STATE | NOTED) | OWNED, Woken::Ours),
            OWNED_MOBILE => (head | NOTED, Woken::Noted),
            _ => return Woken::Nothing,
        };
        // Also when it was notified already: the step that clears it must see what this waker did.
        match word.compare_exchange(head, to, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return woken,
            Err(now) => head = now,
        }
    }
}

const WAITING_MOBILE: u32 = WAITING | MOBILE;
const OWNED_MOBILE: u32 = OWNED | MOBILE;

/// Lets go of a mobile thread that the caller owns, at the end of a step; false if it was notified and must run again.
#[inline(always)]
#[doc(hidden)]
pub fn park(word: &impl Word, head: u32) -> bool {
    let owned = head & !(STATE | NOTED) | OWNED;
    let parked = word.compare_exchange(owned, owned | WAITING, Ordering::Release, Ordering::Relaxed);
    parked.is_ok()
}

/// Uses up the notifications so far, when [`park`] has failed.
#[inline(always)]
#[doc(hidden)]
pub fn heed(word: &impl Word) {
    if word.load(Ordering::Relaxed) & NOTED != 0 {
        word.fetch_and(!NOTED, Ordering::Acquire);
    }
}
