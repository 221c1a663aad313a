//! One function over many items at once, in the order of the items.
//!
//! Programs call [`map_par`]. Its source starts one thread, `feed`, which runs what is upstream and
//! spawns a worker for each share of a chunk. The workers stand in a queue in the order of their
//! items, and the source joins them in this order.
//!
//! A worker holds a permit of a semaphore while it works, so at most `threads` of them work at a
//! time. `feed` acquires all permits at its end: then no worker runs any more.

use crate::beside::{Beside, until};
use crate::items::{FromGenerator, made};
use crate::role::{AfterSource, FlowSource, Source, Upstream};
use selvedge_core::spawn;
use selvedge_pipeline::{AfterGenerator, Generate, Generator, Item, StageError, Store, Transduce, Unchanged};
use selvedge_scope::race;
use selvedge_sync::{BoundedFifo, Event, Putter, Semaphore, Taker};
use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;

/// What [`map_par`] returns: it stands between a source and the stages after it.
pub struct MapPar<A: ?Sized, F> {
    threads: u32,
    f: F,
    takes: PhantomData<fn(&A)>,
}

/// Yields `f(item)` for each item, in the order of the items. At most `threads` threads work at a
/// time.
///
/// It is [`lift121`](selvedge_pipeline::lift121) for a function that takes long. A chunk
/// is shared out among the threads, so also a chunk of few items is worked at by several. One
/// more thread runs what is upstream. A panic of `f` goes on in the thread that runs the pipeline,
/// at the place of its item.
///
/// # Panics
/// If `threads` is 0.
///
/// # Complexity
/// For each chunk and thread a spawn, a put and a take of a queue, and a copy of the items.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{collect, from_iter};
/// use selvedge::flow::map_par;
///
/// let collatz = |n: &u64| {
///     let next = |n: &u64| (*n != 1).then(|| if n % 2 == 0 { n / 2 } else { 3 * n + 1 });
///     std::iter::successors(Some(*n), next).count()
/// };
/// let lengths = selvedge::run(async move {
///     (from_iter(1..=9) >> map_par(4, collatz) >> collect()).run().await
/// });
/// assert_eq!(lengths.unwrap().unwrap(), [1, 2, 8, 3, 6, 9, 17, 4, 20]);
/// ```
pub fn map_par<A, B, F>(threads: u32, f: F) -> MapPar<A, F>
where
    A: Item + ?Sized,
    F: Fn(&A) -> B,
{
    assert!(threads > 0, "map_par with no threads");
    MapPar { threads, f, takes: PhantomData }
}

impl<A: ?Sized, F> fmt::Debug for MapPar<A, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MapPar").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl<A, B, C, S, T, F> AfterSource<A, B, S, T> for MapPar<B, F>
where
    A: Item + ?Sized,
    B: Item<Store: Send + Sync> + ?Sized,
    C: Clone + Send + 'static,
    S: Source<A> + 'static,
    T: Transduce<A, B> + Send + 'static,
    F: Fn(&B) -> C + Clone + Send + 'static,
{
    type Whole = FlowSource<C, C, ParallelOf<A, B, C, S, T, F>, Unchanged>;

    fn after(self, source: FlowSource<A, B, S, T>) -> Self::Whole {
        let upstream = Upstream::new(source.source, source.stages.into_stage());
        let begin = Some((upstream, self.f));
        FlowSource::new(ParallelOf { threads: self.threads, begin, running: None, items: Vec::new() })
    }
}

impl<B, C, G, F> AfterGenerator<B, G> for MapPar<B, F>
where
    B: Item<Store: Send + Sync> + ?Sized,
    C: Clone + Send + 'static,
    G: Generate<B> + Send + 'static,
    F: Fn(&B) -> C + Clone + Send + 'static,
{
    type Whole = FlowSource<C, C, ParallelOf<B, B, C, FromGenerator<B, G>, Unchanged, F>, Unchanged>;

    fn after(self, generator: Generator<B, G>) -> Self::Whole {
        made(generator) >> self
    }
}

/// The source of [`map_par`].
pub struct ParallelOf<A: ?Sized, B: ?Sized, C, S, T, F> {
    threads: u32,
    /// The work of the threads, until the first `next` starts them.
    begin: Option<(Upstream<A, B, S, T>, F)>,
    running: Option<ParallelWorkers<C>>,
    /// The items that are lent.
    items: Vec<C>,
}

