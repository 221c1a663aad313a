//! In which event loops a descriptor is registered, so that its waits find the right one wherever its threads are.
//!
//! A thread that waits for a descriptor is served by the event loop of the OS thread it runs on. When threads migrate, or share a
//! descriptor, that is now this loop and now that. A descriptor that stayed registered wherever it once was waited for would wake
//! all of those loops with every edge; so it is taken out of the others when it is waited for in a new one, unless somebody waits
//! for it there.
//!
//! # Why no edge is lost
//!
//! 1. A wait that is not *fresh* is in a loop where the descriptor was registered, by this very file, and has been since: then the
//!    loop's table has every edge, as a ready bit or as a waiter resumed (see [`readiness`](crate::readiness)).
//!    For [`begin`](Places::begin) says "not fresh" only for a place that is `sure`; a place becomes sure when a wait that registered there
//!    has been served, and is struck from the list, under the lock, before the descriptor is taken out of that loop's epoll set.
//! 2. A fresh wait registers the descriptor anew, and `EPOLL_CTL_ADD` with `EPOLLET` reports what is ready at that moment. So whatever
//!    came before, unnoticed, is noticed then.
//! 3. A descriptor is taken out of a loop's set only while nobody waits for it anywhere: the count of waits is found to be 0 in the
//!    same atomic step that sets the home to none. From then on every other wait comes through the lock, behind which it
//!    finds the place gone, and is fresh.
//! 4. A stale event of the old loop, taken from the kernel before, finds in that loop's table nobody, or somebody who bears being resumed
//!    early. When the descriptor comes back there it is fresh, which starts a new generation in the table.
//!
//! A descriptor number that is closed and given to another file belongs to another `Places`, which knows of no place: it is fresh.

use crate::event_loop::{self, LoopId};
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// One wait, in the word.
const ONE: u64 = 1 << 32;
/// The home, in the word.
const HOME: u64 = ONE - 1;

/// What is known of one descriptor.
#[derive(Debug, Default)]
pub(crate) struct Places {
    /// The low half is the **home**: the only loop it is registered in, which is sure; or none, and then the list counts. The high half
    /// is the number of waits under way. The home is changed by who has the lock alone.
    word: AtomicU64,
    list: Mutex<List>,
}

/// Every loop in whose epoll set it may be.
#[derive(Debug, Default)]
struct List {
    one: Option<Place>,
    /// Hardly ever there, so one word.
    #[expect(clippy::box_collection, reason = "every connection has one of these")]
    more: Option<Box<Vec<Place>>>,
}

#[derive(Clone, Copy, Debug)]
struct Place {
    at: LoopId,
    /// A wait there has been served. One that was given up before may or may not have been.
    sure: bool,
}

impl List {
    fn get(&mut self, at: LoopId) -> Option<&mut Place> {
        self.one
            .iter_mut()
            .chain(self.more.iter_mut().flat_map(|more| more.iter_mut()))
            .find(|place| place.at == at)
    }

    fn add(&mut self, place: Place) {
        match self.one {
            None => self.one = Some(place),
            Some(_) => self.more.get_or_insert_default().push(place),
        }
    }

    /// The one place there is, if it is sure.
    fn home(&self) -> Option<LoopId> {
        self.one.filter(|place| place.sure && self.more.is_none()).map(|place| place.at)
    }

    /// Strikes all but one from the list.
    fn leave_others(&mut self, here: LoopId, mut left: impl FnMut(LoopId)) {
        let more = self.more.take().map_or_else(Vec::new, |more| *more);
        let all = self.one.take().into_iter().chain(more);
        for place in all {
            if place.at == here {
                self.one = Some(place);
            } else {
                left(place.at);
            }
        }
    }
}

impl Places {
    /// A wait begins in the loop `here`. Whether it is fresh: the loop knows nothing of the descriptor yet.
    #[inline]
    pub(crate) fn begin(&self, here: LoopId, fd: BorrowedFd<'_>) -> bool {
        let mut word = self.word.load(Relaxed);
        while word & HOME == u64::from(here.to_bits()) {
            match self.word.compare_exchange_weak(word, word + ONE, SeqCst, Relaxed) {
                Ok(_) => return false,
                Err(now) => word = now,
            }
        }
        self.begin_away(here, fd)
    }

    #[cold]
    fn begin_away(&self, here: LoopId, fd: BorrowedFd<'_>) -> bool {
        let mut list = self.lock();
        let before = self.word.fetch_update(SeqCst, Relaxed, |word| Some((word & !HOME) + ONE));
        let nobody_waits = before.is_ok_and(|word| word < ONE);
        if nobody_waits {
            list.leave_others(here, |at| event_loop::take_out(at, fd));
        }
        let fresh = match list.get(here) {
            Some(place) => !place.sure,
            None => {
                list.add(Place { at: here, sure: false });
                true
            }
        };
        self.settle(&list);
        fresh
    }

    /// A wait that began in the loop `at` is over: it has been served, or given up.
    #[inline]
    pub(crate) fn end(&self, at: LoopId, fresh: bool, served: bool) {
        if fresh && served {
            self.registered(at);
        }
        self.word.fetch_sub(ONE, SeqCst);
    }

    #[cold]
    fn registered(&self, at: LoopId) {
        let mut list = self.lock();
        // It is there still: nobody strikes places while this wait counts.
        if let Some(place) = list.get(at) {
            place.sure = true;
        }
        self.settle(&list);
    }

    /// Makes the only place the home.
    fn settle(&self, list: &List) {
        if let Some(home) = list.home() {
            let _ = self
                .word
                .fetch_update(SeqCst, Relaxed, |word| Some(word & !HOME | u64::from(home.to_bits())));
        }
    }

    fn lock(&self) -> MutexGuard<'_, List> {
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
