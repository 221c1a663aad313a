//! The steps over ranges that a program prescribes: [`Graph::prescribe_range`] and its like.
//! `kinds/range.rs` has their code.

use super::Graph;
use crate::error::StepResult;
use crate::kinds::range::{
    AXES, Axes, Blocked, BlockedRange2d, BlockedRange3d, RangeCode, RangeNumber, range,
};
use crate::step::StepContext;
use crate::step_col::StepCol;
use crate::tags::TagCol;
use std::ops::Range;

impl<'g> Graph<'g, '_> {
    fn prescribe_blocks<T: Blocked + 'g>(
        &'g self,
        tags: TagCol<'g, T>,
        name: &str,
        grains: [u64; AXES],
        body: impl Fn(Axes, &StepContext<'g>) -> StepResult + Send + Sync + 'g,
    ) -> StepCol<'g, T> {
        assert!(!grains.contains(&0), "a range step has a grain of at least 1");
        self.prescribe_code(tags, name, |hints| Box::new(RangeCode { grains, body, hints }))
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
    ///     let squares = graph.items_in("squares", Items::dense(1_000_u32));
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
    ///     let transposed = graph.items_in("transposed", Items::dense((columns, rows)));
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
    ///     let cells = graph.items_in("cells", cells);
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
