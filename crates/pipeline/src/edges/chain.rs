//! `a >> b`: two neighbours become one stage.
//!
//! The upstream stage is called with the downstream one as its [`Sink`], so that a put is a call of
//! a known function, and the compiler sees the whole loop at once. There is no edge at run time.
//!
//! A stage that breaks is finished. If the downstream stage has broken, then the upstream stage is
//! cut: no call reaches it again. If the upstream stage has broken by itself, then the downstream
//! stage is ended at once, because its input has ended. It is not ended if the upstream stage has
//! failed: nothing follows a failure.
//!
//! Both may have failed, because a stage that fails still passes on the items that it has gathered,
//! and the downstream stage may fail at one of them. These items lie before the failure of the
//! upstream stage. So the failure of the downstream stage comes first in the stream, and the
//! pipeline tells it.
//!
//! The downstream stage may keep the items that are put one by one (`Transduce::put`). It
//! takes them when the call of the upstream stage has returned (`flush`), so it may break later
//! than at the item at which it is finished.
//!
//! For the same reason no failure of the upstream stage is told if the downstream stage was
//! finished with these items. Otherwise the cuts of the input would decide: in small chunks, the
//! upstream stage is cut before it comes to its failure.

use crate::edges::parts::{ItemByItem, PartByPart, PlaceKnown};
use crate::error::{StageError, first_failure};
use crate::item::lists::Cut;
use crate::item::place::StreamPlace;
use crate::item::{FINISHED, Flow, GO_ON, Item};
use crate::role::{Eats, Generator, Iteratee, Program, Transducer};
use crate::stage::{Consume, Generate, Sink, Transduce};
use std::fmt;
use std::marker::PhantomData;
use std::ops::{ControlFlow, Shr};

/// The stage `up` and the stage `down` after it, as one stage. `a >> b` makes it.
pub struct Chain<X, Y, B: ?Sized> {
    up: X,
    down: Y,
    /// One of the two has broken.
    over: bool,
    /// `down` has broken while `up` was called. What `up` fails with lies behind the end.
    cut: bool,
    between: PhantomData<fn(&B)>,
}

impl<X, Y, B: ?Sized> Chain<X, Y, B> {
    fn new(up: X, down: Y) -> Self {
        Chain { up, down, over: false, cut: false, between: PhantomData }
    }

    /// Notes that `up` has come to its end, and ends `down` if that was the end of the stream.
    /// `finished` says that `down` has broken first, and `has_failed` that `up` has failed.
    fn after_end<C, S>(&mut self, finished: bool, has_failed: bool, out: &mut S) -> Flow
    where
        B: Item,
        C: Item + ?Sized,
        Y: Transduce<B, C>,
        S: Sink<C>,
    {
        self.cut = finished;
        if finished || has_failed { GO_ON } else { self.down.end(out) }
    }
}

impl<X, Y, B: Item + ?Sized> Chain<X, Y, B> {
    /// Calls `up` by `call`. If `flushes`, then `down` takes all that it has gathered. Ends `down`
    /// if `up` has come to its end.
    #[inline(always)]
    fn driven<A, C, S>(
        &mut self,
        flushes: bool,
        out: &mut S,
        call: impl FnOnce(&mut X, &mut Onto<'_, Y, S, C>) -> Flow,
    ) -> Flow
    where
        A: Item + ?Sized,
        C: Item + ?Sized,
        X: Transduce<A, B>,
        Y: Transduce<B, C>,
        S: Sink<C>,
    {
        let mut onto = Onto::new(&mut self.down, out);
        let mut flow = call(&mut self.up, &mut onto);
        if flushes && flow.is_continue() {
            flow = onto.flush();
        }
        if flow.is_break() {
            let finished = onto.flush().is_break();
            let has_failed = self.up.failure().is_some();
            self.after_end(finished, has_failed, out)?;
        }
        flow
    }
}

impl<X: Clone, Y: Clone, B: ?Sized> Clone for Chain<X, Y, B> {
    fn clone(&self) -> Self {
        Chain::new(self.up.clone(), self.down.clone())
    }
}

impl<X, Y, B: ?Sized> fmt::Debug for Chain<X, Y, B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Chain").field("over", &self.over).finish_non_exhaustive()
    }
}

