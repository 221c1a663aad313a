//! Stages side by side: what is upstream of [`ahead`] runs in a thread of its own.
//!
//! Programs call [`ahead`], [`par`] and [`seq`]. `parallel.rs` and `child.rs` use `Beside`, the
//! handle of a thread that works for a pipeline.
//!
//! The thread of [`ahead`] may have such threads upstream of it. A cancellation would drop their
//! handles without waiting for them. So `Beside::stop` sets an event instead: the thread drops its
//! work, closes what is upstream, and ends. If the pipeline itself is dropped, then the drop of
//! `Beside` cancels the thread.

use crate::items::{Filler, Stores, made, stores};
use crate::role::{AfterSource, Drive, Driven, FlowSource, Source, Upstream};
use selvedge_core::{JoinError, JoinHandle, spawn};
use selvedge_pipeline::{AfterGenerator, Generate, Generator, Item, StageError, Store, Transduce, Unchanged};
use selvedge_scope::race;
use selvedge_sync::Event;
use std::fmt;
use std::sync::Arc;

/// What [`ahead`] and [`par`] return: it stands between a source and the stages after it.
#[derive(Debug, Clone, Copy)]
pub struct Ahead {
    chunks: usize,
}

/// The source and the stages upstream run in a thread of their own. The thread is ahead of the
/// stages downstream by at most `chunks` chunks in the queue between them, one that waits to be put
/// there, and one that is worked at on each side.
///
/// The thread begins when the first items are wanted. A panic there goes on in the thread that runs
/// the pipeline. If the consumer is finished before, then the thread is stopped, and its
/// destructors have run when the pipeline gives its result.
///
/// # Panics
/// If `chunks` is 0.
///
/// # Complexity
/// For each chunk one put and one take of a [`BoundedFifo`](selvedge_sync::BoundedFifo), and the
/// copy of its items. The memory of the chunks is used again.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{fold, from_iter, lift121};
/// use selvedge::flow::ahead;
///
/// let sum = selvedge::run(async {
///     let squares = from_iter(1..=1000u64) >> lift121(|n: &u64| n * n) >> ahead(4);
///     (squares >> lift121(|n: &u64| n % 7) >> fold(0, |sum, n: &u64| *sum += n)).run().await
/// });
/// assert_eq!(sum.unwrap().unwrap(), (1..=1000u64).map(|n| n * n % 7).sum::<u64>());
/// ```
pub fn ahead(chunks: usize) -> Ahead {
    assert!(chunks > 0, "ahead by no chunks");
    Ahead { chunks }
}

/// The stages upstream and downstream run in parallel: [`ahead`] by one chunk.
///
/// # Paper
/// [Pipes, Producer-consumer pair]: the two steps of a pair may run in parallel.
pub fn par() -> Ahead {
    ahead(1)
}

/// What [`seq`] returns.
#[derive(Debug, Clone, Copy)]
pub struct Seq;

/// Stands in place of [`ahead`], and does nothing: both sides run in the same thread.
pub fn seq() -> Seq {
    Seq
}

impl<A: ?Sized, B: ?Sized, S, T> AfterSource<A, B, S, T> for Seq {
    type Whole = FlowSource<A, B, S, T>;

    fn after(self, source: FlowSource<A, B, S, T>) -> Self::Whole {
        source
    }
}

impl<B: Item + ?Sized, G: Generate<B>> AfterGenerator<B, G> for Seq {
    type Whole = Generator<B, G>;

    fn after(self, generator: Generator<B, G>) -> Self::Whole {
        generator
    }
}

impl<A, B, S, T> AfterSource<A, B, S, T> for Ahead
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    S: Source<A> + 'static,
    T: Transduce<A, B> + Send + 'static,
{
    type Whole = FlowSource<B, B, AheadOf<B>, Unchanged>;

    fn after(self, source: FlowSource<A, B, S, T>) -> Self::Whole {
        let upstream = Box::new(Upstream::new(source.source, source.stages.into_stage()));
        let items = B::Store::default();
        FlowSource::new(AheadOf { chunks: self.chunks, upstream: Some(upstream), running: None, items })
    }
}

impl<B, G> AfterGenerator<B, G> for Ahead
where
    B: Item<Store: Send> + ?Sized,
    G: Generate<B> + Send + 'static,
{
    type Whole = FlowSource<B, B, AheadOf<B>, Unchanged>;

    fn after(self, generator: Generator<B, G>) -> Self::Whole {
        made(generator) >> self
    }
}

/// The source of [`ahead`].
pub struct AheadOf<B: Item + ?Sized> {
    chunks: usize,
    /// The work of the thread, until the first `next` starts it.
    upstream: Option<Box<dyn Drive<Filler<B::Store>>>>,
    running: Option<RunsAhead<B::Store>>,
    /// The items that are lent.
    items: B::Store,
}

struct RunsAhead<C> {
    stores: Stores<C>,
    thread: Beside<Result<(), StageError>>,
}

