//! The types that users combine: `Generator`, `Transducer`, `Iteratee`, `Splitter`, `Join` and
//! `Program`. Each wraps a stage of a protocol of `stage.rs`, so that the compiler knows the items
//! of the stage. The methods that run a pipeline are here too. The methods that step a pipeline
//! from outside are in `held.rs`.
//!
//! Stages use `Eats`, `Keep` and `GatherItems` as the downstream side of a call. A pipeline drops
//! its generator before its consumer gives a result. [Pipes, Listings 10 and 14].

use crate::error::{StageError, first_failure};
use crate::item::{FINISHED, Flow, GO_ON, Item, Store};
use crate::stage::{Consume, Generate, Merge, Sink, Split, Transduce};
use std::fmt;
use std::marker::PhantomData;
use std::ops::ControlFlow;

/// Declares a role: a recipe `stage`, with the types of its items as parameters.
macro_rules! impl_role {
    ($role:ident, $($item:ident),+; $stage:ident: $protocol:ident) => {
        impl<$($item: Item + ?Sized,)+ $stage: $protocol<$($item),+>> $role<$($item,)+ $stage> {
            /// The stage inside, for a combinator of your own.
            pub fn into_stage(self) -> $stage {
                self.stage
            }

            /// The role of a stage of your own.
            pub fn new(stage: $stage) -> Self {
                $role { stage, items: PhantomData }
            }
        }

        /// The recipe once more.
        impl<$($item: ?Sized,)+ $stage: Clone> Clone for $role<$($item,)+ $stage> {
            fn clone(&self) -> Self {
                $role { stage: self.stage.clone(), items: PhantomData }
            }
        }

        impl<$($item: ?Sized,)+ $stage> fmt::Debug for $role<$($item,)+ $stage> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let items: &[&str] = &[$(std::any::type_name::<$item>()),+];
                write!(f, "{} of {}", stringify!($role), items.join(" to "))
            }
        }
    };
}

/// A stage that yields items of type `B`, and takes none.
///
/// # Paper
/// [Pipes, Listing 10] `Generator`, for work.
///
/// # Differences
/// 1. A consumer that is finished stops the generator: the rest is not generated. The paper drains
///    it, and with [`naturals`](crate::naturals) that never ends.
/// 2. It has no result of its own.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{naturals, take};
///
/// assert_eq!((naturals() >> take(3)).collect(), [0, 1, 2]);
/// ```
#[must_use = "a recipe does nothing until it is run"]
pub struct Generator<B: ?Sized, G> {
    pub(crate) stage: G,
    items: PhantomData<fn(&B)>,
}

impl_role!(Generator, B; G: Generate);

/// A stage that takes items of type `A`, and yields items of type `B`.
///
/// # Paper
/// [Pipes, Transducers in the middle] `Transducer`, for work.
///
/// # Differences
/// 1. It has no result of its own.
#[must_use = "a recipe does nothing until it is run"]
pub struct Transducer<A: ?Sized, B: ?Sized, T> {
    pub(crate) stage: T,
    items: PhantomData<fn(&A, &B)>,
}

impl_role!(Transducer, A, B; T: Transduce);

/// A stage that takes items of type `A` and yields none. Its result is that of the pipeline.
///
/// # Paper
/// [Pipes, Listing 10] `Iteratee`, for work.
#[must_use = "a recipe does nothing until it is run"]
pub struct Iteratee<A: ?Sized, I> {
    pub(crate) stage: I,
    items: PhantomData<fn(&A)>,
}

impl_role!(Iteratee, A; I: Consume);

/// A stage that cuts its input into sections, each of them true or false.
///
/// Two sections of the same verdict may follow each other, and a section may be empty: a blank line
/// is a line.
///
/// # Paper
/// [Pipes, Listing 14] `Splitter`.
///
/// # Differences
/// 1. The paper's splitter says of each item on which side it goes. This one also says where a
///    section ends, because otherwise the empty sections are lost.
#[must_use = "a recipe does nothing until it is run"]
pub struct Splitter<A: ?Sized, S> {
    pub(crate) stage: S,
    items: PhantomData<fn(&A)>,
}

