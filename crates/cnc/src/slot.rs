//! The place of one item: a state word, and the value. [`SlotState`] is the word with its protocol;
//! [`ItemSlot`] is the word and the value.
//!
//! ```text
//!             wait                                       the last count is given back,
//!            ┌────┐      begin           end             or the value is taken
//!            ▼    │
//!          empty, with waiters ──▶ writing ──▶ full ─────────────▶ gone
//! ```
//!
//! The word, while the item is not full:
//! - `WRITING`: set by [`SlotState::begin`], which one put alone can pass. So a second put is
//!   noticed before it touches the value. The same exchange takes all waiters out, and there are
//!   none while the value is being written.
//! - The upper bits are the address of the first [`SuspendedStep`], or 0. [`SlotState::wait`] puts
//!   a waiter before the others. The memory of the waiters is that of [`WaiterPool`]s.
//!
//! While it is full:
//! - `FULL`: set by [`SlotState::end`], after the value was written. This is a store, because the
//!   put alone changes the word while `WRITING` is set. So a put is one atomic exchange.
//! - `KEPT`: the item stays to the end of the graph. Otherwise the item is counted.
//! - `GONE`: the value was dropped or taken.
//! - `WAITED`: a step waits for the users of the item (`in_use.rs`), or has waited.
//! - `LARGE`: the counts are in the second word.
//! - Bits 8 to 31: which step has put the item.
//! - Bits 32 to 47, the *claims*: how many gets are still to begin. Bits 48 to 63, the *returns*:
//!   how many steps with a get are still to end. A get claims, and its step returns the claim when
//!   it ends. So a value is never dropped while a step can reach it, however wrong the count is.
//!
//! The second word, which is written before the item is full, is the tag of the step that has put
//! the item. Of an item with a count above 65,535 it is the counts: the claims in the lower half,
//! and the returns in the upper half. The tag of such an item is not kept.
//!
//! **Two words of a large count.** A user that returns the last claim sets `GONE` after that, as
//! the one with a small count does; in between, both counts are 0, and no get claims. A step that
//! waits for the users sets `WAITED` first and reads the counts then; a user returns its claim
//! first and reads `WAITED` then. All four accesses are read-modify-writes, so that those of one
//! word have an order and the later one acquires what came before the earlier one. If the read of
//! the counts comes before the return, the step does wait, and `WAITED` was set before. So the user
//! sees it.
//!
//! **No wake-up is lost.** A waiter is added by an exchange that expects no put to have begun. Both
//! this exchange and the exchange of `begin` change the same word, so they have an order. If the
//! waiter comes first, the put takes it out, and makes its step ready after the item is full. If
//! the put comes first, `wait` fails. The step lets the put end, which is a move of the value
//! without code of the program, and then runs again at once.
//!
//! `tests/loom/slot.rs` checks this with models.
//!
//! `storage.rs` keeps an [`ItemSlot`] for each key. The gets and puts of `step/` and
//! `kinds/async_step.rs` call `look`, `take`, `put` and `wait`; `item_store.rs` returns the claims.

mod item;
mod woken;

pub(crate) use item::ItemSlot;
pub(crate) use woken::WokenSteps;

use crate::in_use::InUse;
use crate::primitives::{AtomicU64, Ordering, thread};
use crate::waiters::{SuspendedStep, WaiterPool, place_at};
use std::hint;
#[cfg(not(loom))]
use std::time::Duration;

const FULL: u64 = 1;
const WRITING: u64 = 2;
const GONE: u64 = 4;
const KEPT: u64 = 1 << 3;
const WAITED: u64 = 1 << 4;
const LARGE: u64 = 1 << 5;
const WAITERS: u64 = !7;
const STEP_SHIFT: u32 = 8;
const STEP_MASK: u64 = (1 << 24) - 1;
const CLAIM: u64 = 1 << 32;
const RETURN: u64 = 1 << 48;
const COUNT_MASK: u64 = 0xFFFF;
const LARGE_RETURN: u64 = 1 << 32;
const LARGE_MASK: u64 = 0xFFFF_FFFF;

/// How often a step looks whether a put has ended before it sleeps for [`PAUSE`] between two looks.
const LOOKS: u32 = if cfg!(any(loom, miri)) { 0 } else { 100 };

#[cfg(not(loom))]
const PAUSE: Duration = Duration::from_micros(20);

/// The most steps that a graph may have, so that their numbers fit in a state word.
pub(crate) const STEPS_MAX: usize = STEP_MASK as usize;

/// A number that no step has.
pub(crate) const NO_STEP: usize = STEPS_MAX;

/// How often an item may be got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum GetCount {
    /// Any number of times; the item stays.
    Kept,
    /// This number of times.
    Times(u16),
    /// This number of times, with the counts in the second word.
    Large(u32),
}

