//! The owner of a mobile thread: the protocol on the head word of the thread ([`park`], [`wake`],
//! [`take_notification`]).
//!
//! `cpu/keep.rs` calls it. A thread that stays on one CPU is passed about on one OS thread, and its
//! state is a plain note. A **mobile** thread can be woken on any OS thread while it runs on
//! another. So its state changes hands by atomic exchange. A **waker** is here any OS thread that
//! calls [`wake`]:
//!
//! ```text
//!                    wake: NOTIFIED                       wake (a waker): OURS
//!            ┌───────────────────────────┐        ┌───────────────────────────────────┐
//!            ▼                           │        ▼                                   │
//!     owned + notified ◀────────────── owned ─────────────────▶ waiting ──────────────┘
//!            │                           ▲      park: true
//!            └───────────────────────────┘
//!         park: false; take_notification
//! ```
//!
//! 1. [`park`], called by the owner at the end of a step: owned → waiting, with Release. From then
//!    on the thread has no owner, and may run elsewhere before `park` has returned. If the thread
//!    has been notified meanwhile, it stays owned, and must run again.
//! 2. [`wake`], called by a waker: waiting → owned, with Acquire. The waker owns the thread now,
//!    and makes it ready. Or owned → notified.
//! 3. [`take_notification`], called by the owner after `park` has failed: the step that follows
//!    uses up the notification. It is an Acquire, so that this step sees all that the waker did
//!    before it woke the thread.
//!
//! **No wake-up is lost.** Of a `wake` and a `park` one comes first in the order of the word's
//! changes. If `park` comes first, the wake finds the thread waiting and gets it. If `wake` comes
//! first, `park` finds the thread notified and fails; `take_notification` clears the notification,
//! and the step that follows sees what the waker had done. (A thread that is notified before its
//! step and waits after it makes one step in vain. A check for that before each step would cost
//! every thread more.)
//!
//! **No thread has two owners.** Only a successful exchange leads out of waiting, and only one
//! waker makes it.
//!
//! A stale wake-up is for a thread that is over. It finds a head that is free or belongs to another
//! thread. It changes this head only if it is the head of a live mobile thread. Then it wakes that
//! thread without cause, which futures must bear. `tests/loom/state.rs` checks the protocol.

use crate::header::{MOBILE, NOTIFIED, OWNED, STATE, WAITING};
use std::sync::atomic::{AtomicU32, Ordering};

/// An atomic word: std's, or loom's in a model.
#[doc(hidden)]
pub trait Word {
    /// As [`AtomicU32::load`].
    fn load(&self, order: Ordering) -> u32;
    /// As [`AtomicU32::compare_exchange`].
    ///
    /// # Errors
    /// The value that was found instead of `from`.
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

/// The result of a [`wake`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[doc(hidden)]
pub enum Woken {
    /// The thread was waiting: the caller owns it now.
    Ours,
    /// The thread is owned. Its owner will run it again.
    Notified,
    /// The thread is over, or it is not mobile.
    Nothing,
}

/// Wakes the mobile thread that has this word as its head, if there is one. `head` is an earlier
/// value of the word.
#[inline(always)]
#[doc(hidden)]
pub fn wake(word: &impl Word, mut head: u32) -> Woken {
    loop {
        let (to, woken) = match head & (STATE | MOBILE) {
            WAITING_MOBILE => (head & !(STATE | NOTIFIED) | OWNED, Woken::Ours),
            OWNED_MOBILE => (head | NOTIFIED, Woken::Notified),
            _ => return Woken::Nothing,
        };
        // The exchange is made also when the thread was notified already, because the step that
        // clears the notification must see what this waker did.
        match word.compare_exchange(head, to, Ordering::AcqRel, Ordering::Relaxed) {
            Ok(_) => return woken,
            Err(now) => head = now,
        }
    }
}

const WAITING_MOBILE: u32 = WAITING | MOBILE;
const OWNED_MOBILE: u32 = OWNED | MOBILE;

/// Gives up a mobile thread that the caller owns, at the end of a step. False if the thread was
/// notified and must run again.
#[inline(always)]
#[doc(hidden)]
pub fn park(word: &impl Word, head: u32) -> bool {
    let owned = head & !(STATE | NOTIFIED) | OWNED;
    let parked = word.compare_exchange(owned, owned | WAITING, Ordering::Release, Ordering::Relaxed);
    parked.is_ok()
}

/// Clears the notifications so far. The owner calls it when [`park`] has failed.
#[inline(always)]
#[doc(hidden)]
pub fn take_notification(word: &impl Word) {
    if word.load(Ordering::Relaxed) & NOTIFIED != 0 {
        word.fetch_and(!NOTIFIED, Ordering::Acquire);
    }
}