impl_role!(Splitter, A; S: Split);

/// A stage that makes one stream of two. All three have items of type `A`.
///
/// # Paper
/// [Pipes, Listing 14] `Join`.
#[must_use = "a recipe does nothing until it is run"]
pub struct Join<A: ?Sized, J> {
    pub(crate) stage: J,
    items: PhantomData<fn(&A)>,
}

impl_role!(Join, A; J: Merge);

/// A whole pipeline: a generator and its consumer. [`run`](Program::run) runs it.
#[must_use = "a recipe does nothing until it is run"]
#[derive(Debug, Clone)]
pub struct Program<B: Item + ?Sized, G, I> {
    generator: Generator<B, G>,
    iteratee: Iteratee<B, I>,
}

/// A pipeline that can be run. No part of a pipeline has this trait. With it the compiler says what
/// a part lacks, where a program calls `run` of the part:
///
/// ```compile_fail,E0277
/// use selvedge::pipeline::{from_iter, lift121};
///
/// (from_iter([1, 2]) >> lift121(|n: &i32| n + 1)).run();
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no whole pipeline",
    label = "expected a generator or source at its beginning, and an iteratee or target at its end"
)]
pub trait WholePipeline {
    /// What the consumer makes of the items.
    type Result;

    /// Runs the pipeline.
    fn run_whole(self) -> Self::Result;
}

impl<B: Item + ?Sized, G: Generate<B>, I: Consume<B>> WholePipeline for Program<B, G, I> {
    type Result = I::Result;

    fn run_whole(self) -> I::Result {
        self.run()
    }
}

/// Gives a part of a pipeline the methods `run` and `try_run`, which no program can call.
///
/// What they return does not depend on the trait. Otherwise the compiler would look for another
/// method, and say nothing of what is missing, if a stage has a closure in it.
macro_rules! impl_no_run {
    ($role:ident, $($item:ident),+) => {
        impl<$($item: ?Sized,)+ T> $role<$($item,)+ T> {
            #[doc(hidden)]
            pub fn run(self)
            where
                Self: WholePipeline,
            {
                drop(self.run_whole());
            }

            #[doc(hidden)]
            pub fn try_run(self) -> Result<(), StageError>
            where
                Self: WholePipeline,
            {
                drop(self.run_whole());
                Ok(())
            }
        }
    };
}

impl_no_run!(Generator, B);
impl_no_run!(Transducer, A, B);
impl_no_run!(Iteratee, A);

impl<B: Item + ?Sized, G: Generate<B>, I: Consume<B>> Program<B, G, I> {
    pub(crate) fn new(generator: Generator<B, G>, iteratee: Iteratee<B, I>) -> Self {
        Program { generator, iteratee }
    }

    /// Runs the pipeline to the end of its generator, or until its consumer is finished. Returns
    /// the result of the consumer.
    ///
    /// # Panics
    /// If a stage fails: [`try_run`](Program::try_run) returns its failure.
    ///
    /// # Paper
    /// [Pipes, Listing 10] `run`.
    pub fn run(self) -> I::Result {
        or_panic(self.try_run())
    }

    /// Runs the pipeline to the end of its generator, or until its consumer is finished. Returns
    /// the result of the consumer.
    ///
    /// # Errors
    /// The failure of the first stage that fails. The stages are dropped as they are, the generator
    /// first.
    pub fn try_run(mut self) -> Result<I::Result, StageError> {
        // The generator and the iteratee stay fields of `self`, so that a panic drops them in the
        // order of the stream too.
        let mut eats = Eats::new(&mut self.iteratee.stage);
        self.generator.stage.all(&mut eats);
        let cut = Sink::<B>::flush(&mut eats).is_break();
        let failure =
            first_failure(self.generator.stage.failure(), self.iteratee.stage.failure(), cut).cloned();
        drop(self.generator);
        let mut consumer = self.iteratee.stage;
        if let Some(failure) = failure {
            return Err(failure);
        }
        let _over = consumer.finish();
        result(consumer)
    }
}

