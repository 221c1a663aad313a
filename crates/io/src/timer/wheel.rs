//! A hierarchical timing wheel: the timers of one event loop. Event loops put the deadlines of
//! their descriptors into a [`Wheel`]; programs may use one too.
//!
//! A wheel does not read a clock. Every operation that needs the time takes it as an argument,
//! counted in ticks from an origin that the caller chooses. The event loops of this crate use ticks
//! of one millisecond ([`Tick::RESOLUTION`]). A simulation can use the same wheel with a virtual
//! clock.
//!
//! # How it works
//!
//! Eleven levels of 64 slots cover all 64 bits of a tick, six bits a level. A timer for tick `t`
//! sits at the level of the highest bit in which `t` differs from the wheel's position, in the slot
//! named by the six bits of `t` at that level:
//!
//! ```text
//! position  = 0b_000001_000011_000101
//! t         = 0b_000001_000100_111111  differs first in the second group -> level 1, slot 0b000100
//! ```
//!
//! So a timer at a lower level is always due before every timer at a higher level, and the first
//! occupied slot of the lowest occupied level holds the earliest timers. Finding that slot takes
//! two bit scans. When the position reaches the start of a slot at a level above the lowest, the
//! wheel spreads the slot's timers over the levels below. Each timer moves down at most ten times
//! in its life, and most timers are cancelled before they move at all. A timer never fires before
//! its tick, and timers of equal ticks fire in the order of insertion.
//!
//! # Complexity
//!
//! [`insert`](Wheel::insert) and [`cancel`](Wheel::cancel) take constant time;
//! [`next`](Wheel::next) takes two bit scans; [`expire`](Wheel::expire) takes constant amortised
//! time per timer. Memory: one node per timer, kept for reuse, and 2.8 KiB of slots.

use super::levels::{LEVELS, Levels, SLOTS, Slots};
use std::time::Duration;

/// The end of a list: no node.
const NIL: u32 = u32::MAX;

/// A point in time as a wheel counts it. One tick is one millisecond in the event loops of this
/// crate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Tick(pub u64);

impl Tick {
    /// The length of one tick in this crate's event loops, and so the resolution of their timers. A
    /// timer fires at most this much late (plus the time during which the loop is busy with other
    /// work) and never early.
    pub const RESOLUTION: Duration = Duration::from_millis(1);
}

/// The name of one timer in the wheel that holds it, to cancel the timer.
///
/// A key that outlives its timer is harmless: once the timer has fired or is cancelled, the key
/// names no timer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TimerKey {
    node: u32,
    generation: u32,
}

#[derive(Debug)]
struct TimerNode<T> {
    /// `None` while the node is on the free list.
    payload: Option<T>,
    tick: Tick,
    /// Neighbours in the circular list of the slot. On the free list only `next` is used.
    prev: u32,
    next: u32,
    /// Counts the uses of this node, so that the key of an earlier timer names no timer.
    generation: u32,
}

/// A set of timers, each with a payload of type `T`. See the [module's description](self).
///
/// # Examples
///
/// ```
/// use selvedge::wheel::{Tick, Wheel};
///
/// let mut wheel = Wheel::new(Tick(0));
/// wheel.insert(Tick(30), "thirty");
/// let ten = wheel.insert(Tick(10), "ten");
/// wheel.insert(Tick(20), "twenty");
/// assert_eq!(wheel.cancel(ten), Some("ten"));
///
/// assert_eq!(wheel.expire(Tick(19)), None);
/// assert_eq!(wheel.expire(Tick(25)), Some("twenty"));
/// assert_eq!(wheel.expire(Tick(25)), None);
/// assert_eq!(wheel.len(), 1);
/// ```
#[derive(Debug)]
pub struct Wheel<T> {
    levels: Levels,
    /// Per level and slot, the first node of a circular list.
    slots: Box<Slots<u32>>,
    nodes: Vec<TimerNode<T>>,
    free: u32,
    len: usize,
}

impl<T> Wheel<T> {
    /// An empty wheel at position `now`.
    pub fn new(now: Tick) -> Wheel<T> {
        Wheel {
            levels: Levels::new(now),
            slots: Box::new([[NIL; SLOTS]; LEVELS]),
            nodes: Vec::new(),
            free: NIL,
            len: 0,
        }
    }

