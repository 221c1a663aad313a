//! What an event loop remembers of each descriptor: the table behind readiness waits.
//!
//! Each descriptor is registered with epoll once, edge-triggered, for both directions. An edge is reported once, so it must not be lost: it
//! resumes whoever waits for it, and is kept as a *ready bit* until somebody has had it.
//!
//! ```text
//!                      wait                               event
//!   nobody waits ──────────────> somebody waits ────────────────────> resumed, bit set
//!        │  event                                                        │
//!        └────────> bit set <────────────────────────────────────────────┘
//!                      │ wait: clears the bit, goes on at once
//!                      │ a call has found nothing: clears the bit
//! ```
//!
//! The bit is kept for the next one even if somebody is resumed, because he may have given up meanwhile: what is resumed is a waker, of a
//! time-out that has passed or a thread that was cancelled, and nobody tells. It is cleared by who finds the descriptor drained:
//! the edge was collected before his call, and what it told of was there for him
//! ([`found_drained`](crate::event_loop::found_drained)). So in the usual case, a call that comes back short or fails and then waits, no call is made in vain.
//!
//! A descriptor that gets edges, one after the other, for which nobody waits here, costs a wake-up for each; its threads may have gone to
//! another loop. So it is taken out of the set ([`idle`](Entry::idle)). Who waits for it then registers it, which reports what is
//! ready at that moment.
//!
//! One rule keeps the end of a stream from being lost. A reader takes a short read as "nothing left" and waits before it
//! reads again. When data and the end come together in one event, that wait would last for ever. So an event that
//! tells of an end (hang-up, error, the peer's shutdown) sets another bit too, which only a wait clears, by going on: the first lets the
//! reader read what was there, up to a short read; the second is for the read
//! after that, which finds the end. Reading past an end never blocks, so it costs one call at most.
//!
//! Another rule keeps what lies behind urgent data from being lost: a read ends there, short, and leaves something (see
//! [`shorts`](crate::shorts)). From the first event on that tells of urgent data, an edge sets a third bit, *left*, which only a call clears
//! that has found nothing: a failing one, or one that has found the end. Neither a short read nor a wait that goes on clears it.
//!
//! This file makes no system calls and knows no threads: what waits is a `W`.

use crate::wheel::TimerKey;
use selvedge_core::{Deadline, Interest, Readiness, Time};
use std::os::fd::RawFd;

/// The directions of a descriptor, and what an event says of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// No more will come to be read: the one read that finds the end is still to be done.
    pub(crate) read_end: bool,
    /// Likewise for writing.
    pub(crate) write_end: bool,
    /// Reads end at a mark, and leave what is behind it.
    pub(crate) urgent: bool,
}

/// Set while the descriptor is in the epoll set.
const REGISTERED: u16 = 1;
/// An edge came, and nobody has found the descriptor drained since, nor gone on at once for its sake.
const READ_READY: u16 = 2;
const WRITE_READY: u16 = 4;
/// It cannot be polled and never blocks: a regular file or a directory.
const ALWAYS: u16 = 8;
/// The reader waits for writing as well.
const EITHER: u16 = 16;
/// More wait than the two in the entry: see [`Crowd`].
const CROWDED: u16 = 32;
/// An end came: the read that finds it is still to be done.
const READ_END: u16 = 64;
/// Likewise the write.
const WRITE_END: u16 = 128;
/// An event has told of urgent data.
const URGENT: u16 = 256;
/// An edge came since then, and no call has found nothing to read since that.
const READ_LEFT: u16 = 512;

/// How many edges that nobody waits for, one after the other, take a descriptor out of the epoll set. The first may come while its thread
/// is about to wait.
const STRAYS_MAX: u8 = 2;

/// One descriptor.
#[derive(Debug)]
pub(crate) struct Entry<W> {
    reader: Option<W>,
    writer: Option<W>,
    reader_by: Deadline,
    writer_by: Deadline,
    /// The timer that looks after both deadlines; it is due at the earlier of them or before.
    pub(crate) timer: Option<TimerKey>,
    /// Counts the registrations of this descriptor, so that an event of an earlier file is told apart.
    pub(crate) generation: u32,
    /// Its number while it is registered.
    pub(crate) fd: RawFd,
    state: u16,
    /// How many edges have come, since somebody waited last, that found nobody.
    strays: u8,
}

impl<W> Default for Entry<W> {
    fn default() -> Entry<W> {
        let never = Deadline::NEVER;
        Entry {
            reader: None,
            writer: None,
            reader_by: never,
            writer_by: never,
            timer: None,
            generation: 0,
            fd: -1,
            state: 0,
            strays: 0,
        }
    }
}