/// The transducer `stage`, and `out` behind it, as the downstream side of an edge.
struct Onto<'a, T, S, C: ?Sized> {
    stage: &'a mut T,
    out: &'a mut S,
    /// Whether `stage` has broken.
    finished: bool,
    yields: PhantomData<fn(&C)>,
}

impl<'a, T, S, C: ?Sized> Onto<'a, T, S, C> {
    fn new(stage: &'a mut T, out: &'a mut S) -> Self {
        Onto { stage, out, finished: false, yields: PhantomData }
    }
}

impl<B: Item + ?Sized, C: Item + ?Sized, T: Transduce<B, C>, S: Sink<C>> Sink<B> for Onto<'_, T, S, C> {
    const CHUNKS: bool = T::CHUNKS;

    #[inline(always)]
    fn put(&mut self, item: &B) -> Flow {
        let flow = self.stage.put(item, self.out);
        self.finished |= flow.is_break();
        flow
    }

    #[inline(always)]
    fn put_chunk(&mut self, chunk: B::Chunk<'_>) -> Flow {
        let flow = self.stage.put_chunk(chunk, self.out);
        self.finished |= flow.is_break();
        flow
    }

    #[inline(always)]
    fn put_store(&mut self, store: &mut B::Store) -> Flow {
        let flow = self.stage.put_store(store, self.out);
        self.finished |= flow.is_break();
        flow
    }

    #[inline(always)]
    fn flush(&mut self) -> Flow {
        if self.finished {
            return FINISHED;
        }
        let mut flow = self.stage.flush(self.out);
        if flow.is_continue() {
            flow = self.out.flush();
        }
        self.finished = flow.is_break();
        flow
    }
}

impl<A, B, C, X, Y> Transduce<A, C> for Chain<X, Y, B>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    C: Item + ?Sized,
    X: Transduce<A, B>,
    Y: Transduce<B, C>,
{
    const CHUNKS: bool = X::CHUNKS;

    #[inline(always)]
    fn put<S: Sink<C>>(&mut self, item: &A, out: &mut S) -> Flow {
        self.driven::<A, C, S>(false, out, |up, onto| up.put(item, onto))
    }

    #[inline(always)]
    fn put_chunk<S: Sink<C>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        self.driven::<A, C, S>(true, out, |up, onto| up.put_chunk(chunk, onto))
    }

    #[inline(always)]
    fn put_store<S: Sink<C>>(&mut self, store: &mut A::Store, out: &mut S) -> Flow {
        self.driven::<A, C, S>(true, out, |up, onto| up.put_store(store, onto))
    }

    #[inline(always)]
    fn flush<S: Sink<C>>(&mut self, out: &mut S) -> Flow {
        self.driven::<A, C, S>(true, out, |up, onto| up.flush(onto))
    }

    fn end<S: Sink<C>>(&mut self, out: &mut S) -> Flow {
        let mut onto = Onto::new(&mut self.down, out);
        let _over = self.up.end(&mut onto);
        self.cut = onto.flush().is_break();
        if self.cut || self.up.failure().is_some() { FINISHED } else { self.down.end(out) }
    }

    fn failure(&self) -> Option<&StageError> {
        first_failure(self.up.failure(), self.down.failure(), self.cut)
    }
}

/// What a chain must know of the place at which a part begins.
///
/// # Panics
/// If the first stage does not tell the place that the second one needs. The compiler calls the
/// function, so it refuses the chain.
const fn needs_of_both(up: PlaceKnown, up_tells: PlaceKnown, down: PlaceKnown) -> PlaceKnown {
    assert!(up_tells.covers(down), "a stage needs its place, and the stage before does not tell it");
    // The first stage tells a place only if all is known of the place before it.
    if down.is_some() { PlaceKnown::Elements } else { up }
}

impl<A, B, C, X, Y> ItemByItem<A, C> for Chain<X, Y, B>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    C: Item + ?Sized,
    X: ItemByItem<A, B>,
    Y: ItemByItem<B, C>,
{
    const NEEDS: PlaceKnown = needs_of_both(X::NEEDS, X::TELLS, Y::NEEDS);

    const TELLS: PlaceKnown = X::TELLS.at_most(Y::TELLS);

    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        let between = self.up.begin_part(place);
        self.down.begin_part(between)
    }
}