    /// The number of timers in the wheel.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there is no timer in the wheel.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Adds a timer. [`expire`](Self::expire) hands it out at the first call with `tick` or a later
    /// tick.
    ///
    /// A tick that has passed already is due at the next call of `expire`.
    ///
    /// # Panics
    ///
    /// If the wheel holds 2³² - 1 timers already.
    pub fn insert(&mut self, tick: Tick, payload: T) -> TimerKey {
        let tick = self.levels.not_passed(tick);
        let node = if self.free == NIL {
            let node = u32::try_from(self.nodes.len()).ok().filter(|&n| n != NIL).expect("too many timers");
            self.nodes.push(TimerNode { payload: Some(payload), tick, prev: NIL, next: NIL, generation: 0 });
            node
        } else {
            let node = self.free;
            let n = &mut self.nodes[node as usize];
            self.free = n.next;
            n.payload = Some(payload);
            n.tick = tick;
            node
        };
        self.len += 1;
        self.link(node);
        TimerKey { node, generation: self.nodes[node as usize].generation }
    }

    /// Takes a timer out before it fires and returns its payload; `None` if the timer has fired or
    /// is cancelled already.
    pub fn cancel(&mut self, key: TimerKey) -> Option<T> {
        self.live(key)?;
        self.unlink(key.node);
        self.release(key.node)
    }

    /// The tick at which the timer is due; `None` if the timer has fired or is cancelled.
    pub fn due(&self, key: TimerKey) -> Option<Tick> {
        self.live(key).map(|node| node.tick)
    }

    /// The tick at which [`expire`](Self::expire) must be called next; `None` if the wheel is
    /// empty.
    ///
    /// No timer is due before this tick. A timer more than 64 ticks away may be due later than this
    /// tick: at this tick the wheel only moves that timer to a lower level.
    pub fn next(&self) -> Option<Tick> {
        self.levels.first().map(|(_, _, start)| start)
    }

    /// Moves the wheel to `now` and takes out one timer that is due; `None` if no more are due.
    ///
    /// Timers come out in the order of their ticks, and in the order of insertion among equal
    /// ticks. The caller may change the wheel between two calls. A `now` before that of an earlier
    /// call counts as that earlier `now`.
    pub fn expire(&mut self, now: Tick) -> Option<T> {
        while let Some((level, slot, start)) = self.levels.first()
            && start <= now
        {
            self.levels.move_to(start);
            let first = self.slots[level][slot];
            if level == 0 {
                self.unlink(first);
                return self.release(first);
            }
            self.spread(level, slot);
        }
        self.levels.move_to(now);
        None
    }

    /// Appends a node to the list of the slot that its tick belongs to.
    fn link(&mut self, node: u32) {
        let (level, slot) = self.levels.place(self.nodes[node as usize].tick);
        let first = self.slots[level][slot];
        if first == NIL {
            self.slots[level][slot] = node;
            self.levels.occupy(level, slot);
            let n = &mut self.nodes[node as usize];
            (n.prev, n.next) = (node, node);
        } else {
            let last = self.nodes[first as usize].prev;
            let n = &mut self.nodes[node as usize];
            (n.prev, n.next) = (last, first);
            self.nodes[last as usize].next = node;
            self.nodes[first as usize].prev = node;
        }
    }

    /// Takes a linked node out of its slot's list.
    fn unlink(&mut self, node: u32) {
        let (level, slot) = self.levels.place(self.nodes[node as usize].tick);
        let TimerNode { prev, next, .. } = self.nodes[node as usize];
        if next == node {
            self.clear(level, slot);
        } else {
            self.nodes[prev as usize].next = next;
            self.nodes[next as usize].prev = prev;
            if self.slots[level][slot] == node {
                self.slots[level][slot] = next;
            }
        }
    }

    /// Clears a slot's list head and its bits.
    fn clear(&mut self, level: usize, slot: usize) {
        self.slots[level][slot] = NIL;
        self.levels.clear(level, slot);
    }

    /// Moves the timers of a slot to the levels below, in order. The position has entered that
    /// slot.
    fn spread(&mut self, level: usize, slot: usize) {
        let first = self.slots[level][slot];
        self.clear(level, slot);
        let mut node = first;
        loop {
            let next = self.nodes[node as usize].next;
            self.link(node);
            if next == first {
                break;
            }
            node = next;
        }
    }

    /// Puts an unlinked node on the free list and returns its payload.
    fn release(&mut self, node: u32) -> Option<T> {
        let n = &mut self.nodes[node as usize];
        n.generation = n.generation.wrapping_add(1);
        n.next = self.free;
        self.free = node;
        self.len -= 1;
        n.payload.take()
    }

