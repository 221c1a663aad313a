//! Which slot a tick belongs to, and which slots are occupied: what the [wheel](crate::wheel), whose module has the picture, and the
//! [sleepers](crate::sleepers) have in common. What lies in a slot is theirs.

use crate::wheel::Tick;

/// Bits of a tick that one level decides.
const LEVEL_BITS: u32 = 6;
/// Slots in one level.
pub(crate) const SLOTS: usize = 1 << LEVEL_BITS;
/// Levels needed to decide all 64 bits of a tick.
pub(crate) const LEVELS: usize = 64usize.div_ceil(LEVEL_BITS as usize);

/// Something for each slot of each level.
pub(crate) type Slots<T> = [[T; SLOTS]; LEVELS];

/// The position, and the slots ahead of it.
#[derive(Debug)]
pub(crate) struct Levels {
    /// All that was due before this tick is gone.
    position: Tick,
    /// Bit `l`: level `l` has an occupied slot.
    levels: u16,
    /// Per level, bit `s`: slot `s` is occupied.
    occupied: [u64; LEVELS],
}

impl Levels {
    /// None is occupied.
    pub(crate) fn new(now: Tick) -> Levels {
        Levels { position: now, levels: 0, occupied: [0; LEVELS] }
    }

    /// A tick that has passed is due now.
    #[inline]
    pub(crate) fn not_passed(&self, tick: Tick) -> Tick {
        tick.max(self.position)
    }

    /// Moves on to a tick, unless that has passed.
    #[inline]
    pub(crate) fn move_to(&mut self, tick: Tick) {
        self.position = self.position.max(tick);
    }

    /// The earliest occupied slot and the tick it starts at.
    #[inline]
    pub(crate) fn first(&self) -> Option<(usize, usize, Tick)> {
        if self.levels == 0 {
            return None;
        }
        let level = self.levels.trailing_zeros();
        let slot = self.occupied[level as usize].trailing_zeros();
        // Above the slot's six bits what is in it agrees with the position; below them it is anything: zero is the earliest.
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

    /// Something is in the slot from now on.
    #[inline]
    pub(crate) fn occupy(&mut self, level: usize, slot: usize) {
        self.occupied[level] |= 1 << slot;
        self.levels |= 1 << level;
    }

    /// Nothing is in the slot any more.
    #[inline]
    pub(crate) fn clear(&mut self, level: usize, slot: usize) {
        self.occupied[level] &= !(1 << slot);
        if self.occupied[level] == 0 {
            self.levels &= !(1 << level);
        }
    }

    /// The first occupied slot behind a place, or of all.
    pub(crate) fn occupied_after(&self, place: Option<(usize, usize)>) -> Option<(usize, usize)> {
        let (first, from) = place.map_or((0, 0), |(level, slot)| (level, slot as u32 + 1));
        (first..LEVELS).find_map(|level| {
            let from = if level == first { from } else { 0 };
            let occupied = self.occupied[level] & u64::MAX.checked_shl(from).unwrap_or(0);
            (occupied != 0).then(|| (level, occupied.trailing_zeros() as usize))
        })
    }
}
