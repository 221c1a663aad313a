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
//! 1. [`post`](Inbox::post) appends the key under the lock, then swaps the state to MAIL; a poster that finds ASLEEP there unparks the owner.
//! 2. [`sleep`](Inbox::sleep) moves from AWAKE to ASLEEP, and refuses when there is mail.
//! 3. [`wake`](Inbox::wake) moves from ASLEEP back to AWAKE, unless there is mail.
//! 4. [`open`](Inbox::open) swaps the state to AWAKE, then takes all keys under the lock.
//!
//! **No post is lost.** A post's swap to MAIL either precedes the sleeper's exchange, which then fails; or follows it, finds
//! ASLEEP and unparks; or follows an earlier post's swap to MAIL that no `open` has undone yet, and then the key
//! was appended before that `open` takes the lock, or is seen by the next because the state is MAIL. The swaps are on one
//! variable, so their order is total; Release/Acquire on it and the lock order the keys.
//!
//! **No post needs memory of its own.** An owner in a long step opens nothing for as long, while its threads may be woken again and
//! again. One wake-up of a thread is as good as several, until the owner opens. So when the list has grown to twice what it last came down
//! to, the poster strikes out the keys that are in it already. The list is thus never longer than about twice the number of threads that are
//! to go on, and a post takes constant time in the long run. Whatever a poster wrote before a post that is struck out, the owner
//! sees, because its `open` takes the lock after that post.
//!
//! `tests/loom_inbox.rs` checks both.

use crate::primitives::{AtomicU8, Mutex, Ordering};
use std::collections::HashSet;

const AWAKE: u8 = 0;
const ASLEEP: u8 = 1;
const MAIL: u8 = 2;

/// Keys of threads to resume, posted by other OS threads.
#[derive(Debug)]
#[doc(hidden)]
pub struct Inbox {
    state: AtomicU8,
    keys: Mutex<Keys>,
}

/// How many keys are listed before one is looked for that is there twice.
const FEW: usize = if cfg!(loom) { 1 } else { 64 };

#[derive(Debug)]
struct Keys {
    list: Vec<u32>,
    /// At this length duplicates are struck out.
    full: usize,
}

impl Keys {
    const fn new() -> Keys {
        Keys { list: Vec::new(), full: FEW }
    }

    fn add(&mut self, key: u32) {
        if self.list.len() >= self.full {
            let mut seen = HashSet::with_capacity(self.list.len());
            self.list.retain(|&key| seen.insert(key));
            self.full = FEW.max(2 * self.list.len());
            if seen.contains(&key) {
                return;
            }
        }
        self.list.push(key);
    }
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox { state: AtomicU8::new(AWAKE), keys: Mutex::new(Keys::new()) }
    }
}

impl Inbox {
    /// Adds a key, unless it is found to be there; true if the owner sleeps and the caller must unpark it.
    pub fn post(&self, key: u32) -> bool {
        self.keys.lock().expect("no panic under this lock").add(key);
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

    /// Takes what has been posted: each key once at least.
    pub fn open(&self) -> Vec<u32> {
        self.state.swap(AWAKE, Ordering::AcqRel);
        std::mem::replace(&mut *self.keys.lock().expect("no panic under this lock"), Keys::new()).list
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn posts_to_the_same_threads_take_no_more_room_and_each_thread_is_told_in_order() {
        let inbox = Inbox::default();
        for round in 0..1000u32 {
            (1..=500).for_each(|key| _ = inbox.post(key));
            assert!(inbox.keys.lock().unwrap().list.len() <= 1001, "in round {round}");
        }
        let mut told = inbox.open();
        assert_eq!(told[..500], (1..=500).collect::<Vec<_>>());
        told.sort();
        told.dedup();
        assert_eq!(told.len(), 500);
        inbox.post(7);
        assert_eq!(inbox.open(), [7]);
    }
}
