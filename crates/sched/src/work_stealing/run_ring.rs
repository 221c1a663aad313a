//! A worker's ring of ready threads, from which other workers steal. `work_stealing` gives one
//! [`RunRing`] to each worker, and [`IdleWorkers`](crate::IdleWorkers) holds the [`Stealer`]s.
//!
//! Vocabulary. The *owner* is the worker that holds the `RunRing`. A *thief* is a worker that takes
//! items through a `Stealer`. To *claim* items is to move `real` over them by an exchange of the
//! head: the items then belong to the owner, which takes them one by one. To *steal* items is to
//! move `real` over them for a thief.
//!
//! Only the owner pushes, at the tail. The owner and the thieves take from the head, so that items
//! are served first come, first served. Two words say where the items are:
//!
//! ```text
//!            stolen          claimed                  free for all
//!        ┌────────────┬──────────────────────┬──────────────────────────┐
//!  ... ──┤ a thief is │  the owner's, which  │ for the first that       │── ... (empty)
//!        │  copying   │ takes them later     │ claims: owner or thief   │
//!        └────────────┴──────────────────────┴──────────────────────────┘
//!        real - stolen     next             real = claimed            tail
//!
//!  head:  │ wanted: 1 │ (unused) │ stolen: 16 │ real: 32 │      tail: │ 32 │
//! ```
//!
//! 1. [`push`](RunRing::push) (owner) writes the slot at the tail, then moves the tail with a
//!    Release store. It makes no read-modify-write.
//! 2. [`claim`](RunRing::claim) (owner) moves `real` over the owner's share of the free items, 16
//!    items at most, by one exchange of the head. [`take`](RunRing::take) then takes those items
//!    one by one and touches no shared word. For a long queue, the owner pays for a claim once in
//!    16 items. For a short queue, the shares of the other workers stay free, so that they can
//!    steal them.
//! 3. [`steal_into`](Stealer::steal_into) (thief) moves `real` over half of the free items and
//!    writes their number to `stolen`, by one exchange. It copies the items, and then clears
//!    `stolen`. While `stolen` is not 0, no other thief begins. The owner may go on claiming, and
//!    then adds the number of claimed items to `stolen`. It does not write to slots that lie so far
//!    back.
//! 4. [`mark_wanted`](Stealer::mark_wanted) and [`clear_wanted`](Stealer::clear_wanted) set and
//!    clear the `wanted` mark; see the [protocol of the idle workers](crate::IdleWorkers).
//!
//! **Every slot has one user at a time.** A free slot, between `real` and the tail, has no user. An
//! exchange of the head moves `real`, so the worker that makes it becomes the only user of the
//! slots that `real` passes: all changes of the head are read-modify-writes, which have one order.
//! The owner writes a slot only when the slot lies less than a ring's length behind the oldest slot
//! in use. That oldest slot is the older one of `next` and `real - stolen`, which the owner reads
//! with Acquire after a thief's Release. The thief sees the items that the owner wrote, because the
//! owner stores the tail with Release and the thief loads it with Acquire. A stale `real` makes the
//! exchange fail. The exchange could succeed wrongly only if 2^32 items went through the ring
//! between a thief's load and its exchange. `tests/loom/run_ring.rs` checks all of this.

use crate::primitives::{Arc, AtomicU32, AtomicU64, Ordering, SlotCell};
use std::fmt;
use std::mem::MaybeUninit;

/// The number of items in a ring. Under Miri it is small, so that tests fill rings.
pub(crate) const SLOTS: usize = if cfg!(miri) { 64 } else { 1024 };

/// The most items that a claim takes.
const CLAIM_MAX: u32 = 16;

const STOLEN_SHIFT: u32 = 32;
const STOLEN: u64 = 0xFFFF << STOLEN_SHIFT;
const WANTED: u64 = 1 << 63;

/// The head's word, with access to its parts.
#[derive(Clone, Copy)]
struct RingHead(u64);

impl RingHead {
    /// The first free item: no worker has claimed or stolen it.
    fn real(self) -> u32 {
        self.0 as u32
    }

    /// How far before `real` a thief may still be reading; 0 if no thief reads.
    fn stolen(self) -> u32 {
        ((self.0 & STOLEN) >> STOLEN_SHIFT) as u32
    }

    fn is_wanted(self) -> bool {
        self.0 & WANTED != 0
    }

    fn new(real: u32, stolen: u32, wanted: bool) -> RingHead {
        RingHead(u64::from(real) | u64::from(stolen) << STOLEN_SHIFT | if wanted { WANTED } else { 0 })
    }
}

