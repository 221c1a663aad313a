//! [`StepCol`], the handle of a step collection: the program adds facts about its instances, and
//! cancels them. `Graph::prescribe` and its variants return it. `hints.rs` has the store.

use crate::core::Core;
use crate::hints::StepHints;
use crate::items::ItemCol;
use crate::key::{ItemKey, text_if_any};
use crate::stuck::MadeItem;
use std::fmt;

/// A handle of a step collection, with which the program says more about it.
pub struct StepCol<'g, T> {
    hints: &'g StepHints<'g, T>,
    core: &'g Core<'g>,
}

impl<'g, T> StepCol<'g, T> {
    pub(crate) fn new(hints: &'g StepHints<'g, T>, core: &'g Core<'g>) -> StepCol<'g, T> {
        StepCol { hints, core }
    }
}

impl<'g, T: ItemKey> StepCol<'g, T> {
    /// Says how urgent the step with each tag is, for schedulers that heed it. A larger number runs
    /// earlier. The first call counts.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, schedulers::TaskPool};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let order = std::sync::Mutex::new(Vec::new());
    /// cnc::graph(|graph| {
    ///     let tags = graph.tags::<i64>("tags");
    ///     graph.prescribe(tags, "note", |n, _| {
    ///         order.lock().unwrap().push(n);
    ///         Ok(())
    ///     })
    ///     .priority(|&n| n);
    ///     graph.initialize(|env| [3, 1, 2].into_iter().try_for_each(|n| env.put_tag(tags, n)))?;
    ///     graph.run(&TaskPool::priority(1)).map(|_| ())
    /// })?;
    /// assert_eq!(order.into_inner().unwrap(), [3, 2, 1]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn priority(self, urgency: impl Fn(&T) -> i64 + Send + Sync + 'g) -> Self {
        self.hints.set_priority(urgency);
        self
    }

    /// Says on which worker the step with each tag runs, for schedulers that heed it: the worker
    /// with this number, modulo the number of workers. The first call counts.
    ///
    /// # Examples
    /// See [`Affine`](crate::schedulers::Affine).
    ///
    /// # Paper
    /// [NCM11 §4]: pinned workers.
    pub fn affinity(self, place: impl Fn(&T) -> usize + Send + Sync + 'g) -> Self {
        self.hints.set_affinity(place);
        self
    }

    /// Says which item the step with each tag puts. A report of stuck steps then shows the circles
    /// in which steps wait for one another, and a picture has the arrow before any run. Several
    /// calls say several items.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, GraphError, schedulers::OneByOne};
    ///
    /// let end = cnc::graph(|graph| {
    ///     let tags = graph.tags::<u32>("tags");
    ///     let items = graph.items::<u32, u32>("items");
    ///     graph.prescribe(tags, "next", move |n, step| {
    ///         let other = *step.get(items, (n + 1) % 3)?;
    ///         step.put(items, n, other)
    ///     })
    ///     .makes(items, |&n| n);
    ///     graph.initialize(|env| (0..3).try_for_each(|n| env.put_tag(tags, n)))?;
    ///     graph.run(&OneByOne).map(|_| ())
    /// });
    /// let Err(GraphError::Stuck(stuck)) = end else { panic!("each step waits for the next one") };
    /// assert_eq!(stuck.circles[0].len(), 3);
    /// assert!(stuck.to_string().contains("next(0) waits for items[1]; next(1) waits for"));
    /// ```
    pub fn makes<K: ItemKey + 'g, V: Send + Sync + 'g>(
        self,
        items: ItemCol<'g, K, V>,
        key: impl Fn(&T) -> K + Send + Sync + 'g,
    ) -> Self {
        // Keys without a text are not told apart, so they are in no circle.
        let made =
            move |tag: &T| text_if_any(&key(tag)).map(|key| MadeItem { collection: items.0.number, key });
        self.hints.add_made(items.0.number, made);
        self
    }

    /// Prevents the step with this tag from beginning, and from going on if it waits for an item. A
    /// step that runs comes to its end. It is no error that the step does not run; but steps that
    /// wait for its items are reported.
    ///
    /// For a range step, cancel the tag that was put, or [all](StepCol::cancel). The schedule
    /// decides into which other ranges a step is cut, so the tag of such a part cancels a step or
    /// none.
    ///
    /// If a step is cancelled while it waits, the graph gives back the step's gets of counted
    /// items. These gets are then missing from the count, and the run ends with the fault
    /// [`LeftOver`](crate::FaultCause::LeftOver), unless other steps get the items instead. This
    /// holds for each kind of step, also if the step waits for an item that is never put.
    ///
    /// If the tag is cancelled before it is put, the result is determined. If a step cancels it,
    /// each part of the result that depends on the cancelled step may depend on the schedule.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let sum = cnc::graph(|graph| {
    ///     let tags = graph.tags::<u32>("tags");
    ///     let items = graph.items("items");
    ///     let copy = graph.prescribe(tags, "copy", move |n, step| step.put(items, n, n));
    ///     copy.cancel_tag(3);
    ///     graph.initialize(|env| (0..5).try_for_each(|n| env.put_tag(tags, n)))?;
    ///     let finished = graph.run(&Stealing::new(2))?;
    ///     Ok(finished.finalize(|view| view.iter(items).map(|(n, _)| n).sum::<u32>()))
    /// })?;
    /// assert_eq!(sum, 0 + 1 + 2 + 4);
    /// # Ok(())
    /// # }
    /// ```
    pub fn cancel_tag(self, tag: T) {
        self.hints.cancel_tag(tag);
        self.core.note_cancelled_steps();
    }

    /// Cancels all tags of the collection, as [`cancel_tag`](StepCol::cancel_tag) cancels one: no
    /// step of it begins or goes on any more.
    pub fn cancel(self) {
        self.hints.cancel();
        self.core.note_cancelled_steps();
    }
}

impl<T> Clone for StepCol<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for StepCol<'_, T> {}

impl<T> fmt::Debug for StepCol<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StepCol").finish_non_exhaustive()
    }
}
