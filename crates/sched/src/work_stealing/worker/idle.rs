//! A worker without ready threads: it searches the other workers' rings, takes over threads from
//! workers in long steps, and sleeps in its event source.
//!
//! [`IdleWorkers`](crate::IdleWorkers) has the protocol.
//!
//! `WorkerLoop::run` (`worker.rs`) calls it when no thread is ready.

use super::{SEARCHES_MAX, WorkerLoop};
use selvedge_core::observe::Note;
use selvedge_core::{Events, RunError};

/// How many times a searcher spins before it goes through the rings again.
const SPINS: u32 = 32;

impl<E: Events> WorkerLoop<'_, E> {
    /// Searches, or sleeps; returns when there may be something to do.
    #[cold]
    pub(super) fn idle(&mut self) -> Result<(), RunError> {
        let idle = &self.pool.idle;
        if !self.is_searching && !self.has_watched {
            self.is_searching = idle.search();
        }
        if self.is_searching && self.search() || self.workers > 1 && self.look_out() {
            return Ok(());
        }
        if !idle.fall_asleep(self.me, self.is_searching) {
            self.is_searching = true;
            return Ok(());
        }
        self.survey();
        let watches = self.workers > 1 && idle.become_watcher(self.me, self.lookout.is_quiet());
        let limit = watches.then(|| self.lookout.tick());
        let (cpu, events) = (&mut self.cpu, &mut self.events);
        let polled = self.pool.cpus[self.me].while_asleep(|| cpu.poll_for(events, limit));
        self.is_searching = idle.wake_up(self.me);
        self.has_slept = true;
        self.has_watched = watches && !self.is_searching;
        if self.workers > 1 {
            self.arrivals.rested(self.cpu.now());
            self.mind_the_crowd();
            self.take_arrivals();
        }
        polled.map(drop)
    }

    /// Takes over the threads that wait for the ends of other workers' long steps. Threads that
    /// were handed off to such a worker are among them. True if there is now a thread to run.
    pub(super) fn look_out(&mut self) -> bool {
        let moved = self.lookout.look(&self.pool.views, &mut self.desk, &mut self.cpu);
        if self.lookout.is_long() {
            self.take_hand_offs(true);
        }
        if moved > 0 {
            self.cpu.note(Note::Stole(moved));
        }
        moved > 0 || self.is_ready()
    }

    /// Stands aside if this worker is crowded, and comes back after some time (`crowding.rs`).
    #[inline]
    pub(super) fn mind_the_crowd(&mut self) {
        let (idle, now) = (&self.pool.idle, self.cpu.now());
        if self.crowding.is_aside() {
            if self.crowding.comes_back(now, idle.recalls()) {
                idle.come_back(self.me);
            }
        } else if self.crowding.is_crowded(now) {
            let has_recalled = self.crowding.recalls_others() && idle.recall();
            let may = !has_recalled && self.arrivals.keeps() && self.crowding.may_stand_aside(now);
            if may && self.crowding.is_no_cpu_free(now) && idle.stand_aside(self.me) {
                self.crowding.stand_aside(now, idle.recalls());
            }
        }
    }

    /// Looks for a thread to run; true if there may be one.
    fn search(&mut self) -> bool {
        let idle = &self.pool.idle;
        for search in 1..=self.searches {
            self.victim = self.victim.wrapping_add(1);
            if let Some(thread) = idle.steal(self.me, &mut self.desk.ring, self.victim) {
                self.cpu.note(Note::Stole(1 + self.desk.ring.len()));
                self.lifo = Some(thread.into_thread());
                self.searches = (2 * search).min(SEARCHES_MAX);
                return true;
            }
            self.take_woken(false);
            if self.is_ready() || !idle.injector().is_empty() || self.pool.is_stopped() {
                return true;
            }
            if search < self.searches {
                (0..SPINS).for_each(|_| std::hint::spin_loop());
            }
        }
        self.searches = (self.searches / 2).max(1);
        false
    }
}
