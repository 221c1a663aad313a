//! The protocol between stages: `Sink`, `Generate`, `Transduce`, `Consume`, `Split` with
//! `Sections`, and `Merge`. Users implement these traits for stages of their own; the types of
//! `role.rs` wrap them.
//!
//! The upstream stage calls the downstream one. After a `Break` the caller neither feeds nor ends
//! the callee. After a failure the next stage is not ended. `put_chunk` must do the same as `put`
//! of each item, because a caller may use either. `end` comes at most once.

use crate::error::StageError;
use crate::item::{Chunk, Flow, GO_ON, Item, Store};
use std::ops::ControlFlow;

/// The downstream side of an edge: it takes the items as they come.
pub trait Sink<A: Item + ?Sized> {
    /// Whether a chunk costs this stage less than its items one by one.
    const CHUNKS: bool = false;

    /// Takes one item.
    fn put(&mut self, item: &A) -> Flow;

    /// Takes the items of a chunk, as [`put`](Sink::put) of each would.
    #[inline]
    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        chunk.each(|item| self.put(item))
    }

    /// Takes the items of a store, as [`put_chunk`](Sink::put_chunk) would. The store is empty
    /// after that, unless the stage has broken. A stage that keeps the items takes the memory too,
    /// and leaves its own.
    #[inline(always)]
    fn put_store(&mut self, store: &mut A::Store) -> Flow {
        self.put_chunk(store.all())?;
        store.clear();
        GO_ON
    }

    /// The stages behind this edge take the items that they have kept: see [`Transduce::put`].
    #[inline(always)]
    fn flush(&mut self) -> Flow {
        GO_ON
    }

    /// Takes the one item that `make` keeps in a store, as [`put`](Sink::put) of it would. A stage
    /// that keeps its items lends its own store, so that the item is written once. The other
    /// stages use `spare`, which is empty.
    #[inline(always)]
    fn put_made(&mut self, spare: &mut A::Store, make: impl FnOnce(&mut A::Store)) -> Flow {
        make(spare);
        let flow = self.put(spare.at(0));
        spare.clear();
        flow
    }
}

impl<A: Item + ?Sized, S: Sink<A>> Sink<A> for &mut S {
    const CHUNKS: bool = S::CHUNKS;

    #[inline]
    fn put(&mut self, item: &A) -> Flow {
        (**self).put(item)
    }

    #[inline]
    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        (**self).put_chunk(chunk)
    }

    #[inline(always)]
    fn put_store(&mut self, store: &mut A::Store) -> Flow {
        (**self).put_store(store)
    }

    #[inline(always)]
    fn flush(&mut self) -> Flow {
        (**self).flush()
    }

    #[inline(always)]
    fn put_made(&mut self, spare: &mut A::Store, make: impl FnOnce(&mut A::Store)) -> Flow {
        (**self).put_made(spare, make)
    }
}

/// The stage inside a [`Generator`](crate::Generator).
pub trait Generate<B: Item + ?Sized> {
    /// Puts some items into `out`, at least one if there are any. Returns whether there may be
    /// more.
    ///
    /// It breaks when `out` is finished, and is not called after that, nor after `false`.
    fn pump<S: Sink<B>>(&mut self, out: &mut S) -> ControlFlow<(), bool>;

    /// Puts all items into `out`, until `out` is finished. It flushes `out` after each
    /// [`pump`](Generate::pump), because the next `pump` may wait for a file: the stages downstream
    /// then have all items that came before.
    #[inline]
    fn all<S: Sink<B>>(&mut self, out: &mut S) {
        while self.pump(out) == ControlFlow::Continue(true) && out.flush().is_continue() {}
    }

    /// Why the generator has ended, if it has failed.
    fn failure(&self) -> Option<&StageError> {
        None
    }
}

/// The stage inside a [`Transducer`](crate::Transducer).
///
/// Cloning a transducer that has not been fed gives the recipe once more.
pub trait Transduce<A: Item + ?Sized, B: Item + ?Sized> {
    /// Whether a chunk costs this stage less than its items one by one.
    const CHUNKS: bool = false;

