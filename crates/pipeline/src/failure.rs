//! `StageFailure` tells which stage of a pipeline has failed, at which item and why. The stages
//! that can fail by a function of the user are here: `try_lift121`, `try_fold` and `try_from_fn`;
//! `named` names any stage. The parsers (`csv`, `json`, `xml`, `binary`, `gzip`, `cycle`) count
//! with `StreamPlace`.
//!
//! A stage that has failed breaks and keeps its failure. Its caller then asks `failure` and does
//! not end the next stage. The failure does not depend on the cuts of the input into chunks, but
//! for `gunzip`. How much `gunzip` and `unzstd` yield before a failure depends on the cuts.

use super::item::{FINISHED, Flow, Item};
use super::parts::{ItemByItem, PlaceKnown};
use super::role::{Generator, Iteratee, Transducer};
use super::stage::{Consume, Generate, Sink, Transduce};
use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Why a pipeline stopped: the stage that failed, the number of the item at which it failed, the
/// place in the stage's stream, and the cause.
///
/// A stage that fails puts nothing more into the next stage, and that stage is not ended: it is
/// dropped as it is. What is upstream is not called again.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{fold, from_chunks, group_by, line, try_lift121};
///
/// let number = try_lift121(|line: &[u8]| String::from_utf8_lossy(line).parse::<i32>());
/// let sum = fold(0, |sum: &mut i32, n: &i32| *sum += n);
/// let failed = (from_chunks(["12\n3x\n4"]) >> group_by(line()) >> number.named("number") >> sum)
///     .try_run()
///     .unwrap_err();
/// assert_eq!((failed.stage(), failed.item(), failed.offset()), ("number", 2, 2));
/// assert_eq!(failed.to_string(), "number: item 2, offset 2: invalid digit found in string");
/// ```
#[derive(Clone)]
pub struct StageFailure {
    inner: Box<FailureParts>,
}

#[derive(Clone)]
struct FailureParts {
    stage: Cow<'static, str>,
    place: StreamPlace,
    /// Where the section of a stage around it begins.
    section: Option<StreamPlace>,
    cause: Arc<dyn Error + Send + Sync>,
}

/// The failure of two neighbours that lies first in the stream. `cut` says that the downstream one
/// had broken before the upstream one failed: see `chain.rs`.
pub(super) fn first_failure<'a>(
    up: Option<&'a StageFailure>,
    down: Option<&'a StageFailure>,
    cut: bool,
) -> Option<&'a StageFailure> {
    down.or(if cut { None } else { up })
}

impl StageFailure {
    /// The stage `stage` has failed, for the reason `cause`.
    pub fn new(
        stage: impl Into<Cow<'static, str>>,
        place: StreamPlace,
        cause: impl Into<Box<dyn Error + Send + Sync>>,
    ) -> StageFailure {
        let inner =
            FailureParts { stage: stage.into(), place, section: None, cause: Arc::from(cause.into()) };
        StageFailure { inner: Box::new(inner) }
    }

    /// The name of the stage: its function, or what [`Transducer::named`] says.
    pub fn stage(&self) -> &str {
        &self.inner.stage
    }

    /// The number of the item at which the stage failed. The first one is 1.
    ///
    /// A parser counts the records that it makes. All other stages count the items that they take.
    /// A source counts the items that it has made.
    pub fn item(&self) -> u64 {
        self.inner.place.items + 1
    }

    /// Where the stage failed: the number of elements before that place. A byte is an element, and
    /// a list has several.
    ///
    /// A parser counts in the stream that it reads, to the very byte that is wrong. All other
    /// stages count the elements of the items before.
    pub fn offset(&self) -> u64 {
        self.inner.place.elements
    }

    /// The section in the course of which the stage failed, if the stage stands in a
    /// [`foreach`](super::foreach) or in a [`located`](super::located()): how many sections and how
    /// many elements lie before it, in the stream that the `foreach` or the `located` takes. If
    /// several of them stand around the stage, it is the outermost one.
    ///
    /// [`item`](StageFailure::item) and [`offset`](StageFailure::offset) are counted in the stream
    /// of the stage itself. A stage of a `foreach` begins to count anew with each section.
    pub fn section(&self) -> Option<StreamPlace> {
        self.inner.section
    }

