//! The state that an event loop keeps for each descriptor: the table behind readiness waits.
//! [`Reactor`](super::epoll::Reactor) keeps one [`DescriptorState`] per descriptor, and a [`Crowd`]
//! beside it where more than two waiters wait. The head of [`reactor`](super) has the vocabulary
//! and says why each bit is there.
//!
//! This file makes no system calls and knows no threads, because the waiter's type is a parameter.

use super::drained::Drained;
use crate::timer::wheel::TimerKey;
use selvedge_core::{Deadline, Interest, Readiness, Time};
use std::collections::HashMap;
use std::mem;
use std::os::fd::RawFd;
use std::task::Waker;

/// The directions in which an event makes a descriptor ready, and the further facts that the event
/// reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ready {
    pub(crate) read: bool,
    pub(crate) write: bool,
    /// The stream has ended: no more data will arrive. The read that finds the end is still to be
    /// done.
    pub(crate) read_end: bool,
    /// The same for writing.
    pub(crate) write_end: bool,
    /// Urgent data has arrived: reads end at its mark, and leave the data behind the mark.
    pub(crate) urgent: bool,
}

/// Set while the descriptor is in the epoll set.
const REGISTERED: u16 = 1;
/// An edge came; since then no call has found the descriptor drained, and no wait has gone on at
/// once because of this bit.
const READ_READY: u16 = 2;
const WRITE_READY: u16 = 4;
/// epoll cannot watch the descriptor, because it never blocks: a regular file or a directory.
const ALWAYS: u16 = 8;
/// The waiter in the reader's place waits for writing as well.
const EITHER: u16 = 16;
/// More waiters wait than the two in the entry: see [`Crowd`].
const CROWDED: u16 = 32;
/// An end came: the read that finds it is still to be done.
const READ_END: u16 = 64;
/// An end came: the write that finds it is still to be done.
const WRITE_END: u16 = 128;
/// An event has reported urgent data since the registration.
const URGENT: u16 = 256;
/// An edge came after `URGENT` was set, and since that edge no call has found nothing to read.
const READ_LEFT: u16 = 512;

/// The number of strays in a row after which a descriptor is taken out of the epoll set. The first
/// stray may come while the descriptor's thread is about to wait, so 1 would be too few.
const STRAYS_MAX: u8 = 2;

/// One descriptor.
#[derive(Debug)]
pub(crate) struct DescriptorState<W> {
    reader: Option<W>,
    writer: Option<W>,
    reader_by: Deadline,
    writer_by: Deadline,
    /// The timer for both deadlines; it is due at the earlier of them or before.
    pub(crate) timer: Option<TimerKey>,
    /// Counts the registrations of this descriptor number, so that the reactor can recognise an
    /// event of an earlier file.
    pub(crate) generation: u32,
    /// The descriptor's number, while the descriptor is registered.
    pub(crate) fd: RawFd,
    state: u16,
    /// The number of strays since the last wait.
    strays: u8,
}

