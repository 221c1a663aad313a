//! Sources and targets, and how they are put together with stages.
//!
//! [`Source`] and [`Target`] are the traits of all ends: the ends of this crate, and the ends that
//! a program writes. [`FlowSource`] and [`FlowTarget`] wrap them, so that `>>` accepts them, and
//! [`FlowProgram`] and [`Pouring`] are the whole pipelines. `Upstream` is a source with its stages.
//! The files of this crate use it where another thread or a poll takes the items.
//!
//! A source is called in one order: `next` until the end or a failure, then `close` once. A thread
//! that must stop drops a `next` that still waits, and then calls `close`. So `next` must keep in
//! `self` what `close` has to free. If the whole pipeline is dropped, then its source is dropped
//! without `close`.
//!
//! The operator is the paper's `=>=` (Pipes in `docs/PAPERS.md`), for ends that wait.

use crate::items::{FromGenerator, made};
use selvedge_pipeline::{
    AfterConsumer, AfterGenerator, AfterTransducer, Chain, Consume, Flow, Generate, Generator, Item,
    Iteratee, Keep, StageError, Store, Transduce, Transducer, Unchanged, WholePipeline, id,
};
use selvedge_sync::Event;
use std::borrow::Cow;
use std::fmt;
use std::marker::PhantomData;
use std::ops::{ControlFlow, Shr};
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;

/// What gives items when they come. A [`FlowSource`] makes it a part of a pipeline.
pub trait Source<A: Item + ?Sized>: Send {
    /// Waits for the next items, and lends them. `None` at the end. It is not called after the end,
    /// nor after a failure.
    ///
    /// # Errors
    /// Why there will be no more items.
    fn next(&mut self) -> impl Future<Output = Result<Option<A::Chunk<'_>>, StageError>> + Send;

    /// Whether the next items are likely to come at once, as from a file in memory. A pipeline then
    /// gathers small outputs, so that its target is called less often.
    fn is_prompt(&self) -> bool {
        false
    }

    /// The file, if the source gives all bytes of one file and has not begun. Then several threads
    /// may read the file side by side, instead of calling [`next`](Source::next):
    /// [`in_parts`](crate::in_parts).
    fn whole_file(&self) -> Option<WholeFile> {
        None
    }

    /// The pipeline wants no more items, or there are none. The source frees what it holds, and
    /// waits until that has happened.
    ///
    /// The drop of a source frees it too, but waits for nothing.
    fn close(self) -> impl Future<Output = ()> + Send
    where
        Self: Sized,
    {
        async move { drop(self) }
    }
}

/// A file from which a source gives all bytes.
#[derive(Debug, Clone)]
pub struct WholeFile {
    /// Its path.
    pub path: PathBuf,
    /// The name that its failures tell, instead of that of the call that fails.
    pub name: Option<Cow<'static, str>>,
}

impl WholeFile {
    /// The failure under the name of the source.
    pub(crate) fn named(&self, failure: StageError) -> StageError {
        match &self.name {
            Some(name) => failure.renamed(name.clone()),
            None => failure,
        }
    }
}

/// What takes items when it can. A [`FlowTarget`] makes it a part of a pipeline.
pub trait Target<B: Item + ?Sized>: Send {
    /// The number of items that the target prefers to take at once. The pipeline gathers this
    /// number while its source [is prompt](Source::is_prompt). `is_prompt` is a guess: if the
    /// source waits after all, the gathered items wait for one read of it.
    const GATHERS: usize = 0;

    /// Takes the items out of `items`, which may be empty, and waits until there is room for them.
    /// Breaks if it wants no more.
    ///
    /// # Errors
    /// Why it takes no more.
    fn put(&mut self, items: &mut B::Store) -> impl Future<Output = Result<Flow, StageError>> + Send;

    /// There are no more items. It is not called after a failure of a stage.
    ///
    /// # Errors
    /// Why the items may not have arrived.
    fn finish(&mut self) -> impl Future<Output = Result<(), StageError>> + Send {
        async { Ok(()) }
    }
}