    /// The same failure, in the [section](StageFailure::section) that begins at `place`. A supply
    /// or a stage of your own that begins stages anew for each section tells it so.
    pub fn within(&self, place: StreamPlace) -> StageFailure {
        let mut within = self.clone();
        within.inner.section = Some(place);
        within
    }

    /// What the stage says about it.
    pub fn cause(&self) -> &(dyn Error + Send + Sync + 'static) {
        &*self.inner.cause
    }

    /// The same failure under another name, as [`Transducer::named`] makes it.
    pub fn renamed(&self, name: impl Into<Cow<'static, str>>) -> StageFailure {
        let mut renamed = self.clone();
        renamed.inner.stage = name.into();
        renamed
    }
}

impl fmt::Display for StageFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (stage, item, offset) = (self.stage(), self.item(), self.offset());
        write!(f, "{stage}: item {item}, offset {offset}")?;
        if let Some(StreamPlace { items, elements }) = self.section() {
            write!(f, ", in section {} at offset {elements}", items + 1)?;
        }
        write!(f, ": {}", self.inner.cause)
    }
}

impl fmt::Debug for StageFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StageFailure({self})")
    }
}

impl Error for StageFailure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&*self.inner.cause)
    }
}

/// A place in a stream: what lies before it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StreamPlace {
    /// Items before it.
    pub items: u64,
    /// Elements before it: bytes, if the items are bytes or lists of bytes.
    pub elements: u64,
}

impl StreamPlace {
    /// The place after `item`.
    #[inline(always)]
    fn pass<A: Item + ?Sized>(&mut self, item: &A) {
        self.items += 1;
        self.elements += A::elements(item);
    }
}

/// The stage of [`try_lift121`].
#[derive(Debug, Clone)]
pub struct TryLift121<F> {
    f: F,
    place: StreamPlace,
    failure: Option<StageFailure>,
}

/// Yields what `f(item)` gives for each item, until `f` fails.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, try_lift121};
///
/// let halves = try_lift121(|n: &u32| if n % 2 == 0 { Ok(n / 2) } else { Err("an odd number") });
/// let failed = (from_iter([2, 4, 5, 6]) >> halves).try_collect().unwrap_err();
/// assert_eq!(failed.to_string(), "try_lift121: item 3, offset 2: an odd number");
/// ```
pub fn try_lift121<A, B, F, E>(f: F) -> Transducer<A, B, TryLift121<F>>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    F: FnMut(&A) -> Result<B, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    Transducer::new(TryLift121 { f, place: StreamPlace::default(), failure: None })
}

impl<A, B, F, E> Transduce<A, B> for TryLift121<F>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    F: FnMut(&A) -> Result<B, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    #[inline(always)]
    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        match (self.f)(item) {
            Ok(made) => {
                self.place.pass(item);
                out.put(&made)
            }
            Err(error) => {
                self.failure = Some(StageFailure::new("try_lift121", self.place, error));
                FINISHED
            }
        }
    }

    fn end<S: Sink<B>>(&mut self, _out: &mut S) -> Flow {
        ControlFlow::Continue(())
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref()
    }
}

impl<A, B, F, E> ItemByItem<A, B> for TryLift121<F>
where
    A: Item + ?Sized,
    B: Clone + 'static,
    F: FnMut(&A) -> Result<B, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    // Its failure tells the place.
    const NEEDS: PlaceKnown = PlaceKnown::Elements;

    const TELLS: PlaceKnown = PlaceKnown::Elements;

    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        self.place = place;
        StreamPlace { items: place.items, elements: place.items }
    }
}

/// The stage of [`try_fold`].
#[derive(Debug, Clone)]
pub struct TryFold<R, F> {
    state: R,
    f: F,
    place: StreamPlace,
    failure: Option<StageFailure>,
}

