//! Two transducers side by side, each fed by one side of a splitter.
//!
//! A splitter passes its sections on in order, and the branch that takes a section puts what
//! follows from it into `out` at once. So the outputs are merged in the order in which they appear,
//! and no branch has a queue.
//!
//! Users call `if_then_else` and its short forms. `foreach.rs`, `recur.rs` and `join/driven.rs` use
//! `BranchSide` and `Gate`. They tell a branch that has ended from a downstream stage that has
//! broken. A branch that fails must break, because its failure is looked up only then.

use crate::edges::parts::{ItemByItem, PlaceKnown, SplitByItem};
use crate::error::StageError;
use crate::item::{FINISHED, Flow, GO_ON, Item};
use crate::role::{Splitter, Transducer};
use crate::stage::{Sections, Sink, Split, Transduce};
use crate::stages::plain::{Suppress, Unchanged};
use std::marker::PhantomData;

/// A sink that notes whether `out` has broken, so that the end of a branch is not mistaken for the
/// end of what lies behind the branch.
pub(crate) struct Gate<'a, S> {
    pub(crate) out: &'a mut S,
    pub(crate) closed: bool,
}

impl<'a, S> Gate<'a, S> {
    pub(crate) fn new(out: &'a mut S) -> Self {
        Gate { out, closed: false }
    }
}

impl<B: Item + ?Sized, S: Sink<B>> Sink<B> for Gate<'_, S> {
    const CHUNKS: bool = S::CHUNKS;

    #[inline(always)]
    fn put(&mut self, item: &B) -> Flow {
        let flow = self.out.put(item);
        self.closed |= flow.is_break();
        flow
    }

    #[inline(always)]
    fn put_chunk(&mut self, chunk: B::Chunk<'_>) -> Flow {
        let flow = self.out.put_chunk(chunk);
        self.closed |= flow.is_break();
        flow
    }

    #[inline(always)]
    fn put_made(&mut self, spare: &mut B::Store, make: impl FnOnce(&mut B::Store)) -> Flow {
        let flow = self.out.put_made(spare, make);
        self.closed |= flow.is_break();
        flow
    }
}

/// A transducer that may be finished while its neighbours are not.
#[derive(Debug, Clone)]
pub(crate) struct BranchSide<T> {
    pub(crate) stage: T,
    pub(crate) finished: bool,
}