impl<B: Item + ?Sized> fmt::Debug for AheadOf<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AheadOf").field("begun", &self.running.is_some()).finish_non_exhaustive()
    }
}

impl<A, B, S, T> Drive<Filler<B::Store>> for Upstream<A, B, S, T>
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    S: Source<A> + 'static,
    T: Transduce<A, B> + Send + 'static,
{
    fn drive(self: Box<Self>, end: Filler<B::Store>, stop: Arc<Event>) -> Driven<Result<(), StageError>> {
        Box::pin(run_ahead(*self, end, stop))
    }

    fn close(self: Box<Self>) -> Driven<()> {
        Box::pin(Upstream::close(*self))
    }
}

impl<B: Item<Store: Send> + ?Sized> Source<B> for AheadOf<B> {
    async fn next(&mut self) -> Result<Option<B::Chunk<'_>>, StageError> {
        if let Some(upstream) = self.upstream.take() {
            let (filler, stores) = stores(self.chunks);
            let stop = Arc::new(Event::new());
            let thread = Beside::that_stops(spawn(upstream.drive(filler, stop.clone())), stop);
            self.running = Some(RunsAhead { stores, thread });
        }
        let Some(running) = &mut self.running else { return Ok(None) };
        let mut empty = std::mem::take(&mut self.items);
        empty.clear();
        running.stores.give_back(empty);
        match running.stores.take().await {
            Some(items) => {
                self.items = items;
                Ok(Some(self.items.all()))
            }
            None => {
                running.thread.join().await?;
                Ok(None)
            }
        }
    }

    async fn close(mut self) {
        match (self.upstream.take(), self.running.take()) {
            (Some(upstream), _) => upstream.close().await,
            (_, Some(RunsAhead { mut thread, .. })) => thread.stop().await,
            _ => {}
        }
    }
}

/// The thread that is ahead.
pub(crate) async fn run_ahead<A, B, S, T>(
    mut upstream: Upstream<A, B, S, T>,
    filler: Filler<B::Store>,
    stop: Arc<Event>,
) -> Result<(), StageError>
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    S: Source<A>,
    T: Transduce<A, B> + Send,
{
    let over = race((fill(&mut upstream, filler), until(&stop))).await;
    upstream.close().await;
    over
}

async fn fill<A, B, S, T>(
    upstream: &mut Upstream<A, B, S, T>,
    filler: Filler<B::Store>,
) -> Result<(), StageError>
where
    A: Item + ?Sized,
    B: Item<Store: Send> + ?Sized,
    S: Source<A>,
    T: Transduce<A, B> + Send,
{
    loop {
        let mut store = filler.store();
        let more = upstream.fill(&mut store).await;
        let listens = store.count() == 0 || filler.give(store).await.is_continue();
        if !(more? && listens) {
            return Ok(());
        }
    }
}

/// Waits until the event tells this thread to stop. It is the second branch of a `race`.
pub(crate) async fn until(stop: &Event) -> Result<(), StageError> {
    stop.wait().await;
    Ok(())
}

/// A thread that works for a pipeline, and is cancelled if the pipeline is dropped.
pub(crate) struct Beside<R> {
    /// `None` when it has been joined.
    handle: Option<JoinHandle<R>>,
    /// The event that stops a thread which runs a source, so that it closes the source before it
    /// ends. A thread without this event is cancelled.
    stop: Option<Arc<Event>>,
}

impl<R> Beside<R> {
    pub(crate) fn new(handle: JoinHandle<R>) -> Beside<R> {
        Beside { handle: Some(handle), stop: None }
    }

    /// A thread that stops when `stop` happens.
    pub(crate) fn that_stops(handle: JoinHandle<R>, stop: Arc<Event>) -> Beside<R> {
        Beside { handle: Some(handle), stop: Some(stop) }
    }

    /// Tells the thread to stop, and gives its result.
    pub(crate) async fn stop_and_join(&mut self) -> R {
        if let Some(stop) = &self.stop {
            stop.set();
        }
        self.join().await
    }

    /// The result of the thread. A panic of the thread goes on here.
    pub(crate) async fn join(&mut self) -> R {
        let handle = self.handle.as_mut().expect("a thread that works for a pipeline is joined once");
        let result = handle.await;
        self.handle = None;
        match result {
            Ok(result) => result,
            Err(JoinError::Panicked(panic)) => panic.rethrow(),
            Err(JoinError::Cancelled) => panic!("the thread of a stage was cancelled, or called exit()"),
        }
    }

    /// Stops the thread, and waits until its destructors have run.
    pub(crate) async fn stop(&mut self) {
        let Some(handle) = &mut self.handle else { return };
        match &self.stop {
            Some(stop) => stop.set(),
            None => handle.cancel(),
        }
        // The result of the thread is not wanted, and a panic of it neither.
        let _stopped = handle.await;
        self.handle = None;
    }
}

impl<R> Drop for Beside<R> {
    fn drop(&mut self) {
        if let Some(handle) = &self.handle {
            handle.cancel();
        }
    }
}
