//! The header of a thread: the 8 bytes before its future, in one block of the arena.
//!
//! ```text
//!        ┌───────────── head ─────────────┬──────── link ────────┐
//!        │ offset of the vtable   │ state │ next key / wait site │  future ...
//!        └────────────────────────────────┴──────────────────────┘
//! bits     31                 4   3    0    32
//! ```
//!
//! The offset is that of the thread's vtable. Vtables are aligned to 32 (`vtable.rs`), so the low 5
//! bits are free. They hold the state of the thread:
//!
//! | bits | name | meaning | set by | link holds |
//! |---|---|---|---|---|
//! | 0-1 = 0 | owned | a [`Thread`](crate::Thread) handle or a run queue has it, or it is running | `resume`, creation | next key in a run queue |
//! | 0-1 = 1 | waiting here | its CPU keeps it; only threads of the same CPU can resume it | end of a step | where it waits |
//! | 0-1 = 2 | waiting | its CPU keeps it; any thread or waker may resume it | end of a step | where it waits |
//! | 0-1 = 3 | finished | the future is gone, a join handle still needs the block | end of a step, cancellation | nothing |
//! | 2 | sticky | a waker for it was once cloned, so that it can be woken at any time | end of a step | |
//! | 2 | notified | the same bit of a mobile thread: it was woken while it was owned | a waker | |
//! | 3 | mobile | it may run on any CPU of its group | creation | |
//! | 4 | cancellable | a join handle may cancel it, so that an event source gets its waker, not the thread | creation | |
//!
//! A thread stays sticky for its life. A copy of its waker is two numbers. No code counts the
//! copies, and one may lie anywhere for any time, for example in a list of wakers that the thread's
//! future has left in an earlier step. To end the bit earlier, each copy would have to carry the
//! number of times that the thread was cloned for, but the pointer has no bits left; or the copies
//! would have to be counted, with an atomic operation and an owner for each. Without the bit, a
//! wake-up that comes while an event source has the thread itself would be lost.
//!
//! A thread that is not mobile is touched on its CPU's OS thread alone. Its words are atomic only
//! because code with a stale key may look at them. The head of a mobile thread changes by the
//! protocol in [`state`](crate::state). Its link belongs to the owner of the thread.

use std::sync::atomic::{AtomicU32, Ordering};

/// The two words before every future.
#[derive(Debug)]
#[repr(C, align(8))]
pub(crate) struct Header {
    pub(crate) head: AtomicU32,
    link: AtomicU32,
}

impl Header {
    #[inline(always)]
    pub(crate) fn head(&self) -> u32 {
        self.head.load(Ordering::Relaxed)
    }

    /// Only the owner of the thread or of the free block calls this, and not while the thread is
    /// mobile and may be woken.
    #[inline(always)]
    pub(crate) fn set_head(&self, head: u32) {
        self.head.store(head, Ordering::Relaxed);
    }

    #[inline(always)]
    pub(crate) fn link(&self) -> u32 {
        self.link.load(Ordering::Relaxed)
    }

    /// Only the owner of the thread or of the free block calls this.
    #[inline(always)]
    pub(crate) fn set_link(&self, link: u32) {
        self.link.store(link, Ordering::Relaxed);
    }
}

/// The head of a block that holds no thread.
pub(crate) const FREE: u32 = 0;

/// The bits that name the owner: one of the four values that follow.
pub(crate) const STATE: u32 = 0b11;
pub(crate) const OWNED: u32 = 0;
pub(crate) const WAITING_HERE: u32 = 1;
pub(crate) const WAITING: u32 = 2;
pub(crate) const FINISHED: u32 = 3;
pub(crate) const STICKY: u32 = 0b100;
pub(crate) const NOTIFIED: u32 = 0b100;
pub(crate) const MOBILE: u32 = 0b1000;
pub(crate) const CANCELLABLE: u32 = 0b1_0000;
/// All bits that are not part of the offset.
pub(crate) const TAGS: u32 = 0b1_1111;

const _: () = assert!(size_of::<Header>() == 8);
