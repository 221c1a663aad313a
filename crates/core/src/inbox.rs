//! The inbox of a CPU: [`Inbox`], through which other OS threads tell the CPU to resume a thread,
//! and wake it when it sleeps.
//!
//! `directory.rs` posts and calls. The **owner** is the OS thread of the CPU: it sleeps and wakes
//! in `events.rs` and opens the inbox in `cpu.rs`. The state is a set of flags:
//!
//! ```text
//!   ASLEEP   the owner sleeps, or is about to
//!   MAIL     there are keys to be taken
//!   CALLED   the owner's next sleep is to end at once
//! ```
//!
//! 1. [`post`](Inbox::post) appends the key under the lock, then sets MAIL. [`call`](Inbox::call)
//!    sets CALLED. If the state was ASLEEP alone before, the caller of either **rouses** the owner:
//!    it ends the owner's quiet, and then unparks it.
//! 2. [`sleep`](Inbox::sleep) exchanges the empty set for ASLEEP. If there is mail or a call, it
//!    refuses, and takes the call away.
//! 3. [`declare`](Inbox::declare) notes under a lock that the owner is quiet, if the state is still
//!    ASLEEP alone.
//! 4. [`wake`](Inbox::wake) takes ASLEEP and CALLED away, and ends the quiet.
//! 5. [`open`](Inbox::open) takes MAIL away, then takes all keys under the lock.
//!
//! **No post is lost.** A post changes the state in one of three situations. (a) The change
//! precedes the owner's exchange in `sleep`, which then fails. (b) It follows that exchange and
//! finds the owner asleep. The poster rouses the owner, unless an earlier post or call has done so.
//! (c) It finds MAIL of an earlier post that no `open` has taken away yet. Then the key was
//! appended before that `open` takes the lock; or the next `open` finds it, because the state has
//! MAIL. All changes are on one variable, so their order is total; Release and Acquire on it, and
//! the lock, order the keys. The same holds for a call, because only the end of a sleep takes it
//! away. `tests/loom_inbox.rs` checks it.
//!
//! **No post needs memory of its own.** An owner in a long step opens nothing meanwhile, while its
//! threads may be woken again and again. Until the owner opens, one wake-up of a thread is as good
//! as several. So [`Keys`] removes duplicates. The owner sees all that a poster wrote before a post
//! with a removed key, because the owner's `open` takes the lock after that post.
//!
//! **The first OS thread to rouse a quiet owner ends its quiet** (step E of `quiet.rs`). It takes
//! the quiet under the lock under which the owner declares it. If the owner has the lock first, the
//! quiet is there to be ended. If the owner has it second, the owner finds the state changed and
//! declares nothing. `tests/loom_quiet.rs` checks it.

use crate::Quiet;
use crate::keys::Keys;
use crate::primitives::{AtomicU8, Mutex, Ordering};
use std::sync::atomic::AtomicBool;

const ASLEEP: u8 = 1;
const MAIL: u8 = 2;
const CALLED: u8 = 4;

/// The keys of threads to resume, posted by other OS threads. `Q` is the value that says that the
/// owner is quiet.
#[derive(Debug)]
#[doc(hidden)]
pub struct Inbox<Q = Quiet> {
    state: AtomicU8,
    keys: Mutex<Keys>,
    quiet: Mutex<Option<Q>>,
    /// Whether the owner has called `declare` in this sleep. Only the owner reads it.
    declared: AtomicBool,
}

impl<Q> Default for Inbox<Q> {
    fn default() -> Inbox<Q> {
        Inbox {
            state: AtomicU8::new(0),
            keys: Mutex::new(Keys::default()),
            quiet: Mutex::new(None),
            declared: AtomicBool::new(false),
        }
    }
}

impl<Q> Inbox<Q> {
    /// Adds a key, unless a duplicate is found. True if the owner sleeps; then the caller must
    /// unpark it.
    #[must_use = "the owner must be unparked"]
    pub fn post(&self, key: u32) -> bool {
        self.keys.lock().expect("no panic under this lock").add(key);
        self.rouse(MAIL)
    }

    /// Ends the owner's sleep, or its next one. True if the owner sleeps; then the caller must
    /// unpark it.
    #[must_use = "the owner must be unparked"]
    pub fn call(&self) -> bool {
        self.rouse(CALLED)
    }

    fn rouse(&self, why: u8) -> bool {
        let roused = self.state.fetch_or(why, Ordering::SeqCst) == ASLEEP;
        if roused {
            self.end_quiet();
        }
        roused
    }

    /// Whether there is mail to open. One load.
    #[inline(always)]
    pub fn has_mail(&self) -> bool {
        self.state.load(Ordering::Relaxed) & MAIL != 0
    }

    /// Whether the owner sleeps, and no mail and no call has come since.
    pub fn is_asleep(&self) -> bool {
        self.state.load(Ordering::SeqCst) == ASLEEP
    }

    /// Announces that the owner is about to block. False if there is mail or a call; then the owner
    /// must not block.
    pub fn sleep(&self) -> bool {
        match self.state.compare_exchange(0, ASLEEP, Ordering::SeqCst, Ordering::Acquire) {
            Ok(_) => true,
            Err(_) => {
                self.state.fetch_and(!CALLED, Ordering::AcqRel);
                false
            }
        }
    }

    /// The owner, which sleeps, is quiet from now on, unless it has been roused already.
    pub fn declare(&self, quiet: impl FnOnce() -> Q) {
        self.declared.store(true, Ordering::Relaxed);
        let mut place = self.quiet.lock().expect("no panic under this lock");
        if self.is_asleep() {
            *place = Some(quiet());
        }
    }

    /// The owner is awake. Mail that came meanwhile stays until it is opened.
    pub fn wake(&self) {
        self.state.fetch_and(!(ASLEEP | CALLED), Ordering::AcqRel);
        if self.declared.load(Ordering::Relaxed) {
            self.declared.store(false, Ordering::Relaxed);
            self.end_quiet();
        }
    }

    /// Whether the owner has declared that it is quiet, and has not been roused since.
    pub fn is_quiet(&self) -> bool {
        self.quiet.lock().expect("no panic under this lock").is_some()
    }

    fn end_quiet(&self) {
        drop(self.quiet.lock().expect("no panic under this lock").take());
    }

    /// Takes the posted keys. Each is in the list at least once.
    pub fn open(&self) -> Vec<u32> {
        self.state.fetch_and(!MAIL, Ordering::AcqRel);
        self.keys.lock().expect("no panic under this lock").take()
    }

    /// Drops the mail for an earlier owner. The new owner is awake.
    pub(crate) fn renew(&self) {
        self.wake();
        self.open();
    }
}
