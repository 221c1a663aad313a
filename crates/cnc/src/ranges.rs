//! Steps over ranges of numbers, in one, two and three axes: `Graph::prescribe_range` and its like.
//!
//! The program calls them while it builds the graph. Their instances are [`RangeCode`]s. A tag is a
//! [`Blocked`] range: a pair of numbers for each axis. An instance runs the body for the first
//! block of its range, and makes what is left ready before that, as other instances.
//!
//! The parts that the body gets must not depend on the schedule. So each range begins a whole
//! number of grains after the begin of the range that was put, on each axis.

use std::ops::Range;

use crate::code::{Code, about_tags, free_of, to_word, with_tag};
use crate::error::StepResult;
use crate::graph::Graph;
use crate::hints::StepHints;
use crate::key::{Grid, ItemKey, hash_of, is_word};
use crate::step::StepContext;
use crate::step_col::StepCol;
use crate::stuck::MadeItem;
use crate::tags::TagCol;

use number::Number;

/// The most axes of a range.
const AXES: usize = 3;

/// The begin and the end on each axis. An axis that a range does not have is one block.
type Axes = [(u64, u64); AXES];

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
trait Blocked: ItemKey {
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

fn range<N: Number>((begin, end): (u64, u64)) -> Range<N> {
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
struct RangeCode<'g, T, F> {
    grains: [u64; AXES],
    body: F,
    hints: &'g StepHints<'g, T>,
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

impl<'g> Graph<'g, '_> {
    fn prescribe_blocks<T: Blocked + 'g>(
        &'g self,
        tags: TagCol<'g, T>,
        name: &str,
        grains: [u64; AXES],
        body: impl Fn(Axes, &StepContext<'g>) -> StepResult + Send + Sync + 'g,
    ) -> StepCol<'g, T> {
        assert!(!grains.contains(&0), "a range step has a grain of at least 1");
        let hints = self.hints();
        let code = Box::new(RangeCode { grains, body, hints });
        tags.0.prescribe(self.core().add_entry(name, code, free_of::<T>(), false));
        StepCol::new(hints, self.core())
    }