impl GetCount {
    pub(crate) fn times(times: u32) -> GetCount {
        u16::try_from(times).map_or(GetCount::Large(times), GetCount::Times)
    }
}

/// What a get finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Look {
    Missing,
    Kept,
    /// The item is counted, and this get has claimed one of the counts.
    Claimed,
    /// The item is counted, and steps that have not ended have claimed all its gets.
    AllClaimed,
    /// The item is counted, and all its gets have been.
    Exhausted,
    /// For a take alone: steps with other gets have not ended.
    InUse,
}

/// The state of an item. Its waiters hold an `R`.
#[derive(Debug)]
pub(crate) struct SlotState<R> {
    word: AtomicU64,
    /// The tag of the step that has put the item, as a word; or the counts, if they are large.
    second: AtomicU64,
    waiters: std::marker::PhantomData<fn(R) -> R>,
}

impl<R> SlotState<R> {
    pub(crate) fn new() -> SlotState<R> {
        let (word, second) = (AtomicU64::new(0), AtomicU64::new(0));
        SlotState { word, second, waiters: std::marker::PhantomData }
    }

    /// Begins a put, and returns the steps that waited. `None` if there was a put before.
    #[inline]
    pub(crate) fn begin(&self) -> Option<WokenSteps<R>> {
        // The first access to the memory of an item is a write, because a read would have the
        // system map a page of zeros, and take it back at the write that follows.
        let mut word = 0;
        loop {
            // Acquire: the waiters are visible.
            match self.word.compare_exchange_weak(word, WRITING, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => return Some(WokenSteps::of(word)),
                Err(now) => word = now,
            }
            if word & (FULL | WRITING) != 0 {
                return None;
            }
        }
    }

    /// Makes the item full, after `begin` and after the value was written, by a step with a number
    /// and a tag. With a count of 0 the item is gone at once, and the caller drops the value.
    #[inline]
    pub(crate) fn end(&self, step: usize, tag: u64, count: GetCount) {
        let (count, second) = match count {
            GetCount::Kept => (KEPT, tag),
            GetCount::Times(0) => (GONE, tag),
            GetCount::Times(times) => (u64::from(times) * (CLAIM + RETURN), tag),
            GetCount::Large(times) => (LARGE, u64::from(times) * (1 + LARGE_RETURN)),
        };
        self.second.store(second, Ordering::Relaxed);
        let word = FULL | (step as u64 & STEP_MASK) << STEP_SHIFT | count;
        // Release: the value is visible to each user that sees the item full.
        self.word.store(word, Ordering::Release);
    }

    /// Puts a waiter into the list, in a place of the worker's pool.
    ///
    /// # Errors
    /// Gives it back if a put has begun. The caller then calls [`SlotState::until_full`].
    #[inline]
    pub(crate) fn wait(&self, waiter: R, pool: &WaiterPool<'_, R>) -> Result<(), R> {
        let mut word = self.word.load(Ordering::Relaxed);
        if word & (FULL | WRITING) != 0 {
            return Err(waiter);
        }
        let place = pool.place(waiter);
        let address = place.expose_provenance() as u64;
        loop {
            // SAFETY: the place came from the pool above, and no exchange has published it.
            unsafe { (*place).next = word };
            match self.word.compare_exchange_weak(word, address, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return Ok(()),
                // SAFETY: as above, and the place is given back.
                Err(now) if now & (FULL | WRITING) != 0 => return Err(unsafe { pool.take_out(place) }.0),
                Err(now) => word = now,
            }
        }
    }

    /// Waits until the item is full, after a put has begun. That takes as long as a move of the
    /// value, unless the worker that puts loses its CPU.
    #[inline]
    pub(crate) fn until_full(&self) {
        let mut looks = 0_u32;
        while self.word.load(Ordering::Acquire) & FULL == 0 {
            if looks < LOOKS {
                hint::spin_loop();
            } else {
                #[cfg(loom)]
                thread::yield_now();
                #[cfg(not(loom))]
                thread::sleep(PAUSE);
            }
            looks += 1;
        }
    }

    /// Looks for the item, and claims a get of it if it is counted.
    #[inline]
    pub(crate) fn look(&self) -> Look {
        let word = self.word.load(Ordering::Acquire);
        if is_there_for_ever(word) { Look::Kept } else { self.claim(word) }
    }

    /// Whether the item is there for ever.
    #[inline]
    pub(crate) fn is_kept(&self) -> bool {
        is_there_for_ever(self.word.load(Ordering::Acquire))
    }

    #[cold]
    fn claim(&self, mut word: u64) -> Look {
        loop {
            if word & FULL == 0 {
                return Look::Missing;
            }
            if word & LARGE != 0 {
                return self.claim_large();
            }
            if word & GONE != 0 || claims(word) == 0 {
                return none_left(word);
            }
            match self.word.compare_exchange_weak(word, word - CLAIM, Ordering::Acquire, Ordering::Acquire) {
                Ok(_) => return Look::Claimed,
                Err(now) => word = now,
            }
        }
    }

