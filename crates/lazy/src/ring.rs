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
//! After [CL05]. The owner's fence costs nothing, because the thief's is the heavy one: of 2. and
//! b., either the owner sees in 3. a top that the thief has moved, or the thief sees in c. the
//! bottom of 1. So both take the item of b - 1 only through the exchange of the top.
//!
//! # Public numbers
//! The heavy fence interrupts the owner, and takes microseconds. So where thieves are at work, the
//! oldest items are **public**: those with a number below `public`. For such an item the fence of
//! each side is a full fence of its own CPU. After a thief has moved the top, the owner's next push
//! makes the next [`PUBLIC`] numbers public. The owner pops them seldom, because it pops its newest
//! items.
//!
//! `public` only grows, and only the owner stores it. In step b. a thief that reads a `public`
//! above t makes a full fence. Then each pop of the number t falls into one of two cases:
//! - The owner popped it before it stored that `public`, with the light fence. The store is Release
//!   and the load Acquire, so the thief sees the bottom of that pop in c., or a later one.
//! - The owner pops it after that, with a full fence, as in [CL05].
//!
//! A thief that reads a smaller `public` makes the heavy fence, which orders both kinds of pops.
//!
//! A slot is written again only after the top has passed it by a whole turn of the ring, and the
//! exchange of e. fails then. So an item that was read in d. and overwritten meanwhile is not used.
//!
//! `spark/rings.rs` has two rings for each OS thread: one for halves of `join`, one for lazy
//! values. `tests/loom/spark_ring.rs` checks the ring with models.

use crate::primitives::{AtomicUsize, Ordering, fence, often, seldom};

/// The most sparks of one OS thread.
const SLOTS: usize = if cfg!(any(loom, miri)) { 4 } else { 4096 };

/// The numbers from the top on that a push makes public.
const PUBLIC: usize = 2;

/// The bounded ring of sparks of one OS thread.
pub struct SparkRing {
    thieves: OwnLine<Thieves>,
    owner: OwnLine<Owner>,
    slots: Box<[AtomicUsize; SLOTS]>,
}

/// A part of the ring in cache lines of its own.
#[repr(align(128))]
struct OwnLine<T>(T);

/// What thieves write, and what the owner writes for them seldom.
struct Thieves {
    top: AtomicUsize,
    public: AtomicUsize,
}

/// What the owner writes.
struct Owner {
    bottom: AtomicUsize,
    /// The top at the push that has stored `public`.
    seen: AtomicUsize,
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

/// Whether the number `a` comes before the number `b`.
#[inline(always)]
fn is_before(a: usize, b: usize) -> bool {
    b.wrapping_sub(a) as isize > 0
}

impl SparkRing {
    /// An empty ring.
    pub fn new() -> SparkRing {
        let slots: Box<[AtomicUsize]> = (0..SLOTS).map(|_| AtomicUsize::new(0)).collect();
        SparkRing {
            thieves: OwnLine(Thieves { top: AtomicUsize::new(0), public: AtomicUsize::new(0) }),
            owner: OwnLine(Owner { bottom: AtomicUsize::new(0), seen: AtomicUsize::new(0) }),
            slots: slots.try_into().expect("there are so many"),
        }
    }

    /// Adds an item, unless the ring is full. Only the owner calls it.
    #[inline(always)]
    pub fn push(&self, item: usize) -> bool {
        let bottom = self.owner.0.bottom.load(Ordering::Relaxed);
        let top = self.thieves.0.top.load(Ordering::Acquire);
        if bottom.wrapping_sub(top) >= SLOTS {
            return false;
        }
        self.slots[bottom % SLOTS].store(item, Ordering::Relaxed);
        self.owner.0.bottom.store(bottom.wrapping_add(1), Ordering::Release);
        if self.owner.0.seen.load(Ordering::Relaxed) != top {
            self.publish(top);
        }
        true
    }

    /// Makes the oldest items public.
    #[cold]
    #[inline(never)]
    fn publish(&self, top: usize) {
        self.owner.0.seen.store(top, Ordering::Relaxed);
        self.thieves.0.public.store(top.wrapping_add(PUBLIC), Ordering::Release);
    }

    /// Takes the item that was pushed last. Only the owner calls it.
    #[inline(always)]
    pub fn pop(&self) -> Option<usize> {
        let bottom = self.owner.0.bottom.load(Ordering::Relaxed);
        let last = bottom.wrapping_sub(1);
        // Release: a thief that reads this bottom reads the items of the pushes before it.
        self.owner.0.bottom.store(last, Ordering::Release);
        if is_before(last, self.thieves.0.public.load(Ordering::Relaxed)) {
            fence(Ordering::SeqCst);
        } else {
            often();
        }
        let top = self.thieves.0.top.load(Ordering::Relaxed);
        let item = self.slots[last % SLOTS].load(Ordering::Relaxed);
        if is_before(top, last) {
            return Some(item);
        }
        // It is the last item, or a thief has taken it.
        let mine = top == last && self.advance(top);
        self.owner.0.bottom.store(bottom, Ordering::Release);
        mine.then_some(item)
    }

    /// Takes the item that was pushed first. `None` also if another OS thread takes it meanwhile.
    pub fn steal(&self) -> Option<usize> {
        let top = self.thieves.0.top.load(Ordering::Acquire);
        // A look that costs no fence.
        if !is_before(top, self.owner.0.bottom.load(Ordering::Relaxed)) {
            return None;
        }
        if is_before(top, self.thieves.0.public.load(Ordering::Acquire)) {
            fence(Ordering::SeqCst);
        } else {
            seldom();
        }
        if !is_before(top, self.owner.0.bottom.load(Ordering::Acquire)) {
            return None;
        }
        let item = self.slots[top % SLOTS].load(Ordering::Relaxed);
        self.advance(top).then_some(item)
    }

    #[inline(always)]
    fn advance(&self, top: usize) -> bool {
        let next = top.wrapping_add(1);
        self.thieves.0.top.compare_exchange(top, next, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// Whether it seems to have items.
    #[inline(always)]
    pub fn has_items(&self) -> bool {
        is_before(self.thieves.0.top.load(Ordering::Relaxed), self.owner.0.bottom.load(Ordering::Relaxed))
    }
}
