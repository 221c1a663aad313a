//! The steps that a program prescribes: [`Graph::prescribe`] and its variants for other kinds of
//! steps. `kinds/` has their code; a new kind gets its method here.

use super::Graph;
use crate::error::StepResult;
use crate::hints::StepHints;
use crate::key::ItemKey;
use crate::kinds::async_step::{self, AsyncStep};
use crate::kinds::declared::{DependsCode, Needs};
use crate::kinds::replayed::ReplayCode;
use crate::ready_step::Code;
use crate::step::StepContext;
use crate::step_col::StepCol;
use crate::tag_word::free_of;
use crate::tags::TagCol;

impl<'g> Graph<'g, '_> {
    /// Adds a step, the instances of which have their tags as words. `make` makes its code.
    pub(super) fn prescribe_code<T, C>(
        &'g self,
        tags: TagCol<'g, T>,
        name: &str,
        make: impl FnOnce(&'g StepHints<'g, T>) -> Box<C>,
    ) -> StepCol<'g, T>
    where
        T: ItemKey + 'g,
        C: Code<'g> + 'g,
    {
        let core = self.core();
        let hints = core.catalogue.own(StepHints::default());
        tags.0.prescribe(core.add_entry(name, make(hints), free_of::<T>(), false));
        StepCol::new(hints, core)
    }

    /// Prescribes a step: it runs once for each tag of a collection.
    ///
    /// A step that misses an item runs again from its beginning when the item is there. So it gets
    /// before it puts. A step is a function of its tag and of the items that it gets; the graph is
    /// determined only if that is true.
    pub fn prescribe<T, F>(&'g self, tags: TagCol<'g, T>, name: &str, body: F) -> StepCol<'g, T>
    where
        T: ItemKey + 'g,
        F: Fn(T, &StepContext<'g>) -> StepResult + Send + Sync + 'g,
    {
        self.prescribe_code(tags, name, |hints| Box::new(ReplayCode { body, hints }))
    }

    /// Prescribes a step with declared items, for each tag of a collection: `needs` declares the
    /// items, and `body` runs once, when all of them are there. There is one exception: other steps
    /// may have claimed all gets of a counted item by then, so that its count may be wrong. Then
    /// `body` runs again from its beginning.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::OneByOne};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let fib = cnc::graph(|graph| {
    ///     let tags = graph.tags("numbers");
    ///     let fibs = graph.items_in("fibs", Items::dense(51));
    ///     graph.prescribe_depends(
    ///         tags,
    ///         "fib",
    ///         move |n: u32, needs| needs.on(fibs, n - 1).and_then(|()| needs.on(fibs, n - 2)),
    ///         move |n, step| step.put(fibs, n, *step.get(fibs, n - 1)? + *step.get(fibs, n - 2)?),
    ///     );
    ///     graph.initialize(|env| {
    ///         env.put(fibs, 0, 0_u64)?;
    ///         env.put(fibs, 1, 1)?;
    ///         (2..=50).try_for_each(|n| env.put_tag(tags, n))
    ///     })?;
    ///     Ok(graph.run(&OneByOne)?.finalize(|view| view.get(fibs, 50).copied()))
    /// })?;
    /// assert_eq!(fib, Some(12_586_269_025));
    /// # Ok(())
    /// # }
    /// ```
    pub fn prescribe_depends<T, D, F>(
        &'g self,
        tags: TagCol<'g, T>,
        name: &str,
        needs: D,
        body: F,
    ) -> StepCol<'g, T>
    where
        T: ItemKey + 'g,
        D: Fn(T, &Needs<'_, 'g>) -> StepResult + Send + Sync + 'g,
        F: Fn(T, &StepContext<'g>) -> StepResult + Send + Sync + 'g,
    {
        self.prescribe_code(tags, name, |hints| Box::new(DependsCode { needs, body, hints }))
    }

    /// Prescribes an async step, for each tag of a collection. When an item that the step missed is
    /// there, the step goes on where it was. So it may get after it has put.
    ///
    /// # Paper
    /// [NCM11 §3.3]: the continuation of a step, instead of a replay.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, schedulers::OneByOne};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let answer = cnc::graph(|graph| {
    ///     let players = graph.tags::<u32>("players");
    ///     let balls = graph.items::<u32, u32>("balls");
    ///     graph.prescribe_async(players, "play", move |me, step| async move {
    ///         for round in 0..10 {
    ///             let ball = *step.get(balls, 2 * round + me).await?;
    ///             step.put(balls, 2 * round + me + 1, ball + 1)?;
    ///         }
    ///         Ok(())
    ///     });
    ///     graph.initialize(|env| {
    ///         env.put_tag(players, 0)?;
    ///         env.put_tag(players, 1)?;
    ///         env.put(balls, 0, 0)
    ///     })?;
    ///     Ok(graph.run(&OneByOne)?.finalize(|view| view.get(balls, 20).copied()))
    /// })?;
    /// assert_eq!(answer, Some(20));
    /// # Ok(())
    /// # }
    /// ```
    pub fn prescribe_async<T, F, Fut>(&'g self, tags: TagCol<'g, T>, name: &str, body: F) -> StepCol<'g, T>
    where
        T: ItemKey + 'g,
        F: Fn(T, AsyncStep<'g>) -> Fut + Send + Sync + 'g,
        Fut: Future<Output = StepResult> + Send + 'g,
    {
        let hints = self.core().catalogue.own(StepHints::default());
        tags.0.prescribe(async_step::entry(self.core(), name, body, hints));
        StepCol::new(hints, self.core())
    }
}
