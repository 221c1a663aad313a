//! `named`: a stage with a name of its own, which its failure tells.

use crate::edges::parts::{ItemByItem, PlaceKnown};
use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::item::{Flow, Item};
use crate::role::{Generator, Iteratee, Transducer};
use crate::stage::{Consume, Generate, Sink, Transduce};
use std::borrow::Cow;
use std::ops::ControlFlow;

/// The stage of [`Transducer::named`], [`Generator::named`] and [`Iteratee::named`].
#[derive(Debug, Clone)]
pub struct NamedStage<T> {
    stage: T,
    name: Cow<'static, str>,
    failure: Option<StageError>,
}

impl<T> NamedStage<T> {
    fn new(stage: T, name: Cow<'static, str>) -> NamedStage<T> {
        NamedStage { stage, name, failure: None }
    }

    #[cold]
    fn note(&mut self, failure: impl FnOnce(&T) -> Option<&StageError>) {
        self.failure = failure(&self.stage).map(|failure| failure.renamed(self.name.clone()));
    }

    /// Returns what a call of the stage has returned. If the stage has broken, it may have failed.
    #[inline(always)]
    fn noted(&mut self, flow: Flow, failure: impl FnOnce(&T) -> Option<&StageError>) -> Flow {
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
    /// Gives the stage a name, which its [`StageError`] tells.
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> Transducer<A, B, NamedStage<T>> {
        Transducer::new(NamedStage::new(self.stage, name.into()))
    }
}

impl<B: Item + ?Sized, G: Generate<B>> Generator<B, G> {
    /// Gives the stage a name, which its [`StageError`] tells.
    pub fn named(self, name: impl Into<Cow<'static, str>>) -> Generator<B, NamedStage<G>> {
        Generator::new(NamedStage::new(self.stage, name.into()))
    }
}

impl<A: Item + ?Sized, I: Consume<A>> Iteratee<A, I> {
    /// Gives the stage a name, which its [`StageError`] tells.
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
    fn flush<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        let flow = self.stage.flush(out);
        self.noted(flow, T::failure)
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        let flow = self.stage.end(out);
        self.note(T::failure);
        flow
    }

    fn failure(&self) -> Option<&StageError> {
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

    fn failure(&self) -> Option<&StageError> {
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

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref()
    }
}