/// A word on cache lines of its own. It takes two lines, because processors fetch them in pairs.
#[repr(align(128))]
struct Apart<T>(T);

struct RingBuffer<T, const N: usize> {
    head: Apart<AtomicU64>,
    tail: Apart<AtomicU32>,
    slots: [SlotCell<MaybeUninit<T>>; N],
}

// SAFETY: a slot has one user at a time: a worker that made it its own by an exchange of the head,
// or the owner at the tail (see the head of this file). Items move between OS threads, so they must
// be `Send`. No reference to an item leaves a slot.
unsafe impl<T: Send, const N: usize> Sync for RingBuffer<T, N> {}
// SAFETY: as above.
unsafe impl<T: Send, const N: usize> Send for RingBuffer<T, N> {}

impl<T, const N: usize> RingBuffer<T, N> {
    fn slot(&self, index: u32) -> &SlotCell<MaybeUninit<T>> {
        &self.slots[index as usize & (N - 1)]
    }

    /// # Safety
    /// The slot belongs to the caller, and holds no item.
    #[inline(always)]
    unsafe fn write(&self, index: u32, item: T) {
        // SAFETY: the slot is the caller's alone, by this function's contract.
        self.slot(index).with_mut(|slot| unsafe { (*slot).write(item) });
    }

    /// # Safety
    /// The slot belongs to the caller, and holds an item. The call moves the item out.
    #[inline(always)]
    unsafe fn read(&self, index: u32) -> T {
        // SAFETY: the slot is the caller's alone and initialised, by this function's contract.
        self.slot(index).with_mut(|slot| unsafe { (*slot).assume_init_read() })
    }
}

/// The owner's end of a bounded ring of `N` items (a power of two). It pushes and claims.
/// [`Stealer`] is the thieves' end.
///
/// Dropping it drops the items that are left.
///
/// # Paper
/// [LZ07 §4.4]: the ready queue that several `worker_main` loops share.
///
/// # Differences
/// 1. Each worker has a ring of its own, so that workers meet only when one of them has run out of
///    work.
///
/// # Complexity
/// All operations except a theft are O(1). A push is a store; a claim is one atomic
/// read-modify-write for up to 16 items.
///
/// # Examples
/// ```
/// use selvedge::sched::RunRing;
///
/// let (mut mine, mut yours) = (RunRing::<u32>::new(), RunRing::<u32>::new());
/// for item in 0..10 {
///     mine.push(item).unwrap();
/// }
/// assert_eq!(mine.stealer().steal_into(&mut yours), Some(0));
/// assert_eq!((mine.len(), yours.len()), (5, 4));
/// assert_eq!(mine.pop(), Some(5));
/// ```
pub struct RunRing<T, const N: usize = SLOTS> {
    ring: Arc<RingBuffer<T, N>>,
    /// The same value as the ring's tail.
    tail: u32,
    /// The claimed items are `next..claimed`.
    next: u32,
    claimed: u32,
    /// The largest value of the tail: a ring's length behind the oldest slot in use, as the owner
    /// last saw it.
    limit: u32,
}

/// The result of a [`claim`](RunRing::claim).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Claim {
    /// The number of items that the owner has claimed, to take with [`RunRing::take`].
    pub taken: u32,
    /// The number of items that were left in the ring.
    pub left: u32,
    /// Whether the ring bears the mark of a worker that went to sleep.
    pub wanted: bool,
}

impl<T, const N: usize> Default for RunRing<T, N> {
    fn default() -> Self {
        RunRing::new()
    }
}

impl<T, const N: usize> RunRing<T, N> {
    /// An empty ring.
    pub fn new() -> Self {
        const { assert!(N.is_power_of_two() && N <= 1 << 15, "indices are masked; `stolen` has 16 bits") };
        let ring = RingBuffer {
            head: Apart(AtomicU64::new(0)),
            tail: Apart(AtomicU32::new(0)),
            slots: std::array::from_fn(|_| SlotCell::new(MaybeUninit::uninit())),
        };
        RunRing { ring: Arc::new(ring), tail: 0, next: 0, claimed: 0, limit: N as u32 }
    }

    /// The thieves' end.
    pub fn stealer(&self) -> Stealer<T, N> {
        Stealer { ring: self.ring.clone() }
    }

