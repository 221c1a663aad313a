//! The ready threads of a worker that may move: its [`Desk`], from which other workers take the
//! threads that they cannot steal while the worker is in a long step.
//!
//! Thieves steal from the ring at any time. The other queues of the desk belong to the worker
//! alone, with the outlet of its CPU (`selvedge_core::Outlet`), where the threads come out that its
//! step wakes or spawns. But while the worker is in a step it does not touch its desk, so that
//! another worker may be a guest there (`selvedge_core::biased` has the protocol). A guest comes
//! when the worker has begun no turn for [`LONG`]: see [`Lookout`]. The guest serves the worker's
//! event source too, also while the worker sleeps.

use super::run_ring::{RunRing, SLOTS};
use selvedge_core::{Cpu, Guest, Outlet, Owner, Relief, SendQueue, SendThread, Time, biased};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, Weak};
use std::time::Duration;

/// A worker that has begun no turn for this time is visited: it is in a long step, it sleeps, or it
/// waits for a CPU. It is about as long as a time slice of the kernel. A shorter time would have
/// the workers of a busy machine take each other's events, and register their descriptors anew,
/// whenever one of them has lost its CPU for a moment.
const LONG: Duration = Duration::from_millis(5);
/// The longest time between two visits of a worker that sleeps and has nothing to take.
const PAUSE_MAX: Duration = Duration::from_millis(64);
/// How long the watcher sleeps between two looks at the other workers.
const TICK: Duration = Duration::from_millis(10);
/// How long the watcher sleeps between two looks while a worker is in a long step.
const TICK_WHILE_LONG: Duration = Duration::from_millis(2);
/// The watcher stops looking when the other workers have begun no turn for this time, and all
/// sleep.
const QUIET: Duration = Duration::from_millis(80);

/// The number of threads that move from the overflow to the ring at each claim. It is larger than a
/// claim, and so small that the memory which a move prefetches for a later thread is in the cache
/// when that thread moves.
pub(super) const REFILL: usize = 24;

/// The threads that are ready on one worker and may run on another.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) ring: RunRing<SendThread>,
    /// The threads for which the ring has no room, behind the threads in the ring.
    overflow: SendQueue,
    /// Whether the overflow has only threads that events woke and that the worker keeps, so that
    /// they do not go to the ring (`worker/arrivals.rs`).
    is_kept: bool,
    /// Threads that waited for the end of a thread which was claimed together with others. They run
    /// after the others.
    pub(super) joiners: SendQueue,
    /// The joiners that run before the next claim.
    pub(super) due: SendQueue,
    /// The threads that the worker's step has made ready. The worker takes them at the step's end.
    /// They do not count in [`len`](Desk::len), because between steps there are none.
    pub(super) outlet: Outlet,
}

impl Desk {
    pub(super) fn new(ring: RunRing<SendThread>) -> Desk {
        let queue = SendQueue::new;
        let outlet = Outlet::default();
        Desk { ring, overflow: queue(), is_kept: false, joiners: queue(), due: queue(), outlet }
    }

    /// Puts a thread behind the ready threads.
    #[inline(always)]
    pub(super) fn push(&mut self, thread: SendThread) {
        match self.overflow.is_empty() {
            true => self.ring.push(thread).unwrap_or_else(|thread| self.push_behind(thread)),
            false => self.push_behind(thread),
        }
    }

    fn push_behind(&mut self, thread: SendThread) {
        self.is_kept = false;
        self.overflow.push(thread);
    }

    /// Puts a thread that an event has woken behind the ready threads. The worker keeps the
    /// overflow until [`share`](Desk::share), or until another thread comes behind it.
    pub(super) fn push_arrival(&mut self, thread: SendThread) {
        self.is_kept |= self.overflow.is_empty();
        self.overflow.push(thread);
    }

    /// Lets the overflow go to the ring.
    pub(super) fn share(&mut self) {
        self.is_kept = false;
        self.refill(REFILL);
    }

    /// Moves some of the threads that the worker keeps to the ring.
    pub(super) fn share_some(&mut self) {
        let is_kept = self.is_kept;
        self.share();
        self.is_kept = is_kept;
    }

    /// Whether the worker keeps threads in the overflow.
    #[inline]
    pub(super) fn is_kept(&self) -> bool {
        !self.overflow.is_empty() && self.is_kept
    }

    /// Takes the first thread of an overflow that the worker keeps. The ring is empty.
    pub(super) fn pop_kept(&mut self) -> Option<SendThread> {
        if self.is_kept { self.overflow.pop() } else { None }
    }

    /// Moves at most `max` threads from the overflow to the ring, unless the worker keeps them.
    #[inline]
    pub(super) fn refill(&mut self, max: usize) {
        if !self.overflow.is_empty() && !self.is_kept {
            let overflow = &mut self.overflow;
            self.ring.push_from(|| overflow.pop(), max);
        }
    }

