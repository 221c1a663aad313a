//! The set of event loops that know a descriptor. Every descriptor that threads wait for has a
//! [`Places`]; the wait reads it, so that any event loop can serve the descriptor.
//!
//! The event loop of the OS thread on which a thread runs serves that thread's waits. When threads
//! migrate, or share a descriptor, several loops serve one descriptor in turn. Each loop decides
//! for itself which descriptors are in its epoll set: it registers a descriptor when a waiter
//! comes, and takes the descriptor out again when its edges find no waiter there
//! ([`Driver`](crate::epoll::Driver)). No loop touches the set or the table of another loop, so the
//! loops need no agreement. (Listeners with several handles are the exception: see
//! [`exclusive`](crate::exclusive).) While the OS thread of a loop is in a long step, another OS
//! thread may take events from the loop's set to the loop's table, as a guest that keeps the loop
//! out meanwhile. The table changes as if the loop had polled.
//!
//! There is one thing that a loop cannot tell by itself: whether the entry that its table has under
//! a number is about the present file, or about an earlier file that had the same number. A
//! descriptor's `Places` tell the loop. A wait is **fresh** in a loop that the `Places` do not
//! name. The loop then asks the kernel by `EPOLL_CTL_MOD`, because the epoll set knows its members
//! by number and open file. If the present file is a member, the entry is about this file: the
//! waiters there go on waiting, and the kernel reports once more what is ready. If the present file
//! is not a member, the loop forgets the entry and registers the descriptor anew.
//!
//! # Why no edge is lost
//!
//! 1. The `Places` name a loop only when that loop has served a wait that was fresh there. The loop
//!    notes this on its own OS thread (`note_fresh`), even if the wait is over or given up by then.
//!    At that moment the loop has this very file registered. The file keeps its number for as long
//!    as it has these `Places`. So from then on the loop's entry under that number is about this
//!    file. Either the entry is registered, and then the table has taken in every edge since, as a
//!    ready bit or as a resumed waiter (see [`readiness`](crate::readiness)); or the loop has taken
//!    the descriptor out.
//! 2. A wait for a descriptor that is not in the set registers the descriptor, whether the wait is
//!    fresh or not. `EPOLL_CTL_ADD` with `EPOLLET` reports what is ready at that moment. So the
//!    loop notices then every edge that came before and went unnoticed.
//! 3. A loop takes a descriptor out between two waits there, on its own OS thread. The next wait
//!    there is case 2.
//! 4. A loop that is *not* named is never an error: a fresh wait costs a system call, and ends no
//!    other wait. So `Places` need not have room for all loops.
//! 5. The number of a loop that has ended may be given to a new loop. The `Places` then name the
//!    new loop before it has registered the descriptor. The new loop's table is empty, and the loop
//!    was made while this file had its number already, so point 1 holds for every entry that the
//!    table will have.
//!
//! Each statement about a loop is made on the loop's own OS thread (or, for the loop for foreign
//! executors, within its lock). So relaxed atomics are enough: a thread of a loop reads here only
//! values about its own loop that a thread of the same loop wrote before, and the table has that
//! state already.

use crate::event_loop::LoopId;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The event loops that know a descriptor: at most four, in 16 bits each, the latest in the lowest
/// bits; 0 means none.
#[derive(Debug, Default)]
pub(crate) struct Places(AtomicU64);

impl Places {
    /// Whether a loop knows the descriptor. If not, a wait in that loop is fresh.
    #[inline]
    pub(crate) fn have(&self, at: LoopId) -> bool {
        let places = self.0.load(Relaxed);
        places as u16 == at.to_bits() || among(places >> 16, at)
    }

    /// Names a loop that has served a fresh wait, and so has registered the descriptor. If there is
    /// no room, the loop that was named first is forgotten.
    #[cold]
    pub(crate) fn add(&self, at: LoopId) {
        let add = |places| (!among(places, at)).then_some(places << 16 | u64::from(at.to_bits()));
        // An error says that the loop is named already, because two waits were fresh at the same
        // time.
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
