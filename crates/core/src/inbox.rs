//! The inbox of a CPU ([`Inbox`]): how other OS threads tell it that a thread is to go on, and wake
//! it when it sleeps.
//!
//! `directory.rs` has the inbox of each CPU, and posts there for the wakers of other OS threads.
//! The owner is the OS thread of the CPU: `Cpu::woken` opens the inbox, and `Cpu::poll`
//! (`events.rs`) sleeps by it.
//!
//! The inbox is a list of keys under a lock, and a [`Parker`] with a reason of its own, MAIL:
//! "there are keys to be taken". The parker's general reason, CALLED, says that the owner should
//! look around without mail.
//!
//! 1. [`post`](Inbox::post) appends the key under the lock, and then rouses the owner with MAIL.
//!    [`call`](Inbox::call) rouses it with CALLED.
//! 2. [`sleep`](Inbox::sleep), [`declare`](Inbox::declare) and [`wake`](Inbox::wake) are the
//!    parker's steps.
//! 3. [`open`](Inbox::open) takes MAIL away, and then takes all keys under the lock.
//!
//! **No post is lost.** `parker.rs` shows that no reason is lost. What remains is a post that finds
//! MAIL there already. The `open` that takes this MAIL away comes after the post's step on the
//! state, so it takes the lock after the key was appended. `tests/loom/inbox.rs` checks it.
//!
//! **No post needs memory of its own.** The owner opens nothing during a long step, while its
//! threads may be woken again and again. One wake-up of a thread is as good as several until the
//! owner opens: so [`Keys`] strikes out duplicates. The owner sees all that a poster wrote before a
//! post that is struck out, because the owner's `open` takes the lock after that post.

use crate::Quiet;
use crate::keys::Keys;
use crate::parker::Parker;
use crate::primitives::Mutex;

/// The reason of a post.
const MAIL: u8 = 4;

/// Keys of threads to resume, posted by other OS threads. `Q` is the declaration that the owner is
/// quiet.
#[derive(Debug)]
#[doc(hidden)]
pub struct Inbox<Q = Quiet> {
    parker: Parker<Q>,
    keys: Mutex<Keys>,
}

impl<Q> Default for Inbox<Q> {
    fn default() -> Inbox<Q> {
        Inbox { parker: Parker::default(), keys: Mutex::new(Keys::default()) }
    }
}

impl<Q> Inbox<Q> {
    /// Adds a key, unless it is there already. `true` if the owner sleeps and the caller must
    /// unpark it.
    #[must_use = "the owner must be unparked"]
    pub fn post(&self, key: u32) -> bool {
        self.keys.lock().expect("no panic under this lock").add(key);
        self.parker.rouse(MAIL)
    }

    /// Ends the owner's sleep, or its next one. `true` if the owner sleeps and the caller must
    /// unpark it.
    #[must_use = "the owner must be unparked"]
    pub fn call(&self) -> bool {
        self.parker.rouse(Parker::<Q>::CALLED)
    }

    /// Whether there is a key to be taken. One load.
    #[inline(always)]
    pub fn has_mail(&self) -> bool {
        self.parker.has(MAIL)
    }

    /// Whether the owner sleeps and no mail and no call has come since.
    pub fn is_asleep(&self) -> bool {
        self.parker.is_asleep()
    }

    /// Announces that the owner is about to block. `false` if there is mail or a call, and it must
    /// not.
    pub fn sleep(&self) -> bool {
        self.parker.sleep()
    }

    /// Declares the sleeping owner quiet, unless it has been roused already.
    pub fn declare(&self, quiet: impl FnOnce() -> Q) {
        self.parker.declare(quiet);
    }

    /// Ends the owner's sleep. Mail that came meanwhile stays to be opened.
    pub fn wake(&self) {
        self.parker.wake();
    }

    /// Whether the owner has declared that it is quiet, and has not been roused since.
    pub fn is_quiet(&self) -> bool {
        self.parker.is_quiet()
    }

    /// Takes the keys that have been posted: each once at least.
    pub fn open(&self) -> Vec<u32> {
        self.parker.take(MAIL);
        self.keys.lock().expect("no panic under this lock").take()
    }

    /// Takes the keys that were left for an earlier owner. The new owner is awake.
    pub(crate) fn renew(&self) {
        self.wake();
        self.open();
    }
}