    /// Moves the threads that cannot be stolen to a guest's own desk, and threads of the overflow
    /// to the ring, as many as it has room for. Thieves can steal those. Returns how many threads
    /// have moved.
    fn yield_to(&mut self, guest: &mut Desk) -> usize {
        let mut moved = 0;
        let claimed = std::iter::from_fn(|| self.ring.take());
        let joiners = std::iter::from_fn(|| self.due.pop().or_else(|| self.joiners.pop()));
        // The step goes on, and may add further threads: at most a ring of them is taken.
        let made_ready = std::iter::from_fn(|| self.outlet.take()).take(SLOTS);
        for thread in claimed.chain(joiners).chain(made_ready) {
            guest.push(thread);
            moved += 1;
        }
        // The overflow tells how many have moved. The ring may be shorter than before, because
        // thieves take from it meanwhile.
        self.is_kept = false;
        let before = self.overflow.len();
        self.refill(usize::MAX);
        moved + before - self.overflow.len()
    }

    /// The number of threads on the desk.
    pub(super) fn len(&self) -> usize {
        self.ring.len() + self.overflow.len() + self.joiners.len() + self.due.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ring.is_empty() && self.overflow.is_empty() && self.joiners.is_empty() && self.due.is_empty()
    }

    /// Takes any thread.
    pub(super) fn pop(&mut self) -> Option<SendThread> {
        let Desk { ring, overflow, joiners, due, outlet, .. } = self;
        let queued = ring.pop().or_else(|| overflow.pop()).or_else(|| joiners.pop());
        queued.or_else(|| due.pop()).or_else(|| outlet.take())
    }
}

/// The part of a worker that the other workers use.
pub(super) struct WorkerView {
    desk: Guest<Desk>,
    /// The number of turns that the worker has begun, modulo 2³².
    turns: AtomicU32,
    /// The number of steps of the worker's last turn.
    load: AtomicU32,
    /// Serves the threads that wait in the worker's event source.
    relief: OnceLock<Weak<dyn Relief>>,
}

impl WorkerView {
    /// A view, and its worker's end of the desk.
    pub(super) fn new(ring: RunRing<SendThread>) -> (WorkerView, Owner<Desk>) {
        let (owner, desk) = biased(Desk::new(ring));
        let (turns, load) = (AtomicU32::new(0), AtomicU32::new(0));
        (WorkerView { desk, turns, load, relief: OnceLock::new() }, owner)
    }

    /// Notes the relief of the worker's event source.
    pub(super) fn set_relief(&self, relief: Weak<dyn Relief>) {
        // Each worker starts once, so the cell is empty.
        let _ = self.relief.set(relief);
    }

    /// Wakes the threads for which there is an event in the worker's event source. Returns how many
    /// threads it woke.
    fn relieve(&self, cpu: &mut Cpu) -> usize {
        let relief = self.relief.get().and_then(Weak::upgrade);
        // A failure of the system's interface is left to the worker, which meets and reports it
        // too.
        relief.and_then(|relief| relief.relieve(cpu).ok()).unwrap_or(0)
    }

    /// The number of steps of the worker's last turn: how many threads it has to run.
    pub(super) fn load(&self) -> u32 {
        self.load.load(Ordering::Relaxed)
    }

    /// Notes the number of steps of a turn that has ended.
    #[inline]
    pub(super) fn set_load(&self, steps: u32) {
        self.load.store(steps, Ordering::Relaxed);
    }