/// The ready bits of these directions.
fn bits(interest: Interest) -> u16 {
    let read = if interest.contains(Interest::READ) { READ_READY } else { 0 };
    let write = if interest.contains(Interest::WRITE) { WRITE_READY } else { 0 };
    read | write
}

/// By what a call has shown that a descriptor is drained.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Drained {
    /// It came back short.
    Short,
    /// It found nothing: it failed, or it found the end.
    Nothing,
}

/// What can wait for a descriptor.
pub(crate) trait Wakes {
    /// Whether resuming `newer` makes resuming this unnecessary: they are wakers of the same task.
    fn is_replaced_by(&self, newer: &Self) -> bool;
}

/// How a wait begins.
#[derive(Debug, PartialEq)]
pub(crate) enum Wait<W> {
    /// The descriptor is ready: the waiter goes on at once.
    Over(W),
    /// It waits; `again` if in its own earlier place.
    Begun { again: bool },
    /// Somebody else waits in this direction already: it must wait in the crowd.
    Taken(W),
}

impl<W: Wakes> Entry<W> {
    pub(crate) fn registered(&self) -> bool {
        self.state & REGISTERED != 0
    }

    /// Forgets an earlier file of this descriptor; those who waited for it are returned.
    pub(crate) fn renew(&mut self) -> [Option<W>; 2] {
        self.generation = self.generation.wrapping_add(1);
        (self.state, self.strays) = (0, 0);
        [self.reader.take(), self.writer.take()]
    }

    /// Drops those who wait, and forgets the timer. What is known of the descriptor stays.
    pub(crate) fn clear(&mut self) {
        (self.reader, self.writer, self.timer) = (None, None, None);
        self.state &= !(EITHER | CROWDED);
    }

    /// The descriptor is in the epoll set.
    pub(crate) fn set_registered(&mut self, fd: RawFd) {
        self.fd = fd;
        self.state |= REGISTERED;
    }

    /// The descriptor cannot be put into the epoll set because it never blocks.
    pub(crate) fn set_always_ready(&mut self) {
        self.state |= REGISTERED | ALWAYS;
    }

    /// The descriptor is no longer in the epoll set.
    pub(crate) fn set_unregistered(&mut self) {
        self.state &= !REGISTERED;
    }

    /// Whether it gets edges for which nobody waits, as the last one. It may be taken out of the epoll set then.
    pub(crate) fn idle(&self) -> bool {
        self.strays >= STRAYS_MAX && self.state & (REGISTERED | CROWDED) == REGISTERED
    }

    /// A call has found it drained: the edges kept are used up.
    pub(crate) fn drained(&mut self, interest: Interest, by: Drained) {
        self.state &= !bits(interest);
        if by == Drained::Nothing && interest.contains(Interest::READ) {
            self.state &= !READ_LEFT;
        }
    }

    /// A waiter comes.
    pub(crate) fn wait(&mut self, waiter: W, readiness: Readiness) -> Wait<W> {
        let read = readiness.interest.contains(Interest::READ);
        let write = readiness.interest.contains(Interest::WRITE);
        self.strays = 0;
        let wanted = bits(readiness.interest);
        if self.state & (wanted | ALWAYS) != 0 {
            self.state &= !wanted;
            return Wait::Over(waiter);
        }
        if read && self.state & READ_LEFT != 0 {
            return Wait::Over(waiter);
        }
        let ends = if read { READ_END } else { 0 } | if write { WRITE_END } else { 0 };
        if self.state & ends != 0 {
            self.state &= !ends;
            return Wait::Over(waiter);
        }
        // Who waits for both stands in the reader's place and answers to either direction.
        let reads = read || !write;
        let (place, by) = if reads {
            (&mut self.reader, &mut self.reader_by)
        } else {
            (&mut self.writer, &mut self.writer_by)
        };
        if let Some(before) = place
            && !before.is_replaced_by(&waiter)
        {
            self.state |= CROWDED;
            return Wait::Taken(waiter);
        }
        let again = place.replace(waiter).is_some();
        *by = readiness.deadline;
        if reads {
            self.state = if write { self.state | EITHER } else { self.state & !EITHER };
        }
        Wait::Begun { again }
    }

    /// Whether there may be a crowd besides those in the entry.
    pub(crate) fn crowded(&self) -> bool {
        self.state & CROWDED != 0
    }

    /// The crowd is gone.
    pub(crate) fn set_uncrowded(&mut self) {
        self.state &= !CROWDED;
    }

