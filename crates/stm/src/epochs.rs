//! Epochs: when the memory that transactions have unlinked is freed.
//!
//! Each session (`session.rs`) is an [`EpochMember`] of the [`Epochs`] of the process, and has the
//! garbage of its transactions there.
//!
//! # No memory is freed while a transaction can reach it
//! The **epoch** is a number that only grows, under the lock of the registry. A session is
//! **pinned** while its transaction runs: its record has the epoch that the session read. Memory
//! that commits have unlinked gathers in the session of the commits. When there is much of it, the
//! session **retires** it, and frees what was retired long enough ago:
//! ```text
//!    pin: at each begin                        collect: once for MANY unlinked objects
//!    1. read the epoch                         a. lock the registry, read the epoch t
//!    2. store it in the record                 b. heavy fence
//!    3. light fence                            c. retire the unlinked objects with t
//!    4. read pointers to objects               d. twice: if each record is 0 or the epoch,
//!    unpin: at each end                           the epoch grows by one
//!    5. store 0 in the record                  e. free what was retired with t, if t + 2 <= epoch
//! ```
//! The heavy fence is membarrier(2): it puts a full fence, the **point**, somewhere into the run of
//! each other OS thread. So a begin costs no fence; see `core/src/fences.rs`. Where the kernel has
//! no such call, both fences are `SeqCst` fences, and the point of an OS thread is the fence of its
//! 3. Loom checks that form.
//!
//! Suppose that a session P reaches an object at 4., and that a collect C retires this object with
//! `t` at c. Then P has read a pointer that is older than the unlink.
//! 1. P's point of C comes after that read. A read after the point would see the unlink, because
//!    the unlink comes before b.
//! 2. So P's 1. and 2. come before its point. Therefore P has read an epoch of at most `t`, because
//!    the epoch `t + 1` is stored after b. And C sees P's record at d., and so does each later
//!    collect, because they lock the registry one after the other.
//! 3. The epoch becomes `t + 2` in d. of C or of a later collect, while it is `t + 1`. That d. does
//!    not see P's epoch, which is at most `t`. So it sees the 0 of P's 5., or a later value of the
//!    record.
//!
//! So the epoch `t + 2` comes after P's `unpin`. The stores to the record are Release stores, which
//! d. reads with Acquire; what comes after d. is under the lock of the registry, or synchronised by
//! it. So each access of P happens before the object is freed.
//!
//! # The loops of the schedulers
//! A worker between two steps holds no reference. So its scheduler could announce this state once
//! for many steps, instead of 1. to 5. for each transaction. That would save a load and two stores
//! to a cache line of the session, and no fence.

use crate::garbage::Garbage;
use crate::primitives::{AtomicU64, Ordering, fence};
use crate::world::world;
use selvedge_core::{heavy_fence, light_fence};
use std::collections::VecDeque;

/// Objects that were retired together. A transaction that begins later reaches none of them.
struct Retired {
    epoch: u64,
    garbage: Vec<Garbage>,
}

/// The part of a session that other OS threads read. It is never freed.
#[repr(align(128))]
struct Record {
    /// The epoch at which the session is pinned; 0 if it is not.
    pinned: AtomicU64,
}

/// What a session has to do with the epochs: its record, and the garbage of the transactions that
/// used the session before.
pub(crate) struct EpochMember {
    record: &'static Record,
    /// Whether `pin` needs a fence of its own, because the kernel has no heavy one.
    has_own_fence: bool,
    /// In the order of their epochs.
    retired: VecDeque<Retired>,
    /// The objects that commits have unlinked, and that are not retired yet.
    pub(crate) unlinked: Vec<Garbage>,
}

/// All records. The owner keeps this under a lock, the lock of the registry.
pub(crate) struct Epochs {
    records: Vec<&'static Record>,
    /// Whether the kernel has the heavy fence. Known with the first member.
    has_heavy_fence: Option<bool>,
}

impl Epochs {
    pub(crate) const fn new() -> Epochs {
        Epochs { records: Vec::new(), has_heavy_fence: None }
    }

    /// A new member. Its record is never freed.
    pub(crate) fn join(&mut self) -> EpochMember {
        let has_own_fence = !*self.has_heavy_fence.get_or_insert_with(heavy_fence);
        let record: &'static Record = Box::leak(Box::new(Record { pinned: AtomicU64::new(0) }));
        self.records.push(record);
        EpochMember { record, has_own_fence, retired: VecDeque::new(), unlinked: Vec::new() }
    }

    /// Step b. The epoch with which the objects may be retired that were unlinked before the call.
    /// `None` if the kernel has refused the fence.
    pub(crate) fn fence(&self) -> Option<u64> {
        let is_ordered = match self.has_heavy_fence {
            Some(true) => heavy_fence(),
            _ => {
                fence(Ordering::SeqCst);
                true
            }
        };
        is_ordered.then(|| world().epoch.0.load(Ordering::Relaxed))
    }

    /// Step d., once. The caller holds the registry's lock, so no other OS thread writes the epoch.
    pub(crate) fn advance(&self) {
        let epoch = &world().epoch.0;
        let now = epoch.load(Ordering::Relaxed);
        let is_seen = |record: &&Record| {
            let pinned = record.pinned.load(Ordering::Acquire);
            pinned == 0 || pinned == now
        };
        if self.records.iter().all(is_seen) {
            epoch.store(now + 1, Ordering::Release);
        }
    }
}

impl EpochMember {
    /// Protects all objects that are reachable from now on, until [`unpin`](EpochMember::unpin).
    #[inline(always)]
    pub(crate) fn pin(&mut self) {
        let epoch = world().epoch.0.load(Ordering::Relaxed);
        self.record.pinned.store(epoch, Ordering::Release);
        match self.has_own_fence {
            false => light_fence(),
            true => fence(Ordering::SeqCst),
        }
    }

    #[inline(always)]
    pub(crate) fn unpin(&mut self) {
        self.record.pinned.store(0, Ordering::Release);
    }

    /// Step c., with the epoch of `Epochs::fence`.
    pub(crate) fn retire(&mut self, epoch: u64) {
        if !self.unlinked.is_empty() {
            let next = Vec::with_capacity(self.unlinked.len());
            let garbage = std::mem::replace(&mut self.unlinked, next);
            self.retired.push_back(Retired { epoch, garbage });
        }
    }

    /// Takes out the objects that no transaction can reach any more.
    pub(crate) fn ripe(&mut self, into: &mut Vec<Vec<Garbage>>) {
        let epoch = world().epoch.0.load(Ordering::Acquire);
        while self.retired.front().is_some_and(|retired| retired.epoch + 2 <= epoch) {
            into.extend(self.retired.pop_front().map(|retired| retired.garbage));
        }
    }
}
