//! The inbox of a CPU: how other OS threads tell it that a thread is to go on, and wake it when it sleeps.
//!
//! Its state is a set of flags:
//!
//! ```text
//!   ASLEEP   the owner sleeps, or is about to
//!   MAIL     there are keys to be taken
//!   CALLED   the owner's next sleep is to end at once
//! ```
//!
//! 1. [`post`](Inbox::post) appends the key under the lock, then sets MAIL. [`call`](Inbox::call) sets CALLED. If the state was
//!    ASLEEP alone before, the caller of either **rouses** the owner: it ends the owner's quiet, and then unparks it.
//! 2. [`sleep`](Inbox::sleep) moves from nothing to ASLEEP. It refuses when there is mail or a call, and takes the call away.
//! 3. [`declare`](Inbox::declare) notes under a lock that the owner is quiet, if the state still is ASLEEP alone.
//! 4. [`wake`](Inbox::wake) takes ASLEEP and CALLED away, and ends the quiet.
//! 5. [`open`](Inbox::open) takes MAIL away, then takes all keys under the lock.
//!
//! **No post is lost.** A post's step on the state either precedes the sleeper's exchange, which then fails; or follows it, finds
//! ASLEEP and rouses; or follows an earlier post that no `open` has undone yet, and then the key
//! was appended before that `open` takes the lock, or is seen by the next because the state has MAIL. The steps are on one
//! variable, so their order is total; Release/Acquire on it and the lock order the keys. The same holds for a call, because
//! nothing but the end of a sleep takes it away. `tests/loom_inbox.rs` checks it.
//!
//! **No post needs memory of its own.** An owner in a long step opens nothing for as long, while its threads may be woken again and
//! again. One wake-up of a thread is as good as several, until the owner opens: so [`Keys`] strikes out duplicates. Whatever a poster
//! wrote before a post that is struck out, the owner sees, because its `open` takes the lock after that post.
//!
//! **The first to rouse a quiet owner ends its quiet** (step E of `quiet.rs`). It looks for the quiet under the lock under which
//! the owner declares it. If the owner comes first, the quiet is there to be ended. If it comes second, then it finds the
//! state changed and declares nothing. `tests/loom_quiet.rs` checks it.

use crate::Quiet;
use crate::keys::Keys;
use crate::primitives::{AtomicU8, Mutex, Ordering};
use std::sync::atomic::AtomicBool;

const ASLEEP: u8 = 1;
const MAIL: u8 = 2;
const CALLED: u8 = 4;

/// Keys of threads to resume, posted by other OS threads. `Q` is what says that its owner is quiet.
#[derive(Debug)]
#[doc(hidden)]
pub struct Inbox<Q = Quiet> {
    state: AtomicU8,
    keys: Mutex<Keys>,
    quiet: Mutex<Option<Q>>,
    /// Whether the owner has declared something in this sleep. It alone looks.
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
    /// Adds a key, unless it is found to be there; true if the owner sleeps and the caller must unpark it.
    #[must_use = "the owner must be unparked"]
    pub fn post(&self, key: u32) -> bool {
        self.keys.lock().expect("no panic under this lock").add(key);
        self.rouse(MAIL)
    }

    /// Has the owner's next sleep end; true if the owner sleeps and the caller must unpark it.
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

    /// Whether there is something to open. One load.
    #[inline(always)]
    pub fn has_mail(&self) -> bool {
        self.state.load(Ordering::Relaxed) & MAIL != 0
    }

    /// Whether the owner sleeps and no mail and no call has come since.
    pub fn is_asleep(&self) -> bool {
        self.state.load(Ordering::SeqCst) == ASLEEP
    }

    /// Announces that the owner is about to block; false if there is mail or a call, and it must not.
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

    /// The owner is awake; mail that came meanwhile stays to be opened.
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

    /// Takes what has been posted: each key once at least.
    pub fn open(&self) -> Vec<u32> {
        self.state.fetch_and(!MAIL, Ordering::AcqRel);
        self.keys.lock().expect("no panic under this lock").take()
    }

    /// Takes what was left for an earlier owner. The new one is awake.
    pub(crate) fn renew(&self) {
        self.wake();
        self.open();
    }
}