    /// An event comes; those who waited for it are returned.
    #[inline]
    pub(crate) fn event(&mut self, ready: Ready) -> [Option<W>; 2] {
        if self.reader.is_none() && self.writer.is_none() {
            self.strays = self.strays.saturating_add(1);
        }
        let either = self.state & EITHER != 0;
        let reader = if ready.read || ready.write && either { self.reader.take() } else { None };
        let writer = if ready.write { self.writer.take() } else { None };
        let set = |yes: bool, bit: u16| if yes { bit } else { 0 };
        self.state |= set(ready.urgent, URGENT)
            | set(ready.read, READ_READY)
            | set(ready.write, WRITE_READY)
            | set(ready.read_end, READ_END)
            | set(ready.write_end, WRITE_END);
        if ready.read && self.state & URGENT != 0 {
            self.state |= READ_LEFT;
        }
        [reader, writer]
    }

    /// The timer has gone off: those whose deadline has passed are returned, with the deadline that is next.
    pub(crate) fn expire(&mut self, now: Time) -> ([Option<W>; 2], Option<Time>) {
        self.timer = None;
        let reader = if self.reader_by.expired(now) { self.reader.take() } else { None };
        let writer = if self.writer_by.expired(now) { self.writer.take() } else { None };
        let left = [(&self.reader, self.reader_by), (&self.writer, self.writer_by)];
        let next = left.into_iter().filter_map(|(w, by)| w.as_ref().and_then(|_| by.time(now))).min();
        ([reader, writer], next)
    }
}

/// Those who wait for a descriptor besides its one reader and its one writer: several threads that accept from one
/// listener, say. All whom an event concerns are resumed and try; the table need not know who will have it.
#[derive(Debug)]
pub(crate) struct Crowd<W> {
    members: Vec<(W, Interest, Deadline)>,
}

