//! The handle of an async step: [`AsyncStep`]. `BeginCode` makes one for each step, and the body
//! has it.
//!
//! A put or a get belongs to a step that runs, so a call finds the worker that polls the step in
//! the list of polls. The claims are in the handle, because references to counted items borrow it;
//! its drop returns them.

use super::{Get, Take};
use crate::any_items::GetClaim;
use crate::core::Core;
use crate::error::StepResult;
use crate::first_panic::FirstPanic;
use crate::items::{ItemCol, Items};
use crate::key::ItemKey;
use crate::primitives::{AtomicU64, Mutex, Ordering};
use crate::ready_step::ReadyStep;
use crate::step::{PollEntry, StepContext};
use std::fmt;
use std::ptr;
use std::sync::PoisonError;

/// The graph, as an async step sees it.
///
/// It is used within its step only. While a get waits, the step may wait for nothing else.
///
/// The code of a step should not wait in direct style: its worker waits too, with all ready steps
/// that it holds.
///
/// The program may keep the handle after the step has ended, or give it to another step or OS
/// thread. References that came from its gets stay valid until the handle is dropped. But each use
/// of it there panics, because a put or a get belongs to a step that runs. If the handle is dropped
/// outside of all async steps, the counted items that it has got stay until the graph ends.
///
/// # Paper
/// [NCM11 §3.3] `ContT`: the continuation of a step waits for the item.
///
/// # Differences
/// 1. The continuation is that of an `async` block, so the compiler makes it.
///
/// # Examples
/// See [`Graph::prescribe_async`](crate::Graph::prescribe_async). A step uses the collections of
/// its own graph alone:
/// ```compile_fail,E0521
/// use selvedge::cnc;
///
/// cnc::graph(|one| {
///     cnc::graph(|other| {
///         let items = one.items::<u32, u32>("of the first graph");
///         let tags = other.tags::<u32>("of the other graph");
///         other.prescribe_async(tags, "step", move |n, step| async move {
///             step.put(items, n, 1) // another graph's handle
///         });
///     })
/// });
/// ```
pub struct AsyncStep<'g> {
    core: &'g Core<'g>,
    /// The number of the step collection, and the tag's word.
    maker: (usize, u64),
    /// The number of the step.
    serial: u64,
    pub(super) claims: Mutex<Vec<GetClaim<'g, ReadyStep<'g>>>>,
    /// The number of steps that this one has forked.
    forks: AtomicU64,
}