    /// Prescribes a step over a range: for each tag `(begin, end)` of a collection, the step runs
    /// over the numbers from `begin` to below `end`, `grain` of them at a time. What is left is cut
    /// in halves while other workers are idle. The parts that the body gets are the same under
    /// every scheduler: they begin at `begin` and a whole number of grains.
    ///
    /// # Panics
    /// If the grain is 0.
    ///
    /// # Complexity
    /// A part is a step. A tag of two numbers of 32 bits or less needs no memory; one of larger
    /// numbers is an allocation for each part. A [`Monitor`](crate::Monitor) counts the numbers
    /// that are known in the first case, and the parts that are known so far in the second one.
    ///
    /// # Paper
    /// [NCM11 §2.2]: parallel loops.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let sum = cnc::graph(|graph| {
    ///     let loops = graph.tags("loops");
    ///     let squares = graph.items_with("squares", Items::dense(1_000_u32));
    ///     graph.prescribe_range(loops, "square", 64, move |range, step| {
    ///         range.into_iter().try_for_each(|n| step.put(squares, n, u64::from(n).pow(2)))
    ///     });
    ///     graph.initialize(|env| env.put_tag(loops, (0, 1_000)))?;
    ///     let finished = graph.run(&Stealing::new(2))?;
    ///     Ok(finished.finalize(|view| view.iter(squares).map(|(_, n)| n).sum::<u64>()))
    /// })?;
    /// assert_eq!(sum, 332_833_500);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prescribe_range<N: RangeNumber + 'g>(
        &'g self,
        tags: TagCol<'g, (N, N)>,
        name: &str,
        grain: N,
        body: impl Fn(Range<N>, &StepContext<'g>) -> StepResult + Send + Sync + 'g,
    ) -> StepCol<'g, (N, N)> {
        self.prescribe_blocks(tags, name, [grain.wide(), 1, 1], move |[a, ..], step| body(range(a), step))
    }

    /// Prescribes a step over a blocked range: for each tag `((begin, end), (begin, end))` of a
    /// collection, the step runs over the rows and the columns, `grain.0` rows and `grain.1`
    /// columns at a time. What is left is cut as by [`prescribe_range`](Graph::prescribe_range).
    /// The blocks that the body gets are the same under every scheduler.
    ///
    /// # Panics
    /// If a grain is 0.
    ///
    /// # Complexity
    /// As for `prescribe_range`. A tag of four numbers of 16 bits or less needs no memory.
    ///
    /// # Examples
    /// The transpose of a matrix, in tiles:
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let (rows, columns) = (100_u32, 70);
    /// let corner = cnc::graph(|graph| {
    ///     let all = graph.tags("all");
    ///     let transposed = graph.items_with("transposed", Items::dense((columns, rows)));
    ///     graph.prescribe_range_2d(all, "tile", (16, 16), move |is, js, step| {
    ///         for i in is {
    ///             js.clone().try_for_each(|j| step.put(transposed, (j, i), 100 * i + j))?;
    ///         }
    ///         Ok(())
    ///     });
    ///     graph.initialize(|env| env.put_tag(all, ((0, rows), (0, columns))))?;
    ///     let finished = graph.run(&Stealing::new(2))?;
    ///     Ok(finished.finalize(|view| view.get(transposed, (69, 99)).copied()))
    /// })?;
    /// assert_eq!(corner, Some(9_969));
    /// # Ok(())
    /// # }
    /// ```
    pub fn prescribe_range_2d<N: RangeNumber + 'g>(
        &'g self,
        tags: TagCol<'g, BlockedRange2d<N>>,
        name: &str,
        grain: (N, N),
        body: impl Fn(Range<N>, Range<N>, &StepContext<'g>) -> StepResult + Send + Sync + 'g,
    ) -> StepCol<'g, BlockedRange2d<N>> {
        let grains = [grain.0.wide(), grain.1.wide(), 1];
        self.prescribe_blocks(tags, name, grains, move |[a, b, _], step| body(range(a), range(b), step))
    }

    /// Prescribes a step over a blocked range with three axes, for each tag
    /// `((begin, end), (begin, end), (begin, end))` of a collection, as
    /// [`prescribe_range_2d`](Graph::prescribe_range_2d) does for two.
    ///
    /// # Panics
    /// If a grain is 0.
    ///
    /// # Complexity
    /// As for `prescribe_range`. A tag of six numbers of 8 bits needs no memory.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let sum = cnc::graph(|graph| {
    ///     let (all, cells) = (graph.tags("all"), Items::dense((9_u32, 8, 7)));
    ///     let cells = graph.items_with("cells", cells);
    ///     graph.prescribe_range_3d(all, "block", (4, 4, 4), move |is, js, ks, step| {
    ///         for (i, j) in is.flat_map(|i| js.clone().map(move |j| (i, j))) {
    ///             ks.clone().try_for_each(|k| step.put(cells, (i, j, k), i + j + k))?;
    ///         }
    ///         Ok(())
    ///     });
    ///     graph.initialize(|env| env.put_tag(all, ((0, 9), (0, 8), (0, 7))))?;
    ///     let finished = graph.run(&Stealing::new(2))?;
    ///     Ok(finished.finalize(|view| view.iter(cells).map(|(_, sum)| *sum).sum::<u32>()))
    /// })?;
    /// assert_eq!(sum, 9 * 8 * 7 * 21 / 2);
    /// # Ok(())
    /// # }
    /// ```
    pub fn prescribe_range_3d<N: RangeNumber + 'g>(
        &'g self,
        tags: TagCol<'g, BlockedRange3d<N>>,
        name: &str,
        grain: (N, N, N),
        body: impl Fn(Range<N>, Range<N>, Range<N>, &StepContext<'g>) -> StepResult + Send + Sync + 'g,
    ) -> StepCol<'g, BlockedRange3d<N>> {
        let grains = [grain.0.wide(), grain.1.wide(), grain.2.wide()];
        let body = move |[a, b, c]: Axes, step: &StepContext<'g>| body(range(a), range(b), range(c), step);
        self.prescribe_blocks(tags, name, grains, body)
    }
}