/// A source of a pipeline: a [`Source`] of items of type `A`, and the stages after it, which make
/// items of type `B`.
///
/// `source >> stage` is a source, `source >> iteratee` a pipeline to [run](FlowProgram::run), and
/// so is `source >> target`.
#[must_use = "a source does nothing until its pipeline is run"]
pub struct FlowSource<A: ?Sized, B: ?Sized, S, T> {
    pub(crate) source: S,
    pub(crate) stages: Transducer<A, B, T>,
}

impl<A: Item + ?Sized, S: Source<A>> FlowSource<A, A, S, Unchanged> {
    /// A source of your own as a part of a pipeline, without stages.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{StageError, collect, take};
    /// use selvedge::flow::{FlowSource, Source};
    ///
    /// /// A number each millisecond.
    /// struct Clock([u64; 1]);
    ///
    /// impl Source<u64> for Clock {
    ///     async fn next(&mut self) -> Result<Option<&[u64]>, StageError> {
    ///         selvedge::sleep(std::time::Duration::from_millis(1)).await;
    ///         self.0[0] += 1;
    ///         Ok(Some(&self.0))
    ///     }
    /// }
    ///
    /// let ticks = selvedge::run_local(async {
    ///     (FlowSource::new(Clock([0])) >> take(3) >> collect()).run().await
    /// });
    /// assert_eq!(ticks.unwrap().unwrap(), [1, 2, 3]);
    /// ```
    pub fn new(source: S) -> Self {
        FlowSource { source, stages: id() }
    }
}

impl<A: ?Sized, B: ?Sized, S, T> FlowSource<A, B, S, T> {
    /// No program can call this method: see [`WholePipeline`].
    #[doc(hidden)]
    pub fn run(self) -> std::future::Ready<Result<(), StageError>>
    where
        Self: WholePipeline,
    {
        drop(self.run_whole());
        std::future::ready(Ok(()))
    }
}

impl<A: ?Sized, B: ?Sized, S, T> fmt::Debug for FlowSource<A, B, S, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowSource of {}", std::any::type_name::<B>())
    }
}

/// A target of a pipeline: stages that take items of type `A`, and the [`Target`] that takes the
/// items of type `B` that they yield.
#[must_use = "a target does nothing until its pipeline is run"]
pub struct FlowTarget<A: ?Sized, B: ?Sized, T, W> {
    stages: Transducer<A, B, T>,
    target: W,
}

impl<A: Item + ?Sized, W: Target<A>> FlowTarget<A, A, Unchanged, W> {
    /// A target of your own as a part of a pipeline, without stages.
    pub fn new(target: W) -> Self {
        FlowTarget { stages: id(), target }
    }
}

impl<A: ?Sized, B: ?Sized, T, W> fmt::Debug for FlowTarget<A, B, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowTarget of {}", std::any::type_name::<A>())
    }
}

/// The parts that may stand downstream of a [`FlowSource`] of `B`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand downstream of a source of `{B}`",
    label = "expected a transducer, an iteratee or a target that takes `{B}`"
)]
pub trait AfterSource<A: ?Sized, B: ?Sized, S, T> {
    /// The two as one.
    type Whole;

    /// Puts the source before `self`.
    fn after(self, source: FlowSource<A, B, S, T>) -> Self::Whole;
}

/// The paper's `=>=`, from a source.
impl<A: ?Sized, B: ?Sized, S, T, R: AfterSource<A, B, S, T>> Shr<R> for FlowSource<A, B, S, T> {
    type Output = R::Whole;

    fn shr(self, downstream: R) -> R::Whole {
        downstream.after(self)
    }
}

impl<A, B, C, S, T, U> AfterSource<A, B, S, T> for Transducer<B, C, U>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    C: Item + ?Sized,
    T: Transduce<A, B>,
    U: Transduce<B, C>,
{
    type Whole = FlowSource<A, C, S, Chain<T, U, B>>;

    fn after(self, source: FlowSource<A, B, S, T>) -> Self::Whole {
        FlowSource { source: source.source, stages: source.stages >> self }
    }
}

impl<A, B, S, T, I> AfterSource<A, B, S, T> for Iteratee<B, I>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: Transduce<A, B>,
    I: Consume<B>,
{
    type Whole = FlowProgram<A, S, Chain<T, I, B>>;

    fn after(self, source: FlowSource<A, B, S, T>) -> Self::Whole {
        FlowProgram { source: source.source, iteratee: source.stages >> self }
    }
}

