//! The slot that a tick belongs to, and the set of occupied slots. The [wheel](super::wheel) and
//! the [wheel of the sleepers](super::sleepers) share this file, and each keeps its own content of
//! the slots. The head of [`wheel`](super::wheel) has the picture.

use super::wheel::Tick;

/// The number of a tick's bits that one level decides.
const LEVEL_BITS: u32 = 6;
/// The number of slots in one level.
pub(crate) const SLOTS: usize = 1 << LEVEL_BITS;
/// The number of levels that decide all 64 bits of a tick.
pub(crate) const LEVELS: usize = 64usize.div_ceil(LEVEL_BITS as usize);

/// One `T` for each slot of each level.
pub(crate) type Slots<T> = [[T; SLOTS]; LEVELS];

/// The position, and the occupied slots ahead of it.
#[derive(Debug)]
pub(crate) struct Levels {
    /// Everything that was due before this tick has been taken out.
    position: Tick,
    /// Bit `l`: level `l` has an occupied slot.
    levels: u16,
    /// Per level, bit `s`: slot `s` is occupied.
    occupied: [u64; LEVELS],
}

impl Levels {
    /// No slot is occupied.
    pub(crate) fn new(now: Tick) -> Levels {
        Levels { position: now, levels: 0, occupied: [0; LEVELS] }
    }

    /// The later one of `tick` and the position, because a tick that has passed is due now.
    #[inline]
    pub(crate) fn not_passed(&self, tick: Tick) -> Tick {
        tick.max(self.position)
    }

    /// Moves the position on to `tick`, unless the position is behind it already.
    #[inline]
    pub(crate) fn move_to(&mut self, tick: Tick) {
        self.position = self.position.max(tick);
    }

    /// The level and the slot of the earliest occupied slot, and the tick at which that slot
    /// starts.
    #[inline]
    pub(crate) fn first(&self) -> Option<(usize, usize, Tick)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros();
        let slot = self.occupied[level as usize].trailing_zeros();
        // The ticks of a slot agree with the position in the bits above the slot's six bits. Below
        // the six bits they can have any value, so the slot starts where those bits are zero.
        let above = self.position.0.checked_shr((level + 1) * LEVEL_BITS).unwrap_or(0);
        let above = above.checked_shl((level + 1) * LEVEL_BITS).unwrap_or(0);
        Some((level as usize, slot as usize, Tick(above | u64::from(slot) << (level * LEVEL_BITS))))
    }

    /// The level and the slot for a tick that has not passed.
    #[inline]
    pub(crate) fn place(&self, tick: Tick) -> (usize, usize) {
        let differs = self.position.0 ^ tick.0;
        let level = (differs | 1).ilog2() / LEVEL_BITS;
        let slot = (tick.0 >> (level * LEVEL_BITS)) as usize % SLOTS;
        (level as usize, slot)
    }

    /// Marks the slot as occupied.
    #[inline]
    pub(crate) fn occupy(&mut self, level: usize, slot: usize) {
        self.occupied[level] |= 1 << slot;
        self.levels |= 1 << level;
    }

    /// Marks the slot as empty.
    #[inline]
    pub(crate) fn clear(&mut self, level: usize, slot: usize) {
        self.occupied[level] &= !(1 << slot);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    /// The first occupied slot after `place` in the order of level and slot; the first of all if
    /// `place` is `None`.
    pub(crate) fn occupied_after(&self, place: Option<(usize, usize)>) -> Option<(usize, usize)> {
        let (first, from) = place.map_or((0, 0), |(level, slot)| (level, slot as u32 + 1));
        (first..LEVELS).find_map(|level| {
            let from = if level == first { from } else { 0 };
            let occupied = self.occupied[level] & u64::MAX.checked_shl(from).unwrap_or(0);
            (occupied != 0).then(|| (level, occupied.trailing_zeros() as usize))
        })
    }
}