/// Passes each item to `f` with the state, until `f` fails. The state is the result at the end.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, try_fold};
///
/// let add = |sum: &mut u8, n: &u8| {
///     *sum = sum.checked_add(*n).ok_or("the sum is too large")?;
///     Ok::<(), &str>(())
/// };
/// assert_eq!((from_iter([200, 55]) >> try_fold(0, add)).try_run().unwrap(), 255);
/// let failed = (from_iter([200, 55, 1]) >> try_fold(0, add)).try_run().unwrap_err();
/// assert_eq!(failed.item(), 3);
/// ```
pub fn try_fold<A, R, F, E>(state: R, f: F) -> Iteratee<A, TryFold<R, F>>
where
    A: Item + ?Sized,
    F: FnMut(&mut R, &A) -> Result<(), E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    Iteratee::new(TryFold { state, f, place: StreamPlace::default(), failure: None })
}

impl<A, R, F, E> Consume<A> for TryFold<R, F>
where
    A: Item + ?Sized,
    F: FnMut(&mut R, &A) -> Result<(), E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    type Result = R;

    #[inline(always)]
    fn put(&mut self, item: &A) -> Flow {
        match (self.f)(&mut self.state, item) {
            Ok(()) => {
                self.place.pass(item);
                ControlFlow::Continue(())
            }
            Err(error) => {
                self.failure = Some(StageFailure::new("try_fold", self.place, error));
                FINISHED
            }
        }
    }

    fn end(self) -> R {
        self.state
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref()
    }
}

/// The stage of [`try_from_fn`].
#[derive(Debug, Clone)]
pub struct TryFromFn<B, F> {
    f: F,
    block: Vec<B>,
    place: StreamPlace,
    failure: Option<StageFailure>,
}

/// Yields what `f` fills in, until `f` fails or fills in nothing: [`from_fn`](super::from_fn) for a
/// source that may fail.
///
/// # Panics
/// If `f` claims to have filled more than the block.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{count, group_by, line, try_from_fn};
/// use std::io::Read;
///
/// let mut file = std::fs::File::open("Cargo.toml")?;
/// let lines = try_from_fn(1 << 16, move |block: &mut [u8]| file.read(block))
///     >> group_by(line())
///     >> count();
/// assert!(lines.try_run()? > 10);
/// # Ok::<(), Box<dyn std::error::Error + Send + Sync>>(())
/// ```
pub fn try_from_fn<B, F, E>(length: usize, f: F) -> Generator<B, TryFromFn<B, F>>
where
    B: Clone + Default + 'static,
    F: FnMut(&mut [B]) -> Result<usize, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    let block = vec![B::default(); length];
    Generator::new(TryFromFn { f, block, place: StreamPlace::default(), failure: None })
}

impl<B, F, E> Generate<B> for TryFromFn<B, F>
where
    B: Clone + 'static,
    F: FnMut(&mut [B]) -> Result<usize, E>,
    E: Into<Box<dyn Error + Send + Sync>>,
{
    #[inline]
    fn pump<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), bool> {
        let filled = match (self.f)(&mut self.block) {
            Ok(filled) => filled,
            Err(error) => {
                self.failure = Some(StageFailure::new("try_from_fn", self.place, error));
                return ControlFlow::Continue(false);
            }
        };
        if filled == 0 {
            return ControlFlow::Continue(false);
        }
        let made = &self.block[..filled];
        self.place.items += filled as u64;
        self.place.elements += filled as u64;
        out.put_chunk(made)?;
        ControlFlow::Continue(true)
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref()
    }
}

/// The stage of [`Transducer::named`], [`Generator::named`] and [`Iteratee::named`].
#[derive(Debug, Clone)]
pub struct NamedStage<T> {
    stage: T,
    name: Cow<'static, str>,
    failure: Option<StageFailure>,
}

impl<T> NamedStage<T> {
    fn new(stage: T, name: Cow<'static, str>) -> NamedStage<T> {
        NamedStage { stage, name, failure: None }
    }

    #[cold]
    fn note(&mut self, failure: impl FnOnce(&T) -> Option<&StageFailure>) {
        self.failure = failure(&self.stage).map(|failure| failure.renamed(self.name.clone()));
    }