    /// Claims a get of an item with a large count.
    fn claim_large(&self) -> Look {
        let mut counts = self.second.load(Ordering::Acquire);
        while counts & LARGE_MASK != 0 {
            match self.second.compare_exchange_weak(counts, counts - 1, Ordering::Acquire, Ordering::Acquire)
            {
                Ok(_) => return Look::Claimed,
                Err(now) => counts = now,
            }
        }
        if counts == 0 { Look::Exhausted } else { Look::AllClaimed }
    }

    /// Whether the counts of an item are large. The caller has a claim, or has seen the item full.
    fn is_large(&self) -> bool {
        self.word.load(Ordering::Relaxed) & LARGE != 0
    }

    /// Gives a claim back, because the step that made it will run again, or was cancelled.
    pub(crate) fn unclaim(&self) {
        // Release: the step has read the value, and another step may now claim, give back, and drop
        // the value. `give_back` acquires what this releases, because each change of the word in
        // between is a read-modify-write.
        if self.is_large() {
            self.second.fetch_add(1, Ordering::Release);
        } else {
            self.word.fetch_add(CLAIM, Ordering::Release);
        }
    }

    /// Returns a claim, because its step has ended. The result says how many are left, and whether
    /// a step may wait for that.
    pub(crate) fn give_back(&self) -> (Left, bool) {
        if self.is_large() {
            return self.give_back_large();
        }
        // Release: what the step has read is read before the value is dropped. Acquire: the caller
        // that drops it comes after all others.
        let before = self.word.fetch_sub(RETURN, Ordering::AcqRel);
        let left = match returns(before) {
            1 => {
                self.word.fetch_or(GONE, Ordering::Relaxed);
                Left::None
            }
            2 => Left::One,
            _ => Left::More,
        };
        (left, before & WAITED != 0)
    }

    /// Returns a claim of an item with a large count.
    fn give_back_large(&self) -> (Left, bool) {
        // As above.
        let before = self.second.fetch_sub(LARGE_RETURN, Ordering::AcqRel);
        let (left, gone) = match before / LARGE_RETURN {
            1 => (Left::None, GONE),
            2 => (Left::One, 0),
            _ => return (Left::More, false),
        };
        // With one user left, that user may end meanwhile, and the place may be used for another
        // key. Then this changes nothing, and may wake steps that need not wake.
        let word = self.word.fetch_or(gone, Ordering::AcqRel);
        (left, word & WAITED != 0)
    }

    /// Notes that a step waits for the users of the item, so that `give_back` says so from now on.
    /// Returns whether the step has to wait.
    pub(crate) fn note_waited(&self, why: InUse) -> bool {
        let word = self.word.fetch_or(WAITED, Ordering::AcqRel);
        let others = match why {
            InUse::ToBeLast => 1,
            InUse::ForAGet => 0,
        };
        let returns = match word & LARGE {
            0 => returns(word),
            _ => self.second.fetch_add(0, Ordering::AcqRel) / LARGE_RETURN,
        };
        word & (FULL | KEPT | GONE) == FULL && returns > others
    }

    /// Claims the last get and the value with it, if all steps with other gets have ended. After
    /// `Look::Claimed` the value is the caller's, and the item is gone.
    pub(crate) fn take(&self) -> Look {
        let mut word = self.word.load(Ordering::Acquire);
        loop {
            if word & FULL == 0 {
                return Look::Missing;
            }
            if word & KEPT != 0 {
                return Look::Kept;
            }
            if word & LARGE != 0 {
                return self.take_large();
            }
            if word & GONE != 0 || claims(word) == 0 {
                return none_left(word);
            }
            if returns(word) > 1 {
                return Look::InUse;
            }
            let gone = (word - CLAIM - RETURN) | GONE;
            match self.word.compare_exchange_weak(word, gone, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return Look::Claimed,
                Err(now) => word = now,
            }
        }
    }

    /// Takes an item with a large count.
    fn take_large(&self) -> Look {
        const LAST: u64 = 1 + LARGE_RETURN;
        let mut counts = self.second.load(Ordering::Acquire);
        while counts == LAST {
            match self.second.compare_exchange_weak(LAST, 0, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => {
                    self.word.fetch_or(GONE, Ordering::Relaxed);
                    return Look::Claimed;
                }
                Err(now) => counts = now,
            }
        }
        match counts {
            0 => Look::Exhausted,
            _ if counts & LARGE_MASK == 0 => Look::AllClaimed,
            _ => Look::InUse,
        }
    }