impl<W: Wakes> Crowd<W> {
    pub(crate) fn new() -> Crowd<W> {
        Crowd { members: Vec::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// One more waits; one that it replaces is returned.
    pub(crate) fn join(&mut self, waiter: W, readiness: Readiness) -> Option<W> {
        let replaced = self.members.iter().position(|(before, ..)| before.is_replaced_by(&waiter));
        let replaced = replaced.map(|i| self.members.swap_remove(i).0);
        self.members.push((waiter, readiness.interest, readiness.deadline));
        replaced
    }

    /// Takes out those whom an event concerns.
    pub(crate) fn event(&mut self, ready: Ready) -> impl Iterator<Item = W> {
        self.take(move |interest, _| {
            ready.read && interest.contains(Interest::READ)
                || ready.write && interest.contains(Interest::WRITE)
        })
    }

    /// Takes out those whose deadline has passed.
    pub(crate) fn expire(&mut self, now: Time) -> impl Iterator<Item = W> {
        self.take(move |_, deadline| deadline.expired(now))
    }

    /// The next deadline.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        self.members.iter().filter_map(|(.., deadline)| deadline.time(now)).min()
    }

    pub(crate) fn disperse(self) -> impl Iterator<Item = W> {
        self.members.into_iter().map(|(waiter, ..)| waiter)
    }

    fn take(&mut self, concerns: impl Fn(Interest, Deadline) -> bool) -> impl Iterator<Item = W> {
        self.members
            .extract_if(.., move |(_, interest, deadline)| concerns(*interest, *deadline))
            .map(|(w, ..)| w)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const READ: Ready = Ready { read: true, write: false, read_end: false, write_end: false, urgent: false };
    const WRITE: Ready = Ready { read: false, write: true, read_end: false, write_end: false, urgent: false };
    const DATA_AND_END: Ready =
        Ready { read: true, write: true, read_end: true, write_end: false, urgent: false };
    const HANG_UP: Ready = Ready { read: true, write: true, read_end: true, write_end: true, urgent: false };

    impl Wakes for char {
        fn is_replaced_by(&self, newer: &char) -> bool {
            self == newer
        }
    }

    fn for_(interest: Interest) -> Readiness {
        until(interest, Deadline::NEVER)
    }

    fn until(interest: Interest, deadline: Deadline) -> Readiness {
        Readiness { fd: 0, deadline, interest, fresh: false }
    }

    /// Whether the wait goes on at once.
    fn at_once<W>(wait: Wait<W>) -> bool {
        matches!(wait, Wait::Over(_))
    }

    #[test]
    fn an_edge_without_a_waiter_is_kept_once() {
        let mut entry = Entry::default();
        assert_eq!([entry.event(READ), entry.event(READ)], [[None; 2]; 2]);
        assert!(at_once(entry.wait('a', for_(Interest::READ))));
        assert!(!at_once(entry.wait('b', for_(Interest::READ))));
        assert_eq!(entry.event(READ), [Some('b'), None]);
        assert!(at_once(entry.wait('c', for_(Interest::READ))), "who was resumed may have given up");
        assert!(!at_once(entry.wait('c', for_(Interest::READ))));
    }

    #[test]
    fn who_finds_it_drained_uses_up_the_edges_of_that_direction() {
        for resumes in [false, true] {
            let mut entry = Entry::default();
            assert!(!resumes || !at_once(entry.wait('a', for_(Interest::READ | Interest::WRITE))));
            entry.event(HANG_UP);
            entry.drained(Interest::READ, Drained::Short);
            assert!(at_once(entry.wait('w', for_(Interest::WRITE))), "the other direction's is kept");
            assert!(at_once(entry.wait('r', for_(Interest::READ))), "an end is still to be found");
            assert!(!at_once(entry.wait('r', for_(Interest::READ))));
            entry.drained(Interest::WRITE, Drained::Short);
            assert!(at_once(entry.wait('w', for_(Interest::WRITE))), "so it is in writing");
            assert!(!at_once(entry.wait('w', for_(Interest::WRITE))));
        }
    }

    #[test]
    fn a_descriptor_is_idle_when_edges_come_and_nobody_has_waited_in_between() {
        let mut entry = Entry::default();
        entry.set_registered(7);
        for _ in 0..3 {
            assert!(!at_once(entry.wait('a', for_(Interest::READ))));
            assert_eq!(entry.event(WRITE), [None, None]);
            assert_eq!(entry.event(READ), [Some('a'), None]);
            entry.event(READ);
            assert!(!entry.idle(), "the next edge may find somebody again");
            entry.drained(Interest::READ | Interest::WRITE, Drained::Short);
        }
        entry.event(READ);
        assert!(entry.idle());
        entry.set_unregistered();
        entry.event(READ);
        assert!(!entry.idle(), "once");
    }

    #[test]
    fn directions_are_apart() {
        let mut entry = Entry::default();
        assert!(!at_once(entry.wait('r', for_(Interest::READ))));
        assert!(!at_once(entry.wait('w', for_(Interest::WRITE))));
        assert_eq!(entry.event(WRITE), [None, Some('w')]);
        entry.drained(Interest::WRITE, Drained::Short);
        assert_eq!(entry.event(WRITE), [None, None]);
        assert!(!at_once(entry.wait('s', for_(Interest::READ))));
        assert!(at_once(entry.wait('w', for_(Interest::WRITE))));
    }

    #[test]
    fn a_waiter_for_either_direction_is_resumed_by_both() {
        for ready in [READ, WRITE] {
            let mut entry = Entry::default();
            assert!(!at_once(entry.wait('a', for_(Interest::READ | Interest::WRITE))));
            assert_eq!(entry.event(ready), [Some('a'), None]);
            entry.drained(Interest::READ | Interest::WRITE, Drained::Short);
            assert!(!at_once(entry.wait('b', for_(Interest::READ))));
            assert_eq!(entry.event(WRITE), [None, None], "a plain reader does not answer to writing");
        }
    }

    #[test]
    fn after_the_end_there_is_one_more_read_to_do() {
        let mut entry = Entry::default();
        assert!(!at_once(entry.wait('a', for_(Interest::READ))));
        assert_eq!(entry.event(DATA_AND_END), [Some('a'), None]);
        entry.drained(Interest::READ, Drained::Short); // a short read
        assert!(at_once(entry.wait('a', for_(Interest::READ))), "the read that finds the end");
        assert!(!at_once(entry.wait('a', for_(Interest::READ))), "and no spinning afterwards");
    }

    #[test]
    fn an_end_that_nobody_waited_for_is_not_used_up_by_reading_what_came_before_it() {
        let mut entry = Entry::default();
        assert_eq!(entry.event(DATA_AND_END), [None, None]);
        assert!(
            at_once(entry.wait('a', for_(Interest::READ))),
            "there is something to read, in several reads"
        );
        assert!(at_once(entry.wait('a', for_(Interest::READ))), "the last was short; this one finds the end");
        assert!(!at_once(entry.wait('a', for_(Interest::READ))), "and no spinning afterwards");
    }

    #[test]
    fn what_urgent_data_may_have_left_is_waited_for_only_when_a_call_has_found_nothing() {
        let mut entry = Entry::default();
        assert_eq!(entry.event(Ready { urgent: true, ..READ }), [None, None]);
        for _ in 0..3 {
            entry.drained(Interest::READ, Drained::Short);
            assert!(at_once(entry.wait('a', for_(Interest::READ))), "the read has ended at the mark");
            assert!(at_once(entry.wait('b', for_(Interest::READ))), "and another has not read yet");
        }
        entry.drained(Interest::READ, Drained::Nothing);
        assert!(!at_once(entry.wait('a', for_(Interest::READ))));
        // The mark is passed, and the next one may be anywhere.
        assert_eq!(entry.event(READ), [Some('a'), None]);
        entry.drained(Interest::READ, Drained::Short);
        assert!(at_once(entry.wait('a', for_(Interest::READ))));
        entry.drained(Interest::WRITE, Drained::Nothing);
        assert!(at_once(entry.wait('a', for_(Interest::READ))), "that was the other direction");
        entry.drained(Interest::READ, Drained::Nothing);
        assert!(!at_once(entry.wait('a', for_(Interest::READ))));
    }

    #[test]
    fn a_hang_up_resumes_both() {
        let mut entry = Entry::default();
        assert!(!at_once(entry.wait('r', for_(Interest::READ))));
        assert!(!at_once(entry.wait('w', for_(Interest::WRITE))));
        assert_eq!(entry.event(HANG_UP), [Some('r'), Some('w')]);
        assert!(at_once(entry.wait('w', for_(Interest::WRITE))));
    }

    #[test]
    fn a_file_never_waits() {
        let mut entry = Entry::default();
        entry.set_always_ready();
        for _ in 0..3 {
            assert!(at_once(entry.wait('a', for_(Interest::READ))));
        }
        assert_eq!(entry.renew(), [None, None]);
        assert!(!at_once(entry.wait('a', for_(Interest::READ))));
    }

    #[test]
    fn a_new_file_has_nothing_of_the_old_one() {
        let mut entry = Entry::default();
        entry.set_registered(7);
        assert!(!at_once(entry.wait('a', for_(Interest::READ))));
        entry.event(WRITE);
        let before = entry.generation;
        assert_eq!(entry.renew(), [Some('a'), None]);
        assert_ne!(entry.generation, before);
        assert!(!entry.registered());
        assert!(!at_once(entry.wait('b', for_(Interest::WRITE))));
    }

    #[test]
    fn one_task_that_waits_again_is_not_resumed_for_it_and_another_is_not_displaced() {
        let mut entry = Entry::default();
        assert_eq!(entry.wait('a', for_(Interest::READ)), Wait::Begun { again: false });
        assert_eq!(entry.wait('a', for_(Interest::READ)), Wait::Begun { again: true });
        assert!(!entry.crowded());
        assert_eq!(entry.wait('b', for_(Interest::READ)), Wait::Taken('b'));
        assert!(entry.crowded());
        assert_eq!(entry.event(READ), [Some('a'), None]);
    }

    #[test]
    fn a_crowd_is_resumed_by_what_concerns_it() {
        let start = Time::from_nanos(1_000_000_000);
        let soon = Deadline::after(start, Duration::from_millis(10));
        let mut crowd = Crowd::new();
        for (waiter, readiness) in [
            ('r', for_(Interest::READ)),
            ('w', for_(Interest::WRITE)),
            ('e', for_(Interest::READ | Interest::WRITE)),
            ('d', until(Interest::READ, soon)),
        ] {
            assert_eq!(crowd.join(waiter, readiness), None);
        }
        assert_eq!(crowd.join('r', for_(Interest::READ)), Some('r'));
        assert_eq!(crowd.next(start), soon.time(start));
        let expired: Vec<char> = crowd.expire(start + Duration::from_millis(10)).collect();
        assert_eq!((expired, crowd.next(start)), (vec!['d'], None));
        let mut resumed: Vec<char> = crowd.event(READ).collect();
        resumed.sort();
        assert_eq!(resumed, ['e', 'r']);
        assert_eq!(crowd.disperse().collect::<Vec<_>>(), ['w']);
    }

    #[test]
    fn deadlines_expire_one_by_one() {
        let ms = Duration::from_millis;
        let start = Time::from_nanos(1_000_000_000);
        let mut entry = Entry::default();
        entry.wait('r', until(Interest::READ, Deadline::after(start, ms(10))));
        entry.wait('w', until(Interest::WRITE, Deadline::after(start, ms(20))));
        assert_eq!(entry.expire(start + ms(5)), ([None, None], Some(start + ms(10))));
        assert_eq!(entry.expire(start + ms(10)), ([Some('r'), None], Some(start + ms(20))));
        assert_eq!(entry.expire(start + ms(99)), ([None, Some('w')], None));
    }
}
