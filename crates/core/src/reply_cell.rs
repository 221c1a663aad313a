//! [`ReplyCell`]: how one side leaves a reply, and the other side waits for it.
//!
//! Four pairs use it. A scheduler answers a program's own system call (`call.rs`). A thread of a
//! scope leaves its result for its handle (`scope`). A job of the pool leaves its answer for the
//! caller (`io`). A scheduler that creates a thread for a caller outside leaves the thread's handle
//! (`sched`). The result of an ordinary thread has no such cell: see `joinable.rs`.
//!
//! The **waiter** polls the cell. The **replier** puts the reply, or closes the cell:
//!
//! ```text
//!             poll (waiter)                 put (replier)         poll, take (waiter)
//!   awaited ───────────────▶ awaited, waker ─────────────▶ here ────────────────────▶ closed
//!                               │ close: wakes the waiter                               ▲
//!                               │ abandon (waiter): drops the waker                     │
//!                               └───────────────────────────────────────────────────────┘
//! ```
//!
//! One lock guards the state. The side that takes the waker out of the state owns it, and wakes or
//! drops it after the lock is released. So no waker is lost, none is woken twice, and no code of
//! the program runs under the lock, but for the closures that the caller passes.
//!
//! `tests/loom/reply_cell.rs` checks it.

use crate::primitives::{Mutex, MutexGuard};
use crate::quietly::quietly;
use std::fmt;
use std::mem::replace;
use std::task::{Poll, Waker};

/// The place of one reply, with the waker of the waiter for it: see the head of this file.
#[doc(hidden)]
pub struct ReplyCell<T>(Mutex<ReplySlot<T>>);

enum ReplySlot<T> {
    /// The reply is not there yet. The waker of the waiter, if the waiter has polled.
    Awaited(Option<Waker>),
    Here(T),
    /// The waiter has taken the reply or has given up, or the replier has closed the cell.
    Closed,
}

impl<T> Default for ReplyCell<T> {
    fn default() -> ReplyCell<T> {
        ReplyCell(Mutex::new(ReplySlot::Awaited(None)))
    }
}

impl<T> ReplyCell<T> {
    #[inline]
    fn state(&self) -> MutexGuard<'_, ReplySlot<T>> {
        self.0.lock().expect("no panic under this lock")
    }

    /// Leaves the reply, and wakes the waiter. A panic of a foreign waker ends here, after the
    /// panic hook has reported it.
    ///
    /// # Errors
    /// The reply, if there is one already or the cell is closed.
    #[inline]
    pub fn put(&self, reply: T) -> Result<(), T> {
        let mut state = self.state();
        let ReplySlot::Awaited(waker) = &mut *state else {
            drop(state);
            return Err(reply);
        };
        let waker = waker.take();
        *state = ReplySlot::Here(reply);
        drop(state);
        wake(waker);
        Ok(())
    }

    /// The reply, or `None` if the cell is closed. If the reply is not there yet, `waker` replaces
    /// the waker of an earlier poll.
    #[inline]
    pub fn poll(&self, waker: Waker) -> Poll<Option<T>> {
        let mut state = self.state();
        if let ReplySlot::Awaited(known) = &mut *state {
            let replaced = known.replace(waker);
            drop(state);
            drop(replaced);
            return Poll::Pending;
        }
        let before = replace(&mut *state, ReplySlot::Closed);
        drop(state);
        Poll::Ready(before.reply())
    }

    /// The reply, if it is there.
    #[inline]
    pub fn take(&self) -> Option<T> {
        let mut state = self.state();
        if let ReplySlot::Awaited(_) = &*state {
            return None;
        }
        let before = replace(&mut *state, ReplySlot::Closed);
        drop(state);
        before.reply()
    }

    /// Closes the cell for a replier that will put no reply, and wakes the waiter. A reply that is
    /// there already stays, and `look` sees it under the lock.
    pub fn close(&self, look: impl FnOnce(&T)) {
        let mut state = self.state();
        let waker = match &mut *state {
            ReplySlot::Here(reply) => return look(reply),
            ReplySlot::Closed => return,
            ReplySlot::Awaited(waker) => waker.take(),
        };
        *state = ReplySlot::Closed;
        drop(state);
        wake(waker);
    }

    /// Closes the cell for a waiter that gives up. Gives the reply, if it is there.
    pub fn abandon(&self) -> Option<T> {
        let before = replace(&mut *self.state(), ReplySlot::Closed);
        before.reply()
    }

    /// Whether the wait is over: the cell is closed, or its reply is one that `is_last` accepts.
    /// `is_last` runs under the lock.
    #[inline]
    pub fn is_over(&self, is_last: impl FnOnce(&T) -> bool) -> bool {
        match &*self.state() {
            ReplySlot::Awaited(_) => false,
            ReplySlot::Here(reply) => is_last(reply),
            ReplySlot::Closed => true,
        }
    }
}

impl<T> ReplySlot<T> {
    #[inline]
    fn reply(self) -> Option<T> {
        match self {
            ReplySlot::Here(reply) => Some(reply),
            ReplySlot::Awaited(_) | ReplySlot::Closed => None,
        }
    }
}

#[inline]
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        quietly(|| waker.wake());
    }
}

/// It does not write the reply, because the reply's `Debug` is code of the program.
impl<T> fmt::Debug for ReplyCell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyCell").field("is_over", &self.is_over(|_| true)).finish_non_exhaustive()
    }
}
