//! Which ready thread a worker runs next, and where it puts a thread that becomes ready.
//!
//! In this order:
//! 1. The thread that was woken alone, [`LIFO_MAX`] times in a row at most while others are ready.
//! 2. In turn with the threads that may move, the threads that stay.
//! 3. The threads that the worker has claimed from its ring, one *batch*.
//! 4. When the batch is over, its *joiners*: the threads that waited for the end of a thread of the
//!    batch. A thread that joins several children of one batch so finds that all of them have
//!    ended. Joiners become *due* once for each batch, so that they starve no other thread.
//! 5. The next batch, or a thread that the worker keeps (`arrivals.rs`).

use super::WorkerLoop;
use crate::work_stealing::desk::{Desk, REFILL};
use selvedge_core::{Events, SendThread, Thread, Time};

/// The most steps in a row of threads that were woken alone, while other threads are ready.
const LIFO_MAX: u32 = 3;

impl<E: Events> WorkerLoop<'_, E> {
    /// The thread to run next.
    #[inline]
    pub(super) fn next(&mut self) -> Option<Thread> {
        if self.lifo.is_some()
            && let Some(thread) = self.lifo.take()
        {
            self.lifo_run += 1;
            if self.lifo_run <= LIFO_MAX || !self.is_ready() {
                self.offer();
                return Some(thread);
            }
            self.enqueue(thread);
        }
        self.lifo_run = 0;
        if !self.local.is_empty() {
            self.turn_is_local = !self.turn_is_local;
            if self.turn_is_local {
                self.offer();
                return self.local.pop();
            }
        }
        self.next_mobile().or_else(|| self.local.pop())
    }

    #[inline]
    fn next_mobile(&mut self) -> Option<Thread> {
        if let Some(thread) = self.desk.ring.take() {
            return Some(thread.into_thread());
        }
        self.next_of_batch()
    }

    /// The next thread when all claimed threads have run: first the joiners that are due, then the
    /// first thread of the next batch.
    #[inline(never)]
    fn next_of_batch(&mut self) -> Option<Thread> {
        if std::mem::take(&mut self.is_batch_over) {
            let Desk { due, joiners, .. } = &mut *self.desk;
            due.append(joiners);
            self.local.append(&mut self.local_joiners);
        }
        if let Some(joiner) = self.desk.due.pop() {
            self.offer();
            return Some(joiner.into_thread());
        }
        self.is_batch_over = true;
        let first = self.claim();
        if first.is_none() {
            let joiner = self.desk.joiners.pop();
            return joiner.map(SendThread::into_thread).or_else(|| self.local_joiners.pop());
        }
        first
    }

    /// Claims a batch, and takes its first thread.
    fn claim(&mut self) -> Option<Thread> {
        if self.desk.is_kept()
            && let Some(now) = self.arrivals.is_tired(Time::now)
            && self.pool.idle.does_helper_sleep()
        {
            self.arrivals.rested(now);
            self.desk.share_some();
        }
        self.desk.refill(REFILL);
        let claim = self.desk.ring.claim(self.workers);
        if claim.wanted && claim.left > 0 {
            self.pool.call(self.pool.idle.surplus(self.me));
        }
        let first = self.desk.ring.take().or_else(|| self.desk.pop_kept());
        first.map(SendThread::into_thread)
    }

    /// Puts a thread behind the ready threads.
    #[inline]
    pub(super) fn enqueue(&mut self, thread: Thread) {
        match thread.into_send() {
            Ok(thread) => self.desk.push(thread),
            Err(thread) => self.local.push(thread),
        }
    }

    /// The next thread that has become ready.
    #[inline(always)]
    fn woken(&mut self) -> Option<Thread> {
        match self.desk.outlet.take() {
            Some(thread) => Some(thread.into_thread()),
            None => self.cpu.woken(),
        }
    }

    /// Takes in the threads that have become ready, and offers them to the other workers if there
    /// are several.
    ///
    /// `at_an_end` says that the last step has ended its thread. If a thread is then woken alone,
    /// it most likely waited for the end, and it becomes a joiner of the batch.
    #[inline(always)]
    pub(super) fn take_woken(&mut self, at_an_end: bool) {
        let Some(first) = self.woken() else { return };
        match self.woken() {
            None if at_an_end && self.desk.ring.claimed() > 0 => match first.into_send() {
                Ok(joiner) => self.desk.joiners.push(joiner),
                Err(joiner) => self.local_joiners.push(joiner),
            },
            None if self.lifo.is_none() => self.lifo = Some(first),
            second => self.take_several(first, second),
        }
    }

    #[inline(never)]
    fn take_several(&mut self, first: Thread, second: Option<Thread>) {
        self.enqueue(first);
        second.into_iter().for_each(|thread| self.enqueue(thread));
        while let Some(thread) = self.woken() {
            self.enqueue(thread);
        }
        self.offer();
    }

    /// Wakes a sleeper if there is something to steal here while this worker runs other threads
    /// first. (A claim does the same.)
    #[inline]
    pub(super) fn offer(&self) {
        let ring = &self.desk.ring;
        if ring.is_wanted() && ring.len() > ring.claimed() {
            self.pool.call(self.pool.idle.surplus(self.me));
        }
    }

    /// Whether the worker has a thread to run.
    pub(super) fn is_ready(&self) -> bool {
        self.lifo.is_some()
            || !self.desk.is_empty()
            || !self.local.is_empty()
            || !self.local_joiners.is_empty()
    }

    /// Takes in the threads that a poll has woken. A thread that was woken alone runs next.
    pub(super) fn take_arrivals(&mut self) {
        let Some(first) = self.cpu.woken() else { return };
        let mut second = self.cpu.woken();
        if self.crowding.is_aside() && self.arrivals.keeps() {
            self.pass_on(first, second);
            return;
        }
        if second.is_none() && self.lifo.is_none() {
            self.lifo = Some(first);
            return;
        }
        self.arrive(first);
        while let Some(thread) = second.take().or_else(|| self.cpu.woken()) {
            self.arrive(thread);
        }
        self.keep_or_share();
    }

    /// Takes in a thread that an event has woken.
    pub(super) fn arrive(&mut self, thread: Thread) {
        match thread.into_send() {
            Ok(thread) => self.desk.push_arrival(thread),
            Err(thread) => self.local.push(thread),
        }
    }

    /// Offers the threads that events woke, unless the worker keeps them.
    pub(super) fn keep_or_share(&mut self) {
        if !self.arrivals.keeps() {
            self.desk.share();
            self.offer();
        }
    }

    /// Hands off the threads that a poll has woken, because this worker stands aside. If all others
    /// sleep or stand aside, this worker runs them.
    #[cold]
    fn pass_on(&mut self, first: Thread, second: Option<Thread>) {
        let mut passed = Vec::new();
        let mut next = Some(first);
        let mut rest = second;
        while let Some(thread) = next {
            match thread.into_send() {
                Ok(thread) => passed.push(thread),
                Err(thread) => self.local.push(thread),
            }
            next = rest.take().or_else(|| self.cpu.woken());
        }
        for thread in self.pool.idle.hand_off(self.me, self.me + 1, passed).err().into_iter().flatten() {
            self.desk.push_arrival(thread);
        }
    }
}