impl<'g> AsyncStep<'g> {
    pub(super) fn new(core: &'g Core<'g>, maker: (usize, u64), serial: u64) -> AsyncStep<'g> {
        AsyncStep { core, maker, serial, claims: Mutex::new(Vec::new()), forks: AtomicU64::new(0) }
    }

    /// The item of a key, when it is there.
    ///
    /// # Errors
    /// As for [`StepContext::get`], except that a missing item is no error. The future of a get
    /// that waits must not be dropped while its step goes on: which of two items comes first is not
    /// determined.
    pub fn get<K, V>(&self, items: ItemCol<'g, K, V>, key: K) -> Get<'_, 'g, K, V>
    where
        K: ItemKey,
        V: Send + Sync,
    {
        Get::new(self, items, key)
    }

    /// The item of a counted key, by value, when this is the last step that gets it, as
    /// [`StepContext::take`]. The step waits while steps with other gets of the item have not
    /// ended. So it must not have got the item itself: it would wait for its own end.
    ///
    /// # Errors
    /// As for `StepContext::take`, except that no error tells the step to run again: it may get
    /// and put before it takes. The future of a take that waits must not be dropped while its step
    /// goes on, as that of a get.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, Items, schedulers::Stealing};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let last = cnc::graph(|graph| {
    ///     let workers = graph.tags::<u32>("workers");
    ///     let once = Items::<u32, Vec<u32>>::hashed().counted(|&n| (n < 6).then_some(1));
    ///     let tiles = graph.items_in("tiles", once);
    ///     graph.prescribe_async(workers, "work", move |me, step| async move {
    ///         for round in 0..3 {
    ///             let mut tile = step.take(tiles, 2 * round + me).await?;
    ///             tile.push(me);
    ///             step.put(tiles, 2 * round + me + 1, tile)?;
    ///         }
    ///         Ok(())
    ///     });
    ///     graph.initialize(|env| {
    ///         env.put(tiles, 0, vec![])?;
    ///         (0..2).try_for_each(|n| env.put_tag(workers, n))
    ///     })?;
    ///     Ok(graph.run(&Stealing::new(2))?.finalize(|view| view.get(tiles, 6).cloned()))
    /// })?;
    /// assert_eq!(last, Some(vec![0, 1, 0, 1, 0, 1]));
    /// # Ok(())
    /// # }
    /// ```
    pub fn take<K, V>(&self, items: ItemCol<'g, K, V>, key: K) -> Take<'_, 'g, K, V>
    where
        K: ItemKey,
        V: Send + Sync,
    {
        Take::new(self, items, key)
    }

    /// Puts an item, as [`StepContext::put`].
    ///
    /// # Errors
    /// As for `StepContext::put`.
    ///
    /// # Panics
    /// If it is called outside of the step.
    pub fn put<K, V>(&self, items: ItemCol<'g, K, V>, key: K, value: V) -> StepResult
    where
        K: ItemKey,
        V: Send + Sync,
    {
        self.here(|step| step.put_as(items.0, key, value, self.maker.0, self.maker.1))
    }

    /// Puts a tag, as [`StepContext::put_tag`].
    ///
    /// # Errors
    /// As for `StepContext::put_tag`.
    ///
    /// # Panics
    /// If it is called outside of the step.
    pub fn put_tag<T: ItemKey>(&self, tags: crate::TagCol<'g, T>, tag: T) -> StepResult {
        self.here(|step| step.put_tag(tags, tag))
    }

    /// [`put_tag`](AsyncStep::put_tag), by the paper's name.
    ///
    /// # Errors
    /// As for `put_tag`.
    ///
    /// # Panics
    /// As `put_tag`.
    pub fn putt<T: ItemKey>(&self, tags: crate::TagCol<'g, T>, tag: T) -> StepResult {
        self.put_tag(tags, tag)
    }

    /// Runs a closure as a step of its own, as [`StepContext::fork`]. The forked step is a replay
    /// step.
    ///
    /// # Errors
    /// As for `StepContext::fork`.
    ///
    /// # Panics
    /// If it is called outside of the step.
    ///
    /// # Paper
    /// [NCM11 §2.2] `forkStep`.
    ///
    /// # Examples
    /// ```
    /// use selvedge::cnc::{self, schedulers::OneByOne};
    ///
    /// # fn main() -> Result<(), cnc::GraphError> {
    /// let sum = cnc::graph(|graph| {
    ///     let tags = graph.tags::<u64>("tags");
    ///     let sums = graph.items("sums");
    ///     graph.prescribe_async(tags, "sum", move |n, step| async move {
    ///         let squares = step.items::<u64, u64>("squares");
    ///         (0..n).try_for_each(|i| step.fork(move |step| step.put(squares, i, i * i)))?;
    ///         let mut sum = 0;
    ///         for i in 0..n {
    ///             sum += step.get(squares, i).await?;
    ///         }
    ///         step.put(sums, n, sum)
    ///     });
    ///     graph.initialize(|env| env.put_tag(tags, 5))?;
    ///     Ok(graph.run(&OneByOne)?.finalize(|view| view.get(sums, 5).copied()))
    /// })?;
    /// assert_eq!(sum, Some(30));
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "forkStep")]
    pub fn fork(&self, body: impl Fn(&StepContext<'g>) -> StepResult + Send + 'g) -> StepResult {
        self.here(|step| {
            // A step that waits begins a new run, so the count is here and not in the worker. The
            // step has one worker at a time, and the graph hands the step from one to the next.
            let before = self.forks.load(Ordering::Relaxed);
            step.fork_as(body, None, || {
                self.forks.store(before + 1, Ordering::Relaxed);
                step.first_fork().wrapping_add(before)
            })
        })
    }

    /// A new item collection, hashed, as [`StepContext::items`].
    ///
    /// # Panics
    /// If it is called outside of the step.
    ///
    /// # Paper
    /// [NCM11 §2.2] `newItemCol`.
    #[doc(alias = "newItemCol")]
    pub fn items<K: ItemKey + 'g, V: Send + Sync + 'g>(&self, name: &str) -> ItemCol<'g, K, V> {
        self.here(|step| step.items(name))
    }

    /// A new item collection that keeps its items as [`Items`] say, as
    /// [`StepContext::items_in`].
    ///
    /// # Panics
    /// If it is called outside of the step.
    pub fn items_in<K, V>(&self, name: &str, items: Items<'g, K, V>) -> ItemCol<'g, K, V>
    where
        K: ItemKey + 'g,
        V: Send + Sync + 'g,
    {
        self.here(|step| step.items_in(name, items))
    }

    /// A new item collection with one item, as [`StepContext::item`].
    ///
    /// # Panics
    /// If it is called outside of the step.
    pub fn item<V: Send + Sync + 'g>(&self, name: &str) -> ItemCol<'g, (), V> {
        self.here(|step| step.item(name))
    }

    /// Whether the run was cancelled, or has failed, as [`StepContext::is_cancelled`].
    pub fn is_cancelled(&self) -> bool {
        self.core.is_cancelled()
    }

    /// Gives `work` the worker that runs this step.
    pub(super) fn here<R>(&self, work: impl FnOnce(&StepContext<'g>) -> R) -> R {
        self.try_here(work).unwrap_or_else(|| self.used_outside())
    }

    #[cold]
    fn used_outside(&self) -> ! {
        let name = self.core.catalogue.step(self.maker.0).map_or("", |entry| &entry.name);
        panic!("the handle of an async step {name:?} was used outside of the step")
    }

    pub(super) fn try_here<R>(&self, work: impl FnOnce(&StepContext<'g>) -> R) -> Option<R> {
        self.on_worker(work, |entry| entry.serial == self.serial)
    }

    /// Gives `work` the worker of a poll of this graph.
    fn on_worker<R>(
        &self,
        work: impl FnOnce(&StepContext<'g>) -> R,
        is_it: impl Fn(&PollEntry) -> bool,
    ) -> Option<R> {
        let core: *const () = ptr::from_ref(self.core).cast();
        let at: *const StepContext<'g> =
            PollEntry::find(|entry| ptr::eq(entry.core, core) && is_it(entry))?.cast();
        // SAFETY: `PollEntry::of` has taken the pointer from a reference that outlives the poll,
        // and the poll has not ended, because its entry is in the list. The worker is of this
        // graph, so its lifetime is `'g`. No other OS thread uses the worker, because a poll stays
        // on its OS thread.
        Some(work(unsafe { &*at }))
    }
}

impl<'g> Drop for AsyncStep<'g> {
    fn drop(&mut self) {
        let claims = self.claims.get_mut().unwrap_or_else(PoisonError::into_inner);
        let claims = std::mem::take(claims);
        let mut panics = FirstPanic::default();
        let give_back = |step: &StepContext<'g>| {
            for claim in &claims {
                if step.drops_cancelled.get() {
                    // A cancelled step that waits has not got its items, whatever kind of step it
                    // is. A step of another kind has given its claims back when it missed an item.
                    claim.items.unclaim(claim);
                } else {
                    panics.run(|| claim.items.give_back(claim, &mut |ready| step.push_taker(ready)));
                }
            }
            step.handles.set(step.handles.get().wrapping_sub(1));
        };
        // The program may have given the handle to another step, and any worker can take claims.
        if self.on_worker(give_back, |_| true).is_none() {
            // No worker is here: the graph ends, or the handle was sent to another OS thread. The
            // claims are not returned then, so their items stay until the graph ends.
            self.core.tally.handles.fetch_sub(1, Ordering::Release);
        }
        panics.go_on();
    }
}

impl fmt::Debug for AsyncStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AsyncStep").finish_non_exhaustive()
    }
}
