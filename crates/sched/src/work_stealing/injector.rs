//! [`Injector`]: the queue of items from outside, from which the first worker that looks takes its
//! share.
//!
//! `IdleWorkers` (`idle_workers.rs`) has one, for threads that other OS threads spawn (`pool.rs`
//! pushes them, `worker.rs` takes them). Its head has the proof that no worker sleeps while an item
//! is here.

use crate::primitives::{AtomicUsize, Mutex, Ordering};
use std::collections::VecDeque;

/// An unbounded queue that any OS thread may push to, and from which workers take in batches.
///
/// # Complexity
/// Looking whether there are items is one load; every other operation takes a lock.
#[derive(Debug)]
pub struct Injector<T> {
    /// `None` after the queue is closed.
    items: Mutex<Option<VecDeque<T>>>,
    /// The number of items. Written under the lock.
    len: AtomicUsize,
}

impl<T> Default for Injector<T> {
    fn default() -> Self {
        Injector::new()
    }
}

impl<T> Injector<T> {
    /// An empty queue.
    pub fn new() -> Injector<T> {
        Injector { items: Mutex::new(Some(VecDeque::new())), len: AtomicUsize::new(0) }
    }

    /// Appends an item.
    ///
    /// # Errors
    /// Returns the item if the queue is closed.
    pub fn push(&self, item: T) -> Result<(), T> {
        let mut items = self.items.lock().expect("no panic under this lock");
        let Some(items) = &mut *items else { return Err(item) };
        items.push_back(item);
        self.len.store(items.len(), Ordering::Release);
        Ok(())
    }

    /// Takes one worker's share for `workers` workers from the front: at most `max` items, and at
    /// least one if there is one.
    pub fn take(&self, workers: usize, max: usize) -> Vec<T> {
        if self.is_empty() {
            return Vec::new();
        }
        let mut items = self.items.lock().expect("no panic under this lock");
        let Some(items) = &mut *items else { return Vec::new() };
        let share = items.len().div_ceil(workers).min(max);
        let taken = items.drain(..share).collect();
        self.len.store(items.len(), Ordering::Release);
        taken
    }

    /// Takes all items that are left. The queue accepts no more items.
    pub fn close(&self) -> impl Iterator<Item = T> + use<T> {
        let left = self.items.lock().expect("no panic under this lock").take();
        self.len.store(0, Ordering::Release);
        left.into_iter().flatten()
    }

    /// The number of items in the queue.
    pub fn len(&self) -> usize {
        self.len.load(Ordering::Acquire)
    }

    /// Whether the queue has no items.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn each_takes_a_share_and_never_more_than_it_can_hold() {
        let injector = Injector::new();
        (0..10).for_each(|i| injector.push(i).unwrap());
        assert_eq!(injector.take(4, 100), [0, 1, 2]);
        assert_eq!(injector.take(1, 2), [3, 4]);
        assert_eq!(injector.take(100, 100), [5]);
        assert_eq!(injector.take(1, 100), [6, 7, 8, 9]);
        assert!(injector.is_empty() && injector.take(1, 100).is_empty());
    }

    #[test]
    fn a_closed_queue_gives_everything_back() {
        let injector = Injector::new();
        injector.push(1).unwrap();
        assert_eq!(injector.close().collect::<Vec<_>>(), [1]);
        assert_eq!(injector.push(2), Err(2));
        assert!(injector.take(1, 100).is_empty());
    }
}
