//! The sleepers of an event loop, ordered by the tick at which they are due: [`SleeperWheel`], made
//! for millions of sleeps.
//!
//! Vocabulary. A *sleeper* is a waiter with its tick and, if it can give up, its [`CancelFlag`]. A
//! sleeper *has given up* when its `CancelFlag` is cancelled. Sleepers that have given up are
//! *counted* in a `CancelCount` counter.
//!
//! No sleeper can be taken out by a key. A sleeper gives up through its [`CancelFlag`], on whatever
//! OS thread, and giving up costs nothing more. The entry that a given-up sleeper leaves here is
//! skipped when it is due. It is cleared away earlier when the given-up sleepers are more than the
//! wanted ones. So a slot is a plain vector: setting a timer appends to the vector, firing reads it
//! from end to end, and neither looks at any other timer.
//!
//! `Reactor` (`reactor/epoll.rs`) has one for each event loop.

use super::levels::{LEVELS, Levels, SLOTS, Slots};
use super::wheel::Tick;
use selvedge_core::{CancelCount, CancelFlag};
use std::mem;

/// The capacity, in sleepers, that an emptied slot keeps.
const ROOM_KEPT: usize = 256;
/// This many given-up sleepers may stay until they are due.
const GIVEN_UP_MAX: usize = 32;

#[derive(Debug)]
struct Sleeper<W> {
    tick: Tick,
    waiter: W,
    /// The flag of a sleeper that can give up.
    flag: Option<CancelFlag>,
}

impl<W> Sleeper<W> {
    fn has_given_up(&self) -> bool {
        self.flag.as_ref().is_some_and(|flag| flag.is_cancelled())
    }
}

/// Sleepers of type `W`, with an estimate of how many of them have given up.
#[derive(Debug)]
pub(crate) struct SleeperWheel<W> {
    levels: Levels,
    slots: Box<Slots<Vec<Sleeper<W>>>>,
    len: usize,
    given_up: GoneCount,
    /// The slot that was last looked over.
    looked_over: Option<(usize, usize)>,
    /// Waiters of sleepers that have given up. The owner drops them later, because dropping a waker
    /// may run any code.
    left: Vec<W>,
}

/// How many of the sleepers here have given up, as far as this loop knows.
#[derive(Debug, Default)]
struct GoneCount {
    /// The counter of the sleepers here.
    counter: Option<&'static CancelCount>,
    /// How much of the counter belongs to sleepers that are not here.
    others: usize,
    /// The counter's value when the present round of looking over began.
    before: usize,
}

impl GoneCount {
    #[inline]
    fn get(&self) -> usize {
        self.counter.map_or(0, |counter| counter.count().wrapping_sub(self.others))
    }

    /// A sleeper with this flag comes.
    #[inline]
    fn know(&mut self, flag: &CancelFlag) {
        if let Some(counter) = flag.counter()
            && self.counter.is_none_or(|known| !std::ptr::eq(known, counter))
        {
            // This count starts at the new counter's value, so the sleepers of the old counter are
            // no longer counted. They stay until they are due.
            let count = counter.count();
            *self = GoneCount { counter: Some(counter), others: count, before: count };
        }
    }

    /// A sleeper that had given up has left this wheel.
    #[inline]
    fn one_less(&mut self) {
        if self.get() > 0 {
            self.others = self.others.wrapping_add(1);
        }
    }

    /// A round has looked over all slots: no sleeper that gave up before the round began is here
    /// any more.
    fn all_seen(&mut self) {
        let Some(counter) = self.counter else { return };
        let now = counter.count();
        let since = now.wrapping_sub(mem::replace(&mut self.before, now));
        if self.get() > since {
            self.others = now.wrapping_sub(since);
        }
    }
}

impl<W> SleeperWheel<W> {
    pub(crate) fn new(now: Tick) -> SleeperWheel<W> {
        SleeperWheel {
            levels: Levels::new(now),
            slots: Box::new([const { [const { Vec::new() }; SLOTS] }; LEVELS]),
            len: 0,
            given_up: GoneCount::default(),
            looked_over: None,
            left: Vec::new(),
        }
    }

    /// About how many sleepers have not given up. Unless [in doubt](Self::in_doubt), 0 means that
    /// no sleeper is left, and more means that at least one is left.
    pub(crate) fn len(&self) -> usize {
        self.len.saturating_sub(self.given_up.get()).max(usize::from(self.len > 0))
    }

