//! The inbox of a CPU: how other OS threads tell it that a thread is to go on, and wake it when it sleeps.
//!
//! ```text
//!            post                    post: unpark!
//!   AWAKE ─────────▶ MAIL ◀───────────────────────── ASLEEP
//!     ▲  ◀───────────  │                               ▲ │
//!     │     open       │ open                     sleep│ │open
//!     └────────────────┴───────────────────────────────┴─┘
//! ```
//!
//! 1. [`post`](Inbox::post) appends the key under the lock, then swaps the state to MAIL; who finds ASLEEP there unparks.
//! 2. [`sleep`](Inbox::sleep) moves from AWAKE to ASLEEP, and refuses when there is mail.
//! 3. [`wake`](Inbox::wake) moves from ASLEEP back to AWAKE, unless there is mail.
//! 4. [`open`](Inbox::open) swaps the state to AWAKE, then takes all keys under the lock.
//!
//! **No post is lost.** A post's swap to MAIL either precedes the sleeper's exchange, which then fails; or follows it, finds
//! ASLEEP and unparks; or follows an earlier post's swap to MAIL that no `open` has undone yet, and then the key
//! was appended before that `open` takes the lock, or is seen by the next because the state is MAIL. The swaps are on one
//! variable, so their order is total; Release/Acquire on it and the lock order the keys. `tests/loom_inbox.rs`
//! checks it.

use crate::primitives::{AtomicU8, Mutex, Ordering};

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const MAIL: u8 = 2;

/// Keys of threads to resume, posted by other OS threads.
#[derive(Debug)]
#[doc(hidden)]
pub struct Inbox {
    state: AtomicU8,
    keys: Mutex<Vec<u32>>,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox { state: AtomicU8::new(AWAKE), keys: Mutex::new(Vec::new()) }
    }
}

impl Inbox {
    /// Adds a key; true if the owner sleeps and the caller must unpark it.
    pub fn post(&self, key: u32) -> bool {
        self.keys.lock().expect("no panic under this lock").push(key);
        self.state.swap(MAIL, Ordering::AcqRel) == ASLEEP
    }

    /// Whether there is something to open. One load.
    #[inline(always)]
    pub fn has_mail(&self) -> bool {
        self.state.load(Ordering::Relaxed) == MAIL
    }

    /// Whether the owner sleeps and no mail has come since.
    pub fn is_asleep(&self) -> bool {
        self.state.load(Ordering::SeqCst) == ASLEEP
    }

    /// Announces that the owner is about to block; false if there is mail, and it must not.
    pub fn sleep(&self) -> bool {
        self.state.compare_exchange(AWAKE, ASLEEP, Ordering::SeqCst, Ordering::Acquire).is_ok()
    }

    /// The owner is awake; mail that came meanwhile stays to be opened.
    pub fn wake(&self) {
        // It fails only when there is mail.
        let _ = self.state.compare_exchange(ASLEEP, AWAKE, Ordering::AcqRel, Ordering::Acquire);
    }

    /// Takes what has been posted.
    pub fn open(&self) -> Vec<u32> {
        self.state.swap(AWAKE, Ordering::AcqRel);
        std::mem::take(&mut self.keys.lock().expect("no panic under this lock"))
    }
}
