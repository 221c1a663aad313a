//! [`FreedList`]: the blocks of one chunk that other OS threads than the owner's have freed.
//!
//! `arena.rs` has one list for each chunk. Any OS thread pushes a block onto it, when it gives up
//! its right to the block. One OS thread at a time takes the whole list over: the chunk's owner,
//! or, when the chunk has no owner, the OS thread that looks under the arena's lock whether all its
//! blocks are free.
//!
//! The list is linked through the blocks themselves; the caller passes how a link is written. A
//! push reads the head, writes it into its block as the link, and exchanges the head for its block
//! if it is unchanged. If the list was taken and filled again meanwhile, so that the head is the
//! same key as before, the link still is right, because it says no more than "the list's first
//! block is that one". Nothing reads a link before it has taken the list, so no block is used while
//! another push relies on its content.
//!
//! A push is a Release and taking an Acquire. The pushes in between are exchanges too, so the taker
//! sees what the user of each block in the list wrote before its push: the links, and the heads
//! that say "free". `tests/loom/freed.rs` checks it.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

/// A list of keys, 0 when it is empty. `A` is the atomic word of its head.
#[derive(Debug, Default)]
#[doc(hidden)]
pub struct FreedList<A = AtomicU32>(A);

/// The word of a list's head: std's in the arena's tables, and loom's in a model.
#[doc(hidden)]
pub trait ListHead {
    /// As [`AtomicU32::load`].
    fn load(&self, order: Ordering) -> u32;
    /// As [`AtomicU32::swap`].
    fn swap(&self, new: u32, order: Ordering) -> u32;
    /// As [`AtomicU32::compare_exchange_weak`].
    fn replace(&self, old: u32, new: u32, success: Ordering, failure: Ordering) -> Result<u32, u32>;
}

macro_rules! list_head {
    ($atomic:ty) => {
        impl ListHead for $atomic {
            #[inline]
            fn load(&self, order: Ordering) -> u32 {
                <$atomic>::load(self, order)
            }

            #[inline]
            fn swap(&self, new: u32, order: Ordering) -> u32 {
                <$atomic>::swap(self, new, order)
            }

            #[inline]
            fn replace(&self, old: u32, new: u32, yes: Ordering, no: Ordering) -> Result<u32, u32> {
                self.compare_exchange_weak(old, new, yes, no)
            }
        }
    };
}

list_head!(AtomicU32);
#[cfg(loom)]
list_head!(loom::sync::atomic::AtomicU32);

impl FreedList {
    /// An empty list.
    pub(crate) const fn new() -> FreedList {
        FreedList(AtomicU32::new(0))
    }
}

impl<A: ListHead> FreedList<A> {
    /// Adds the block at `key`. `link` writes the key of the next block, or 0, into it; it is
    /// called again when another push comes first.
    pub fn push(&self, key: NonZeroU32, link: impl Fn(u32)) {
        let mut head = self.0.load(Ordering::Relaxed);
        loop {
            link(head);
            match self.0.replace(head, key.get(), Ordering::Release, Ordering::Relaxed) {
                Ok(_) => return,
                Err(now) => head = now,
            }
        }
    }

    /// Takes the whole list over: the key of its first block, or 0.
    pub fn take(&self) -> u32 {
        self.0.swap(0, Ordering::Acquire)
    }

    /// Whether it is empty, as far as is known without synchronisation.
    pub fn is_empty(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}