    /// Takes one item, and puts into `out` what follows from it.
    ///
    /// The stage may keep the item until [`flush`](Transduce::flush), or until it has enough items.
    /// The caller calls `flush` before the caller itself returns, unless the stage has broken. The
    /// other methods take what is kept first, and keep nothing of this kind.
    ///
    /// Some stages pay a fixed cost for each call. Such a stage keeps the items of several calls
    /// and pays once, if its neighbour puts the items one by one.
    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow;

    /// Takes the items of a chunk, as [`put`](Transduce::put) of each would, and flushes.
    #[inline]
    fn put_chunk<S: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        chunk.each(|item| self.put(item, out))?;
        self.flush(out)
    }

    /// Takes the items of a store, as [`put_chunk`](Transduce::put_chunk) would. The store is
    /// empty after that, unless the stage has broken.
    #[inline(always)]
    fn put_store<S: Sink<B>>(&mut self, store: &mut A::Store, out: &mut S) -> Flow {
        self.put_chunk(store.all(), out)?;
        store.clear();
        GO_ON
    }

    /// Takes the items that [`put`](Transduce::put) has kept.
    #[inline(always)]
    fn flush<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        let _ = out;
        GO_ON
    }

    /// The input has ended. The stage puts into `out` what it still has.
    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow;

    /// Why the stage has broken, or cannot end its output, if it has failed. The next stage is not
    /// ended then.
    fn failure(&self) -> Option<&StageError> {
        None
    }
}

/// The stage inside an [`Iteratee`](crate::Iteratee).
pub trait Consume<A: Item + ?Sized> {
    /// The value that the stage makes of all items.
    type Result;

    /// Whether a chunk costs this stage less than its items one by one.
    const CHUNKS: bool = false;

    /// Takes one item. The stage may keep it until [`flush`](Consume::flush): see
    /// [`Transduce::put`].
    fn put(&mut self, item: &A) -> Flow;

    /// Takes the items of a chunk, as [`put`](Consume::put) of each would, and flushes.
    #[inline]
    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        chunk.each(|item| self.put(item))?;
        self.flush()
    }

    /// Takes the items that [`put`](Consume::put) has kept.
    #[inline(always)]
    fn flush(&mut self) -> Flow {
        GO_ON
    }

    /// Takes items from the front of a chunk, until the stage is finished. Returns the number of
    /// items that it took. The next consumer of the stream takes the others.
    ///
    /// The provided method puts and flushes the items one by one. A stage with a faster way to
    /// count the items that it takes has its own method.
    fn put_some(&mut self, chunk: A::Chunk<'_>) -> (usize, Flow) {
        let mut taken = 0;
        let flow = chunk.each(|item| {
            taken += 1;
            self.put(item)?;
            self.flush()
        });
        (taken, flow)
    }

    /// The input has ended. The stage takes in what its parts have kept. It does nothing if the
    /// stage has broken, and a second call does nothing.
    fn finish(&mut self) -> Flow {
        GO_ON
    }

    /// The result, after [`finish`](Consume::finish), of a stage that has not failed.
    fn end(self) -> Self::Result;

    /// Why there is no result, if the stage has failed.
    fn failure(&self) -> Option<&StageError> {
        None
    }
}

/// The stage inside a [`Splitter`](crate::Splitter).
///
/// A splitter passes each item of its input on, in order and unchanged. It breaks only when its
/// `out` breaks.
pub trait Split<A: Item + ?Sized> {
    /// Takes one item, and passes on the items that are decided.
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow;