impl<A, B, C, X, Y> PartByPart<A, C> for Chain<X, Y, B>
where
    A: Clone + 'static,
    B: Item + ?Sized,
    C: Item + ?Sized,
    X: PartByPart<A, B>,
    Y: ItemByItem<B, C> + Clone,
{
    const NEEDS: PlaceKnown = needs_of_both(X::NEEDS, X::TELLS, Y::NEEDS);

    const TELLS: PlaceKnown = X::TELLS.at_most(Y::TELLS);

    fn ends(&self) -> &dyn Cut<A> {
        self.up.ends()
    }

    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        let between = self.up.begin_part(place);
        self.down.begin_part(between)
    }
}

impl<B, C, X, Y> Generate<C> for Chain<X, Y, B>
where
    B: Item + ?Sized,
    C: Item + ?Sized,
    X: Generate<B>,
    Y: Transduce<B, C>,
{
    #[inline]
    fn pump<S: Sink<C>>(&mut self, out: &mut S) -> ControlFlow<(), bool> {
        let mut onto = Onto::new(&mut self.down, out);
        let mut flow = self.up.pump(&mut onto);
        if flow.is_continue() && onto.flush().is_break() {
            flow = ControlFlow::Break(());
        }
        if flow != ControlFlow::Continue(true) {
            let (finished, has_failed) = (onto.flush().is_break(), self.up.failure().is_some());
            self.after_end(finished, has_failed, out)?;
        }
        flow
    }

    #[inline]
    fn all<S: Sink<C>>(&mut self, out: &mut S) {
        let mut onto = Onto::new(&mut self.down, out);
        self.up.all(&mut onto);
        let (finished, has_failed) = (onto.flush().is_break(), self.up.failure().is_some());
        let _finished = self.after_end(finished, has_failed, out);
    }

    fn failure(&self) -> Option<&StageError> {
        first_failure(self.up.failure(), self.down.failure(), self.cut)
    }
}

impl<X, Y, B: Item + ?Sized> Chain<X, Y, B> {
    /// Calls `up` by `call`, before a consumer. If `flushes`, then `down` takes all that it has
    /// gathered.
    #[inline(always)]
    fn fed<A>(&mut self, flushes: bool, call: impl FnOnce(&mut X, &mut Eats<'_, Y>) -> Flow) -> Flow
    where
        A: Item + ?Sized,
        X: Transduce<A, B>,
        Y: Consume<B>,
    {
        let mut eats = Eats::new(&mut self.down);
        let mut flow = call(&mut self.up, &mut eats);
        if flushes && flow.is_continue() {
            flow = Sink::<B>::flush(&mut eats);
        }
        if flow.is_break() {
            (self.over, self.cut) = (true, Sink::<B>::flush(&mut eats).is_break());
        }
        flow
    }
}

impl<A, B, X, Y> Consume<A> for Chain<X, Y, B>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    X: Transduce<A, B>,
    Y: Consume<B>,
{
    type Result = Y::Result;

    const CHUNKS: bool = X::CHUNKS;

    #[inline(always)]
    fn put(&mut self, item: &A) -> Flow {
        self.fed::<A>(false, |up, eats| up.put(item, eats))
    }

    #[inline(always)]
    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        self.fed::<A>(true, |up, eats| up.put_chunk(chunk, eats))
    }

    #[inline(always)]
    fn flush(&mut self) -> Flow {
        self.fed::<A>(true, |up, eats| up.flush(eats))
    }

    fn finish(&mut self) -> Flow {
        if !self.over {
            self.over = true;
            let mut eats = Eats::new(&mut self.down);
            let _over = self.up.end(&mut eats);
            self.cut = Sink::<B>::flush(&mut eats).is_break();
        }
        if !self.cut && self.up.failure().is_some() { FINISHED } else { self.down.finish() }
    }

    fn end(self) -> Y::Result {
        let Chain { up, down, .. } = self;
        // The stages are given up in the order of the stream.
        drop(up);
        down.end()
    }

    fn failure(&self) -> Option<&StageError> {
        first_failure(self.up.failure(), self.down.failure(), self.cut)
    }
}

/// What may stand downstream of a generator of `B`: a [`Transducer`] or an [`Iteratee`] that takes
/// `B`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand downstream of a generator of `{B}`",
    label = "expected a transducer or an iteratee that takes `{B}`"
)]
pub trait AfterGenerator<B: ?Sized, G> {
    /// The two as one.
    type Whole;

