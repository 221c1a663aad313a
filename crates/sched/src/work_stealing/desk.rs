//! The ready threads of a worker that may move: its [`Desk`], from which other workers take what
//! they cannot steal while the worker is in a long step.
//!
//! Thieves take from the ring, at any time. What else lies on the desk is the worker's alone. But
//! while the worker is in a step it does not touch its desk, so that another worker may be a guest
//! there (`selvedge_core::biased` has the protocol). A guest comes when the worker has made no turn
//! for [`LONG`]: see [`Lookout`].

use crate::Deque;
use selvedge_core::{Cpu, Guest, Owner, Relief, SendQueue, SendThread, Time, biased};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{OnceLock, Weak};
use std::time::Duration;

/// A turn that takes so long is taken for a long step.
const LONG: Duration = Duration::from_millis(5);
/// How long the watcher sleeps before it looks at the others, and while one is in a long step.
const TICK: Duration = Duration::from_millis(10);
const TICK_WHILE_LONG: Duration = Duration::from_millis(2);
/// When the others have made no turn for so long, and all sleep, the watcher stops to look.
const QUIET: Duration = Duration::from_millis(80);

/// Threads that are ready on one worker and may run on another.
#[derive(Debug)]
pub(super) struct Desk {
    pub(super) deque: Deque<SendThread>,
    /// Those for which the ring has no room, behind those in the ring.
    overflow: SendQueue,
    /// Those that waited for the end of a thread that was claimed together with others: they run
    /// when the others have.
    pub(super) joiners: SendQueue,
    /// Those of the joiners that run before the next claim.
    pub(super) due: SendQueue,
}

impl Desk {
    pub(super) fn new(deque: Deque<SendThread>) -> Desk {
        let queue = SendQueue::new;
        Desk { deque, overflow: queue(), joiners: queue(), due: queue() }
    }

    /// Puts a thread behind those that are ready.
    #[inline(always)]
    pub(super) fn push(&mut self, thread: SendThread) {
        match self.overflow.is_empty() {
            true => self.deque.push(thread).unwrap_or_else(|thread| self.overflow.push(thread)),
            false => self.overflow.push(thread),
        }
    }

    /// Moves at most `max` threads that had no room in the ring to the ring.
    #[inline]
    pub(super) fn refill(&mut self, max: usize) {
        if !self.overflow.is_empty() {
            let overflow = &mut self.overflow;
            self.deque.push_from(|| overflow.pop(), max);
        }
    }

    /// Moves what cannot be stolen to a guest's own desk, and as much as there is room for to the
    /// ring, where it can be stolen. How many threads have moved.
    fn yield_to(&mut self, guest: &mut Desk) -> usize {
        let mut moved = 0;
        let claimed = std::iter::from_fn(|| self.deque.take());
        let joiners = std::iter::from_fn(|| self.due.pop().or_else(|| self.joiners.pop()));
        for thread in claimed.chain(joiners) {
            guest.push(thread);
            moved += 1;
        }
        let before = self.deque.len();
        self.refill(usize::MAX);
        moved + self.deque.len() - before
    }

    /// How many threads are on it.
    pub(super) fn len(&self) -> usize {
        self.deque.len() + self.overflow.len() + self.joiners.len() + self.due.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.deque.is_empty() && self.overflow.is_empty() && self.joiners.is_empty() && self.due.is_empty()
    }

    /// Takes any thread.
    pub(super) fn pop(&mut self) -> Option<SendThread> {
        let Desk { deque, overflow, joiners, due } = self;
        deque.pop().or_else(|| overflow.pop()).or_else(|| joiners.pop()).or_else(|| due.pop())
    }
}

/// A worker's desk, as the other workers see it.
pub(super) struct Seat {
    desk: Guest<Desk>,
    /// Counts the worker's turns, modulo 2³².
    turns: AtomicU32,
    /// By what others serve the threads that wait in the worker's event source.
    relief: OnceLock<Weak<dyn Relief>>,
}

impl Seat {
    /// A seat, and its worker's end of the desk.
    pub(super) fn new(deque: Deque<SendThread>) -> (Seat, Owner<Desk>) {
        let (owner, desk) = biased(Desk::new(deque));
        (Seat { desk, turns: AtomicU32::new(0), relief: OnceLock::new() }, owner)
    }

    /// The worker has an event source, which has this relief.
    pub(super) fn set_relief(&self, relief: Weak<dyn Relief>) {
        // Each worker starts once.
        let _ = self.relief.set(relief);
    }

    /// Has the threads go on that the events in the worker's event source concern. How many.
    fn relieve(&self, cpu: &mut Cpu) -> usize {
        let relief = self.relief.get().and_then(Weak::upgrade);
        // If the system's interface fails, it fails for the worker as well, which says so.
        relief.and_then(|relief| relief.relieve(cpu).ok()).unwrap_or(0)
    }

    /// The worker begins a turn.
    #[inline]
    pub(super) fn count_turn(&self) {
        // It alone writes.
        self.turns.store(self.turns.load(Ordering::Relaxed).wrapping_add(1), Ordering::Relaxed);
    }
}

/// What a worker knows of the others' turns.
///
/// A worker looks at the others before it sleeps, each [`TICK`] while it works, and as the
/// [watcher](crate::Crew::watches) each tick while it sleeps.
pub(super) struct Lookout {
    me: usize,
    /// The turn that each worker was seen to make, and when it was first seen.
    seen: Vec<(u32, Time)>,
    looked: Time,
    /// When another was last seen to have made a turn.
    moved: Time,
    /// Whether the last look has found a worker in a long step.
    is_long: bool,
}

impl Lookout {
    pub(super) fn new(me: usize, workers: usize) -> Lookout {
        let now = Time::now();
        Lookout { me, seen: vec![(0, now); workers], looked: now, moved: now, is_long: false }
    }

    /// Whether it is time for a worker that is not idle to look.
    #[inline]
    pub(super) fn is_due(&self, now: Time) -> bool {
        now.since(self.looked) >= TICK
    }

    /// How long the watcher sleeps until it looks again: the longer, the longer nothing has
    /// happened.
    pub(super) fn tick(&self) -> Duration {
        match self.is_long {
            true => TICK_WHILE_LONG,
            false => self.looked.since(self.moved).clamp(TICK, QUIET),
        }
    }

    /// Whether the others have made no turn for some time.
    pub(super) fn is_quiet(&self) -> bool {
        self.looked.since(self.moved) >= QUIET
    }

    /// Looks at the others, and moves to `mine` what lies on the desks of those in long steps, and
    /// to `cpu` the threads for which there is an event. How many threads can run now that could
    /// not.
    pub(super) fn look(&mut self, seats: &[Seat], mine: &mut Desk, cpu: &mut Cpu) -> usize {
        self.looked = Time::now();
        self.is_long = false;
        let mut moved = 0;
        for (other, seat) in seats.iter().enumerate().filter(|&(other, _)| other != self.me) {
            let turn = seat.turns.load(Ordering::Relaxed);
            let (seen, since) = &mut self.seen[other];
            if turn != *seen {
                (*seen, *since) = (turn, self.looked);
                self.moved = self.looked;
            } else if self.looked.since(*since) >= LONG
                // A worker that sleeps is not in a step.
                && let Some(mut theirs) = seat.desk.visit()
            {
                self.is_long = true;
                moved += theirs.yield_to(mine);
                drop(theirs);
                moved += seat.relieve(cpu);
            }
        }
        moved
    }
}
