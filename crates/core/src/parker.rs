//! [`Parker`]: how an OS thread falls asleep and is roused without losing a call.
//!
//! Three kinds of sleepers have one. An [`Inbox`](crate::internal::Inbox) has it for the OS thread
//! of a CPU, which sleeps in its event source. [`run_blocking`](crate::internal::run_blocking) has
//! it for an OS thread that waits for one future. The event loops of `io` have it for their wait in
//! the kernel. The means by which the sleep ends (an unpark, a write to an eventfd) belongs to
//! them, and is no part of this file.
//!
//! # Words
//! The **owner** is the OS thread that sleeps. A **rouser** is any other OS thread that has a
//! reason to end the sleep. The state is a set of bits:
//!
//! ```text
//!   ASLEEP   the owner sleeps, or is about to sleep without another look at the state
//!   CALLED   a reason that lasts until the end of the present sleep, or of the next one
//!   others   reasons that last until the owner takes them away (an inbox has MAIL)
//! ```
//!
//! # Steps
//! 1. [`rouse`](Parker::rouse) adds a reason. If the state was ASLEEP alone before, the rouser ends
//!    the owner's quiet, and then ends the sleep by its own means.
//! 2. [`sleep`](Parker::sleep) exchanges the empty state for ASLEEP. With any reason in the state
//!    it fails, and takes CALLED away.
//! 3. [`declare`](Parker::declare) notes under a lock that the owner is quiet, if the state still
//!    is ASLEEP alone.
//! 4. [`wake`](Parker::wake) takes ASLEEP and CALLED away, and ends the quiet.
//! 5. [`take`](Parker::take) takes another reason away.
//!
//! # No reason is lost
//! All steps are exchanges of one variable, so they have one total order. A rouser's step has one
//! of three places in it. It precedes the owner's step 2, which then fails. Or it follows step 2
//! and finds ASLEEP alone, so this rouser ends the sleep. Or it finds another reason in the state,
//! and then an earlier rouser does one of both. The state before the owner's next step 2 has the
//! reason, unless the owner has taken it away. Each step of a rouser is a Release and each step of
//! the owner an Acquire. So the owner sees all that a rouser wrote before it roused, also if that
//! rouser was not the first one.
//!
//! # The first rouser ends the quiet
//! This is step E of `quiet.rs`. The rouser looks for the quiet under the lock under which the
//! owner declares it. If the owner comes first, the rouser finds the quiet and ends it under the
//! lock. If the owner comes second, it finds a reason in the state and declares nothing.
//!
//! `tests/loom/parker.rs` checks this file. `inbox.rs` and `quiet.rs` beside it, and `sync`'s
//! `tests/loom/blocking.rs`, check its users.

use crate::Quiet;
use crate::primitives::{AtomicU8, Mutex, Ordering};
use std::sync::atomic::AtomicBool;

const ASLEEP: u8 = 1;

/// The state of an OS thread that sleeps and is roused. `Q` is the declaration that the owner is
/// quiet.
#[derive(Debug)]
#[doc(hidden)]
pub struct Parker<Q = Quiet> {
    state: AtomicU8,
    quiet: Mutex<Option<Q>>,
    /// Whether the owner has declared its quiet in this sleep. Only the owner reads and writes it.
    declared: AtomicBool,
}

impl<Q> Default for Parker<Q> {
    fn default() -> Parker<Q> {
        Parker { state: AtomicU8::new(0), quiet: Mutex::new(None), declared: AtomicBool::new(false) }
    }
}

impl<Q> Parker<Q> {
    /// The reason that goes with the end of a sleep. Other reasons are higher bits.
    pub const CALLED: u8 = 2;

    /// Adds the reason `why`, one or several bits. `true` if the owner sleeps and the caller must
    /// end the sleep.
    #[inline]
    #[must_use = "the sleep must be ended"]
    pub fn rouse(&self, why: u8) -> bool {
        let first = self.state.fetch_or(why, Ordering::SeqCst) == ASLEEP;
        if first {
            self.end_quiet();
        }
        first
    }

    /// Whether a reason of `why` is there. One Relaxed load.
    #[inline(always)]
    pub fn has(&self, why: u8) -> bool {
        self.state.load(Ordering::Relaxed) & why != 0
    }

    /// Whether the owner sleeps and no rouser has come since.
    pub fn is_asleep(&self) -> bool {
        self.state.load(Ordering::SeqCst) == ASLEEP
    }

    /// Announces that the owner is about to sleep. `false` if there is a reason not to sleep; a
    /// call is taken away by this, other reasons stay.
    pub fn sleep(&self) -> bool {
        let asleep = self.state.compare_exchange(0, ASLEEP, Ordering::SeqCst, Ordering::Acquire).is_ok();
        if !asleep {
            self.take(Self::CALLED);
        }
        asleep
    }

    /// Declares the sleeping owner quiet, unless it has been roused already.
    pub fn declare(&self, quiet: impl FnOnce() -> Q) {
        self.declared.store(true, Ordering::Relaxed);
        let mut place = self.quiet.lock().expect("no panic under this lock");
        if self.is_asleep() {
            *place = Some(quiet());
        }
    }

    /// Ends the sleep on the owner's side. `true` if there was a call, which is taken away.
    #[inline]
    pub fn wake(&self) -> bool {
        let before = self.state.fetch_and(!(ASLEEP | Self::CALLED), Ordering::AcqRel);
        if self.declared.load(Ordering::Relaxed) {
            self.declared.store(false, Ordering::Relaxed);
            self.end_quiet();
        }
        before & Self::CALLED != 0
    }

    /// Takes the reasons `why` away. All that their rousers wrote before is visible afterwards.
    #[inline]
    pub fn take(&self, why: u8) {
        self.state.fetch_and(!why, Ordering::AcqRel);
    }

    /// Whether the owner has declared that it is quiet, and has not been roused since.
    pub fn is_quiet(&self) -> bool {
        self.quiet.lock().expect("no panic under this lock").is_some()
    }

    /// The quiet ends under the lock. Otherwise the owner could find it gone and declare another
    /// one before the first has ended, and the ledger would count the owner twice.
    fn end_quiet(&self) {
        *self.quiet.lock().expect("no panic under this lock") = None;
    }
}
