//! Items of threads: queues and variables as sources and as targets; generators as sources.
//!
//! Programs call the functions of each end. A generator of the pipeline crate becomes a source in
//! front of a `FlowTarget`, `ahead`, `map_par` or `through`, so the files of these call [`made`]
//! too. All ends of the crate make their failures with `failed`.
//!
//! `Filler` and `Stores` are the two ends of the queue of `ahead`: full stores go downstream, and
//! empty ones come back for their memory. The queue back is longer by one, so that a store is
//! seldom thrown away.

use crate::role::{FlowSource, FlowTarget, Source, Target};
use selvedge_core::yield_now;
use selvedge_pipeline::{Flow, Generate, Generator, Item, Keep, StageError, Store, StreamPlace, Unchanged};
use selvedge_sync::{BoundedFifo, Fifo, MVar, Putter, Taker, TryTakeError};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// How many items a source takes at most before its stages see them.
const CHUNK: usize = 1024;

/// After how many chunks of a generator other threads run.
const PUMPS: u32 = 16;

/// The source of [`made`].
pub struct FromGenerator<B: Item + ?Sized, G> {
    /// `None` at the end.
    generator: Option<G>,
    items: B::Store,
    failure: Option<StageError>,
    pumps: u32,
}

/// A generator as a source.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{collect, from_iter};
/// use selvedge::flow::made;
///
/// let numbers = selvedge::run_local(async { (made(from_iter(0..3)) >> collect()).run().await });
/// assert_eq!(numbers.unwrap().unwrap(), [0, 1, 2]);
/// ```
pub fn made<B, G>(generator: Generator<B, G>) -> FlowSource<B, B, FromGenerator<B, G>, Unchanged>
where
    B: Item<Store: Send> + ?Sized,
    G: Generate<B> + Send,
{
    FlowSource::new(FromGenerator {
        generator: Some(generator.into_stage()),
        items: B::Store::default(),
        failure: None,
        pumps: 0,
    })
}

impl<B: Item + ?Sized, G> fmt::Debug for FromGenerator<B, G> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromGenerator").field("ended", &self.generator.is_none()).finish_non_exhaustive()
    }
}

impl<B, G> Source<B> for FromGenerator<B, G>
where
    B: Item<Store: Send> + ?Sized,
    G: Generate<B> + Send,
{
    async fn next(&mut self) -> Result<Option<B::Chunk<'_>>, StageError> {
        self.items.clear();
        while self.items.count() == 0 {
            // A generator never waits. So this yields to other threads now and then.
            self.pumps += 1;
            if self.pumps.is_multiple_of(PUMPS) {
                yield_now().await;
            }
            let Some(generator) = &mut self.generator else {
                return self.failure.take().map_or(Ok(None), Err);
            };
            if generator.pump(&mut Keep(&mut self.items)) != ControlFlow::Continue(true) {
                // The failure waits in `failure` until the items before it have been given.
                self.failure = generator.failure().cloned();
                self.generator = None;
            }
        }
        Ok(Some(self.items.all()))
    }
}

/// The source of [`from_taker`].
pub struct FromTaker<T> {
    taker: Taker<T>,
    items: Vec<T>,
}

/// The items that other threads put into a bounded queue, until it is closed and empty. The drop of
/// the last [`Putter`] closes it.
///
/// # Examples
/// ```
/// use selvedge::pipeline::fold;
/// use selvedge::{flow, spawn, sync::BoundedFifo};
///
/// let sum = selvedge::run(async {
///     let (putter, taker) = BoundedFifo::ends(2);
///     drop(spawn(async move {
///         for number in 1..=4 {
///             putter.put(number).await.unwrap();
///         }
///     }));
///     (flow::from_taker(taker) >> fold(0, |sum, n: &i32| *sum += n)).run().await
/// });
/// assert_eq!(sum.unwrap().unwrap(), 10);
/// ```
pub fn from_taker<T: Clone + Send + 'static>(taker: Taker<T>) -> FlowSource<T, T, FromTaker<T>, Unchanged> {
    FlowSource::new(FromTaker { taker, items: Vec::new() })
}

impl<T> fmt::Debug for FromTaker<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromTaker").finish_non_exhaustive()
    }
}