    /// Counts a turn that the worker begins.
    #[inline]
    pub(super) fn count_turn(&self) {
        // Only the worker writes the counter, so a load and a store suffice.
        self.turns.store(self.turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// What a worker has seen of the other workers' turns.
///
/// A worker looks at the others before it sleeps, each [`LONG`] while it works, and each
/// [`tick`](Lookout::tick) while it sleeps as the [watcher](crate::IdleWorkers::become_watcher).
///
/// It visits each worker that has begun no turn for [`LONG`]. It takes ready threads from one in a
/// long step. It serves the event source of any: a worker that sleeps may have been woken by the
/// kernel and may wait for a CPU, for some milliseconds if other processes are busy, and the
/// threads of its events would wait with it. After a visit that has found nothing, the next one
/// comes after a pause twice as long, within limits.
pub(super) struct Lookout {
    me: usize,
    seen: Vec<SeenTurns>,
    looked: Time,
    /// The last time when this worker saw that another had begun a turn.
    moved: Time,
    /// Whether the last look has found a worker in a long step.
    is_long: bool,
}

/// What a worker has seen of another one.
#[derive(Clone, Copy)]
struct SeenTurns {
    /// The number of turns that was read last.
    turns: u32,
    /// When the number was first read, or the time of the last visit.
    since: Time,
    /// The time from then to the next visit.
    pause: Duration,
}

impl Lookout {
    pub(super) fn new(me: usize, workers: usize) -> Lookout {
        let now = Time::now();
        let seen = vec![SeenTurns { turns: 0, since: now, pause: LONG }; workers];
        Lookout { me, seen, looked: now, moved: now, is_long: false }
    }

    /// Whether it is time for a worker that is not idle to look.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        now.since(self.looked) >= LONG
    }

    /// How long the watcher sleeps until its next look: as long as the others have been quiet,
    /// within limits.
    pub(super) fn tick(&self) -> Duration {
        match self.is_long {
            true => TICK_WHILE_LONG,
            false => self.looked.since(self.moved).clamp(TICK, QUIET),
        }
    }

    /// Whether the last look has found a worker in a long step.
    pub(super) fn is_long(&self) -> bool {
        self.is_long
    }

    /// Whether the others have begun no turn for [`QUIET`].
    pub(super) fn is_quiet(&self) -> bool {
        self.looked.since(self.moved) >= QUIET
    }

    /// Looks at the other workers, and visits the workers that have begun no turn for some time. If
    /// such a worker is in a long step, moves the threads on its desk to `mine`, and the threads
    /// for which there is an event to `cpu`. Returns how many threads can run now that could not.
    pub(super) fn look(&mut self, views: &[WorkerView], mine: &mut Desk, cpu: &mut Cpu) -> usize {
        self.looked = Time::now();
        self.is_long = false;
        let mut moved = 0;
        for (other, view) in views.iter().enumerate().filter(|&(other, _)| other != self.me) {
            let turns = view.turns.load(Ordering::Relaxed);
            let seen = &mut self.seen[other];
            if turns != seen.turns {
                *seen = SeenTurns { turns, since: self.looked, pause: LONG };
                self.moved = self.looked;
            } else if self.looked.since(seen.since) >= seen.pause {
                let (mut found, mut pause_max) = (0, PAUSE_MAX);
                // A worker that sleeps is not in a step, and admits no guest to its desk.
                if let Some(mut theirs) = view.desk.visit() {
                    (self.is_long, pause_max) = (true, TICK_WHILE_LONG);
                    found += theirs.yield_to(mine);
                }
                found += view.relieve(cpu);
                let pause = if found > 0 { LONG } else { pause_max.min(2 * seen.pause) };
                *seen = SeenTurns { since: self.looked, pause, ..*seen };
                moved += found;
            }
        }
        moved
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use selvedge_core::Group;

    /// This number of ready threads.
    fn threads(cpu: &mut Cpu, count: usize) -> Vec<SendThread> {
        (0..count).for_each(|_| drop(cpu.spawn_main(async {}).unwrap()));
        std::iter::from_fn(|| cpu.woken()).map(|thread| thread.into_send().unwrap()).collect()
    }

    fn desk() -> Desk {
        Desk::new(RunRing::new())
    }

    #[test]
    fn what_events_woke_stays_out_of_the_ring_until_it_is_shared() {
        let mut cpu = Cpu::new_in(&Group::new()).unwrap();
        let mut desk = desk();
        for thread in threads(&mut cpu, 2 * REFILL + 1) {
            desk.push_arrival(thread);
        }
        desk.refill(REFILL);
        assert!(desk.is_kept() && desk.ring.is_empty());
        desk.share_some();
        assert!(desk.is_kept() && desk.ring.len() == REFILL);
        desk.refill(REFILL);
        assert_eq!(desk.ring.len(), REFILL, "the others are kept");
        desk.share();
        assert!(!desk.is_kept() && desk.ring.len() == 2 * REFILL);
        assert!(desk.pop_kept().is_none());
        while desk.pop().is_some() {}
    }

    #[test]
    fn a_thread_that_comes_behind_the_kept_ones_shares_all() {
        let mut cpu = Cpu::new_in(&Group::new()).unwrap();
        let mut desk = desk();
        let mut threads = threads(&mut cpu, 4).into_iter();
        threads.by_ref().take(2).for_each(|thread| desk.push_arrival(thread));
        assert!(desk.pop_kept().is_some() && desk.is_kept());
        desk.push(threads.next().unwrap());
        assert!(!desk.is_kept());
        desk.push_arrival(threads.next().unwrap());
        assert!(!desk.is_kept(), "an event does not take back what was shared");
        desk.refill(REFILL);
        assert_eq!(desk.ring.len(), 3);
        while desk.pop().is_some() {}
    }

    #[test]
    fn a_guest_gets_the_kept_threads() {
        let mut cpu = Cpu::new_in(&Group::new()).unwrap();
        let (mut desk, mut guest) = (desk(), desk());
        threads(&mut cpu, 5).into_iter().for_each(|thread| desk.push_arrival(thread));
        assert_eq!(desk.yield_to(&mut guest), 5);
        assert_eq!(desk.ring.len(), 5, "a thief can steal them");
        while desk.pop().is_some() {}
    }
}
