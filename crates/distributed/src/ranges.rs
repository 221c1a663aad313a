//! Steps over ranges of numbers, over ranks: `DistributedGraph::ranges` and its like make the
//! collections ([`DistributedRanges`]), and `DistributedGraph::prescribe_range` and its like the
//! steps.
//!
//! A put of a range cuts it into parts of the collection's grain, and asks `compute_on` for the
//! rank of each. Parts of one rank that lie side by side on the last axis go there as one tag,
//! which the step of `cnc` cuts again. It cuts at whole grains, and so does this file. So the body
//! gets the same parts for any number of ranks.

use crate::graph::DistributedGraph;
use crate::step::DistributedStep;
use crate::tag_collection::{DistributedTags, TagPlacement};
use selvedge_cnc::{BlockedRange2d, BlockedRange3d, ItemKey, RangeNumber, StepResult};
use selvedge_mpi::Message;
use std::fmt;
use std::iter;
use std::ops::Range;

/// A handle of a collection of ranges, of which each part runs on the rank that the collection
/// names. `T` is the type of a range, as `cnc` has it, and `G` that of a grain.
///
/// The handle is a copy of references, and belongs to one graph.
///
/// # Examples
/// See [`DistributedGraph::ranges`].
pub struct DistributedRanges<'g, T, G> {
    tags: DistributedTags<'g, T>,
    grain: G,
}

impl<T, G: Copy> Clone for DistributedRanges<'_, T, G> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T, G: Copy> Copy for DistributedRanges<'_, T, G> {}

impl<'g, T, G> DistributedRanges<'g, T, G> {
    /// The collection as one of tags, to put ranges. An empty range has no part, and puts nothing.
    ///
    /// # Complexity
    /// A put asks for the rank of each part, and sends a tag for each row of parts that lie side by
    /// side on one rank.
    pub fn tags(self) -> DistributedTags<'g, T> {
        self.tags
    }
}

impl<T, G> fmt::Debug for DistributedRanges<'_, T, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DistributedRanges({})", self.tags.local.name())
    }
}

/// The begin and the end on each axis.
type Axes<const D: usize> = [(u64, u64); D];

fn wide<N: RangeNumber>((begin, end): (N, N)) -> (u64, u64) {
    (begin.to_word(), end.to_word())
}

fn narrow<N: RangeNumber>((begin, end): (u64, u64)) -> (N, N) {
    let number = |word| N::from_word(word).expect("the word of an unsigned integer is its value");
    (number(begin), number(end))
}

/// The parts of one axis.
fn parts((begin, end): (u64, u64), grain: u64) -> impl Iterator<Item = (u64, u64)> {
    let next = move |at: &u64| at.checked_add(grain).filter(|next| *next < end);
    let begins = iter::successors((begin < end).then_some(begin), next);
    begins.map(move |at| (at, at.saturating_add(grain).min(end)))
}

/// Calls `put` with the rank and the range of each row of parts that lie side by side on one rank,
/// cut on the axes from `axis` on.
///
/// # Errors
/// The first one of `put`.
fn cut<const D: usize>(
    axis: usize,
    mut axes: Axes<D>,
    grains: [u64; D],
    rank_of: &dyn Fn(Axes<D>) -> usize,
    put: &mut dyn FnMut(usize, Axes<D>) -> StepResult,
) -> StepResult {
    let mut all = parts(axes[axis], grains[axis]);
    if axis + 1 < D {
        return all.try_for_each(|part| {
            axes[axis] = part;
            cut(axis + 1, axes, grains, rank_of, put)
        });
    }
    let mut row: Option<(usize, (u64, u64))> = None;
    for part in all {
        axes[axis] = part;
        let rank = rank_of(axes);
        match &mut row {
            Some((of, (_, end))) if *of == rank => *end = part.1,
            _ => {
                if let Some((before, ended)) = row.replace((rank, part)) {
                    axes[axis] = ended;
                    put(before, axes)?;
                }
            }
        }
    }
    row.map_or(Ok(()), |(rank, ended)| {
        axes[axis] = ended;
        put(rank, axes)
    })
}