impl<T: Clone + Send + 'static> Source<T> for FromTaker<T> {
    async fn next(&mut self) -> Result<Option<&[T]>, StageError> {
        self.items.clear();
        let Some(first) = self.taker.take().await else { return Ok(None) };
        self.items.push(first);
        while self.items.len() < CHUNK
            && let Ok(item) = self.taker.try_take()
        {
            self.items.push(item);
        }
        Ok(Some(&self.items))
    }
}

/// The source of [`from_fifo`].
pub struct FromFifo<T> {
    fifo: Arc<Fifo<T>>,
    items: Vec<T>,
}

/// The items that threads put into a [`Fifo`], without end.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{collect, take};
/// use selvedge::{Fifo, flow};
/// use std::sync::Arc;
///
/// let first = selvedge::run_local(async {
///     let fifo = Arc::new(Fifo::new());
///     for word in ["warp", "weft", "knot"] {
///         fifo.put(word);
///     }
///     (flow::from_fifo(fifo) >> take(2) >> collect()).run().await
/// });
/// assert_eq!(first.unwrap().unwrap(), ["warp", "weft"]);
/// ```
pub fn from_fifo<T: Clone + Send + 'static>(fifo: Arc<Fifo<T>>) -> FlowSource<T, T, FromFifo<T>, Unchanged> {
    FlowSource::new(FromFifo { fifo, items: Vec::new() })
}

impl<T> fmt::Debug for FromFifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromFifo").finish_non_exhaustive()
    }
}

impl<T: Clone + Send + 'static> Source<T> for FromFifo<T> {
    async fn next(&mut self) -> Result<Option<&[T]>, StageError> {
        self.items.clear();
        self.items.push(self.fifo.take().await);
        Ok(Some(&self.items))
    }
}

/// The source of [`from_mvar`].
pub struct FromMVar<T> {
    mvar: Arc<MVar<T>>,
    items: Vec<T>,
}

/// The items that threads put into an [`MVar`], without end. It takes an item when the stages want
/// one.
pub fn from_mvar<T: Clone + Send + 'static>(mvar: Arc<MVar<T>>) -> FlowSource<T, T, FromMVar<T>, Unchanged> {
    FlowSource::new(FromMVar { mvar, items: Vec::new() })
}

impl<T> fmt::Debug for FromMVar<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FromMVar").finish_non_exhaustive()
    }
}

impl<T: Clone + Send + 'static> Source<T> for FromMVar<T> {
    async fn next(&mut self) -> Result<Option<&[T]>, StageError> {
        self.items.clear();
        self.items.push(self.mvar.take().await);
        Ok(Some(&self.items))
    }
}

/// The target of [`to_putter`].
pub struct ToPutter<T> {
    putter: Putter<T>,
}

/// Puts each item into a bounded queue, and waits while it is full. It is finished when the queue
/// is closed: when its last [`Taker`] is dropped.
///
/// # Examples
/// ```
/// use selvedge::pipeline::naturals;
/// use selvedge::{flow, spawn, sync::BoundedFifo};
///
/// selvedge::run(async {
///     let (putter, taker) = BoundedFifo::ends(1);
///     let numbers = spawn((naturals() >> flow::to_putter(putter)).run());
///     assert_eq!((taker.take().await, taker.take().await), (Some(0), Some(1)));
///     drop(taker);
///     numbers.await.unwrap().unwrap();
/// })
/// .unwrap();
/// ```
pub fn to_putter<T: Clone + Send + 'static>(putter: Putter<T>) -> FlowTarget<T, T, Unchanged, ToPutter<T>> {
    FlowTarget::new(ToPutter { putter })
}

impl<T> fmt::Debug for ToPutter<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToPutter").finish_non_exhaustive()
    }
}

impl<T: Clone + Send + 'static> Target<T> for ToPutter<T> {
    async fn put(&mut self, items: &mut Vec<T>) -> Result<Flow, StageError> {
        for item in items.drain(..) {
            if self.putter.put(item).await.is_err() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The target of [`to_fifo`].
pub struct ToFifo<T> {
    fifo: Arc<Fifo<T>>,
}

/// Puts each item into a [`Fifo`]. It never waits, so a fast pipeline fills the memory if no thread
/// takes as fast: [`to_putter`] waits.
pub fn to_fifo<T: Clone + Send + 'static>(fifo: Arc<Fifo<T>>) -> FlowTarget<T, T, Unchanged, ToFifo<T>> {
    FlowTarget::new(ToFifo { fifo })
}

impl<T> fmt::Debug for ToFifo<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToFifo").finish_non_exhaustive()
    }
}

