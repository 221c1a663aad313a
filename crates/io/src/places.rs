//! Which event loops know a descriptor, so that its waits are served wherever its threads are.
//!
//! A thread that waits for a descriptor is served by the event loop of the OS thread it runs on. When threads migrate, or share a
//! descriptor, that is now this loop and now that. Each loop decides for itself what is in its epoll set: it registers a descriptor when
//! somebody waits for it, and takes it out again when it gets edges that concern nobody there ([`Driver`](crate::epoll::Driver)). No loop
//! touches another's set or table, so there is nothing for them to agree on. (But for listeners with several handles: see
//! [`exclusive`](crate::exclusive). And while the OS thread of a loop is in a long step, another may take the events of its set to
//! its table, as a guest who keeps the loop out meanwhile: to the table that is as if the loop had polled.)
//!
//! There is one thing that a loop cannot tell by itself: whether what its table has under a number is about this file, or about an
//! earlier one that had the number before. That is what a descriptor's `Places` tell it. A wait is **fresh** in a loop that they do not name, and
//! then the loop asks the kernel, by `EPOLL_CTL_MOD`: the epoll set knows its members by number and open file. If this very file is
//! a member, the entry is about it, and those who wait there go on waiting; the kernel reports once more what is ready. If not,
//! the loop forgets what it has, and registers the descriptor anew.
//!
//! # Why no edge is lost
//!
//! 1. A loop is named when it has served a wait that was fresh there, as it says itself on its own OS thread (`note_fresh`), be the wait
//!    over or given up: by then it has this very file registered. The file keeps its
//!    number for as long as it has these `Places`. So from then on whatever the loop's table has under that number is about this file:
//!    that it is registered, and then the table has had every edge since, as a ready bit or as a waiter resumed (see
//!    [`readiness`](crate::readiness)); or that the loop has taken it out.
//! 2. Who waits for a descriptor that is not in the set registers it, fresh or not; and `EPOLL_CTL_ADD` with `EPOLLET` reports what is
//!    ready at that moment. So whatever came before, unnoticed, is noticed then.
//! 3. A loop takes a descriptor out between two waits there, on its own OS thread: whoever waits next comes to 2.
//! 4. That a loop is *not* named is never wrong: a fresh wait costs a system call, and ends nobody's wait. So there need not be room for all.
//! 5. The number of a loop that has ended may be given to a new one, which is named then before it has registered anything. Its table
//!    is empty, and it was made while this file had its number already, so 1 holds of all that will be in it.
//!
//! All this is said of the loop by its own OS thread (or, of the loop for foreign executors, within its lock), so relaxed atomics
//! will do: what one of its threads reads here was written by one of its threads before, and the table has it already.

use crate::event_loop::LoopId;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The event loops that know a descriptor: at most four, the latest lowest, in 16 bits each; 0 is none.
#[derive(Debug, Default)]
pub(crate) struct Places(AtomicU64);

impl Places {
    /// Whether a loop knows the descriptor. If not, a wait there is fresh.
    #[inline]
    pub(crate) fn have(&self, at: LoopId) -> bool {
        let places = self.0.load(Relaxed);
        places as u16 == at.to_bits() || among(places >> 16, at)
    }

    /// A fresh wait has been served by a loop: that has registered the descriptor. If there is no room, the loop longest known is forgotten.
    #[cold]
    pub(crate) fn add(&self, at: LoopId) {
        let add = |places| (!among(places, at)).then_some(places << 16 | u64::from(at.to_bits()));
        // An error says that it is there: two waits were fresh at a time.
        let _ = self.0.fetch_update(Relaxed, Relaxed, add);
    }
}

fn among(mut places: u64, at: LoopId) -> bool {
    while places != 0 {
        if places as u16 == at.to_bits() {
            return true;
        }
        places >>= 16;
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_four_are_known() {
        let ids: Vec<LoopId> = (0..6).map(|_| LoopId::take().unwrap()).collect();
        let places = Places::default();
        for (i, &id) in ids.iter().enumerate() {
            assert!(!places.have(id));
            places.add(id);
            places.add(id);
            for (j, &other) in ids.iter().enumerate() {
                assert_eq!(places.have(other), j <= i && i < j + 4, "{j} after {i}");
            }
        }
        ids.into_iter().for_each(LoopId::give_back);
    }
}
