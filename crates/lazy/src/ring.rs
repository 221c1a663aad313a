//! [`SparkRing`]: the bounded ring of sparks of one OS thread.
//!
//! The owner pushes and pops at the bottom; a thief takes from the top. Top and bottom only grow,
//! except that a pop takes the bottom back by one. An item is a word.
//!
//! # Each item has one taker
//! ```text
//!    pop (owner)                           steal (thief)
//!    1. bottom = b - 1                     a. load top = t
//!    2. often()                            b. seldom()
//!    3. load top = t                       c. load bottom = b; nothing if t >= b
//!    4. t < b - 1: the item is the         d. read the item of t
//!       owner's                            e. exchange top for t + 1: the item is the
//!    5. t = b - 1: exchange top for           thief's if that succeeds
//!       t + 1, bottom = b
//! ```
//! After [CL05]. The owner's fence is the one that costs nothing, because the thief's is the heavy
//! one: of 2. and b., either the owner sees in 3. a top that the thief has moved, or the thief sees
//! in c. the bottom of 1. So both take the item of b - 1 only through the exchange of the top.
//!
//! A slot is written again only after the top has passed it by a whole turn of the ring, and the
//! exchange of e. fails then. So an item that was read in d. and overwritten meanwhile is not used.
//!
//! `spark/rings.rs` has two rings for each OS thread: one for halves of `join`, one for lazy
//! values. `tests/loom_spark_ring.rs` checks the ring with models.

use crate::primitives::{AtomicUsize, Ordering, often, seldom};

/// The most sparks of one OS thread.
const SLOTS: usize = if cfg!(any(loom, miri)) { 4 } else { 4096 };

/// The bounded ring of sparks of one OS thread.
pub struct SparkRing {
    top: AtomicUsize,
    bottom: AtomicUsize,
    slots: Box<[AtomicUsize]>,
}

impl std::fmt::Debug for SparkRing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("SparkRing").field("has_items", &self.has_items()).finish_non_exhaustive()
    }
}

impl Default for SparkRing {
    fn default() -> SparkRing {
        SparkRing::new()
    }
}

impl SparkRing {
    /// An empty ring.
    pub fn new() -> SparkRing {
        let slots = (0..SLOTS).map(|_| AtomicUsize::new(0)).collect();
        SparkRing { top: AtomicUsize::new(0), bottom: AtomicUsize::new(0), slots }
    }

    /// Adds an item, unless the ring is full. Only the owner calls it.
    #[inline(always)]
    pub fn push(&self, item: usize) -> bool {
        let bottom = self.bottom.load(Ordering::Relaxed);
        if bottom.wrapping_sub(self.top.load(Ordering::Acquire)) >= SLOTS {
            return false;
        }
        self.slots[bottom % SLOTS].store(item, Ordering::Relaxed);
        self.bottom.store(bottom.wrapping_add(1), Ordering::Release);
        true
    }

    /// Takes the item that was pushed last. Only the owner calls it.
    #[inline(always)]
    pub fn pop(&self) -> Option<usize> {
        let bottom = self.bottom.load(Ordering::Relaxed);
        if bottom == self.top.load(Ordering::Relaxed) {
            return None;
        }
        let last = bottom.wrapping_sub(1);
        // Release: a thief that reads this bottom reads the items of the pushes before it.
        self.bottom.store(last, Ordering::Release);
        often();
        let top = self.top.load(Ordering::Relaxed);
        let item = self.slots[last % SLOTS].load(Ordering::Relaxed);
        if last.wrapping_sub(top) as isize > 0 {
            return Some(item);
        }
        // It is the last item, or a thief has taken it.
        let mine = top == last && self.advance(top);
        self.bottom.store(bottom, Ordering::Release);
        mine.then_some(item)
    }

    /// Takes the item that was pushed first. `None` also if another OS thread takes it meanwhile.
    pub fn steal(&self) -> Option<usize> {
        let top = self.top.load(Ordering::Acquire);
        // A look that costs no fence.
        if self.bottom.load(Ordering::Relaxed).wrapping_sub(top) as isize <= 0 {
            return None;
        }
        seldom();
        let bottom = self.bottom.load(Ordering::Acquire);
        if bottom.wrapping_sub(top) as isize <= 0 {
            return None;
        }
        let item = self.slots[top % SLOTS].load(Ordering::Relaxed);
        self.advance(top).then_some(item)
    }

    #[inline(always)]
    fn advance(&self, top: usize) -> bool {
        let exchanged =
            self.top.compare_exchange(top, top.wrapping_add(1), Ordering::SeqCst, Ordering::Relaxed);
        exchanged.is_ok()
    }

    /// Whether it seems to have items.
    #[inline(always)]
    pub fn has_items(&self) -> bool {
        self.bottom.load(Ordering::Relaxed).wrapping_sub(self.top.load(Ordering::Relaxed)) as isize > 0
    }
}