    /// Whether perhaps all sleepers have given up.
    #[inline]
    pub(crate) fn in_doubt(&self) -> bool {
        self.len > 0 && self.given_up.get() >= self.len
    }

    /// The tick at which [`expire`](Self::expire) must be called next. No sleeper is due before
    /// that tick.
    #[inline]
    pub(crate) fn next(&self) -> Option<Tick> {
        self.levels.first().map(|(_, _, start)| start)
    }

    /// Adds a sleeper. A tick that has passed is due at once.
    #[inline]
    pub(crate) fn add(&mut self, tick: Tick, waiter: W, flag: Option<CancelFlag>) {
        if let Some(flag) = &flag {
            self.given_up.know(flag);
            if flag.is_cancelled() {
                self.given_up.one_less();
                return self.left.push(waiter);
            }
        }
        self.len += 1;
        let tick = self.levels.not_passed(tick);
        self.place(Sleeper { tick, waiter, flag });
    }

    /// Moves to `now`, and passes the waiters that are due to `wake`: in the order of their ticks,
    /// and in the order of insertion among equal ticks.
    #[inline]
    pub(crate) fn expire(&mut self, now: Tick, mut wake: impl FnMut(W)) {
        while let Some((level, slot, start)) = self.levels.first()
            && start <= now
        {
            self.levels.move_to(start);
            let mut sleepers = self.take(level, slot);
            if level == 0 {
                self.len -= sleepers.len();
                for sleeper in sleepers.drain(..) {
                    if sleeper.has_given_up() {
                        self.given_up.one_less();
                        self.left.push(sleeper.waiter);
                    } else {
                        // The flag is dropped before the waiter is woken, because dropping it ends
                        // the sleep. A task that is polled too early would ask for its sleep again.
                        drop(sleeper.flag);
                        wake(sleeper.waiter);
                    }
                }
            } else {
                sleepers.drain(..).for_each(|sleeper| self.place(sleeper));
            }
            sleepers.shrink_to(ROOM_KEPT);
            if self.slots[level][slot].capacity() == 0 {
                self.slots[level][slot] = sleepers;
            }
        }
        self.levels.move_to(now);
    }

