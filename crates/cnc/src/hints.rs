//! The facts that a program adds about the instances of a step collection: [`StepCol`], the handle,
//! and [`StepHints`], the store.
//!
//! `Graph::prescribe` and its variants return a `StepCol`. The code of each step borrows the
//! `StepHints` and answers `ReadyStep::priority`, `ReadyStep::affinity`, `ReadyStep::is_cancelled`
//! and the reports from them. `TaskPool::priority` and `Affine` use the first two.
//!
//! A hint changes where and when a step runs, and never its result. Only a cancellation changes
//! which steps run.

use std::collections::HashSet;
use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::arena::{Owned, UntilTheEnd};
use crate::collections::ItemCol;
use crate::core::Core;
use crate::key::{ItemKey, text_if_any};
use crate::primitives::{Mutex, lock};
use crate::stuck::MadeItem;
use crate::tags::clear;

/// A function of a tag.
type OfTag<'g, T, R> = Box<dyn Fn(&T) -> R + Send + Sync + 'g>;

/// The number of an item collection, and the item of a tag, if its key has a text.
type MadeOfTag<'g, T> = (usize, OfTag<'g, T, Option<MadeItem>>);

/// What is said about the instances of a step collection, by their tags.
pub(crate) struct StepHints<'g, T> {
    priority: UntilTheEnd<OnceLock<OfTag<'g, T, i64>>>,
    affinity: UntilTheEnd<OnceLock<OfTag<'g, T, usize>>>,
    makes: Mutex<Vec<MadeOfTag<'g, T>>>,
    all_cancelled: AtomicBool,
    cancelled: Mutex<HashSet<T>>,
}

impl<T> Default for StepHints<'_, T> {
    fn default() -> Self {
        StepHints {
            priority: UntilTheEnd::new(OnceLock::new()),
            affinity: UntilTheEnd::new(OnceLock::new()),
            makes: Mutex::new(Vec::new()),
            all_cancelled: AtomicBool::new(false),
            cancelled: Mutex::new(HashSet::new()),
        }
    }
}

impl<T: ItemKey> StepHints<'_, T> {
    pub(crate) fn priority(&self, tag: &T) -> i64 {
        self.priority.get().map_or(0, |priority| priority(tag))
    }

    pub(crate) fn affinity(&self, tag: &T) -> Option<usize> {
        self.affinity.get().map(|affinity| affinity(tag))
    }

    pub(crate) fn makes(&self, tag: &T) -> Vec<MadeItem> {
        lock(&self.makes).iter().filter_map(|(_, makes)| makes(tag)).collect()
    }

    /// The numbers of the collections in which the instances put, as the program has said.
    pub(crate) fn made_collections(&self) -> Vec<usize> {
        lock(&self.makes).iter().map(|&(number, _)| number).collect()
    }

    pub(crate) fn is_cancelled(&self, tag: &T) -> bool {
        self.all_cancelled.load(Ordering::Relaxed) || lock(&self.cancelled).contains(tag)
    }
}

impl<T> Owned for StepHints<'_, T> {
    unsafe fn empty(&self) {
        // SAFETY: as promised by the caller.
        unsafe { self.priority.replace(OnceLock::new()) };
        // SAFETY: as above.
        unsafe { self.affinity.replace(OnceLock::new()) };
        // No code of the program runs under the locks.
        let makes = std::mem::take(&mut *lock(&self.makes));
        let cancelled = std::mem::take(&mut *lock(&self.cancelled));
        drop((makes, cancelled));
    }

    unsafe fn reset(&self) {
        self.all_cancelled.store(false, Ordering::Relaxed);
        clear(&self.cancelled);
    }
}

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
        let _ = self.hints.priority.set(Box::new(urgency));
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
        let _ = self.hints.affinity.set(Box::new(place));
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
        lock(&self.hints.makes).push((items.0.number, Box::new(made)));
        self
    }

    /// Has the step with this tag not begin, and not go on if it waits for an item. One that runs
    /// comes to its end. It is no error that the step does not run; but steps that wait for its
    /// items are reported.
    ///
    /// Of a range step, cancel the tag that was put, or [all](StepCol::cancel). Which other ranges
    /// hit a step depends on the schedule.
    ///
    /// A cancelled step has not got the counted items that it asked for before it had to wait. So
    /// these gets are left, as [`LeftOver`](crate::FaultCause::LeftOver) says, unless other steps
    /// get the items in its stead. That holds for each kind of step, also if it waits for an item
    /// that is never put.
    ///
    /// If the tag is cancelled before it is put, the result is determined. If it is cancelled by a
    /// step, the result may depend on the schedule where it depends on the step that was cancelled.
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
        lock(&self.hints.cancelled).insert(tag);
        self.core.note_cancelled_steps();
    }

    /// Has no step of the collection begin or go on any more, as
    /// [`cancel_tag`](StepCol::cancel_tag) for all its tags.
    pub fn cancel(self) {
        self.hints.all_cancelled.store(true, Ordering::Relaxed);
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
