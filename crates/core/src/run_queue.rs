//! A first-in, first-out queue of threads, linked through their own headers.

use crate::arena::{self, Key};
use crate::thread::Thread;
use std::marker::PhantomData;

/// Threads that are ready to run, in order. It takes no memory of its own: any number of threads queue in 8 bytes.
///
/// A user's scheduler may as well keep its threads in a `VecDeque` or a heap; this one is the fastest.
///
/// # Paper
/// [LZ07 Figure 12]: the ready queue.
///
/// # Complexity
/// `push` and `pop` are O(1), allocate nothing and take no lock.
#[derive(Debug, Default)]
pub struct RunQueue {
    head: Option<Key>,
    tail: Option<Key>,
    /// It owns threads, and stays on their OS thread as they do.
    _threads: PhantomData<Thread>,
}

impl RunQueue {
    /// An empty queue.
    pub const fn new() -> RunQueue {
        RunQueue { head: None, tail: None, _threads: PhantomData }
    }

    /// Adds a thread at the end.
    #[inline(always)]
    pub fn push(&mut self, thread: Thread) {
        let key = thread.into_key();
        // The queue owns the threads in it, and with them their links.
        arena::header(key).set_link(0);
        match self.tail {
            Some(tail) => arena::header(tail).set_link(key.get()),
            None => self.head = Some(key),
        }
        self.tail = Some(key);
    }

    /// Takes the first thread.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Thread> {
        let key = self.head?;
        self.head = Key::new(arena::header(key).link());
        match self.head {
            Some(_) => arena::prefetch_behind(key),
            None => self.tail = None,
        }
        // SAFETY: it was ours and is no longer in the queue.
        Some(unsafe { Thread::from_key(key) })
    }

    /// Moves all threads of another queue to the end of this one, in their order.
    pub fn append(&mut self, other: &mut RunQueue) {
        let Some(head) = other.head.take() else { return };
        match self.tail {
            Some(tail) => arena::header(tail).set_link(head.get()),
            None => self.head = Some(head),
        }
        self.tail = other.tail.take();
    }

    /// How many threads are in it.
    ///
    /// # Complexity
    /// Looks at each.
    pub fn len(&self) -> usize {
        std::iter::successors(self.head, |&key| Key::new(arena::header(key).link())).count()
    }

    /// Whether no thread is in it.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.head.is_none()
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
