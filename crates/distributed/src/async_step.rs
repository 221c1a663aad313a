//! Async steps over ranks: `DistributedGraph::prescribe_async`, and [`DistributedAsyncStep`], which
//! the body of such a step gets. It stands around the `AsyncStep` of `cnc`.
//!
//! An async step that misses an item goes on where it was, and never runs again. So it may get
//! after it has put for another rank, which a step of another kind may not. A get that misses an
//! item of another rank sends the fetch in its first poll.

use crate::graph::DistributedGraph;
use crate::item_collection::{DistributedItems, PutScope};
use crate::tag_collection::DistributedTags;
use selvedge_cnc::{AsyncStep, ItemKey, StepResult};
use selvedge_mpi::Message;
use std::fmt;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

/// The graph of all ranks, as an async step of one rank sees it.
///
/// It is used within its step only, as an [`AsyncStep`].
///
/// # Paper
/// [NCM11 §3.3]: the continuation of a step waits for the item.
///
/// # Examples
/// See [`DistributedGraph::prescribe_async`].
pub struct DistributedAsyncStep<'g> {
    step: AsyncStep<'g>,
    /// A get or a take has returned an error, so the step has failed and puts nothing any more.
    has_failed: AtomicBool,
}

impl<'g> DistributedAsyncStep<'g> {
    fn new(step: AsyncStep<'g>) -> DistributedAsyncStep<'g> {
        DistributedAsyncStep { step, has_failed: AtomicBool::new(false) }
    }

    /// The step in the graph of this rank, for collections of this rank alone.
    pub fn local(&self) -> &AsyncStep<'g> {
        &self.step
    }

    /// The item of a key, when it is there. The step may have put before.
    ///
    /// # Errors
    /// As for [`AsyncStep::get`]: a missing item is no error. The future of a get that waits must
    /// not be dropped while its step goes on.
    pub async fn get<K, V>(&self, items: DistributedItems<'g, K, V>, key: K) -> StepResult<&V>
    where
        K: ItemKey + Message,
        V: Message + Sync,
    {
        self.noting_a_miss(items, key.clone(), self.step.get(items.local, key)).await
    }

    /// Takes a counted item out, as the last step of this rank that gets it.
    ///
    /// # Errors
    /// As for [`AsyncStep::take`]. The future of a take that waits must not be dropped while its
    /// step goes on.
    pub async fn take<K, V>(&self, items: DistributedItems<'g, K, V>, key: K) -> StepResult<V>
    where
        K: ItemKey + Message,
        V: Message + Sync,
    {
        self.noting_a_miss(items, key.clone(), self.step.take(items.local, key)).await
    }

    /// Waits for an item, and notes that it was missed if the first poll does not find it.
    async fn noting_a_miss<K, V, R>(
        &self,
        items: DistributedItems<'g, K, V>,
        key: K,
        item: impl Future<Output = StepResult<R>>,
    ) -> StepResult<R>
    where
        K: ItemKey + Message,
        V: Message + Sync,
    {
        let producer = items.shared.producer_elsewhere(&key);
        let mut to_note = producer.map(|producer| (key, producer));
        let mut item = pin!(item);
        let found = poll_fn(|cx| {
            let polled = item.as_mut().poll(cx);
            if polled.is_pending()
                && let Some((key, producer)) = to_note.take()
            {
                items.shared.note_missed(key, producer);
            }
            polled
        });
        let found = found.await;
        self.has_failed.fetch_or(found.is_err(), Ordering::Relaxed);
        found
    }

    fn has_failed(&self) -> bool {
        self.has_failed.load(Ordering::Relaxed)
    }

    /// Puts an item on the ranks that its collection names.
    ///
    /// # Errors
    /// As for [`AsyncStep::put`], and if the collection names a rank that there is not.
    ///
    /// # Panics
    /// If it is called outside of the step.
    pub fn put<K, V>(&self, items: DistributedItems<'g, K, V>, key: K, value: V) -> StepResult
    where
        K: ItemKey + Message,
        V: Message + Clone + Sync,
    {
        let here = |key, value| self.step.put(items.local, key, value);
        if self.has_failed() {
            // The graph says so, and nothing is put.
            return here(key, value);
        }
        items.shared.put(key, value, PutScope::AllRanks, here).map(drop)
    }

    /// Puts a tag on the rank that its collection names, as
    /// [`DistributedStep::put_tag`](crate::DistributedStep::put_tag).
    ///
    /// # Errors
    /// As for [`AsyncStep::put_tag`], and if the collection names a rank that there is not.
    ///
    /// # Panics
    /// If it is called outside of the step.
    pub fn put_tag<T: ItemKey + Message>(&self, tags: DistributedTags<'g, T>, tag: T) -> StepResult {
        let here = |tag| self.step.put_tag(tags.local, tag);
        if self.has_failed() {
            return here(tag);
        }
        tags.shared.put(tags.local.name(), tag, PutScope::AllRanks, here).map(drop)
    }
}

impl fmt::Debug for DistributedAsyncStep<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DistributedAsyncStep").finish_non_exhaustive()
    }
}

impl<'g> DistributedGraph<'g, '_> {
    /// Prescribes an async step: it runs once for each tag of a collection, on the rank of the tag.
    /// When an item that the step missed is there, the step goes on where it was. So it may get
    /// after it has put, also for another rank.
    ///
    /// While the step waits for an item, its rank runs other steps. It may wait for nothing else.
    ///
    /// # Paper
    /// [NCM11 §3.3]: the continuation of a step, instead of a replay.
    ///
    /// # Examples
    /// A step on each rank, and a ball that goes round them:
    /// ```
    /// use selvedge::distributed::{self, ItemPlacement};
    /// use selvedge::mpi;
    ///
    /// # selvedge::round_robin(async {
    /// let caught = mpi::run(3, |world| async move {
    ///     distributed::graph(&world, |graph| {
    ///         let (me, ranks) = (graph.rank() as u32, graph.ranks() as u32);
    ///         let players = graph.tags("players", |player: &u32| *player as usize);
    ///         let catcher = move |ball: &u32| [(ball % ranks) as usize];
    ///         let balls = graph.items::<_, u32>("balls", ItemPlacement::consumed_on(catcher));
    ///         graph.prescribe_async(players, "play", move |player, step| async move {
    ///             for ball in (player..20).step_by(ranks as usize) {
    ///                 let caught = *step.get(balls, ball).await?;
    ///                 step.put(balls, ball + 1, caught + ball)?;
    ///             }
    ///             Ok(())
    ///         });
    ///         graph.initialize_everywhere(|env| {
    ///             env.put(balls, 0, 0)?;
    ///             env.put_tag(players, me)
    ///         })?;
    ///         let all = graph.run()?.gather(0, balls)?;
    ///         Ok(all.and_then(|all| all.last().copied()))
    ///     })
    ///     .await
    /// });
    /// assert_eq!(caught.await.unwrap()[0], Some((20, 190)));
    /// # })?;
    /// # Ok::<(), selvedge::RunError>(())
    /// ```
    pub fn prescribe_async<T, F, Fut>(&self, tags: DistributedTags<'g, T>, name: &str, body: F)
    where
        T: ItemKey + Message,
        F: Fn(T, DistributedAsyncStep<'g>) -> Fut + Send + Sync + 'g,
        Fut: Future<Output = StepResult> + Send + 'g,
    {
        let body = move |tag, step| body(tag, DistributedAsyncStep::new(step));
        self.local().prescribe_async(tags.local, name, body);
    }
}