    fn live(&self, key: TimerKey) -> Option<&TimerNode<T>> {
        let node = self.nodes.get(key.node as usize)?;
        (node.generation == key.generation && node.payload.is_some()).then_some(node)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn drain(wheel: &mut Wheel<u32>, now: u64) -> Vec<u32> {
        std::iter::from_fn(|| wheel.expire(Tick(now))).collect()
    }

    #[test]
    fn a_tick_in_the_past_is_due_at_once() {
        let mut wheel = Wheel::new(Tick(1000));
        wheel.insert(Tick(3), 1);
        assert_eq!(wheel.next(), Some(Tick(1000)));
        assert_eq!(drain(&mut wheel, 1000), [1]);
    }

    #[test]
    fn equal_ticks_keep_their_order_through_every_level() {
        let mut wheel = Wheel::new(Tick(0));
        for i in 0..100 {
            wheel.insert(Tick(1 << 20), i);
        }
        assert_eq!(drain(&mut wheel, (1 << 20) - 1), []);
        for i in 100..110 {
            wheel.insert(Tick(1 << 20), i);
        }
        assert_eq!(drain(&mut wheel, 1 << 20), (0..110).collect::<Vec<_>>());
    }

    #[test]
    fn the_last_tick_of_all_can_be_waited_for() {
        let mut wheel = Wheel::new(Tick(5));
        wheel.insert(Tick(u64::MAX), 1);
        assert_eq!(drain(&mut wheel, u64::MAX - 1), []);
        assert_eq!(drain(&mut wheel, u64::MAX), [1]);
        assert!(wheel.is_empty());
    }

    #[test]
    fn a_key_of_a_timer_that_is_gone_names_nothing() {
        let mut wheel = Wheel::new(Tick(0));
        let old = wheel.insert(Tick(1), 1);
        assert_eq!(drain(&mut wheel, 1), [1]);
        let new = wheel.insert(Tick(9), 2);
        assert_eq!((wheel.cancel(old), wheel.due(old)), (None, None));
        assert_eq!(wheel.due(new), Some(Tick(9)));
        assert_eq!((wheel.cancel(new), wheel.cancel(new)), (Some(2), None));
        assert_eq!(wheel.nodes.len(), 1, "the node is used again");
    }

    /// A model of the wheel, with an ordered map.
    #[derive(Default)]
    struct Model {
        now: u64,
        timers: BTreeMap<(u64, u32), TimerKey>,
    }

    #[derive(Clone, Debug)]
    enum Op {
        Insert(u64),
        Cancel(prop::sample::Index),
        Advance(u64),
        AdvanceToNext,
    }

    fn span() -> impl Strategy<Value = u64> {
        prop_oneof![0..3u64, 0..130u64, 0..5_000u64, 0..400_000u64, 0..1u64 << 40]
    }

    fn op() -> impl Strategy<Value = Op> {
        prop_oneof![
            4 => span().prop_map(Op::Insert),
            2 => any::<prop::sample::Index>().prop_map(Op::Cancel),
            2 => span().prop_map(Op::Advance),
            1 => Just(Op::AdvanceToNext),
        ]
    }

    proptest! {
        #[test]
        fn behaves_like_an_ordered_map(start in any::<u32>(), ops in prop::collection::vec(op(), 1..200)) {
            let start = u64::from(start);
            let mut wheel = Wheel::new(Tick(start));
            let mut model = Model { now: start, ..Model::default() };
            for (id, op) in (0u32..).zip(ops) {
                match op {
                    Op::Insert(span) => {
                        let tick = model.now + span;
                        model.timers.insert((tick, id), wheel.insert(Tick(tick), id));
                    }
                    Op::Cancel(which) => {
                        if !model.timers.is_empty() {
                            let &at = which.get(&model.timers.keys().collect::<Vec<_>>());
                            let (at, key) = model.timers.remove_entry(&at.clone()).unwrap();
                            prop_assert_eq!(wheel.due(key), Some(Tick(at.0)));
                            prop_assert_eq!(wheel.cancel(key), Some(at.1));
                            prop_assert_eq!(wheel.cancel(key), None);
                        }
                    }
                    Op::Advance(_) | Op::AdvanceToNext => {
                        model.now = match op {
                            Op::Advance(span) => model.now + span,
                            _ => wheel.next().map_or(model.now, |t| t.0),
                        };
                        let later = model.timers.split_off(&(model.now + 1, 0));
                        let due = std::mem::replace(&mut model.timers, later);
                        let due: Vec<u32> = due.into_keys().map(|(_, id)| id).collect();
                        prop_assert_eq!(drain(&mut wheel, model.now), due);
                    }
                }
                prop_assert_eq!(wheel.len(), model.timers.len());
                let earliest = model.timers.keys().next().map(|&(tick, _)| tick);
                let next = wheel.next().map(|t| t.0);
                prop_assert_eq!(next.is_some(), earliest.is_some());
                prop_assert!(next <= earliest);
                prop_assert!(next.is_none_or(|n| n >= model.now));
            }
        }
    }
}