    /// Appends an item at the tail.
    ///
    /// # Errors
    /// Returns the item if the ring is full.
    #[inline(always)]
    pub fn push(&mut self, item: T) -> Result<(), T> {
        if self.tail == self.limit && self.room() == 0 {
            return Err(item);
        }
        let (ring, tail): (&RingBuffer<T, N>, u32) = (&self.ring, self.tail);
        // SAFETY: the tail is less than a ring's length behind the oldest slot in use (`limit`, set
        // by `room`), so this slot is the owner's and empty.
        unsafe { ring.write(tail, item) };
        self.tail = tail.wrapping_add(1);
        // Release: a thief that sees the new tail sees the item.
        ring.tail.0.store(tail.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Appends items at the tail, at most `max` and at most as many as there is room for, and shows
    /// them to the thieves all at once. Returns their number.
    #[inline]
    pub fn push_from(&mut self, mut items: impl FnMut() -> Option<T>, max: usize) -> usize {
        let room = self.room().min(max as u32);
        let before = self.tail;
        for _ in 0..room {
            let Some(item) = items() else { break };
            // SAFETY: as in `push`: `room` has bounded the number of items.
            unsafe { self.ring.write(self.tail, item) };
            self.tail = self.tail.wrapping_add(1);
        }
        self.ring.tail.0.store(self.tail, Ordering::Release);
        self.tail.wrapping_sub(before) as usize
    }

    /// The number of items that can be pushed now.
    pub fn room(&mut self) -> u32 {
        // Acquire: a thief that gave slots back has read them before.
        let head = RingHead(self.ring.head.0.load(Ordering::Acquire));
        let taken_back = head.real().wrapping_sub(head.stolen());
        let mut used = self.tail.wrapping_sub(taken_back);
        if self.next != self.claimed {
            used = used.max(self.tail.wrapping_sub(self.next));
        }
        let room = N as u32 - used;
        self.limit = self.tail.wrapping_add(room);
        room
    }

    /// Takes the next claimed item.
    #[inline(always)]
    pub fn take(&mut self) -> Option<T> {
        if self.next == self.claimed {
            return None;
        }
        let index = self.next;
        self.next = index.wrapping_add(1);
        // SAFETY: an exchange of the head in `claim` gave the slot to the owner, and `next` passes
        // it once.
        Some(unsafe { self.ring.read(index) })
    }

    /// Claims items for the owner, after the owner has taken the items that it claimed before. It
    /// claims one worker's share of the free items for `workers` workers, at least one item and at
    /// most 16.
    ///
    /// The call takes part in the [protocol of the idle workers](crate::IdleWorkers): it sees a
    /// mark that a worker set before, and a worker that sets the mark later sees the items that
    /// have been pushed until now.
    pub fn claim(&mut self, workers: u32) -> Claim {
        debug_assert_eq!(self.next, self.claimed, "claimed items are taken before there is another claim");
        let word = &self.ring.head.0;
        let mut head = RingHead(word.load(Ordering::Relaxed));
        loop {
            let (real, stolen, wanted) = (head.real(), head.stolen(), head.is_wanted());
            let len = self.tail.wrapping_sub(real);
            if len == 0 {
                return Claim { taken: 0, left: 0, wanted };
            }
            let taken = (len / workers).clamp(1, CLAIM_MAX);
            let stolen = if stolen == 0 { 0 } else { stolen + taken };
            let claimed = RingHead::new(real.wrapping_add(taken), stolen, wanted);
            match word.compare_exchange_weak(head.0, claimed.0, Ordering::AcqRel, Ordering::Relaxed) {
                Ok(_) => {
                    (self.next, self.claimed) = (real, real.wrapping_add(taken));
                    return Claim { taken, left: len - taken, wanted };
                }
                Err(now) => head = RingHead(now),
            }
        }
    }

    /// Takes the first item, if there is one.
    pub fn pop(&mut self) -> Option<T> {
        self.take().or_else(|| {
            self.claim(u32::MAX);
            self.take()
        })
    }

    /// The number of items that are claimed and not yet taken.
    #[inline(always)]
    pub fn claimed(&self) -> usize {
        self.claimed.wrapping_sub(self.next) as usize
    }

    /// The number of items in the ring, with the claimed ones.
    pub fn len(&self) -> usize {
        let head = RingHead(self.ring.head.0.load(Ordering::Relaxed));
        self.tail.wrapping_sub(head.real()) as usize + self.claimed()
    }

    /// Whether the ring has no item.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether the ring bears the mark of a worker that went to sleep. This is a hint;
    /// [`claim`](RunRing::claim) knows for certain.
    #[inline(always)]
    pub fn is_wanted(&self) -> bool {
        RingHead(self.ring.head.0.load(Ordering::Relaxed)).is_wanted()
    }
}

impl<T, const N: usize> Drop for RunRing<T, N> {
    fn drop(&mut self) {
        while self.pop().is_some() {}
    }
}

impl<T, const N: usize> fmt::Debug for RunRing<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunRing").field("len", &self.len()).finish_non_exhaustive()
    }
}