    /// Whether a take has to wait: steps with other gets have not ended.
    pub(crate) fn is_in_use(&self) -> bool {
        let word = self.word.load(Ordering::Acquire);
        let returns = match word & LARGE {
            0 => returns(word),
            _ => self.second.load(Ordering::Acquire) / LARGE_RETURN,
        };
        word & (FULL | KEPT | GONE) == FULL && returns > 1
    }

    /// Whether there is a value: the item is full and not gone.
    pub(crate) fn has_value(&self) -> bool {
        self.word.load(Ordering::Acquire) & (FULL | GONE) == FULL
    }

    /// Whether the item was put, gone or not.
    pub(crate) fn was_put(&self) -> bool {
        self.word.load(Ordering::Acquire) & FULL != 0
    }

    /// The number of gets that are still to begin; 0 for an item that is kept or not there.
    pub(crate) fn claims_left(&self) -> u32 {
        let word = self.word.load(Ordering::Acquire);
        match word & (FULL | KEPT | GONE | LARGE) {
            FULL => claims(word) as u32,
            there if there == FULL | LARGE => (self.second.load(Ordering::Acquire) & LARGE_MASK) as u32,
            _ => 0,
        }
    }

    /// Which step has put the item, once it is full, and the word of the step's tag, if it is kept.
    pub(crate) fn maker(&self) -> Option<(usize, Option<u64>)> {
        let word = self.word.load(Ordering::Acquire);
        let tag = (word & LARGE == 0).then(|| self.second.load(Ordering::Relaxed));
        (word & FULL != 0).then_some(((word >> STEP_SHIFT & STEP_MASK) as usize, tag))
    }

    /// Calls `see` with every waiter. No worker may run meanwhile.
    pub(crate) fn each_waiter<'r>(&'r self, mut see: impl FnMut(&'r R))
    where
        R: 'r,
    {
        let word = self.word.load(Ordering::Acquire);
        let mut next = if word & FULL != 0 { 0 } else { word & WAITERS };
        while next != 0 {
            // SAFETY: a waiter in the list is in a place of a pool, by `wait`, and leaves it when a
            // worker takes the list out; the caller says that no worker runs.
            let waiter: &'r SuspendedStep<R> = unsafe { &*place_at(next) };
            // SAFETY: as above, so the place has a step.
            see(unsafe { waiter.ready.assume_init_ref() });
            next = waiter.next;
        }
    }

    /// Takes out the waiters that `is_out` names. No worker may run meanwhile.
    pub(crate) fn take_some(
        &self,
        pool: &WaiterPool<'_, R>,
        is_out: impl Fn(&R) -> bool,
        mut out: impl FnMut(R),
    ) {
        // `is_out` is code of the program, so it is called before the list is taken apart.
        let mut are_out = Vec::new();
        self.each_waiter(|ready| are_out.push(is_out(ready)));
        if !are_out.contains(&true) {
            return;
        }
        let (mut waiting, mut stay) = (self.take_waiters(), Vec::new());
        for is_out in are_out {
            let ready = waiting.pop(pool).expect("no worker runs, so the list is the same");
            if is_out { out(ready) } else { stay.push(ready) }
        }
        // The newest one is the first in the list, and so the last to be added.
        for ready in stay.into_iter().rev() {
            assert!(self.wait(ready, pool).is_ok(), "no worker runs, so no put begins");
        }
    }

    /// Takes all waiters out. No worker may run meanwhile.
    pub(crate) fn take_waiters(&self) -> WokenSteps<R> {
        let word = self.word.load(Ordering::Acquire);
        let waiting = word & FULL == 0;
        if waiting {
            self.word.store(0, Ordering::Relaxed);
        }
        WokenSteps::of(if waiting { word & WAITERS } else { 0 })
    }

    /// As [`reset`](SlotState::reset), without a write to memory that was never used.
    pub(crate) fn reset_if_used(&self) {
        if self.word.load(Ordering::Relaxed) != 0 {
            self.reset();
        }
    }

    /// Makes the word that of an item that was never put. The item must be gone.
    pub(crate) fn reset(&self) {
        self.word.store(0, Ordering::Relaxed);
    }
}

/// How many claims of an item are left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    /// The item is gone, and the caller drops the value.
    None,
    /// A take may now succeed.
    One,
    More,
}

/// Whether an item is full and kept. The end of the graph makes kept items gone too, one after the
/// other, while destructors of the program run.
const fn is_there_for_ever(word: u64) -> bool {
    word & (FULL | KEPT | GONE) == FULL | KEPT
}

/// What a get finds of a counted item that has no claim left.
const fn none_left(word: u64) -> Look {
    if word & GONE == 0 && returns(word) > 0 { Look::AllClaimed } else { Look::Exhausted }
}

const fn claims(word: u64) -> u64 {
    (word / CLAIM) & COUNT_MASK
}

const fn returns(word: u64) -> u64 {
    (word / RETURN) & COUNT_MASK
}