/// The result of an iteratee that has taken its input, unless it has failed.
pub(crate) fn result<A: Item + ?Sized, I: Consume<A>>(consumer: I) -> Result<I::Result, StageError> {
    match consumer.failure() {
        Some(failure) => Err(failure.clone()),
        None => Ok(consumer.end()),
    }
}

pub(crate) fn or_panic<R>(result: Result<R, StageError>) -> R {
    result.unwrap_or_else(|failure| panic!("a stage of a pipeline has failed: {failure}"))
}

/// A consumer as the downstream side of an edge.
pub(crate) struct Eats<'a, I> {
    consumer: &'a mut I,
    /// Whether the consumer has broken.
    pub(crate) finished: bool,
}

impl<'a, I> Eats<'a, I> {
    pub(crate) fn new(consumer: &'a mut I) -> Self {
        Eats { consumer, finished: false }
    }
}

impl<A: Item + ?Sized, I: Consume<A>> Sink<A> for Eats<'_, I> {
    const CHUNKS: bool = I::CHUNKS;

    #[inline(always)]
    fn put(&mut self, item: &A) -> Flow {
        let flow = self.consumer.put(item);
        self.finished |= flow.is_break();
        flow
    }

    #[inline(always)]
    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        let flow = self.consumer.put_chunk(chunk);
        self.finished |= flow.is_break();
        flow
    }

    #[inline(always)]
    fn flush(&mut self) -> Flow {
        self.finished = self.finished || self.consumer.flush().is_break();
        if self.finished { FINISHED } else { GO_ON }
    }
}

/// The downstream side that keeps all items in a store.
#[derive(Debug)]
pub struct Keep<'a, C>(
    /// The store.
    pub &'a mut C,
);

impl<A: Item + ?Sized> Sink<A> for Keep<'_, A::Store> {
    const CHUNKS: bool = true;

    #[inline]
    fn put(&mut self, item: &A) -> Flow {
        self.0.keep(item);
        GO_ON
    }

    #[inline]
    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        self.0.keep_all(chunk);
        GO_ON
    }

    #[inline]
    fn put_made(&mut self, _spare: &mut A::Store, make: impl FnOnce(&mut A::Store)) -> Flow {
        make(self.0);
        GO_ON
    }
}

/// How many items are gathered at most before they go on.
const GATHERED: usize = 256;

/// Gathers single items into chunks, if the next stage wants chunks.
pub(crate) struct GatherItems<'a, C, S> {
    pub(crate) items: &'a mut C,
    pub(crate) out: &'a mut S,
}

impl<C, S> GatherItems<'_, C, S> {
    /// Passes on what is gathered.
    pub(crate) fn flush<A: Item + ?Sized>(&mut self) -> Flow
    where
        C: Store<A>,
        S: Sink<A>,
    {
        if self.items.count() == 0 {
            return GO_ON;
        }
        let flow = self.out.put_chunk(self.items.all());
        self.items.clear();
        flow
    }
}

impl<A: Item + ?Sized, S: Sink<A>> Sink<A> for GatherItems<'_, A::Store, S> {
    const CHUNKS: bool = S::CHUNKS;

    #[inline(always)]
    fn put(&mut self, item: &A) -> Flow {
        if !S::CHUNKS {
            return self.out.put(item);
        }
        self.items.keep(item);
        if self.items.count() < GATHERED { GO_ON } else { self.flush() }
    }

    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        self.flush()?;
        self.out.put_chunk(chunk)
    }

    #[inline(always)]
    fn put_made(&mut self, spare: &mut A::Store, make: impl FnOnce(&mut A::Store)) -> Flow {
        if !S::CHUNKS {
            return self.out.put_made(spare, make);
        }
        make(self.items);
        if self.items.count() < GATHERED { GO_ON } else { self.flush() }
    }
}