/// The thieves' end of a [`RunRing`].
pub struct Stealer<T, const N: usize = SLOTS> {
    ring: Arc<RingBuffer<T, N>>,
}

impl<T, const N: usize> Clone for Stealer<T, N> {
    fn clone(&self) -> Self {
        Stealer { ring: self.ring.clone() }
    }
}

impl<T, const N: usize> Stealer<T, N> {
    /// Moves half of the free items (rounded up) to the thief's own ring, and returns the first of
    /// them. `None` if there is no free item, or if another thief is copying.
    ///
    /// # Complexity
    /// Two atomic read-modify-writes, and a copy of the items.
    pub fn steal_into(&self, thief: &mut RunRing<T, N>) -> Option<T> {
        // The first item is returned and needs no room.
        let room = thief.room() + 1;
        let word = &self.ring.head.0;
        let mut head = RingHead(word.load(Ordering::Acquire));
        let (first, taken) = loop {
            if head.stolen() != 0 {
                return None;
            }
            let real = head.real();
            // Acquire: the items before the tail have been written. The tail is not older than the
            // head, because the head was loaded first.
            let len = self.ring.tail.0.load(Ordering::Acquire).wrapping_sub(real);
            if len == 0 {
                return None;
            }
            // If the head is outdated, `len` may have any value; the exchange then fails.
            let taken = (len - len / 2).min(room).min(N as u32);
            let stolen = RingHead::new(real.wrapping_add(taken), taken, head.is_wanted());
            match word.compare_exchange_weak(head.0, stolen.0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => break (real, taken),
                Err(now) => head = RingHead(now),
            }
        };
        let mut indices = (0..taken).map(|i| first.wrapping_add(i));
        // SAFETY: the exchange gave the slots from `first` on to this thief, and the iterator reads
        // each slot once.
        let mut copy = || indices.next().map(|index| unsafe { self.ring.read(index) });
        let item = copy();
        thief.push_from(copy, taken as usize);
        // Release: the thief has read the slots.
        word.fetch_and(!STOLEN, Ordering::Release);
        item
    }

    /// Whether there is no item to steal.
    pub fn is_empty(&self) -> bool {
        let head = RingHead(self.ring.head.0.load(Ordering::Acquire));
        self.ring.tail.0.load(Ordering::Acquire) == head.real()
    }

    /// Marks the ring, because a worker that would steal from it goes to sleep. After this call the
    /// worker sees the items that the owner pushed before its last claim.
    pub fn mark_wanted(&self) {
        self.ring.head.0.fetch_or(WANTED, Ordering::AcqRel);
    }

    /// Clears the mark, because no worker sleeps.
    pub fn clear_wanted(&self) {
        self.ring.head.0.fetch_and(!WANTED, Ordering::AcqRel);
    }
}