/// What a side is fed with.
pub(crate) enum SideInput<'a, A: Item + ?Sized> {
    Item(&'a A),
    Chunk(A::Chunk<'a>),
    /// The input of the side has ended.
    End,
}

impl<T> BranchSide<T> {
    pub(crate) fn new(stage: T) -> Self {
        BranchSide { stage, finished: false }
    }

    /// Feeds the transducer, if it is not finished. Otherwise as [`drive`](Self::drive).
    #[inline(always)]
    pub(crate) fn feed<A, B, S>(&mut self, input: SideInput<'_, A>, gate: &mut Gate<'_, S>) -> Flow
    where
        A: Item + ?Sized,
        B: Item + ?Sized,
        S: Sink<B>,
        T: Transduce<A, B>,
    {
        self.drive::<A, B, S>(gate, |stage, out| match input {
            SideInput::Item(item) => stage.put(item, out),
            SideInput::Chunk(chunk) => stage.put_chunk(chunk, out),
            SideInput::End => stage.end(out),
        })
    }

    /// Calls `put`, if the transducer is not finished. Breaks when the gate is closed, or the
    /// transducer has failed.
    #[inline]
    pub(crate) fn drive<A: Item + ?Sized, B: Item + ?Sized, S>(
        &mut self,
        gate: &mut Gate<'_, S>,
        put: impl FnOnce(&mut T, &mut Gate<'_, S>) -> Flow,
    ) -> Flow
    where
        T: Transduce<A, B>,
    {
        if !self.finished && put(&mut self.stage, gate).is_break() {
            self.finished = true;
            if self.stage.failure().is_some() {
                return FINISHED;
            }
        }
        if gate.closed { FINISHED } else { GO_ON }
    }

    /// The transducer takes the items that it has gathered. Otherwise as [`drive`](Self::drive).
    #[inline(always)]
    pub(crate) fn flush<A: Item + ?Sized, B: Item + ?Sized, S: Sink<B>>(
        &mut self,
        gate: &mut Gate<'_, S>,
    ) -> Flow
    where
        T: Transduce<A, B>,
    {
        if self.finished || self.stage.flush(gate).is_continue() {
            return GO_ON;
        }
        self.finished = true;
        if gate.closed || self.stage.failure().is_some() { FINISHED } else { GO_ON }
    }
}

/// The stage of [`if_then_else`].
#[derive(Debug, Clone)]
pub struct IfThenElse<S, T, U> {
    splitter: S,
    yes: BranchSide<T>,
    no: BranchSide<U>,
}

/// Sends the true sections of `splitter` to `yes` and the false ones to `no`, and merges what they
/// yield in the order in which it appears.
///
/// Each branch sees its sections as one stream. [`foreach`](crate::foreach) begins a branch anew
/// for each section. At the end `yes` is ended before `no`. The stage is finished when both are.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `ifThenElse`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, if_then_else, lift121, satisfies};
///
/// let odd = satisfies(|n: &i32| n % 2 == 1);
/// let collatz = if_then_else(odd, lift121(|n: &i32| 3 * n + 1), lift121(|n: &i32| n / 2));
/// assert_eq!((from_iter(1..=4) >> collatz).collect(), [4, 1, 10, 2]);
/// ```
#[doc(alias = "ifThenElse")]
pub fn if_then_else<A, B, S, T, U>(
    splitter: Splitter<A, S>,
    yes: Transducer<A, B, T>,
    no: Transducer<A, B, U>,
) -> Transducer<A, B, IfThenElse<S, T, U>>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Split<A>,
    T: Transduce<A, B>,
    U: Transduce<A, B>,
{
    Transducer::new(IfThenElse {
        splitter: splitter.stage,
        yes: BranchSide::new(yes.stage),
        no: BranchSide::new(no.stage),
    })
}

/// The sections go to the two sides.
struct Route<'a, 'b, T, U, O, B: ?Sized> {
    yes: &'a mut BranchSide<T>,
    no: &'a mut BranchSide<U>,
    gate: &'a mut Gate<'b, O>,
    /// The side that was fed last, and that may have gathered items.
    fed: Option<bool>,
    yields: PhantomData<fn(&B)>,
}

impl<T, U, O, B: Item + ?Sized> Route<'_, '_, T, U, O, B> {
    /// Both sides are finished.
    fn over(&self) -> Flow {
        if self.yes.finished && self.no.finished { FINISHED } else { GO_ON }
    }

    /// The side for `verdict` is fed next. The other one puts out what it has gathered, so that the
    /// outputs stay in order.
    #[inline(always)]
    fn turn<A: Item + ?Sized>(&mut self, verdict: bool) -> Flow
    where
        T: Transduce<A, B>,
        U: Transduce<A, B>,
        O: Sink<B>,
    {
        match self.fed.replace(verdict) {
            Some(before) if before != verdict => self.flush_side::<A>(before),
            _ => GO_ON,
        }
    }

    #[inline(always)]
    fn flush_side<A: Item + ?Sized>(&mut self, verdict: bool) -> Flow
    where
        T: Transduce<A, B>,
        U: Transduce<A, B>,
        O: Sink<B>,
    {
        if verdict { self.yes.flush::<A, B, _>(self.gate) } else { self.no.flush::<A, B, _>(self.gate) }
    }

    /// Feeds the side for `verdict`.
    #[inline(always)]
    fn feed<A: Item + ?Sized>(&mut self, verdict: bool, input: SideInput<'_, A>) -> Flow
    where
        T: Transduce<A, B>,
        U: Transduce<A, B>,
        O: Sink<B>,
    {
        self.turn::<A>(verdict)?;
        if verdict {
            self.yes.feed::<A, B, _>(input, self.gate)?;
        } else {
            self.no.feed::<A, B, _>(input, self.gate)?;
        }
        self.over()
    }

    /// The sections have come so far: all that is gathered goes on.
    #[inline(always)]
    fn flush<A: Item + ?Sized>(&mut self) -> Flow
    where
        T: Transduce<A, B>,
        U: Transduce<A, B>,
        O: Sink<B>,
    {
        if let Some(fed) = self.fed.take() {
            self.flush_side::<A>(fed)?;
        }
        self.over()
    }
}

impl<A, B, T, U, O> Sections<A> for Route<'_, '_, T, U, O, B>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: Transduce<A, B>,
    U: Transduce<A, B>,
    O: Sink<B>,
{
    #[inline(always)]
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        self.feed::<A>(verdict, SideInput::Item(item))
    }

    #[inline(always)]
    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        self.feed::<A>(verdict, SideInput::Chunk(chunk))
    }

    #[inline(always)]
    fn close(&mut self, _verdict: bool) -> Flow {
        GO_ON
    }
}

impl<A, B, S, T, U> Transduce<A, B> for IfThenElse<S, T, U>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Split<A>,
    T: Transduce<A, B>,
    U: Transduce<A, B>,
{
    const CHUNKS: bool = true;

    #[inline]
    fn put<O: Sink<B>>(&mut self, item: &A, out: &mut O) -> Flow {
        let mut gate = Gate::new(out);
        let Self { splitter, yes, no } = self;
        let mut route = Route { yes, no, gate: &mut gate, fed: None, yields: PhantomData };
        splitter.put(item, &mut route)?;
        route.flush::<A>()
    }

    #[inline]
    fn put_chunk<O: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut O) -> Flow {
        let mut gate = Gate::new(out);
        let Self { splitter, yes, no } = self;
        let mut route = Route { yes, no, gate: &mut gate, fed: None, yields: PhantomData };
        splitter.put_chunk(chunk, &mut route)?;
        route.flush::<A>()
    }

    fn end<O: Sink<B>>(&mut self, out: &mut O) -> Flow {
        let mut gate = Gate::new(out);
        let Self { splitter, yes, no } = self;
        let mut route = Route { yes, no, gate: &mut gate, fed: None, yields: PhantomData };
        // The splitter breaks if `out` has, or if both sides are finished.
        splitter.end(&mut route)?;
        route.flush::<A>()?;
        yes.feed::<A, B, _>(SideInput::End, &mut gate)?;
        no.feed::<A, B, _>(SideInput::End, &mut gate)
    }

    fn failure(&self) -> Option<&StageError> {
        self.yes.stage.failure().or_else(|| self.no.stage.failure())
    }
}

