//! The wait queue: the queue of waiters in every object that blocks.
//!
//! A blocking object is a [`WaitQueue`]: a state, and the queue of the waiters for a change of that
//! state, under one lock. Each operation of the object is a [`Role`]. The role says how the
//! operation tries, what its result is after a grant, and where a grant goes that its waiter did
//! not collect. The queue is an intrusive list through pinned futures. All unsafe code for it is in
//! the files of this module, so `MVar` and the rest of `selvedge-sync` are safe code.
//!
//! | File | |
//! |---|---|
//! | `wait_queue.rs` | the object: [`WaitQueue`] |
//! | `wait_queue/mode.rs` | whether several OS threads share the object |
//! | `wait_queue/role.rs` | what an operation of the object does: `Role` |
//! | `wait_queue/list.rs` | the nodes and their list, which a role reaches as `Queue` |
//! | `wait_queue/waiting.rs` | the future of a waiter: `Waiting` |
//!
//! # Words
//! A **waiter** is a [`Waiting`] future with its node. Its **owner** is the OS thread that polls or
//! drops the future. A **granter** is an OS thread that takes the node out of the queue, and
//! thereby gives the waiter the thing that it waits for.
//!
//! # States
//! A waiter is in one of four states. A granter touches its node only while it is **queued**, and
//! only under the lock:
//!
//! ```text
//!            enqueue (owner, lock)         grant (granter, lock)          poll (owner)
//!    idle ───────────────────────▶ queued ─────────────────────▶ granted ─────────────▶ done
//!      │ attempt succeeds             │ drop (owner, lock):          │ drop (owner, lock):
//!      └──────────▶ done              └ unlink ▶ done                └ abandoned ▶ done
//!                                     │ poll, retry succeeds (owner, lock):
//!                                     └ unlink ▶ done
//! ```
//!
//! # One user at a time
//! *While a node is idle, granted or done, its owner has it alone.* In these states it is in no
//! list, and the list is the granter's only way to it. The step from queued to granted is a Release
//! store, and the granter does not touch the node after it. The owner's Acquire load sees that
//! store, so the owner may use node and payload without the lock. *While a node is queued, the
//! holder of the lock has it alone*, except for its state, which is atomic. `drop` takes the node
//! out of the list under the lock before the future goes, so the list holds only live nodes.
//! `tests/loom/wait_queue.rs` checks it.

pub(crate) mod list;
pub(crate) mod mode;
pub(crate) mod role;
pub(crate) mod waiting;

use crate::cpu::inner::current;
use crate::lock::{Guard, Lock, WordLock};
use list::{List, Queue, fire};
use mode::{Mode, Shared};
use std::fmt;
use std::marker::PhantomData;

/// A state, and the queue of the waiters for a change of it, under one lock.
///
/// # Paper
/// One structure for the queue of the mutex in [LZ07 §4.3], the waiting reader and writer of an
/// MVar in [Del §4.1], and the blocking queue of a black hole in [HMP05 §4.2.1].
///
/// # Differences
/// 1. A waiter is a Selvedge thread, or a task of a foreign executor with a waker.
/// 2. Any number of waiters may wait. They are served first come, first served.
/// 3. A waiter may give up at any time, in constant time: the program drops its future.
///
/// # The word
/// Beside its state an object has a word of 31 bits. The holder of the lock may change it
/// ([`Queue::word`]). While the lock is free, any operation may change it without the lock, in one
/// atomic operation ([`exchange`](WaitQueue::exchange)). The word may say whether the object is
/// free and whether it has waiters. Then an operation needs the lock only while there are waiters
/// ([`Role::pass`](crate::Role::pass)).
pub struct WaitQueue<S, P, M: Mode = Shared> {
    inner: M::Lock<(S, List<P>)>,
    _mode: PhantomData<M>,
}

impl<S, P> WaitQueue<S, P> {
    crate::constant! {
        /// As [`with_word`](WaitQueue::with_word), also for a `static`.
        pub fn shared(state: S, word: u32) -> Self {
            WaitQueue { inner: WordLock::shared((state, List::new()), word), _mode: PhantomData }
        }
    }
}

impl<S, P, M: Mode> WaitQueue<S, P, M> {
    /// An object in the given state, without waiters.
    pub fn new(state: S) -> Self {
        WaitQueue::with_word(state, 0)
    }

    /// As [`new`](WaitQueue::new), with bits 0 to 30 of `word` as the object's word.
    pub fn with_word(state: S, word: u32) -> Self {
        WaitQueue { inner: M::Lock::new((state, List::new()), word), _mode: PhantomData }
    }

    /// The word, without the lock. It may be out of date when the caller gets it. The caller sees
    /// all that was done under the lock before the word got this value.
    #[inline(always)]
    pub fn word(&self) -> u32 {
        self.inner.word()
    }

    /// Exchanges the word, without the lock, for the result of `change`; gives the old word.
    /// `change` may be called several times.
    ///
    /// # Errors
    /// The word, if `change` gives `None`; or `None` if the lock is held. In the latter case the
    /// caller uses [`with`](WaitQueue::with).
    ///
    /// # Complexity
    /// One atomic operation; for a [`Local`](crate::Local) object none.
    #[inline(always)]
    pub fn exchange(&self, change: impl FnMut(u32) -> Option<u32>) -> Result<u32, Option<u32>> {
        self.inner.exchange(None, change)
    }

    /// Exchanges the word, without the lock, for `new` if it is `usual`. It does not read the word
    /// before. Tells whether it has exchanged the word.
    ///
    /// # Complexity
    /// As [`exchange`](WaitQueue::exchange), without the load.
    #[inline(always)]
    pub fn replace(&self, usual: u32, new: u32) -> bool {
        self.inner.exchange(Some(usual), |word| (word == usual).then_some(new)).is_ok()
    }

    /// Works on the state under the lock, and then resumes the waiters to which `f` has granted
    /// something.
    ///
    /// `f` must not run code that could come back to the object: a destructor, a closure or a
    /// `fmt::Write` of the object's user, or a switch to another stack. On a [`Shared`] object such
    /// an operation waits, perhaps for ever.
    ///
    /// # Panics
    /// If it is called within an operation on the same [`Local`](crate::Local) object. If a
    /// [`Waiting`](crate::Waiting) of that object is dropped there, the process aborts, because `f`
    /// may have borrowed the memory that the drop would free.
    #[inline(always)]
    pub fn with<T>(&self, f: impl FnOnce(&mut S, &mut Queue<'_, P>) -> T) -> T {
        let mut guard = self.inner.enter();
        let ((state, list), word) = guard.parts();
        let result = f(state, &mut Queue::new(list, word, current()));
        let granted = list.take_granted();
        drop(guard);
        if let Some((first, others)) = granted {
            fire(first, others);
        }
        result
    }
}

/// It does not write the state, because the state's `Debug` and the writer are code of the object's
/// user, which must not run under the lock.
impl<S, P, M: Mode> fmt::Debug for WaitQueue<S, P, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let waited_for = self.inner.enter().parts().0.1.first.is_some();
        f.debug_struct("WaitQueue").field("waited_for", &waited_for).finish_non_exhaustive()
    }
}