impl<T, const N: usize> fmt::Debug for Stealer<T, N> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stealer").field("is_empty", &self.is_empty()).finish_non_exhaustive()
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    #[test]
    fn a_full_ring_gives_the_item_back_and_takes_it_when_there_is_room() {
        let mut ring = RunRing::<u32, 4>::new();
        (0..4).for_each(|i| ring.push(i).unwrap());
        assert_eq!(ring.push(4), Err(4));
        assert_eq!(ring.pop(), Some(0));
        ring.push(4).unwrap();
        assert_eq!(std::iter::from_fn(|| ring.pop()).collect::<Vec<_>>(), [1, 2, 3, 4]);
    }

    #[test]
    fn of_a_long_queue_a_batch_is_claimed_and_of_a_short_one_a_share() {
        let mut ring = RunRing::<u32, 256>::new();
        (0..200).for_each(|i| ring.push(i).unwrap());
        assert_eq!(ring.claim(4), Claim { taken: 16, left: 184, wanted: false });
        (0..16).for_each(|i| assert_eq!(ring.take(), Some(i)));
        while ring.len() > 7 {
            ring.pop();
        }
        assert_eq!(ring.claim(4), Claim { taken: 1, left: 6, wanted: false });
    }

    #[test]
    fn a_mark_is_seen_by_the_next_claim_and_stays_until_it_is_taken_away() {
        let mut ring = RunRing::<u32>::new();
        ring.stealer().mark_wanted();
        (0..3).for_each(|i| ring.push(i).unwrap());
        assert_eq!(ring.pop(), Some(0));
        assert!(ring.is_wanted());
        assert_eq!(ring.claim(2), Claim { taken: 1, left: 1, wanted: true });
        ring.stealer().clear_wanted();
        assert!(!ring.is_wanted());
    }

    #[test]
    fn what_is_left_is_dropped_with_the_owner() {
        let item = std::rc::Rc::new(());
        let mut ring = RunRing::<_, 8>::new();
        (0..7).for_each(|_| ring.push(item.clone()).unwrap());
        ring.claim(1);
        let thieves = ring.stealer();
        drop(ring);
        assert!(thieves.is_empty());
        assert_eq!(std::rc::Rc::strong_count(&item), 1);
    }

    #[derive(Debug, Clone)]
    enum Op {
        Push(usize),
        PushFrom(usize, usize),
        Pop(usize),
        Claim(u32),
        Steal,
        PopStolen(usize),
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            (1..12usize).prop_map(Op::Push),
            (0..12usize, 0..12usize).prop_map(|(n, max)| Op::PushFrom(n, max)),
            (1..12usize).prop_map(Op::Pop),
            (1..5u32).prop_map(Op::Claim),
            Just(Op::Steal),
            (1..6usize).prop_map(Op::PopStolen),
        ]
    }

    /// Under Miri one operation takes as long as a thousand elsewhere.
    const CASES: u32 = if cfg!(miri) { 1 } else { 512 };
    const OPS: usize = if cfg!(miri) { 16 } else { 60 };

    proptest! {
        #![proptest_config(ProptestConfig { cases: CASES, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_a_bounded_queue_of_which_half_can_be_moved(ops in proptest::collection::vec(op(), 1..OPS)) {
            const N: usize = 16;
            let (mut ring, mut thief) = (RunRing::<Box<u32>, N>::new(), RunRing::<Box<u32>, N>::new());
            let (mut model, mut stolen) = (VecDeque::new(), VecDeque::new());
            // Claimed items cannot be stolen. While claimed items are left, the slots of stolen
            // items behind them are holes.
            let (mut claimed, mut holes) = (0usize, 0);
            let mut fresh = 0..;
            for op in ops {
                match op {
                    Op::Push(n) => for item in fresh.by_ref().take(n) {
                        let pushed = ring.push(Box::new(item)).is_ok();
                        prop_assert_eq!(pushed, model.len() + holes < N);
                        if pushed { model.push_back(item) }
                    },
                    Op::PushFrom(n, max) => {
                        let room = N - model.len() - holes;
                        let mut items: VecDeque<u32> = fresh.by_ref().take(n).collect();
                        let expected: Vec<u32> = items.iter().copied().take(max.min(room)).collect();
                        let pushed = ring.push_from(|| items.pop_front().map(Box::new), max);
                        prop_assert_eq!(pushed, expected.len());
                        model.extend(expected);
                    }
                    Op::Pop(n) => for _ in 0..n {
                        prop_assert_eq!(ring.pop().map(|b| *b), model.pop_front());
                        claimed = claimed.saturating_sub(1);
                        if claimed == 0 { holes = 0 }
                    },
                    Op::Claim(workers) if claimed == 0 => {
                        claimed = (model.len() / workers as usize).clamp(model.len().min(1), 16);
                        let claim = ring.claim(workers);
                        prop_assert_eq!((claim.taken as usize, claim.left as usize), (claimed, model.len() - claimed));
                    }
                    Op::Claim(_) => {}
                    Op::Steal => {
                        let open = model.len() - claimed;
                        let n = (open - open / 2).min(N - stolen.len() + 1);
                        let mut moved: VecDeque<u32> = model.drain(claimed..claimed + n).collect();
                        if claimed > 0 { holes += n }
                        prop_assert_eq!(ring.stealer().steal_into(&mut thief).map(|b| *b), moved.pop_front());
                        stolen.append(&mut moved);
                    }
                    Op::PopStolen(n) => for _ in 0..n {
                        prop_assert_eq!(thief.pop().map(|b| *b), stolen.pop_front());
                    },
                }
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(thief.len(), stolen.len());
            }
        }
    }
}