    /// Puts the generator before `self`.
    fn after(self, generator: Generator<B, G>) -> Self::Whole;
}

impl<B, C, G, T> AfterGenerator<B, G> for Transducer<B, C, T>
where
    B: Item + ?Sized,
    C: Item + ?Sized,
    G: Generate<B>,
    T: Transduce<B, C>,
{
    type Whole = Generator<C, Chain<G, T, B>>;

    fn after(self, generator: Generator<B, G>) -> Self::Whole {
        Generator::new(Chain::new(generator.stage, self.stage))
    }
}

impl<B, G, I> AfterGenerator<B, G> for Iteratee<B, I>
where
    B: Item + ?Sized,
    G: Generate<B>,
    I: Consume<B>,
{
    type Whole = Program<B, G, I>;

    fn after(self, generator: Generator<B, G>) -> Self::Whole {
        Program::new(generator, self)
    }
}

/// The paper's `=>=`, from a generator.
impl<B: Item + ?Sized, G: Generate<B>, R: AfterGenerator<B, G>> Shr<R> for Generator<B, G> {
    type Output = R::Whole;

    fn shr(self, downstream: R) -> R::Whole {
        downstream.after(self)
    }
}

/// What may stand downstream of a transducer to `B`: a [`Transducer`] or an [`Iteratee`] that takes
/// `B`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand downstream of a transducer to `{B}`",
    label = "expected a transducer or an iteratee that takes `{B}`"
)]
pub trait AfterTransducer<A: ?Sized, B: ?Sized, T> {
    /// The two as one.
    type Whole;

    /// Puts the transducer before `self`.
    fn after(self, transducer: Transducer<A, B, T>) -> Self::Whole;
}

impl<A, B, C, T, U> AfterTransducer<A, B, T> for Transducer<B, C, U>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    C: Item + ?Sized,
    T: Transduce<A, B>,
    U: Transduce<B, C>,
{
    type Whole = Transducer<A, C, Chain<T, U, B>>;

    fn after(self, transducer: Transducer<A, B, T>) -> Self::Whole {
        Transducer::new(Chain::new(transducer.stage, self.stage))
    }
}

impl<A, B, T, I> AfterTransducer<A, B, T> for Iteratee<B, I>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: Transduce<A, B>,
    I: Consume<B>,
{
    type Whole = Iteratee<A, Chain<T, I, B>>;

    fn after(self, transducer: Transducer<A, B, T>) -> Self::Whole {
        Iteratee::new(Chain::new(transducer.stage, self.stage))
    }
}

/// The paper's `=>=`, from a transducer.
impl<A, B, T, R> Shr<R> for Transducer<A, B, T>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: Transduce<A, B>,
    R: AfterTransducer<A, B, T>,
{
    type Output = R::Whole;

    fn shr(self, downstream: R) -> R::Whole {
        downstream.after(self)
    }
}

/// What may stand downstream of a consumer, that is of an [`Iteratee`] or of a whole pipeline:
/// nothing. No type has this trait. With it the compiler says so.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot stand downstream of a consumer",
    label = "expected nothing here, because what is before it yields no items"
)]
pub trait AfterConsumer {
    /// The two as one.
    type Whole;

    /// Puts the consumer before `self`.
    fn after(self) -> Self::Whole;
}

impl<A: ?Sized, I, R: AfterConsumer> Shr<R> for Iteratee<A, I> {
    type Output = R::Whole;

    fn shr(self, downstream: R) -> R::Whole {
        downstream.after()
    }
}

impl<B: Item + ?Sized, G, I, R: AfterConsumer> Shr<R> for Program<B, G, I> {
    type Output = R::Whole;

    fn shr(self, downstream: R) -> R::Whole {
        downstream.after()
    }
}
