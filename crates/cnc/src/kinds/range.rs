//! Steps over ranges of numbers, in one, two and three axes: [`RangeCode`], the kind of
//! `Graph::prescribe_range` and its like (`graph/ranges.rs`).
//!
//! A tag is a [`Blocked`] range: a pair of numbers for each axis. An instance runs the body for the
//! first block of its range, and makes what is left ready before that, as other instances.
//!
//! The parts that the body gets must not depend on the schedule. So each range begins a whole
//! number of grains after the begin of the range that was put, on each axis.

use crate::error::StepResult;
use crate::hints::StepHints;
use crate::key::{Grid, ItemKey, is_word};
use crate::ready_step::Code;
use crate::step::StepContext;
use crate::tag_word::{about_tags, to_word, with_tag};
use number::Number;
use std::ops::Range;

/// The most axes of a range.
pub(crate) const AXES: usize = 3;

/// The begin and the end on each axis. An axis that a range does not have is one block.
pub(crate) type Axes = [(u64, u64); AXES];

/// The axis that a range does not have.
const NO_AXIS: (u64, u64) = (0, 1);

/// A number of a range: `u8`, `u16`, `u32`, `u64` or `usize`.
pub trait RangeNumber: Grid + Copy + Number {}

/// The tag of a blocked range in two axes: the begin and the end of the rows, and of the columns.
pub type BlockedRange2d<N> = ((N, N), (N, N));

/// The tag of a blocked range in three axes: the begin and the end of each.
pub type BlockedRange3d<N> = ((N, N), (N, N), (N, N));

mod number {
    /// An unsigned integer as one of 64 bits.
    #[expect(unnameable_types, reason = "so that no other crate can implement `RangeNumber`")]
    pub trait Number {
        /// The integer with 64 bits.
        fn wide(self) -> u64;

        /// The integer, which `wide` has returned.
        fn narrow(wide: u64) -> Self;
    }
}

macro_rules! numbers {
    ($($int:ty),*) => {$(
        impl Number for $int {
            fn wide(self) -> u64 {
                self as u64
            }

            fn narrow(wide: u64) -> $int {
                wide as $int
            }
        }

        impl RangeNumber for $int {}
    )*};
}

numbers!(u8, u16, u32, u64, usize);

/// A tag that is a range: the begin and the end on each axis.
pub(crate) trait Blocked: ItemKey {
    fn axes(&self) -> Axes;

    fn of(axes: Axes) -> Self;
}

/// The begin and the end of one axis.
type Pair<N> = (N, N);

fn wide<N: Number>((begin, end): Pair<N>) -> (u64, u64) {
    (begin.wide(), end.wide())
}

fn narrow<N: Number>((begin, end): (u64, u64)) -> Pair<N> {
    (N::narrow(begin), N::narrow(end))
}

pub(crate) fn range<N: Number>((begin, end): (u64, u64)) -> Range<N> {
    N::narrow(begin)..N::narrow(end)
}

impl<N: RangeNumber> Blocked for Pair<N> {
    fn axes(&self) -> Axes {
        [wide(*self), NO_AXIS, NO_AXIS]
    }

    fn of([a, ..]: Axes) -> Self {
        narrow(a)
    }
}

impl<N: RangeNumber> Blocked for BlockedRange2d<N> {
    fn axes(&self) -> Axes {
        [wide(self.0), wide(self.1), NO_AXIS]
    }

    fn of([a, b, _]: Axes) -> Self {
        (narrow(a), narrow(b))
    }
}

impl<N: RangeNumber> Blocked for BlockedRange3d<N> {
    fn axes(&self) -> Axes {
        [wide(self.0), wide(self.1), wide(self.2)]
    }

    fn of([a, b, c]: Axes) -> Self {
        (narrow(a), narrow(b), narrow(c))
    }
}

/// A step over a range, which is cut while other workers are idle.
pub(crate) struct RangeCode<'g, T, F> {
    pub(crate) grains: [u64; AXES],
    pub(crate) body: F,
    pub(crate) hints: &'g StepHints<'g, T>,
}

impl<'g, T, F> Code<'g> for RangeCode<'g, T, F>
where
    T: Blocked,
    F: Fn(Axes, &StepContext<'g>) -> StepResult + Send + Sync,
{
    unsafe fn run(&self, word: u64, step: &StepContext<'g>) -> StepResult {
        // SAFETY: as promised by the caller.
        let mut axes = unsafe { with_tag(word, T::axes) };
        if axes.iter().any(|(begin, end)| begin >= end) {
            return Ok(());
        }
        let mut is_cut = false;
        for axis in 0..AXES {
            let ((begin, end), grain) = (axes[axis], self.grains[axis]);
            let next = begin.saturating_add(grain).min(end);
            if next == end {
                continue;
            }
            is_cut = true;
            // A cut is a whole number of grains after the begin, so the parts are always the same.
            let half = if step.is_wanted() { (end - next) / 2 / grain * grain } else { 0 };
            let mut push = |begin, end| {
                axes[axis] = (begin, end);
                step.push_like_this(to_word(T::of(axes)));
            };
            if half > 0 {
                push(next + half, end);
                push(next, next + half);
            } else {
                push(next, end);
            }
            axes[axis] = (begin, next);
        }
        if is_cut {
            // SAFETY: as promised by the caller, which owns the word.
            step.narrow(unsafe { narrowed(word, T::of(axes)) });
        }
        (self.body)(axes, step)
    }

    fn parts(&self, word: u64) -> u64 {
        if !is_word::<T>() {
            return 1;
        }
        let axes = T::from_word(word).map_or([(0, 0); AXES], |tag| tag.axes());
        axes.iter().fold(1, |parts: u64, (begin, end)| parts.saturating_mul(end.saturating_sub(*begin)))
    }

    about_tags!(with_tag::<T, _>);
}

/// The word of an instance that gets another tag. A tag in a box is replaced there.
///
/// # Safety
/// The word came from `to_word::<T>`, was not freed, and is the caller's alone.
unsafe fn narrowed<T: ItemKey>(word: u64, tag: T) -> u64 {
    if is_word::<T>() {
        return tag.to_word();
    }
    // SAFETY: `to_word` has put the tag into a box, because `is_word` is false; and as promised by
    // the caller.
    unsafe { *std::ptr::with_exposed_provenance_mut::<T>(word as usize) = tag };
    word
}