    /// Clears one slot of given-up sleepers, if more than half of all sleepers have given up. So
    /// given-up sleepers never take more room than the wanted ones, except for a few, and the total
    /// work is in proportion to the number of sleepers that give up.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        let given_up = self.given_up.get();
        if given_up > GIVEN_UP_MAX && 2 * given_up > self.len {
            self.look_over_next();
        }
    }

    /// Clears all slots if [in doubt](Self::in_doubt). True if there was doubt, and now no sleeper
    /// is left or there is still doubt.
    #[inline]
    pub(crate) fn resolve(&mut self) -> bool {
        if !self.in_doubt() {
            return false;
        }
        // The first loop ends the round that has begun. The second loop makes a whole round.
        while !self.look_over_next() {}
        while !self.look_over_next() {}
        self.len == 0 || self.in_doubt()
    }

    /// The waiters of given-up sleepers, for the caller to drop.
    #[inline]
    pub(crate) fn left(&mut self) -> &mut Vec<W> {
        &mut self.left
    }

    /// Clears the next occupied slot of given-up sleepers. True if there was no further slot: this
    /// round is over.
    #[inline(never)]
    fn look_over_next(&mut self) -> bool {
        self.looked_over = self.levels.occupied_after(self.looked_over);
        let Some((level, slot)) = self.looked_over else {
            self.given_up.all_seen();
            return true;
        };
        let sleepers = &mut self.slots[level][slot];
        for gone in sleepers.extract_if(.., |sleeper| sleeper.has_given_up()) {
            self.given_up.one_less();
            self.len -= 1;
            self.left.push(gone.waiter);
        }
        if sleepers.len() <= sleepers.capacity() / 4 {
            sleepers.shrink_to(sleepers.len().max(ROOM_KEPT));
        }
        if sleepers.is_empty() {
            self.levels.clear(level, slot);
        }
        false
    }

    /// Puts a sleeper into its slot. The sleeper's tick must not be before the position.
    #[inline]
    fn place(&mut self, sleeper: Sleeper<W>) {
        let (level, slot) = self.levels.place(sleeper.tick);
        self.levels.occupy(level, slot);
        self.slots[level][slot].push(sleeper);
    }

    fn take(&mut self, level: usize, slot: usize) -> Vec<Sleeper<W>> {
        self.levels.clear(level, slot);
        mem::take(&mut self.slots[level][slot])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wheel::Wheel;
    use proptest::prelude::*;
    use std::pin::Pin;
    use std::task::{Context, Waker};

    fn drain(sleepers: &mut SleeperWheel<u32>, now: u64) -> Vec<u32> {
        let mut woken = Vec::new();
        sleepers.expire(Tick(now), |w| woken.push(w));
        woken
    }

    proptest! {
        #[test]
        fn wakes_as_the_wheel_does(
            start in any::<u32>(),
            ops in prop::collection::vec((0..3u8, prop_oneof![0..3u64, 0..130u64, 0..5_000u64, 0..1u64 << 40]), 1..200),
        ) {
            let mut now = u64::from(start);
            let (mut sleepers, mut wheel) = (SleeperWheel::new(Tick(now)), Wheel::new(Tick(now)));
            for (id, (op, span)) in (0u32..).zip(ops) {
                if op < 2 {
                    sleepers.add(Tick(now + span), id, None);
                    wheel.insert(Tick(now + span), id);
                } else {
                    now += span;
                    let expected: Vec<u32> = std::iter::from_fn(|| wheel.expire(Tick(now))).collect();
                    prop_assert_eq!(drain(&mut sleepers, now), expected);
                }
                prop_assert_eq!(sleepers.next(), wheel.next());
                prop_assert_eq!(sleepers.len(), wheel.len());
            }
        }
    }

    type Asked = Pin<Box<selvedge_core::SleepUntil>>;

    /// A sleep that a thread has asked for outside of any loop, and the flag that its event source
    /// gets. All sleeps count in one counter.
    fn asked() -> (Asked, CancelFlag) {
        use selvedge_core::{Cpu, Request, Time};
        let mut cpu = Cpu::new().unwrap();
        let (sender, receiver) = std::sync::mpsc::channel();
        let thread = cpu.thread(async move {
            let mut asked = Box::pin(selvedge_core::sleep_until(Time::from_nanos(u64::MAX)));
            assert!(asked.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
            sender.send(asked).unwrap();
        });
        drop(thread.unwrap().step(&mut cpu));
        let Request::Sleep(alarm) = cpu.detached().unwrap().request else { panic!("it sleeps") };
        (receiver.recv().unwrap(), alarm.into_parts().1)
    }

    #[test]
    fn sleepers_that_give_up_are_cleared_away_when_they_are_as_many_as_the_others() {
        let mut sleepers = SleeperWheel::new(Tick(0));
        let mut waiting = Vec::new();
        let mut most = 0;
        for n in 0..10_000u32 {
            let (asked, flag) = asked();
            sleepers.add(Tick(u64::from(n * 7919 % 60_000)), n, Some(flag));
            sleepers.tidy();
            sleepers.left().clear();
            // One sleeper in ten stays wanted.
            if n % 10 == 0 {
                waiting.push((n, asked));
            }
            most = most.max(sleepers.len);
        }
        assert!(most < 2 * waiting.len() + 2 * GIVEN_UP_MAX + 100, "{most} for {} that wait", waiting.len());
        let mut woken = drain(&mut sleepers, 60_000);
        woken.sort();
        assert_eq!(woken, waiting.iter().map(|(n, _)| *n).collect::<Vec<_>>());
        assert_eq!((sleepers.len(), sleepers.len), (0, 0));
    }

    #[test]
    fn when_all_have_given_up_no_sleeper_is_left() {
        let mut sleepers = SleeperWheel::new(Tick(0));
        let all: Vec<_> = (0..10)
            .map(|n| {
                let (asked, flag) = asked();
                sleepers.add(Tick(u64::from(n) << 20), n, Some(flag));
                asked
            })
            .collect();
        assert!(!sleepers.resolve());
        let gone = all.len();
        drop(all);
        assert_eq!(gone, 10);
        while sleepers.in_doubt() {
            sleepers.resolve();
        }
        // Other tests may count in the same counter. Then only the expiry below shows the truth.
        assert!(sleepers.len() <= 10 && drain(&mut sleepers, 1 << 30).is_empty());
    }
}