struct ParallelWorkers<C> {
    /// The threads that work, in the order of their items.
    workers: Taker<Beside<Vec<C>>>,
    feeder: Beside<Result<(), StageError>>,
}

impl<A: ?Sized, B: ?Sized, C, S, T, F> fmt::Debug for ParallelOf<A, B, C, S, T, F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParallelOf").field("threads", &self.threads).finish_non_exhaustive()
    }
}

impl<A, B, C, S, T, F> Source<C> for ParallelOf<A, B, C, S, T, F>
where
    A: Item + ?Sized,
    B: Item<Store: Send + Sync> + ?Sized,
    C: Clone + Send + 'static,
    S: Source<A> + 'static,
    T: Transduce<A, B> + Send + 'static,
    F: Fn(&B) -> C + Clone + Send + 'static,
{
    async fn next(&mut self) -> Result<Option<&[C]>, StageError> {
        if let Some((upstream, f)) = self.begin.take() {
            let (putter, workers) = BoundedFifo::ends(self.threads as usize);
            let stop = Arc::new(Event::new());
            let feeding = feed(upstream, f, self.threads, putter, stop.clone());
            let feeder = Beside::that_stops(spawn(feeding), stop);
            self.running = Some(ParallelWorkers { workers, feeder });
        }
        let Some(running) = &mut self.running else { return Ok(None) };
        match running.workers.take().await {
            Some(mut worker) => {
                self.items = worker.join().await;
                Ok(Some(&self.items))
            }
            None => {
                running.feeder.join().await?;
                Ok(None)
            }
        }
    }

    async fn close(mut self) {
        if let Some((upstream, _)) = self.begin.take() {
            upstream.close().await;
        }
        let Some(ParallelWorkers { workers, mut feeder }) = self.running.take() else { return };
        feeder.stop().await;
        while let Some(mut worker) = workers.take().await {
            worker.stop().await;
        }
    }
}

/// The thread that runs what is upstream.
async fn feed<A, B, C, S, T, F>(
    mut upstream: Upstream<A, B, S, T>,
    f: F,
    threads: u32,
    workers: Putter<Beside<Vec<C>>>,
    stop: Arc<Event>,
) -> Result<(), StageError>
where
    A: Item + ?Sized,
    B: Item<Store: Send + Sync> + ?Sized,
    C: Clone + Send + 'static,
    S: Source<A>,
    T: Transduce<A, B> + Send,
    F: Fn(&B) -> C + Clone + Send + 'static,
{
    let permits = Arc::new(Semaphore::new(threads));
    let over = race((share_out(&mut upstream, f, &permits, threads, workers), until(&stop))).await;
    // `race` may drop `share_out` with a worker that is not in the queue yet. The drop cancels this
    // worker, and no other thread waits for it. A worker has its permit until it has ended, so this
    // waits for all of them.
    let _all_ended = permits.acquire_many(threads).await;
    upstream.close().await;
    over
}

/// Shares each chunk out among workers.
async fn share_out<A, B, C, S, T, F>(
    upstream: &mut Upstream<A, B, S, T>,
    f: F,
    permits: &Arc<Semaphore>,
    threads: u32,
    workers: Putter<Beside<Vec<C>>>,
) -> Result<(), StageError>
where
    A: Item + ?Sized,
    B: Item<Store: Send + Sync> + ?Sized,
    C: Clone + Send + 'static,
    S: Source<A>,
    T: Transduce<A, B> + Send,
    F: Fn(&B) -> C + Clone + Send + 'static,
{
    let mut items = B::Store::default();
    loop {
        let more = upstream.fill(&mut items).await;
        let share = items.count().div_ceil(threads as usize);
        let mut begin = 0;
        while begin < items.count() {
            let end = (begin + share).min(items.count());
            let mut part = B::Store::default();
            part.keep_all(items.chunk(begin..end));
            begin = end;
            let permit = Semaphore::acquire_owned(permits.clone(), 1).await;
            let f = f.clone();
            let worker = spawn(async move {
                let made = (0..part.count()).map(|index| f(part.at(index))).collect();
                drop(permit);
                made
            });
            if workers.put(Beside::new(worker)).await.is_err() {
                return Ok(());
            }
        }
        items.clear();
        if !more? {
            return Ok(());
        }
    }
}