impl<T: Clone + Send + 'static> Target<T> for ToFifo<T> {
    async fn put(&mut self, items: &mut Vec<T>) -> Result<Flow, StageError> {
        items.drain(..).for_each(|item| self.fifo.put(item));
        Ok(ControlFlow::Continue(()))
    }
}

/// The target of [`to_mvar`].
pub struct ToMVar<T> {
    mvar: Arc<MVar<T>>,
}

/// Puts each item into an [`MVar`], and waits while it is full.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{collect, from_iter, take};
/// use selvedge::{MVar, flow, spawn};
/// use std::sync::Arc;
///
/// let same = selvedge::run(async {
///     let mvar = Arc::new(MVar::empty());
///     let putting = spawn((from_iter([1, 2]) >> flow::to_mvar(mvar.clone())).run());
///     let numbers = (flow::from_mvar(mvar) >> take(2) >> collect()).run().await;
///     putting.await.unwrap().unwrap();
///     numbers
/// });
/// assert_eq!(same.unwrap().unwrap(), [1, 2]);
/// ```
pub fn to_mvar<T: Clone + Send + 'static>(mvar: Arc<MVar<T>>) -> FlowTarget<T, T, Unchanged, ToMVar<T>> {
    FlowTarget::new(ToMVar { mvar })
}

impl<T> fmt::Debug for ToMVar<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ToMVar").finish_non_exhaustive()
    }
}

impl<T: Clone + Send + 'static> Target<T> for ToMVar<T> {
    async fn put(&mut self, items: &mut Vec<T>) -> Result<Flow, StageError> {
        for item in items.drain(..) {
            self.mvar.put(item).await;
        }
        Ok(ControlFlow::Continue(()))
    }
}

/// The stores that go from one thread to another, and back when they are empty.
pub(crate) struct Stores<C> {
    full: Taker<C>,
    empty: Putter<C>,
}

/// The other end of [`Stores`].
pub(crate) struct Filler<C> {
    full: Putter<C>,
    empty: Taker<C>,
}

/// A queue of at most `length` stores.
pub(crate) fn stores<C: Send>(length: usize) -> (Filler<C>, Stores<C>) {
    let (full, taker) = BoundedFifo::ends(length);
    let (putter, empty) = BoundedFifo::ends(length + 1);
    (Filler { full, empty }, Stores { full: taker, empty: putter })
}

impl<C: Default> Filler<C> {
    /// A store to fill.
    pub(crate) fn store(&self) -> C {
        self.empty.try_take().unwrap_or_default()
    }

    /// Gives a store to the other end. Breaks if the other end has been dropped.
    pub(crate) async fn give(&self, store: C) -> Flow {
        match self.full.put(store).await {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        }
    }
}

impl<C> Stores<C> {
    /// The next store, or `None` when the filler has been dropped and the queue is empty.
    pub(crate) async fn take(&self) -> Option<C> {
        self.full.take().await
    }

    /// As [`take`](Stores::take), for an OS thread. Without `waits` it returns at once, with an
    /// error if no store is there yet.
    pub(crate) fn take_blocking(&self, waits: bool) -> Result<Option<C>, TryTakeError> {
        if waits {
            return Ok(self.full.take_blocking());
        }
        match self.full.try_take() {
            Ok(store) => Ok(Some(store)),
            Err(TryTakeError::Closed) => Ok(None),
            Err(TryTakeError::Empty) => Err(TryTakeError::Empty),
        }
    }

    /// Gives an empty store back for its memory.
    pub(crate) fn give_back(&self, store: C) {
        let _not_needed = self.empty.try_put(store);
    }
}

/// The failure of a source after this number of elements.
pub(crate) fn failed(
    stage: &'static str,
    elements: u64,
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> StageError {
    StageError::new(stage, StreamPlace { items: elements, elements }, error)
}