impl<W> Default for DescriptorState<W> {
    fn default() -> DescriptorState<W> {
        let never = Deadline::NEVER;
        DescriptorState {
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

/// The ready bits of the directions in `interest`.
fn bits(interest: Interest) -> u16 {
    let read = if interest.contains(Interest::READ) { READ_READY } else { 0 };
    let write = if interest.contains(Interest::WRITE) { WRITE_READY } else { 0 };
    read | write
}

/// The task that a waiter resumes, as two addresses.
pub(crate) type TaskId = (usize, usize);

/// A waiter of the table.
pub(crate) trait Wakes {
    /// The task that this waiter resumes, if several waiters may resume it. While the waiter lives,
    /// no other task has this number.
    fn task(&self) -> Option<TaskId>;

    /// Whether resuming `newer` makes resuming `self` unnecessary, because both are wakers of the
    /// same task.
    fn is_replaced_by(&self, newer: &Self) -> bool {
        self.task().is_some_and(|task| newer.task() == Some(task))
    }
}

impl Wakes for Waker {
    fn task(&self) -> Option<TaskId> {
        Some((self.data().addr(), (&raw const *self.vtable()).addr()))
    }
}

/// How a wait begins.
#[derive(Debug, PartialEq)]
pub(crate) enum WaitStart<W> {
    /// The descriptor is ready: the waiter goes on at once.
    Over(W),
    /// The waiter stands in the entry. `again` is true if it has replaced its own earlier waiter.
    Begun { again: bool },
    /// Another waiter stands in this direction's place already: the new waiter must join the crowd.
    Taken(W),
}

impl<W: Wakes> DescriptorState<W> {
    pub(crate) fn registered(&self) -> bool {
        self.state & REGISTERED != 0
    }

    /// Forgets the earlier file of this descriptor number, and returns the waiters for that file.
    pub(crate) fn renew(&mut self) -> [Option<W>; 2] {
        self.generation = self.generation.wrapping_add(1);
        (self.state, self.strays) = (0, 0);
        [self.reader.take(), self.writer.take()]
    }

    /// Drops the waiters, and forgets the timer. The registration and the ready bits stay.
    pub(crate) fn clear(&mut self) {
        (self.reader, self.writer, self.timer) = (None, None, None);
        self.state &= !(EITHER | CROWDED);
    }

    /// The reactor has put the descriptor into the epoll set.
    pub(crate) fn set_registered(&mut self, fd: RawFd) {
        self.fd = fd;
        self.state |= REGISTERED;
    }

    /// epoll refuses the descriptor because it never blocks.
    pub(crate) fn set_always_ready(&mut self) {
        self.state |= REGISTERED | ALWAYS;
    }

    /// The reactor has taken the descriptor out of the epoll set.
    pub(crate) fn set_unregistered(&mut self) {
        self.state &= !REGISTERED;
    }

    /// Whether the last edges were strays, `STRAYS_MAX` of them or more. The reactor may then take
    /// the descriptor out of the epoll set.
    pub(crate) fn idle(&self) -> bool {
        self.strays >= STRAYS_MAX && self.state & (REGISTERED | CROWDED) == REGISTERED
    }

    /// A call has found the descriptor drained: clears the ready bits, because every kept edge is
    /// older than the call.
    pub(crate) fn drained(&mut self, interest: Interest, by: Drained) {
        self.state &= !bits(interest);
        if by == Drained::Nothing && interest.contains(Interest::READ) {
            self.state &= !READ_LEFT;
        }
    }

    /// `waiter` begins to wait.
    pub(crate) fn wait(&mut self, waiter: W, readiness: Readiness) -> WaitStart<W> {
        let read = readiness.interest.contains(Interest::READ);
        let write = readiness.interest.contains(Interest::WRITE);
        self.strays = 0;
        let wanted = bits(readiness.interest);
        if self.state & (wanted | ALWAYS) != 0 {
            self.state &= !wanted;
            return WaitStart::Over(waiter);
        }
        if read && self.state & READ_LEFT != 0 {
            return WaitStart::Over(waiter);
        }
        let ends = if read { READ_END } else { 0 } | if write { WRITE_END } else { 0 };
        if self.state & ends != 0 {
            self.state &= !ends;
            return WaitStart::Over(waiter);
        }
        // A waiter for both directions stands in the reader's place and is resumed by either
        // direction.
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
            return WaitStart::Taken(waiter);
        }
        let again = place.replace(waiter).is_some();
        *by = readiness.deadline;
        if reads {
            self.state = if write { self.state | EITHER } else { self.state & !EITHER };
        }
        WaitStart::Begun { again }
    }

    /// Whether a crowd may exist besides the waiters in the entry.
    pub(crate) fn crowded(&self) -> bool {
        self.state & CROWDED != 0
    }

    /// The reactor has removed the crowd.
    pub(crate) fn set_uncrowded(&mut self) {
        self.state &= !CROWDED;
    }

    /// Takes in an event, and returns the waiters in the entry that the event resumes.
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

    /// The timer has fired: returns the waiters past their deadline, and the next deadline.
    pub(crate) fn expire(&mut self, now: Time) -> ([Option<W>; 2], Option<Time>) {
        self.timer = None;
        let reader = if self.reader_by.expired(now) { self.reader.take() } else { None };
        let writer = if self.writer_by.expired(now) { self.writer.take() } else { None };
        let left = [(&self.reader, self.reader_by), (&self.writer, self.writer_by)];
        let next = left.into_iter().filter_map(|(w, by)| w.as_ref().and_then(|_| by.time(now))).min();
        ([reader, writer], next)
    }
}

/// The waiters for a descriptor besides the one reader and the one writer of its
/// [`DescriptorState`]: several threads that accept from one listener, for example. An event
/// resumes every member that it concerns, and each of them tries its call. The table need not know
/// which of them succeeds.
#[derive(Debug)]
pub(crate) struct Crowd<W> {
    members: Vec<(W, Interest, Deadline)>,
    /// The place in `members` of each member that has a task. So a member joins in constant time,
    /// however many there are.
    places: HashMap<TaskId, usize>,
}

impl<W: Wakes> Crowd<W> {
    pub(crate) fn new() -> Crowd<W> {
        Crowd { members: Vec::new(), places: HashMap::new() }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Adds `waiter`; returns the member that it replaces, if there is one.
    pub(crate) fn join(&mut self, waiter: W, readiness: Readiness) -> Option<W> {
        let place = self.members.len();
        let taken = waiter.task().map(|task| *self.places.entry(task).or_insert(place));
        let member = (waiter, readiness.interest, readiness.deadline);
        match taken.filter(|&taken| taken < place) {
            Some(taken) => Some(mem::replace(&mut self.members[taken], member).0),
            None => {
                self.members.push(member);
                None
            }
        }
    }

    /// Takes out the members that an event concerns.
    pub(crate) fn event(&mut self, ready: Ready) -> Vec<W> {
        self.take(|interest, _| {
            ready.read && interest.contains(Interest::READ)
                || ready.write && interest.contains(Interest::WRITE)
        })
    }

    /// Takes out the members past their deadline.
    pub(crate) fn expire(&mut self, now: Time) -> Vec<W> {
        self.take(|_, deadline| deadline.expired(now))
    }

    /// The earliest deadline of the members.
    pub(crate) fn next(&self, now: Time) -> Option<Time> {
        self.members.iter().filter_map(|(.., deadline)| deadline.time(now)).min()
    }

    pub(crate) fn disperse(self) -> impl Iterator<Item = W> {
        self.members.into_iter().map(|(waiter, ..)| waiter)
    }

    fn take(&mut self, concerns: impl Fn(Interest, Deadline) -> bool) -> Vec<W> {
        let concerned = self.members.extract_if(.., |(_, interest, by)| concerns(*interest, *by));
        let taken: Vec<W> = concerned.map(|(waiter, ..)| waiter).collect();
        if !taken.is_empty() {
            let tasks = self.members.iter().enumerate();
            self.places = tasks.filter_map(|(i, (waiter, ..))| Some((waiter.task()?, i))).collect();
        }
        taken
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::time::Duration;

    const READ: Ready = Ready { read: true, write: false, read_end: false, write_end: false, urgent: false };
    const WRITE: Ready = Ready { read: false, write: true, read_end: false, write_end: false, urgent: false };
    const DATA_AND_END: Ready =
        Ready { read: true, write: true, read_end: true, write_end: false, urgent: false };
    const HANG_UP: Ready = Ready { read: true, write: true, read_end: true, write_end: true, urgent: false };

    impl Wakes for char {
        fn task(&self) -> Option<TaskId> {
            Some((*self as usize, 0))
        }
    }

    /// A waiter that counts how often the table asks for its task.
    struct Asked<'a>(usize, &'a Cell<usize>);

    impl Wakes for Asked<'_> {
        fn task(&self) -> Option<TaskId> {
            self.1.set(self.1.get() + 1);
            Some((self.0, 0))
        }
    }

    fn for_(interest: Interest) -> Readiness {
        until(interest, Deadline::NEVER)
    }

    fn until(interest: Interest, deadline: Deadline) -> Readiness {
        Readiness { fd: 0, deadline, interest, fresh: false }
    }

    /// Whether the wait goes on at once.
    fn at_once<W>(wait: WaitStart<W>) -> bool {
        matches!(wait, WaitStart::Over(_))
    }

    #[test]
    fn an_edge_without_a_waiter_is_kept_once() {
        let mut entry = DescriptorState::default();
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
            let mut entry = DescriptorState::default();
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
    fn a_descriptor_is_idle_when_edges_come_and_no_waiter_has_come_in_between() {
        let mut entry = DescriptorState::default();
        entry.set_registered(7);
        for _ in 0..3 {
            assert!(!at_once(entry.wait('a', for_(Interest::READ))));
            assert_eq!(entry.event(WRITE), [None, None]);
            assert_eq!(entry.event(READ), [Some('a'), None]);
            entry.event(READ);
            assert!(!entry.idle(), "the next edge may find a waiter again");
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
        let mut entry = DescriptorState::default();
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
            let mut entry = DescriptorState::default();
            assert!(!at_once(entry.wait('a', for_(Interest::READ | Interest::WRITE))));
            assert_eq!(entry.event(ready), [Some('a'), None]);
            entry.drained(Interest::READ | Interest::WRITE, Drained::Short);
            assert!(!at_once(entry.wait('b', for_(Interest::READ))));
            assert_eq!(entry.event(WRITE), [None, None], "a plain reader does not answer to writing");
        }
    }

    #[test]
    fn after_the_end_there_is_one_more_read_to_do() {
        let mut entry = DescriptorState::default();
        assert!(!at_once(entry.wait('a', for_(Interest::READ))));
        assert_eq!(entry.event(DATA_AND_END), [Some('a'), None]);
        entry.drained(Interest::READ, Drained::Short); // a short read
        assert!(at_once(entry.wait('a', for_(Interest::READ))), "the read that finds the end");
        assert!(!at_once(entry.wait('a', for_(Interest::READ))), "and no spinning afterwards");
    }

    #[test]
    fn an_end_without_a_waiter_is_not_used_up_by_reading_what_came_before_it() {
        let mut entry = DescriptorState::default();
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
        let mut entry = DescriptorState::default();
        assert_eq!(entry.event(Ready { urgent: true, ..READ }), [None, None]);
        for _ in 0..3 {
            entry.drained(Interest::READ, Drained::Short);
            assert!(at_once(entry.wait('a', for_(Interest::READ))), "the read has ended at the mark");
            assert!(at_once(entry.wait('b', for_(Interest::READ))), "and another has not read yet");
        }
        entry.drained(Interest::READ, Drained::Nothing);
        assert!(!at_once(entry.wait('a', for_(Interest::READ))));
        // The mark is passed, and the next mark may be anywhere.
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
        let mut entry = DescriptorState::default();
        assert!(!at_once(entry.wait('r', for_(Interest::READ))));
        assert!(!at_once(entry.wait('w', for_(Interest::WRITE))));
        assert_eq!(entry.event(HANG_UP), [Some('r'), Some('w')]);
        assert!(at_once(entry.wait('w', for_(Interest::WRITE))));
    }

    #[test]
    fn a_file_never_waits() {
        let mut entry = DescriptorState::default();
        entry.set_always_ready();
        for _ in 0..3 {
            assert!(at_once(entry.wait('a', for_(Interest::READ))));
        }
        assert_eq!(entry.renew(), [None, None]);
        assert!(!at_once(entry.wait('a', for_(Interest::READ))));
    }

    #[test]
    fn a_new_file_has_nothing_of_the_old_one() {
        let mut entry = DescriptorState::default();
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
        let mut entry = DescriptorState::default();
        assert_eq!(entry.wait('a', for_(Interest::READ)), WaitStart::Begun { again: false });
        assert_eq!(entry.wait('a', for_(Interest::READ)), WaitStart::Begun { again: true });
        assert!(!entry.crowded());
        assert_eq!(entry.wait('b', for_(Interest::READ)), WaitStart::Taken('b'));
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
        let expired = crowd.expire(start + Duration::from_millis(10));
        assert_eq!((expired, crowd.next(start)), (vec!['d'], None));
        let mut resumed = crowd.event(READ);
        resumed.sort();
        assert_eq!(resumed, ['e', 'r']);
        assert_eq!(crowd.disperse().collect::<Vec<_>>(), ['w']);
    }

    #[test]
    fn the_work_for_a_crowd_is_proportional_to_its_size() {
        const MEMBERS: usize = 5_000;
        let asked = Cell::new(0);
        let mut crowd = Crowd::new();
        for round in 0..2 {
            for task in 0..MEMBERS {
                let replaced = crowd.join(Asked(task, &asked), for_(Interest::READ));
                assert_eq!(replaced.map(|Asked(before, _)| before), (round == 1).then_some(task));
            }
        }
        assert_eq!(crowd.event(WRITE).len(), 0);
        assert_eq!(crowd.event(READ).len(), MEMBERS);
        assert!(asked.get() <= 4 * MEMBERS, "{} questions for {MEMBERS} members", asked.get());
    }

    #[test]
    fn a_crowd_that_has_lost_members_still_knows_the_places_of_the_others() {
        let start = Time::from_nanos(1_000_000_000);
        let soon = Deadline::after(start, Duration::from_millis(10));
        let mut crowd = Crowd::new();
        for waiter in 'a'..='f' {
            let by = if "bde".contains(waiter) { soon } else { Deadline::NEVER };
            assert_eq!(crowd.join(waiter, until(Interest::READ, by)), None);
        }
        assert_eq!(crowd.expire(start + Duration::from_millis(10)), ['b', 'd', 'e']);
        for waiter in ['f', 'a', 'c'] {
            assert_eq!(crowd.join(waiter, for_(Interest::WRITE)), Some(waiter));
        }
        assert_eq!(crowd.join('b', for_(Interest::READ)), None);
        assert_eq!(crowd.event(READ), ['b']);
        assert_eq!(crowd.event(WRITE).len(), 3);
    }

    #[test]
    fn deadlines_expire_one_by_one() {
        let ms = Duration::from_millis;
        let start = Time::from_nanos(1_000_000_000);
        let mut entry = DescriptorState::default();
        entry.wait('r', until(Interest::READ, Deadline::after(start, ms(10))));
        entry.wait('w', until(Interest::WRITE, Deadline::after(start, ms(20))));
        assert_eq!(entry.expire(start + ms(5)), ([None, None], Some(start + ms(10))));
        assert_eq!(entry.expire(start + ms(10)), ([Some('r'), None], Some(start + ms(20))));
        assert_eq!(entry.expire(start + ms(99)), ([None, Some('w')], None));
    }
}