    /// Takes the items of a chunk, as [`put`](Split::put) of each would.
    #[inline]
    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        chunk.each(|item| self.put(item, out))
    }

    /// The input has ended. The splitter passes on what is left, and closes the last section.
    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow;

    /// The [`Cut`](crate::Cut) that finds this splitter's true sections: in any stream, its lists
    /// are exactly these sections. `None` if there is no such cut.
    fn cut(&self) -> Option<&dyn crate::Cut<A>>
    where
        A: Sized,
    {
        None
    }

    /// Whether a true section that [`search`](Split::search) can find may begin in `stream`. The
    /// end of the section may lie behind `stream`. A splitter that cannot tell returns `true`.
    fn may_begin(&self, stream: &[A]) -> bool
    where
        A: Sized,
    {
        let _ = stream;
        true
    }

    /// Returns the place of the first true section that lies in `stream`, or `None` if no true
    /// section lies there. The search knows nothing of the items before `stream`. A splitter that
    /// must know them returns `Err`: then the caller puts the items.
    #[expect(clippy::result_unit_err, reason = "the error says only that there is no fast way")]
    fn search(&self, stream: &[A]) -> Result<Option<std::ops::Range<usize>>, ()>
    where
        A: Sized,
    {
        let _ = stream;
        Err(())
    }
}

/// The downstream side of a splitter: it takes the sections of the stream, one after the other.
///
/// The splitter says the verdict of a section with each item of that section, and with its end
/// ([`close`](Sections::close)). A `close` directly after another `close`, or at the beginning, is
/// the end of an empty section. An empty chunk begins no section.
pub trait Sections<A: Item + ?Sized> {
    /// Takes the next item of the section that is open.
    fn part(&mut self, verdict: bool, item: &A) -> Flow;

    /// Takes the next items of the section that is open, as [`part`](Sections::part) of each would.
    #[inline]
    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        chunk.each(|item| self.part(verdict, item))
    }

    /// The section has ended.
    fn close(&mut self, verdict: bool) -> Flow;
}

/// The stage inside a [`Join`](crate::Join).
pub trait Merge<A: Item + ?Sized> {
    /// Whether [`zip_chunks`](Merge::zip_chunks) may join something. A stage that runs the join
    /// then has as many left items ready as a chunk of the right side has.
    const ZIPS: bool = false;

    /// Looks at the next items of both sides, puts the items that follow from them into `out`, and
    /// returns what it did.
    ///
    /// The paper's `awaitLeft` and `awaitRight` are [`JoinStep::WantsLeft`] and
    /// [`JoinStep::WantsRight`].
    fn step<S: Sink<A>>(&mut self, left: Upcoming<'_, A>, right: Upcoming<'_, A>, out: &mut S) -> JoinStep;

    /// Joins the items of two chunks that have the same number of items, as [`step`](Merge::step)
    /// of each pair would, and returns what `out` answers. `None` if the join has done nothing,
    /// because it has no faster way for chunks.
    #[inline]
    fn zip_chunks<S: Sink<A>>(
        &mut self,
        left: A::Chunk<'_>,
        right: A::Chunk<'_>,
        out: &mut S,
    ) -> Option<Flow> {
        let _ = (left, right, out);
        None
    }
}

/// The next item of a side of a join.
#[derive(Debug)]
pub enum Upcoming<'a, A: ?Sized> {
    /// It is there.
    Item(&'a A),
    /// It has not come yet.
    Unknown,
    /// The side has ended.
    Ended,
}

impl<A: ?Sized> Clone for Upcoming<'_, A> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<A: ?Sized> Copy for Upcoming<'_, A> {}

/// What a join did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinStep {
    /// It took an item of the left side, one of the right side, or both.
    Took {
        /// It took an item of the left side.
        left: bool,
        /// It took an item of the right side.
        right: bool,
    },
    /// It needs the next item of the left side, which was [`Upcoming::Unknown`].
    WantsLeft,
    /// It needs the next item of the right side, which was [`Upcoming::Unknown`].
    WantsRight,
    /// It takes no more, or `out` has broken.
    Finished,
}

impl JoinStep {
    /// [`JoinStep::Took`], unless `out` has broken.
    pub fn put(flow: Flow, left: bool, right: bool) -> JoinStep {
        if flow.is_break() { JoinStep::Finished } else { JoinStep::Took { left, right } }
    }
}

/// Puts one item into `stage`, and all that follows from it into `out`.
#[inline(always)]
pub(crate) fn put_now<A, B, T, S>(stage: &mut T, item: &A, out: &mut S) -> Flow
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: Transduce<A, B>,
    S: Sink<B>,
{
    stage.put(item, out)?;
    stage.flush(out)
}
