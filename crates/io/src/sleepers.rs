//! Those who sleep, by when they are to be woken: the second wheel of an event loop, made for millions.
//!
//! It differs from the [wheel](crate::wheel) in that nothing can be taken out by name. Who gives up says so at his
//! [`Bell`], wherever he is, and that is all that giving up costs; what he leaves here is passed over when it is due, or cleared
//! away when as much of that kind has gathered as of what is still wanted. So a slot is a plain vector: setting a timer appends
//! to it, firing reads it from end to end, and neither looks at any other timer.
//!
//! [Levels] and slots are those of the wheel; there are two of them because a node that can be taken out by name costs each timer its
//! links, and a walk through memory when it fires. A deadline that is moved on all the time, as a connection's is, stays in the wheel; a
//! sleep, of which there may be millions, comes here.

use crate::levels::{LEVELS, Levels, SLOTS, Slots};
use crate::wheel::Tick;
use selvedge_core::{Bell, GivenUp};
use std::mem;

/// A slot that has been emptied keeps room for so many.
const ROOM_KEPT: usize = 256;
/// So many that have given up may stay until they are due.
const GIVEN_UP_MAX: usize = 32;

#[derive(Debug)]
struct Sleeper<W> {
    tick: Tick,
    waiter: W,
    /// Of one that may give up.
    bell: Option<Bell>,
}

impl<W> Sleeper<W> {
    fn has_given_up(&self) -> bool {
        self.bell.as_ref().is_some_and(|bell| !bell.is_wanted())
    }
}

/// Sleepers of type `W`, with what is known of how many have given up.
#[derive(Debug)]
pub(crate) struct Sleepers<W> {
    levels: Levels,
    slots: Box<Slots<Vec<Sleeper<W>>>>,
    len: usize,
    given_up: GoneCount,
    /// The slot that was last looked over.
    looked_over: Option<(usize, usize)>,
    /// Waiters of those who have given up: dropping them may run any code, so that is left to a better moment.
    left: Vec<W>,
}

/// How many of the sleepers have given up, as far as is known.
#[derive(Debug, Default)]
struct GoneCount {
    /// Those who sleep here count in it.
    counter: Option<&'static GivenUp>,
    /// What it said of those who are not here.
    others: usize,
    /// What it said when the present round of looking over began.
    before: usize,
}

impl GoneCount {
    #[inline]
    fn get(&self) -> usize {
        self.counter.map_or(0, |counter| counter.count().wrapping_sub(self.others))
    }

    /// A sleeper comes.
    #[inline]
    fn know(&mut self, bell: &Bell) {
        if let Some(counter) = bell.counter()
            && self.counter.is_none_or(|known| !std::ptr::eq(known, counter))
        {
            // Of those who counted elsewhere nothing is known from now on: they stay until they are due.
            let count = counter.count();
            *self = GoneCount { counter: Some(counter), others: count, before: count };
        }
    }

    /// One who had given up is not here any more.
    #[inline]
    fn one_less(&mut self) {
        if self.get() > 0 {
            self.others = self.others.wrapping_add(1);
        }
    }

    /// All have been looked over: of those who gave up before that began, none is here.
    fn all_seen(&mut self) {
        let Some(counter) = self.counter else { return };
        let now = counter.count();
        let since = now.wrapping_sub(mem::replace(&mut self.before, now));
        if self.get() > since {
            self.others = now.wrapping_sub(since);
        }
    }
}

impl<W> Sleepers<W> {
    pub(crate) fn new(now: Tick) -> Sleepers<W> {
        Sleepers {
            levels: Levels::new(now),
            slots: Box::new([const { [const { Vec::new() }; SLOTS] }; LEVELS]),
            len: 0,
            given_up: GoneCount::default(),
            looked_over: None,
            left: Vec::new(),
        }
    }

    /// How many sleep, and have not given up, about. Unless [in doubt](Self::in_doubt), 0 means nobody and more means somebody.
    pub(crate) fn len(&self) -> usize {
        self.len.saturating_sub(self.given_up.get()).max(usize::from(self.len > 0))
    }