impl<A, B, C, S, T, U, W> AfterSource<A, B, S, T> for FlowTarget<B, C, U, W>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    C: Item + ?Sized,
    T: Transduce<A, B>,
    U: Transduce<B, C>,
{
    type Whole = Pouring<A, C, S, Chain<T, U, B>, W>;

    fn after(self, source: FlowSource<A, B, S, T>) -> Self::Whole {
        Pouring { source: source.source, stages: source.stages >> self.stages, target: self.target }
    }
}

impl<A, B, C, T, U, W> AfterTransducer<A, B, T> for FlowTarget<B, C, U, W>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    C: Item + ?Sized,
    T: Transduce<A, B>,
    U: Transduce<B, C>,
{
    type Whole = FlowTarget<A, C, Chain<T, U, B>, W>;

    fn after(self, transducer: Transducer<A, B, T>) -> Self::Whole {
        FlowTarget { stages: transducer >> self.stages, target: self.target }
    }
}

impl<B, C, G, U, W> AfterGenerator<B, G> for FlowTarget<B, C, U, W>
where
    B: Item<Store: Send> + ?Sized,
    C: Item + ?Sized,
    G: Generate<B> + Send,
    U: Transduce<B, C>,
{
    type Whole = Pouring<B, C, FromGenerator<B, G>, Chain<Unchanged, U, B>, W>;

    fn after(self, generator: Generator<B, G>) -> Self::Whole {
        made(generator) >> self
    }
}

/// Nothing may stand downstream of a target or of a whole pipeline, and the compiler says so.
macro_rules! impl_consumer {
    ($role:ident, $($item:ident),+; $($part:ident),+) => {
        impl<$($item: ?Sized,)+ $($part,)+ R: AfterConsumer> Shr<R> for $role<$($item,)+ $($part),+> {
            type Output = R::Whole;

            fn shr(self, downstream: R) -> R::Whole {
                downstream.after()
            }
        }
    };
}

impl_consumer!(FlowTarget, A, B; T, W);
impl_consumer!(FlowProgram, A; S, I);
impl_consumer!(Pouring, A, B; S, T, W);

/// A pipeline from a source to an iteratee.
#[must_use = "a pipeline does nothing until it is run"]
pub struct FlowProgram<A: ?Sized, S, I> {
    source: S,
    iteratee: Iteratee<A, I>,
}

impl<A: Item + ?Sized, S: Source<A>, I: Consume<A>> FlowProgram<A, S, I> {
    /// Runs the pipeline to the end of its source, or until its consumer is finished. Returns the
    /// result of the consumer.
    ///
    /// # Errors
    /// The failure of the source, or of the first stage that fails.
    ///
    /// # Cancellation
    /// All stages are dropped. The source is dropped, and not waited for.
    pub async fn run(self) -> Result<I::Result, StageError> {
        let FlowProgram { mut source, iteratee } = self;
        let mut fed = iteratee.feed();
        let over = loop {
            match source.next().await {
                Ok(Some(chunk)) if fed.put_chunk(chunk).is_continue() => {}
                Ok(_) => break Ok(()),
                Err(failure) => break Err(failure),
            }
        };
        source.close().await;
        over?;
        fed.try_end()
    }
}

impl<A: ?Sized, S, I> fmt::Debug for FlowProgram<A, S, I> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FlowProgram from {}", std::any::type_name::<A>())
    }
}

/// Pours the items of `upstream` into a target, until the source ends or the target breaks.
pub(crate) async fn pour<A, B, S, T, W>(
    upstream: &mut Upstream<A, B, S, T>,
    target: &mut W,
) -> Result<(), StageError>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Source<A>,
    T: Transduce<A, B>,
    W: Target<B>,
{
    let mut items = B::Store::default();
    loop {
        let more = upstream.fill(&mut items).await;
        if matches!(more, Ok(true)) && items.count() < W::GATHERS && upstream.is_prompt() {
            continue;
        }
        // The items before a failure go to the target too.
        let taken = target.put(&mut items).await;
        items.clear();
        match (more, taken) {
            (Ok(true), Ok(ControlFlow::Continue(()))) => {}
            // The target's failure concerns items that came before the source's failure, so it is
            // first.
            (_, Err(failure)) | (Err(failure), Ok(ControlFlow::Continue(()))) => return Err(failure),
            (_, Ok(ControlFlow::Break(()))) | (Ok(false), Ok(_)) => return Ok(()),
        }
    }
}

