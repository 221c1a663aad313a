//! [`RunQueue`]: a first-in, first-out queue of threads, linked through their own headers; and
//! [`SendQueue`], the same for threads on their way to another OS thread.
//!
//! Each CPU has one for its ready threads (`cpu/inner.rs`), and a work-stealing worker has more
//! (`sched`'s `worker.rs` and `desk.rs`). The link is the header's second word, so a thread is in
//! one queue at a time, which its handle assures: `push` takes the handle.

use crate::arena::{self, Base, Key};
use crate::thread::{SendThread, Thread};
use std::marker::PhantomData;

/// Threads that are ready to run, in order. The queue takes no memory of its own: any number of
/// threads queue in 8 bytes.
///
/// Another scheduler may keep its threads in a `VecDeque` or a heap instead. This queue is the
/// fastest.
///
/// # Paper
/// [LZ07 Figure 12]: the ready queue.
///
/// # Complexity
/// `push` and `pop` are O(1), allocate nothing and take no lock.
#[derive(Debug)]
pub struct RunQueue {
    first: Option<Key>,
    /// The last thread. If there is no first thread, it has no meaning.
    last: Key,
    /// The queue owns threads, and stays on their OS thread as they do.
    _threads: PhantomData<Thread>,
}

impl RunQueue {
    /// An empty queue.
    pub const fn new() -> RunQueue {
        RunQueue { first: None, last: Key::MIN, _threads: PhantomData }
    }

    /// Adds a thread at the end.
    #[inline(always)]
    pub fn push(&mut self, thread: Thread) {
        self.push_by(Base::get(), thread);
    }

    /// Takes the first thread.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Thread> {
        self.pop_by(Base::get())
    }

    /// As [`push`](RunQueue::push), for a caller that has the base address of the arena.
    #[inline(always)]
    pub(crate) fn push_by(&mut self, base: Base, thread: Thread) {
        let key = thread.into_key();
        self.extend_by(base, key, key);
    }

    /// As [`pop`](RunQueue::pop), for a caller that has the base address of the arena.
    #[inline(always)]
    pub(crate) fn pop_by(&mut self, base: Base) -> Option<Thread> {
        let key = self.first?;
        self.first = if self.last == key {
            None
        } else {
            arena::prefetch_behind(base, key);
            Key::new(base.header(key).link())
        };
        // SAFETY: the queue owned the thread (`push` took its handle), and the thread is no longer
        // in the queue.
        Some(unsafe { Thread::from_key(key) })
    }

    /// Adds threads at the end. They are linked already, from `first` to `last`.
    #[inline(always)]
    fn extend_by(&mut self, base: Base, first: Key, last: Key) {
        if self.first.is_some() {
            // The queue owns the threads in it, and with them their links.
            base.header(self.last).set_link(first.get());
        } else {
            self.first = Some(first);
        }
        self.last = last;
    }

    /// Moves all threads of another queue to the end of this one, in their order.
    pub fn append(&mut self, other: &mut RunQueue) {
        if let Some(first) = other.first.take() {
            self.extend_by(Base::get(), first, other.last);
        }
    }

    /// The number of threads in it.
    ///
    /// # Complexity
    /// It walks over all threads.
    pub fn len(&self) -> usize {
        let behind = |&key: &Key| {
            if self.last == key { None } else { Key::new(arena::header(key).link()) }
        };
        std::iter::successors(self.first, behind).count()
    }

    /// Whether no thread is in it.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.first.is_none()
    }
}

impl Default for RunQueue {
    fn default() -> RunQueue {
        RunQueue::new()
    }
}

impl Drop for RunQueue {
    /// Cancels the threads in it.
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

impl Extend<Thread> for RunQueue {
    fn extend<I: IntoIterator<Item = Thread>>(&mut self, threads: I) {
        threads.into_iter().for_each(|t| self.push(t));
    }
}

/// A [`RunQueue`] of threads that may move, which may therefore move itself.
///
/// # Complexity
/// As of a [`RunQueue`].
#[derive(Debug, Default)]
pub struct SendQueue(RunQueue);

// SAFETY: `push` is the only way in, and takes threads that may run, and be dropped, on any OS
// thread of their group. The queue is their owner, and nothing else of it depends on the OS thread.
unsafe impl Send for SendQueue {}

impl SendQueue {
    /// An empty queue.
    pub const fn new() -> SendQueue {
        SendQueue(RunQueue::new())
    }

    /// Adds a thread at the end.
    #[inline(always)]
    pub fn push(&mut self, thread: SendThread) {
        self.0.push(thread.into_thread());
    }

    /// Takes the first thread.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<SendThread> {
        // Only `SendThread`s were pushed, so `into_send` does not fail.
        self.0.pop().and_then(|thread| thread.into_send().ok())
    }

    /// Moves all threads of another queue to the end of this one, in their order.
    pub fn append(&mut self, other: &mut SendQueue) {
        self.0.append(&mut other.0);
    }

    /// The number of threads in it.
    ///
    /// # Complexity
    /// It walks over all threads.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether no thread is in it.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}