/// Cuts each range at whole grains. `to_axes` and `from_axes` are inverse to each other.
fn in_parts<T: 'static, const D: usize>(
    grains: [u64; D],
    to_axes: fn(&T) -> Axes<D>,
    from_axes: fn(Axes<D>) -> T,
    compute_on: impl Fn(&T) -> usize + Send + Sync + 'static,
) -> TagPlacement<T> {
    assert!(!grains.contains(&0), "a range has a grain of at least 1");
    let rank_of = move |axes| compute_on(&from_axes(axes));
    Box::new(move |range, put| {
        cut(0, to_axes(&range), grains, &rank_of, &mut |rank, axes| put(rank, from_axes(axes)))
    })
}

impl<'g> DistributedGraph<'g, '_> {
    fn add_ranges<T: ItemKey + Message, G>(
        &self,
        name: &str,
        grain: G,
        placement: TagPlacement<T>,
    ) -> DistributedRanges<'g, T, G> {
        DistributedRanges { tags: self.add_tags(self.local().tags(name), placement), grain }
    }

    /// A new collection of ranges: pairs of a begin and an end. A put cuts a range into parts of
    /// `grain` numbers, from its begin on, and `compute_on` names the rank on which the steps of a
    /// part run.
    ///
    /// # Panics
    /// If the grain is 0.
    ///
    /// # Paper
    /// [NCM11 §2.2]: parallel loops.
    ///
    /// # Examples
    /// The sums of parts of a loop, which the ranks run in turn:
    /// ```
    /// use selvedge::distributed::{self, ItemPlacement};
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// let sums = mpi::run(3, |world| async move {
    ///     let ranks = world.size();
    ///     distributed::graph(&world, move |graph| {
    ///         let in_turn = move |(begin, _): &(u32, u32)| *begin as usize / 64 % ranks;
    ///         let loops = graph.ranges("loops", 64, in_turn);
    ///         let sums = graph.items::<u32, u64>("sums", ItemPlacement::consumed_on(|_| [0]));
    ///         graph.prescribe_range(loops, "squares", move |range, step| {
    ///             step.put(sums, range.start, range.map(|n| u64::from(n).pow(2)).sum())
    ///         });
    ///         graph.initialize_everywhere(|env| env.put_tag(loops.tags(), (0, 1_000)))?;
    ///         let finished = graph.run()?;
    ///         let sums = sums.local();
    ///         Ok(finished.finalize(|view| view.iter(sums).map(|(_, sum)| *sum).sum::<u64>()))
    ///     })
    ///     .await
    /// });
    /// assert_eq!(sums.await.unwrap(), [332_833_500, 0, 0]);
    /// # })?;
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    pub fn ranges<N>(
        &self,
        name: &str,
        grain: N,
        compute_on: impl Fn(&(N, N)) -> usize + Send + Sync + 'static,
    ) -> DistributedRanges<'g, (N, N), N>
    where
        N: RangeNumber + 'static,
        (N, N): Message,
    {
        let placement =
            in_parts([grain.to_word()], |&axis| [wide(axis)], |[axis]| narrow::<N>(axis), compute_on);
        self.add_ranges(name, grain, placement)
    }

    /// As [`ranges`](DistributedGraph::ranges), for ranges in two axes: the begin and the end of
    /// the rows, and of the columns. A part is a block of `grain.0` rows and `grain.1` columns.
    ///
    /// # Panics
    /// If a grain is 0.
    pub fn ranges_2d<N>(
        &self,
        name: &str,
        grain: (N, N),
        compute_on: impl Fn(&BlockedRange2d<N>) -> usize + Send + Sync + 'static,
    ) -> DistributedRanges<'g, BlockedRange2d<N>, (N, N)>
    where
        N: RangeNumber + 'static,
        BlockedRange2d<N>: ItemKey + Message,
    {
        let placement = in_parts(
            [grain.0, grain.1].map(|grain| grain.to_word()),
            |&(a, b)| [a, b].map(wide),
            |axes| axes.map(narrow::<N>).into(),
            compute_on,
        );
        self.add_ranges(name, grain, placement)
    }

    /// As [`ranges_2d`](DistributedGraph::ranges_2d), for ranges in three axes.
    ///
    /// # Panics
    /// If a grain is 0.
    pub fn ranges_3d<N>(
        &self,
        name: &str,
        grain: (N, N, N),
        compute_on: impl Fn(&BlockedRange3d<N>) -> usize + Send + Sync + 'static,
    ) -> DistributedRanges<'g, BlockedRange3d<N>, (N, N, N)>
    where
        N: RangeNumber + 'static,
        BlockedRange3d<N>: ItemKey + Message,
    {
        let placement = in_parts(
            [grain.0, grain.1, grain.2].map(|grain| grain.to_word()),
            |&(a, b, c)| [a, b, c].map(wide),
            |axes| axes.map(narrow::<N>).into(),
            compute_on,
        );
        self.add_ranges(name, grain, placement)
    }

    /// Prescribes a step over ranges: it runs once for each part of each range, on the rank of the
    /// part. The parts are the same for any number of ranks: they begin at the begin of a range and
    /// a whole number of grains.
    ///
    /// # Complexity
    /// A part is a step.
    ///
    /// # Examples
    /// See [`ranges`](DistributedGraph::ranges).
    pub fn prescribe_range<N, F>(&self, ranges: DistributedRanges<'g, (N, N), N>, name: &str, body: F)
    where
        N: RangeNumber + 'static,
        F: for<'s> Fn(Range<N>, &DistributedStep<'s, 'g>) -> StepResult + Send + Sync + 'g,
    {
        let DistributedRanges { tags, grain } = ranges;
        self.local().prescribe_range(tags.local, name, grain, move |numbers, step| {
            body(numbers, &DistributedStep::new(step))
        });
    }

    /// As [`prescribe_range`](DistributedGraph::prescribe_range), over the blocks of ranges in two
    /// axes: the body gets rows and columns.
    pub fn prescribe_range_2d<N, F>(
        &self,
        ranges: DistributedRanges<'g, BlockedRange2d<N>, (N, N)>,
        name: &str,
        body: F,
    ) where
        N: RangeNumber + 'static,
        F: for<'s> Fn(Range<N>, Range<N>, &DistributedStep<'s, 'g>) -> StepResult + Send + Sync + 'g,
    {
        let DistributedRanges { tags, grain } = ranges;
        self.local().prescribe_range_2d(tags.local, name, grain, move |rows, columns, step| {
            body(rows, columns, &DistributedStep::new(step))
        });
    }

    /// As [`prescribe_range`](DistributedGraph::prescribe_range), over the blocks of ranges in
    /// three axes.
    pub fn prescribe_range_3d<N, F>(
        &self,
        ranges: DistributedRanges<'g, BlockedRange3d<N>, (N, N, N)>,
        name: &str,
        body: F,
    ) where
        N: RangeNumber + 'static,
        F: for<'s> Fn(Range<N>, Range<N>, Range<N>, &DistributedStep<'s, 'g>) -> StepResult
            + Send
            + Sync
            + 'g,
    {
        let DistributedRanges { tags, grain } = ranges;
        self.local().prescribe_range_3d(tags.local, name, grain, move |a, b, c, step| {
            body(a, b, c, &DistributedStep::new(step))
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The tags of a range, with their ranks.
    fn tags<const D: usize>(
        axes: Axes<D>,
        grains: [u64; D],
        rank_of: impl Fn(Axes<D>) -> usize,
    ) -> Vec<(usize, Axes<D>)> {
        let mut all = Vec::new();
        let cut = cut(0, axes, grains, &rank_of, &mut |rank, axes| {
            all.push((rank, axes));
            Ok(())
        });
        cut.expect("no put fails");
        all
    }

    #[test]
    fn parts_that_lie_side_by_side_on_a_rank_are_one_tag() {
        let ranks = [0, 0, 1, 1, 1, 0];
        let found = tags([(5, 61)], [10], |[(begin, _)]| ranks[(begin as usize - 5) / 10]);
        assert_eq!(found, [(0, [(5, 25)]), (1, [(25, 55)]), (0, [(55, 61)])]);
        assert_eq!(tags([(7, 7)], [10], |_| 0), []);
    }

    #[test]
    fn a_block_is_cut_on_both_axes() {
        let found = tags([(0, 5), (0, 6)], [3, 2], |[(i, _), (j, _)]| usize::from(i == 3 && j >= 2));
        let expected = [(0, [(0, 3), (0, 6)]), (0, [(3, 5), (0, 2)]), (1, [(3, 5), (2, 6)])];
        assert_eq!(found, expected);
    }

    #[test]
    fn a_range_may_end_at_the_last_number() {
        let found = tags([(u64::MAX - 5, u64::MAX)], [3], |[(begin, _)]| usize::from(begin == u64::MAX - 2));
        assert_eq!(found, [(0, [(u64::MAX - 5, u64::MAX - 2)]), (1, [(u64::MAX - 2, u64::MAX)])]);
    }
}