    /// Whether perhaps all have given up.
    #[inline]
    pub(crate) fn in_doubt(&self) -> bool {
        self.len > 0 && self.given_up.get() >= self.len
    }

    /// When [`expire`](Self::expire) wants to be called next. Nobody is due before.
    #[inline]
    pub(crate) fn next(&self) -> Option<Tick> {
        self.levels.first().map(|(_, _, start)| start)
    }

    /// One goes to sleep. A tick that has passed is due at once.
    #[inline]
    pub(crate) fn add(&mut self, tick: Tick, waiter: W, bell: Option<Bell>) {
        if let Some(bell) = &bell {
            self.given_up.know(bell);
            if !bell.is_wanted() {
                self.given_up.one_less();
                return self.left.push(waiter);
            }
        }
        self.len += 1;
        let tick = self.levels.not_passed(tick);
        self.place(Sleeper { tick, waiter, bell });
    }

    /// Moves to `now`, and hands those out who are due: in the order of their ticks, and of their coming.
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
                        // First over, then woken: who polls at once, and too early, asks again.
                        drop(sleeper.bell);
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

    /// Clears a slot of those who have given up, if they are more than the others. So they never take more room than those, but for
    /// a few, and all the looking is in proportion to how many give up.
    #[inline]
    pub(crate) fn tidy(&mut self) {
        let given_up = self.given_up.get();
        if given_up > GIVEN_UP_MAX && 2 * given_up > self.len {
            self.look_over_next();
        }
    }

    /// Clears all slots if [in doubt](Self::in_doubt); whether nobody is left then, or doubt is.
    #[inline]
    pub(crate) fn resolve(&mut self) -> bool {
        if !self.in_doubt() {
            return false;
        }
        // The round that has begun, and a whole one.
        while !self.look_over_next() {}
        while !self.look_over_next() {}
        self.len == 0 || self.in_doubt()
    }

    /// Drops the waiters of those who have given up; or returns them to be dropped.
    #[inline]
    pub(crate) fn left(&mut self) -> &mut Vec<W> {
        &mut self.left
    }

    /// Clears the next occupied slot of those who have given up. True if there was none: this round is over.
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

    /// Puts a sleeper, whose tick is not before the position, into its slot.
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

    fn drain(sleepers: &mut Sleepers<u32>, now: u64) -> Vec<u32> {
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
            let (mut sleepers, mut wheel) = (Sleepers::new(Tick(now)), Wheel::new(Tick(now)));
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

    /// A sleep that has been asked for outside of any loop, and what its event source gets. All count in one counter, so the
    /// tests that use it are one.
    fn asked() -> (Asked, Bell) {
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
    fn those_who_give_up_are_cleared_away_when_they_are_as_many_as_the_others() {
        let mut sleepers = Sleepers::new(Tick(0));
        let mut waiting = Vec::new();
        let mut most = 0;
        for n in 0..10_000u32 {
            let (asked, bell) = asked();
            sleepers.add(Tick(u64::from(n * 7919 % 60_000)), n, Some(bell));
            sleepers.tidy();
            sleepers.left().clear();
            // One in ten waits on.
            if n % 10 == 0 {
                waiting.push((n, asked));
            }
            most = most.max(sleepers.len);
        }
        assert!(most < 2 * waiting.len() + 2 * GIVEN_UP_MAX + 100, "{most} for {} who wait", waiting.len());
        let mut woken = drain(&mut sleepers, 60_000);
        woken.sort();
        assert_eq!(woken, waiting.iter().map(|(n, _)| *n).collect::<Vec<_>>());
        assert_eq!((sleepers.len(), sleepers.len), (0, 0));
    }

    #[test]
    fn when_all_have_given_up_nobody_is_left() {
        let mut sleepers = Sleepers::new(Tick(0));
        let all: Vec<_> = (0..10)
            .map(|n| {
                let (asked, bell) = asked();
                sleepers.add(Tick(u64::from(n) << 20), n, Some(bell));
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
        // Other tests may count in the same counter; then it is due time that tells.
        assert!(sleepers.len() <= 10 && drain(&mut sleepers, 1 << 30).is_empty());
    }
}