impl<A, B, S, T, U> ItemByItem<A, B> for IfThenElse<S, T, U>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: SplitByItem<A>,
    T: ItemByItem<A, B>,
    U: ItemByItem<A, B>,
{
    // A branch takes some of the items, so the places in its stream are not known.
    const NEEDS: PlaceKnown = {
        assert!(!T::NEEDS.is_some() && !U::NEEDS.is_some(), "a stage of a branch needs its place");
        PlaceKnown::Nothing
    };
}

/// Yields the true sections: `if_then_else(splitter, id(), suppress())`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{any, concatenate, from_chunks, group_by};
/// use selvedge::pipeline::{select, substring, whole_line};
///
/// let found = from_chunks(["a warp\nweft\n\nno warp"])
///     >> group_by(whole_line())
///     >> select(any(substring(b"warp")))
///     >> concatenate();
/// assert_eq!(found.collect(), b"a warp\nno warp");
/// ```
pub fn select<A: Item + ?Sized, S: Split<A>>(
    splitter: Splitter<A, S>,
) -> Transducer<A, A, IfThenElse<S, Unchanged, Suppress>> {
    if_then_else(splitter, crate::id(), crate::suppress())
}

/// Applies `transducer` to the true sections, and passes the others on:
/// `if_then_else(splitter, transducer, id())`.
pub fn wherever<A: Item + ?Sized, S: Split<A>, T: Transduce<A, A>>(
    transducer: Transducer<A, A, T>,
    splitter: Splitter<A, S>,
) -> Transducer<A, A, IfThenElse<S, T, Unchanged>> {
    if_then_else(splitter, transducer, crate::id())
}

/// Applies `transducer` to the false sections, and passes the others on:
/// `if_then_else(splitter, id(), transducer)`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, lift121, satisfies, unless, wherever};
///
/// let halve = || lift121(|n: &i32| n / 2);
/// let odd = || satisfies(|n: &i32| n % 2 == 1);
/// assert_eq!((from_iter(1..=4) >> unless(halve(), odd())).collect(), [1, 1, 3, 2]);
/// assert_eq!((from_iter(1..=4) >> wherever(halve(), odd())).collect(), [0, 2, 1, 4]);
/// ```
pub fn unless<A: Item + ?Sized, S: Split<A>, T: Transduce<A, A>>(
    transducer: Transducer<A, A, T>,
    splitter: Splitter<A, S>,
) -> Transducer<A, A, IfThenElse<S, Unchanged, T>> {
    if_then_else(splitter, crate::id(), transducer)
}