impl<B: Item + ?Sized, G: Generate<B>> Generator<B, G> {
    /// Runs the generator, and keeps all that it yields.
    ///
    /// # Panics
    /// If a stage fails: [`try_collect`](Generator::try_collect) returns its failure.
    ///
    /// # Paper
    /// [Pipes, Listing 10] `runGenerator`.
    #[doc(alias = "runGenerator")]
    pub fn collect(self) -> B::Store {
        or_panic(self.try_collect())
    }

    /// Runs the generator, and keeps all that it yields.
    ///
    /// # Errors
    /// The failure of the first stage that fails.
    pub fn try_collect(mut self) -> Result<B::Store, StageError> {
        let mut store = B::Store::default();
        self.stage.all(&mut Keep(&mut store));
        self.stage.failure().map_or(Ok(store), |failure| Err(failure.clone()))
    }

    /// Runs the generator, and passes each item to `f`.
    ///
    /// # Panics
    /// If a stage fails.
    pub fn for_each(mut self, f: impl FnMut(&B)) {
        let mut sink = EachTo(f);
        self.stage.all(&mut sink);
        or_panic(self.stage.failure().map_or(Ok(()), |failure| Err(failure.clone())));
    }

    /// Goes on when the next stage is finished: the generator is run to its end, and the rest of
    /// its items is dropped, as in the paper. The next stage is not told of them.
    ///
    /// # Paper
    /// [Pipes, Listing 11]: a consumer that ends first drains its producer.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{from_iter, head};
    /// use std::cell::Cell;
    ///
    /// let made = Cell::new(0);
    /// let source = || from_iter((1..=9).inspect(|_| made.set(made.get() + 1)));
    /// assert_eq!((source() >> head()).run(), Some(1));
    /// assert_eq!(made.take(), 1);
    /// assert_eq!((source().drain() >> head()).run(), Some(1));
    /// assert_eq!(made.take(), 9);
    /// ```
    pub fn drain(self) -> Generator<B, Drain<G>> {
        Generator::new(Drain { generator: self.stage })
    }
}

/// The stage of [`Generator::drain`].
#[derive(Debug, Clone)]
pub struct Drain<G> {
    generator: G,
}

impl<B: Item + ?Sized, G: Generate<B>> Generate<B> for Drain<G> {
    fn pump<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), bool> {
        let mut listener = WhileOpen { out, closed: false };
        let more = self.generator.pump(&mut listener);
        let _listens = Sink::<B>::flush(&mut listener);
        if !listener.closed {
            return more;
        }
        if more == ControlFlow::Continue(true) {
            self.generator.all(&mut listener);
        }
        ControlFlow::Break(())
    }

    fn all<S: Sink<B>>(&mut self, out: &mut S) {
        self.generator.all(&mut WhileOpen { out, closed: false });
    }

    fn failure(&self) -> Option<&StageError> {
        self.generator.failure()
    }
}

/// Puts into `out` until that is finished, and then drops what comes.
struct WhileOpen<'a, S> {
    out: &'a mut S,
    closed: bool,
}

impl<A: Item + ?Sized, S: Sink<A>> Sink<A> for WhileOpen<'_, S> {
    const CHUNKS: bool = S::CHUNKS;

    #[inline]
    fn put(&mut self, item: &A) -> Flow {
        self.closed = self.closed || self.out.put(item).is_break();
        GO_ON
    }

    #[inline]
    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        self.closed = self.closed || self.out.put_chunk(chunk).is_break();
        GO_ON
    }

    #[inline]
    fn flush(&mut self) -> Flow {
        self.closed = self.closed || self.out.flush().is_break();
        GO_ON
    }
}

struct EachTo<F>(F);

impl<A: Item + ?Sized, F: FnMut(&A)> Sink<A> for EachTo<F> {
    #[inline(always)]
    fn put(&mut self, item: &A) -> Flow {
        (self.0)(item);
        GO_ON
    }
}
