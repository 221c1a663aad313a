//! [`Reactor`]: an epoll set with its table and its timers. The two event loops of this crate share
//! this type.
//!
//! [`EventLoop`](crate::EventLoop) drives one inside a scheduler, where the waiters are threads.
//! [`fallback`](super::fallback) drives another for futures on foreign executors, where the waiters
//! are wakers.

use super::drained::Drained;
use super::exclusive;
use super::readiness::{Crowd, DescriptorState, Ready, WaitStart, Wakes};
use crate::sys::{self, Fd};
use crate::timer::sleepers::SleeperWheel;
use crate::timer::wheel::{Tick, TimerKey, Wheel};
use rustix::event::epoll::{Event, EventFlags};
use rustix::io::Errno;
use selvedge_core::observe::Lengths;
use selvedge_core::{Alarm, Interest, Readiness, Time};
use std::collections::HashMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

/// The number of events that one call of `epoll_wait` takes at most.
pub(crate) const BATCH: usize = 512;

/// The data of an event that only ends the loop's wait.
pub(crate) const UNPARK: u64 = u64::MAX;

/// How long a wait lasts if the kernel does not register its descriptor because memory or watches
/// have run out.
const WITHOUT_KERNEL: Duration = Duration::from_millis(10);

/// An epoll set, the table of its descriptors and the wheel of its timers. The waiters are of type
/// `W`. A function with a parameter `resume` calls it with each waiter that must go on.
#[derive(Debug)]
pub(crate) struct Reactor<W> {
    /// The owner of the table shares it with the OS thread that waits in it, if that is another OS
    /// thread.
    epoll: Arc<Fd>,
    /// The entry of each descriptor, by the descriptor's [`sys::index`].
    entries: Vec<DescriptorState<W>>,
    /// The crowds, by the same index; only for entries that are `crowded`.
    crowds: HashMap<usize, Crowd<W>>,
    /// The timers for the deadlines of the descriptors; the payload is the entry's index.
    wheel: Wheel<usize>,
    waiting: usize,
    sleepers: SleeperWheel<W>,
}

/// The last tick that has come at `now`: rounded down. A tick of the wheel is a millisecond on the
/// clock of [`Time`].
fn tick(now: Time) -> Tick {
    Tick(now.as_nanos() / Tick::RESOLUTION.as_nanos() as u64)
}

/// The first tick that is not before `until`: rounded up.
fn tick_at(until: Time) -> Tick {
    Tick(until.as_nanos().div_ceil(Tick::RESOLUTION.as_nanos() as u64))
}

impl<W: Wakes> Reactor<W> {
    pub(crate) fn new() -> io::Result<Reactor<W>> {
        let epoll = Arc::new(sys::epoll_create()?);
        let now = tick(Time::now());
        let (entries, crowds) = (Vec::new(), HashMap::new());
        let (wheel, sleepers) = (Wheel::new(now), SleeperWheel::new(now));
        Ok(Reactor { epoll, entries, crowds, wheel, waiting: 0, sleepers })
    }

    pub(crate) fn epoll(&self) -> &Arc<Fd> {
        &self.epoll
    }

    /// About how many waiters wait or sleep. After [`resolve`](Self::resolve) has left no doubt, 0
    /// means that none is left, and more means that at least one is left.
    pub(crate) fn armed(&self) -> usize {
        self.waiting + self.sleepers.len()
    }