    /// Returns what a call of the stage has returned. If the stage has broken, it may have failed.
    #[inline(always)]
    fn noted(&mut self, flow: Flow, failure: impl FnOnce(&T) -> Option<&StageFailure>) -> Flow {
        if flow.is_break() {
            self.note(failure);
        }
        flow
    }
}

impl<A, B, T> Transducer<A, B, T>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: Transduce<A, B>,
{
    /// Gives the stage a name, which its [`StageFailure`] tells.
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> Transducer<A, B, NamedStage<T>> {
        Transducer::new(NamedStage::new(self.stage, name.into()))
    }
}

impl<B: Item + ?Sized, G: Generate<B>> Generator<B, G> {
    /// Gives the stage a name, which its [`StageFailure`] tells.
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> Generator<B, NamedStage<G>> {
        Generator::new(NamedStage::new(self.stage, name.into()))
    }
}

impl<A: Item + ?Sized, I: Consume<A>> Iteratee<A, I> {
    /// Gives the stage a name, which its [`StageFailure`] tells.
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> Iteratee<A, NamedStage<I>> {
        Iteratee::new(NamedStage::new(self.stage, name.into()))
    }
}

impl<A, B, T> Transduce<A, B> for NamedStage<T>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: Transduce<A, B>,
{
    const CHUNKS: bool = T::CHUNKS;

    #[inline(always)]
    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        let flow = self.stage.put(item, out);
        self.noted(flow, T::failure)
    }

    #[inline(always)]
    fn put_chunk<S: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        let flow = self.stage.put_chunk(chunk, out);
        self.noted(flow, T::failure)
    }

    #[inline(always)]
    fn gather<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        let flow = self.stage.gather(item, out);
        self.noted(flow, T::failure)
    }

    #[inline(always)]
    fn flush<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        let flow = self.stage.flush(out);
        self.noted(flow, T::failure)
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        let flow = self.stage.end(out);
        self.note(T::failure);
        flow
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref()
    }
}

impl<A, B, T> ItemByItem<A, B> for NamedStage<T>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: ItemByItem<A, B>,
{
    const NEEDS: PlaceKnown = T::NEEDS;

    const TELLS: PlaceKnown = T::TELLS;

    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        self.stage.begin_part(place)
    }
}

impl<B: Item + ?Sized, G: Generate<B>> Generate<B> for NamedStage<G> {
    #[inline]
    fn pump<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), bool> {
        let more = self.stage.pump(out);
        if more != ControlFlow::Continue(true) {
            self.note(G::failure);
        }
        more
    }

    #[inline]
    fn all<S: Sink<B>>(&mut self, out: &mut S) {
        self.stage.all(out);
        self.note(G::failure);
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref()
    }
}

impl<A: Item + ?Sized, I: Consume<A>> Consume<A> for NamedStage<I> {
    type Result = I::Result;

    const CHUNKS: bool = I::CHUNKS;

    #[inline(always)]
    fn put(&mut self, item: &A) -> Flow {
        let flow = self.stage.put(item);
        self.noted(flow, I::failure)
    }

    #[inline(always)]
    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        let flow = self.stage.put_chunk(chunk);
        self.noted(flow, I::failure)
    }

    #[inline(always)]
    fn gather(&mut self, item: &A) -> Flow {
        let flow = self.stage.gather(item);
        self.noted(flow, I::failure)
    }

    #[inline(always)]
    fn flush(&mut self) -> Flow {
        let flow = self.stage.flush();
        self.noted(flow, I::failure)
    }

    fn put_some(&mut self, chunk: A::Chunk<'_>) -> (usize, Flow) {
        let (taken, flow) = self.stage.put_some(chunk);
        (taken, self.noted(flow, I::failure))
    }

    fn finish(&mut self) -> Flow {
        let flow = self.stage.finish();
        self.note(I::failure);
        flow
    }

    fn end(self) -> I::Result {
        self.stage.end()
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref()
    }
}