/// A pipeline from a source to a target.
#[must_use = "a pipeline does nothing until it is run"]
pub struct Pouring<A: ?Sized, B: ?Sized, S, T, W> {
    source: S,
    stages: Transducer<A, B, T>,
    target: W,
}

impl<A, B, S, T, W> Pouring<A, B, S, T, W>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Source<A>,
    T: Transduce<A, B>,
    W: Target<B>,
{
    /// Runs the pipeline to the end of its source, or until its target wants no more.
    ///
    /// # Errors
    /// The failure of the source, of the target, or of the first stage that fails. The target then
    /// has the items from before the failure.
    ///
    /// # Cancellation
    /// All stages are dropped, and the items that the target has not taken. The source is dropped,
    /// and not waited for.
    pub async fn run(self) -> Result<(), StageError> {
        let Pouring { source, stages, mut target } = self;
        let mut upstream = Upstream::new(source, stages.into_stage());
        let over = pour(&mut upstream, &mut target).await;
        upstream.close().await;
        over?;
        target.finish().await
    }
}

impl<A: ?Sized, B: ?Sized, S, T, W> fmt::Debug for Pouring<A, B, S, T, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pouring {} to {}", std::any::type_name::<A>(), std::any::type_name::<B>())
    }
}

/// A source and the stages after it, for a thread that takes the items that they yield.
pub(crate) struct Upstream<A: ?Sized, B: ?Sized, S, T> {
    source: S,
    stage: T,
    over: bool,
    items: PhantomData<fn(&A, &B)>,
}

impl<A, B, S, T> Upstream<A, B, S, T>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Source<A>,
    T: Transduce<A, B>,
{
    pub(crate) fn new(source: S, stage: T) -> Self {
        Upstream { source, stage, over: false, items: PhantomData }
    }

    /// Puts the items of the next chunk into `store`, so that `store` has at least one if there are
    /// any, and says whether there may be more.
    ///
    /// It returns the items of one chunk before it waits for the next chunk. So no item waits
    /// because the source is slow.
    pub(crate) async fn fill(&mut self, store: &mut B::Store) -> Result<bool, StageError> {
        while !self.over {
            let flow = match self.source.next().await {
                Ok(Some(chunk)) => self.stage.put_chunk(chunk, &mut Keep(&mut *store)),
                Ok(None) => {
                    self.over = true;
                    self.stage.end(&mut Keep(&mut *store))
                }
                Err(failure) => {
                    self.over = true;
                    return Err(failure);
                }
            };
            if flow.is_break() {
                self.over = true;
            }
            if self.over
                && let Some(failure) = self.stage.failure()
            {
                return Err(failure.clone());
            }
            if store.count() > 0 {
                break;
            }
        }
        Ok(!self.over)
    }

    /// Whether the source of the stages is prompt.
    pub(crate) fn is_prompt(&self) -> bool {
        self.source.is_prompt()
    }

    pub(crate) async fn close(self) {
        self.source.close().await;
    }
}

/// An [`Upstream`] without its types. The pipeline forgets them when it is put together. A thread
/// then pours the items into an end of type `E`.
///
/// So the type of the pipeline after it contains no lifetime of the source, such as the lifetime of
/// a literal. With such a lifetime the compiler could not show that the future of the pipeline is
/// `Send`.
pub(crate) trait Drive<E>: Send {
    /// What the thread does. It stops, and closes the source, when `stop` happens.
    fn drive(self: Box<Self>, end: E, stop: Arc<Event>) -> Driven<Result<(), StageError>>;

    /// Closes the source. No thread has taken an item from it.
    fn close(self: Box<Self>) -> Driven<()>;
}

/// The future of a [`Drive`].
pub(crate) type Driven<R> = Pin<Box<dyn Future<Output = R> + Send>>;