    /// Clears away part of the sleepers that have given up, if they are more than half of all
    /// sleepers.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        self.sleepers.tidy();
    }

    /// If perhaps only given-up sleepers are left, looks at all of them. True if there was doubt,
    /// and now no sleeper is left or there is still doubt.
    #[inline]
    pub(crate) fn resolve(&mut self) -> bool {
        self.waiting == 0 && self.sleepers.resolve()
    }

    /// The waiters of sleepers that have given up, to be dropped.
    #[inline]
    pub(crate) fn left(&mut self) -> &mut Vec<W> {
        self.sleepers.left()
    }

    /// The number of waiters for descriptors.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting
    }

    /// Tells the number of descriptors in the epoll set, the number of waiters for descriptors, the
    /// number of sleepers, and the number of timers for deadlines.
    ///
    /// # Complexity
    /// Looks at the entry of each descriptor.
    pub(crate) fn lengths(&self, say: &mut Lengths<'_>) {
        say("descriptors", self.entries.iter().filter(|entry| entry.registered()).count());
        say("waiting_for_descriptors", self.waiting);
        say("sleepers", self.sleepers.len());
        say("deadlines", self.wheel.len());
    }

    /// When [`expire`](Self::expire) must be called next.
    pub(crate) fn next(&self) -> Option<Time> {
        let next = self.wheel.next().into_iter().chain(self.sleepers.next()).min()?;
        Some(Time::from_nanos(next.0.saturating_mul(Tick::RESOLUTION.as_nanos() as u64)))
    }

    /// Adds a descriptor without an entry. Each write to it ends the loop's wait.
    pub(crate) fn add_unpark(&self, fd: impl AsFd) -> io::Result<()> {
        // Edge-triggered: every write to the descriptor is an event of its own, so the loop need
        // not read it.
        let flags = EventFlags::IN | EventFlags::ET;
        Ok(sys::epoll_add(&self.epoll, fd, UNPARK, flags)?)
    }

    /// `waiter` waits for a descriptor.
    #[inline]
    pub(crate) fn wait(&mut self, waiter: W, readiness: Readiness, now: Time, mut resume: impl FnMut(W)) {
        let Some(index) = sys::index(readiness.fd) else {
            return resume(waiter); // not a descriptor: the call that follows reports the error
        };
        if index >= self.entries.len() {
            self.entries.resize_with((index + 1).next_power_of_two().max(64), DescriptorState::default);
        }
        if !self.entries[index].registered() || readiness.fresh && !self.recognise(index, readiness.fd) {
            for earlier in self.entries[index].renew().into_iter().flatten() {
                self.waiting -= 1;
                resume(earlier);
            }
            for earlier in self.crowds.remove(&index).into_iter().flat_map(Crowd::disperse) {
                self.waiting -= 1;
                resume(earlier);
            }
            if !self.register(index, readiness.fd) {
                return self.sleep(waiter, now + WITHOUT_KERNEL);
            }
        }
        let entry = &mut self.entries[index];
        match entry.wait(waiter, readiness) {
            WaitStart::Over(waiter) => return resume(waiter),
            WaitStart::Begun { again } => self.waiting += usize::from(!again),
            WaitStart::Taken(waiter) => {
                let replaced = self.crowds.entry(index).or_insert_with(Crowd::new).join(waiter, readiness);
                self.waiting += usize::from(replaced.is_none());
            }
        }
        if let Some(deadline) = readiness.deadline.time(now) {
            self.look_after(index, deadline);
        }
    }

    /// `waiter` sleeps until `until`, and cannot give up.
    #[inline]
    pub(crate) fn sleep(&mut self, waiter: W, until: Time) {
        self.sleepers.add(tick_at(until), waiter, None);
    }

    /// `waiter` sleeps until the alarm's time, or until it gives up.
    #[inline]
    pub(crate) fn set(&mut self, waiter: W, alarm: Alarm) {
        let (until, flag) = alarm.into_parts();
        self.sleepers.add(tick_at(until), waiter, Some(flag));
        self.sleepers.tidy();
    }

    /// A call has found the descriptor drained, and no event has been taken from the epoll set
    /// since.
    #[inline]
    pub(crate) fn drained(&mut self, fd: RawFd, interest: Interest, by: Drained) {
        if let Some(entry) = sys::index(fd).and_then(|index| self.entries.get_mut(index)) {
            entry.drained(interest, by);
        }
    }

    /// Takes in an event of the epoll set, and resumes the waiters that it concerns.
    #[inline]
    pub(crate) fn event(&mut self, event: Event, mut resume: impl FnMut(W)) {
        let (index, generation) = (event.data.u64() as u32 as usize, (event.data.u64() >> 32) as u32);
        let Some(entry) = self.entries.get_mut(index) else { return };
        if entry.generation != generation {
            // An event of an earlier file with this number, which is still open under another
            // number.
            return;
        }
        let flags = event.flags;
        let broken = flags.intersects(EventFlags::HUP | EventFlags::ERR);
        let read_end = broken || flags.contains(EventFlags::RDHUP);
        let ready = Ready {
            read: read_end || flags.intersects(EventFlags::IN | EventFlags::PRI),
            write: broken || flags.contains(EventFlags::OUT),
            read_end,
            write_end: broken,
            urgent: flags.contains(EventFlags::PRI),
        };
        for waiter in entry.event(ready).into_iter().flatten() {
            self.waiting -= 1;
            resume(waiter);
        }
        if entry.idle() {
            self.take_out(index);
        } else if entry.crowded() {
            self.with_crowd(index, |crowd| crowd.event(ready), resume);
        }
    }

    /// Resumes the waiters that have a deadline or a sleep due at `now`.
    pub(crate) fn expire(&mut self, now: Time, mut resume: impl FnMut(W)) {
        while let Some(index) = self.wheel.expire(tick(now)) {
            let (expired, mut next) = self.entries[index].expire(now);
            for waiter in expired.into_iter().flatten() {
                self.waiting -= 1;
                resume(waiter);
            }
            if self.entries[index].crowded() {
                self.with_crowd(index, |crowd| crowd.expire(now), &mut resume);
                let others = self.crowds.get(&index).and_then(|crowd| crowd.next(now));
                next = next.into_iter().chain(others).min();
            }
            if let Some(next) = next {
                self.look_after(index, next);
            }
        }
        self.sleepers.expire(tick(now), resume);
    }

    /// Drops all waiters and sleepers. The descriptors stay registered.
    pub(crate) fn clear(&mut self) {
        for entry in &mut self.entries {
            entry.clear();
        }
        self.crowds.clear();
        let now = tick(Time::now());
        (self.wheel, self.sleepers, self.waiting) = (Wheel::new(now), SleeperWheel::new(now), 0);
    }

    /// Resumes the members that `take` takes out of a descriptor's crowd.
    #[cold]
    fn with_crowd(
        &mut self,
        index: usize,
        take: impl FnOnce(&mut Crowd<W>) -> Vec<W>,
        mut resume: impl FnMut(W),
    ) {
        let Some(crowd) = self.crowds.get_mut(&index) else { return };
        let taken = take(crowd);
        if crowd.is_empty() {
            self.crowds.remove(&index);
            self.entries[index].set_uncrowded();
        }
        for waiter in taken {
            self.waiting -= 1;
            resume(waiter);
        }
    }

    /// Makes the descriptor's timer fire at `deadline` or before. A timer that is due earlier is
    /// left alone, because `expire` sets it again when it fires. So a deadline that moves on with
    /// every request costs nothing.
    fn look_after(&mut self, index: usize, deadline: Time) {
        let at = tick_at(deadline);
        let entry = &mut self.entries[index];
        let early = |key: TimerKey| self.wheel.due(key).is_some_and(|due| due <= at);
        if entry.timer.is_some_and(early) {
            return;
        }
        if let Some(key) = entry.timer.take() {
            self.wheel.cancel(key);
        }
        entry.timer = Some(self.wheel.insert(at, index));
    }

    /// Takes a descriptor that no waiter waits for here out of the epoll set, until the next wait
    /// for it.
    #[cold]
    fn take_out(&mut self, index: usize) {
        let entry = &mut self.entries[index];
        // SAFETY: `register` put the number into the set while it was open. If the descriptor has
        // been closed, the call below fails. If another file has the number now, that file is not
        // in this set: its registration would have begun a new generation
        // (`DescriptorState::renew`), and `event` would have returned before.
        let borrowed = unsafe { BorrowedFd::borrow_raw(entry.fd) };
        let _ = sys::epoll_delete(&self.epoll, borrowed);
        entry.set_unregistered();
    }

    /// The data and the flags that a descriptor is registered with.
    fn registration(&self, index: usize, fd: RawFd) -> (u64, EventFlags) {
        let flags = match exclusive::claim(fd, &self.epoll) {
            false => EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::PRI | EventFlags::ET,
            true => EventFlags::IN | EventFlags::ET | EventFlags::EXCLUSIVE,
        };
        (u64::from(self.entries[index].generation) << 32 | index as u64, flags)
    }

    /// Asks the kernel whether a registered entry is about the file that has its number now. The
    /// epoll set knows each member by its number and its open file, so the kernel changes the
    /// registration of this very file or of none. If the kernel changes it, the kernel reports once
    /// more what is ready, and the waiters go on waiting.
    #[cold]
    fn recognise(&mut self, index: usize, fd: RawFd) -> bool {
        let (data, flags) = self.registration(index, fd);
        // SAFETY: the owner of the descriptor waits for it and so keeps it open. If the number were
        // closed, the calls below would fail. If it named another file of this process, that file
        // would not be in the set under this number, or it would be the file that the entry is
        // about.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        match sys::epoll_modify(&self.epoll, borrowed, data, flags) {
            Ok(()) => true,
            // The kernel refuses to change an exclusive registration, so the reactor makes a new
            // one.
            Err(Errno::INVAL) if sys::epoll_delete(&self.epoll, borrowed).is_ok() => {
                self.entries[index].set_unregistered();
                self.register(index, fd)
            }
            Err(_) => false,
        }
    }

    /// Puts a descriptor into the epoll set. False if the kernel cannot register it for lack of
    /// room.
    #[cold]
    fn register(&mut self, index: usize, fd: RawFd) -> bool {
        let (data, flags) = self.registration(index, fd);
        // SAFETY: the owner of the descriptor waits for it and so keeps it open. If the number were
        // closed, the calls below would fail. If it named another file of this process, the
        // generation in the entry would tell the two files apart.
        let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
        let mut added = sys::epoll_add(&self.epoll, borrowed, data, flags);
        if added == Err(Errno::EXIST) {
            // The set has the descriptor from an earlier time that the table does not know. Adding
            // it anew reports again what is ready now.
            let _ = sys::epoll_delete(&self.epoll, borrowed);
            added = sys::epoll_add(&self.epoll, borrowed, data, flags);
        }
        let entry = &mut self.entries[index];
        match added {
            Ok(()) => entry.set_registered(fd),
            // A regular file; or a closed number, which the call that follows will report.
            Err(Errno::PERM | Errno::BADF) => entry.set_always_ready(),
            Err(_) => return false,
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::readiness::TaskId;
    use super::*;
    use rustix::event::{Timespec, epoll};
    use selvedge_core::Deadline;
    use std::os::fd::AsRawFd;

    impl Wakes for &str {
        fn task(&self) -> Option<TaskId> {
            Some((self.len(), usize::from(self.as_bytes()[0])))
        }
    }

    fn read(fd: impl AsFd, fresh: bool) -> Readiness {
        Readiness { fd: fd.as_fd().as_raw_fd(), deadline: Deadline::NEVER, interest: Interest::READ, fresh }
    }

    /// The events that are ready now.
    fn events<W: Wakes>(reactor: &Reactor<W>) -> Vec<Event> {
        let mut events = Vec::with_capacity(10);
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        epoll::wait(reactor.epoll(), rustix::buffer::spare_capacity(&mut events), Some(&now)).unwrap();
        events
    }

    #[test]
    fn an_event_of_an_earlier_file_resumes_no_waiter() {
        let mut reactor = Reactor::new().unwrap();
        let now = Time::now();
        let (mut reader, writer) = rustix::pipe::pipe().unwrap();
        reactor.wait("old", read(&reader, true), now, |_| panic!("nothing is there"));
        rustix::io::write(&writer, b"x").unwrap();
        let event = events(&reactor)[0];
        // Between the event and its delivery another file gets the number. The old file is still
        // open under another number.
        let elsewhere = reader.try_clone().unwrap();
        let (new_reader, new_writer) = rustix::pipe::pipe().unwrap();
        rustix::io::dup2(&new_reader, &mut reader).unwrap();
        let mut resumed = Vec::new();
        reactor.wait("new", read(&reader, true), now, |w| resumed.push(w));
        assert_eq!(resumed, ["old"]);
        reactor.event(event, |w| panic!("{w} is resumed by a stale event"));
        rustix::io::write(&writer, b"x").unwrap();
        for event in events(&reactor) {
            reactor.event(event, |w| panic!("{w} is resumed by the old file"));
        }
        assert_eq!(reactor.armed(), 1);
        rustix::io::write(&new_writer, b"x").unwrap();
        let event = events(&reactor).into_iter().find(|event| event.data.u64() >> 32 == 2).unwrap();
        reactor.event(event, |w| resumed.push(w));
        assert_eq!(resumed, ["old", "new"]);
        assert_eq!(reactor.armed(), 0);
        drop(elsewhere);
    }

    #[test]
    fn a_fresh_wait_for_the_same_file_resumes_no_waiter_and_loses_nothing() {
        let mut reactor = Reactor::new().unwrap();
        let now = Time::now();
        let (reader, writer) = rustix::pipe::pipe().unwrap();
        for waiter in ["one", "other", "one", "other"] {
            reactor.wait(waiter, read(&reader, true), now, |w| panic!("{w} is resumed"));
        }
        assert_eq!(reactor.armed(), 2);
        rustix::io::write(&writer, b"x").unwrap();
        let event = events(&reactor)[0];
        let mut resumed = Vec::new();
        reactor.event(event, |w| resumed.push(w));
        assert_eq!((resumed.as_slice(), reactor.armed()), (["one", "other"].as_slice(), 0));
        // That edge is kept, and another fresh wait makes the kernel report it once more.
        reactor.wait("one", read(&reader, true), now, |w| resumed.push(w));
        assert_eq!((resumed.len(), events(&reactor).len()), (3, 1));
    }

    #[test]
    fn what_the_kernel_does_not_register_is_tried_again_and_again_but_not_at_once() {
        let mut reactor = Reactor::new().unwrap();
        let now = Time::now();
        // An epoll set cannot watch itself: the kernel answers EINVAL, as it answers ENOSPC when
        // watches have run out.
        let itself = reactor.epoll().clone();
        for _ in 0..2 {
            reactor.wait("waiter", read(&*itself, true), now, |_| panic!("it would spin"));
            assert_eq!(reactor.armed(), 1);
            reactor.expire(now + (WITHOUT_KERNEL - Duration::from_millis(1)), |_| panic!("too early"));
            let mut resumed = Vec::new();
            reactor.expire(now + WITHOUT_KERNEL + Duration::from_millis(1), |w| resumed.push(w));
            assert_eq!((resumed.as_slice(), reactor.armed()), (["waiter"].as_slice(), 0));
        }
    }

    #[test]
    fn one_timer_serves_all_deadlines_of_a_descriptor() {
        let mut reactor = Reactor::new().unwrap();
        let now = Time::now();
        let (reader, _writer) = rustix::pipe::pipe().unwrap();
        for i in 0..100 {
            let deadline = Deadline::after(now, Duration::from_millis(1000 + i));
            reactor.wait("waiter", Readiness { deadline, ..read(&reader, false) }, now, |_| {
                panic!("nothing is there")
            });
        }
        assert_eq!((reactor.wheel.len(), reactor.armed()), (1, 1));
        reactor.expire(now + Duration::from_millis(1050), |_| panic!("the deadline has moved on"));
        assert_eq!(reactor.wheel.len(), 1);
        let mut resumed = 0;
        reactor.expire(now + Duration::from_millis(1101), |_| resumed += 1);
        assert_eq!((resumed, reactor.wheel.len(), reactor.armed()), (1, 0, 0));
    }
}
