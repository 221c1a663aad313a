//! The stages that run a join: `join_generators`, `join_transduced` and `join_with`. Users call
//! them with a join of `join.rs`.
//!
//! The join is a state machine that is asked by `Merge::step`, and it says which side it wants. The
//! items of the other side wait in `Untaken`, so the documentation of a join states how many these
//! may be. A side that has failed must not end for the join: the join gets the items before the
//! failure, and no end. [Pipes, Parting and joining the stream] `joinTransduced`.

use crate::error::StageError;
use crate::item::{Chunk, FINISHED, Flow, GO_ON, Item, Store};
use crate::role::{GatherItems, Generator, Join, Keep, Transducer};
use crate::sections::branch::{BranchSide, Gate};
use crate::stage::{Generate, JoinStep, Merge, Sink, Transduce, Upcoming, put_now};
use std::ops::ControlFlow;

/// How many lists are joined at most as one chunk, because the left ones are kept meanwhile.
const ZIPPED: usize = 1 << 14;

/// A join and the items that it has not taken.
#[derive(Debug, Clone)]
struct Meeting<J, C> {
    join: J,
    left: Untaken<C>,
    right: Untaken<C>,
}

#[derive(Debug, Clone, Default)]
struct Untaken<C> {
    items: C,
    /// How many of the items have been taken.
    taken: usize,
    ended: bool,
}

impl<C> Untaken<C> {
    #[inline]
    fn head<A: Item + ?Sized>(&self) -> Upcoming<'_, A>
    where
        C: Store<A>,
    {
        if self.taken < self.items.count() {
            Upcoming::Item(self.items.at(self.taken))
        } else if self.ended {
            Upcoming::Ended
        } else {
            Upcoming::Unknown
        }
    }

    fn forget<A: Item + ?Sized>(&mut self)
    where
        C: Store<A>,
    {
        self.items.forget(self.taken);
        self.taken = 0;
    }
}

/// Which side a join waits for.
enum Wants {
    Left,
    Right,
}

impl<J, C: Default> Meeting<J, C> {
    fn new(join: J) -> Self {
        let queue = || Untaken { items: C::default(), taken: 0, ended: false };
        Meeting { join, left: queue(), right: queue() }
    }

    /// Runs the join until it wants an item that is not there. Breaks when it is finished.
    fn run<A: Item + ?Sized>(&mut self, out: &mut impl Sink<A>) -> ControlFlow<(), Wants>
    where
        J: Merge<A>,
        C: Store<A>,
    {
        let wants = loop {
            match self.join.step(self.left.head(), self.right.head(), out) {
                JoinStep::Took { left, right } => {
                    self.left.taken += usize::from(left);
                    self.right.taken += usize::from(right);
                }
                JoinStep::WantsLeft => break Wants::Left,
                JoinStep::WantsRight => break Wants::Right,
                JoinStep::Finished => return ControlFlow::Break(()),
            }
        };
        self.left.forget();
        self.right.forget();
        ControlFlow::Continue(wants)
    }
}

/// The stage of [`join_generators`].
#[derive(Debug, Clone)]
pub struct JoinGenerators<G, H, J, C> {
    left: G,
    right: H,
    meeting: Meeting<J, C>,
    /// What the join has put since the last chunk.
    joined: C,
}

/// Joins two generators. Each generates when the join wants it.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `joinTransduced` of two generators.
pub fn join_generators<A, G, H, J>(
    left: Generator<A, G>,
    right: Generator<A, H>,
    join: Join<A, J>,
) -> Generator<A, JoinGenerators<G, H, J, A::Store>>
where
    A: Item + ?Sized,
    G: Generate<A>,
    H: Generate<A>,
    J: Merge<A>,
{
    let meeting = Meeting::new(join.stage);
    let joined = A::Store::default();
    Generator::new(JoinGenerators { left: left.stage, right: right.stage, meeting, joined })
}

/// Pumps a generator into the queue of its side. Breaks if the generator has failed: then the join
/// gets what came before, and does not learn of an end.
fn pump<A: Item + ?Sized>(generator: &mut impl Generate<A>, queue: &mut Untaken<A::Store>) -> Flow {
    if generator.failure().is_some() {
        return FINISHED;
    }
    if generator.pump(&mut Keep(&mut queue.items)) != ControlFlow::Continue(true) {
        queue.ended = generator.failure().is_none();
    }
    GO_ON
}

/// Items of the right side as they come: the join takes each of them before the next one, so none
/// is kept. The left side generates when the join wants it.
struct TakesRight<'a, G, J, C, S> {
    left: &'a mut G,
    meeting: &'a mut Meeting<J, C>,
    out: &'a mut S,
}

impl<A, G, J, S> Sink<A> for TakesRight<'_, G, J, A::Store, S>
where
    A: Item + ?Sized,
    G: Generate<A>,
    J: Merge<A>,
    S: Sink<A>,
{
    #[inline]
    fn put(&mut self, item: &A) -> Flow {
        let Meeting { join, left, .. } = &mut *self.meeting;
        loop {
            match join.step(left.head(), Upcoming::Item(item), self.out) {
                JoinStep::Took { left: took, right } => {
                    left.taken += usize::from(took);
                    if right {
                        return GO_ON;
                    }
                }
                JoinStep::WantsLeft => {
                    left.forget();
                    pump(self.left, left)?;
                }
                // The next item of the right side is known, so the join cannot want it.
                JoinStep::WantsRight | JoinStep::Finished => return FINISHED,
            }
        }
    }

    fn put_chunk(&mut self, chunk: A::Chunk<'_>) -> Flow {
        if let Some(flow) = self.zip_chunk(chunk) {
            return flow;
        }
        chunk.each(|item| self.put(item))
    }
}

impl<G, J, C, S> TakesRight<'_, G, J, C, S> {
    /// Joins the chunk as a whole, if the join has a way for chunks, and the left side has as many
    /// items.
    fn zip_chunk<A>(&mut self, chunk: A::Chunk<'_>) -> Option<Flow>
    where
        A: Item<Store = C> + ?Sized,
        G: Generate<A>,
        J: Merge<A>,
        C: Store<A>,
        S: Sink<A>,
    {
        if !J::ZIPS {
            return None;
        }
        let Meeting { join, left, .. } = &mut *self.meeting;
        let count = usize::try_from(chunk.count()).ok().filter(|count| (1..=ZIPPED).contains(count))?;
        while left.items.count() - left.taken < count {
            left.forget();
            let before = left.items.count();
            let _failed = pump::<A>(self.left, left);
            // At its end or failure, the items that there are go on one by one.
            if left.items.count() == before {
                return None;
            }
        }
        let lists = left.items.chunk(left.taken..left.taken + count);
        let flow = join.zip_chunks(lists, chunk, self.out)?;
        left.taken += count;
        Some(flow)
    }
}

impl<A, G, H, J> Generate<A> for JoinGenerators<G, H, J, A::Store>
where
    A: Item + ?Sized,
    G: Generate<A>,
    H: Generate<A>,
    J: Merge<A>,
{
    fn pump<S: Sink<A>>(&mut self, out: &mut S) -> ControlFlow<(), bool> {
        let Self { left, right, meeting, joined } = self;
        let mut gather = GatherItems { items: joined, out };
        let out = &mut Gate::new(&mut gather);
        let pumped = match meeting.run(out) {
            ControlFlow::Continue(Wants::Left) => pump(left, &mut meeting.left),
            ControlFlow::Continue(Wants::Right) if right.failure().is_some() => FINISHED,
            ControlFlow::Continue(Wants::Right) => {
                let more = right.pump(&mut TakesRight { left, meeting, out });
                meeting.right.ended = more == ControlFlow::Continue(false) && right.failure().is_none();
                if more.is_break() { FINISHED } else { GO_ON }
            }
            ControlFlow::Break(()) => FINISHED,
        };
        let closed = out.closed;
        if closed || gather.flush().is_break() {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(pumped.is_continue())
    }

    fn failure(&self) -> Option<&StageError> {
        self.left.failure().or_else(|| self.right.failure())
    }
}

/// The stage of [`join_transduced`].
#[derive(Debug, Clone)]
pub struct JoinTransduced<T, U, J, C> {
    left: BranchSide<T>,
    right: BranchSide<U>,
    meeting: Meeting<J, C>,
}

/// Sends the input to `left` and to `right`, and joins what they yield.
///
/// Both take a whole chunk before the join looks at it, so items of at least one chunk are kept. It
/// keeps more if one side yields more than the join takes of it: a join of a stream with itself
/// delayed by `n` items keeps `n`.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `joinTransduced`.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, id, join, join_transduced, lift121};
///
/// let squares = join_transduced(id(), lift121(|n: &i32| n * n), join::interleave());
/// assert_eq!((from_iter([2, 3]) >> squares).collect(), [2, 4, 3, 9]);
/// ```
#[doc(alias = "joinTransduced")]
pub fn join_transduced<A, B, T, U, J>(
    left: Transducer<A, B, T>,
    right: Transducer<A, B, U>,
    join: Join<B, J>,
) -> Transducer<A, B, JoinTransduced<T, U, J, B::Store>>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: Transduce<A, B>,
    U: Transduce<A, B>,
    J: Merge<B>,
{
    let (left, right) = (BranchSide::new(left.stage), BranchSide::new(right.stage));
    Transducer::new(JoinTransduced { left, right, meeting: Meeting::new(join.stage) })
}

/// Calls `put`, and keeps what the transducer yields in the queue of its side. If the transducer
/// has failed, then the join does not learn of an end.
fn drive<A: Item + ?Sized, B: Item + ?Sized, T: Transduce<A, B>>(
    side: &mut BranchSide<T>,
    queue: &mut Untaken<B::Store>,
    put: impl FnOnce(&mut T, &mut Gate<'_, Keep<'_, B::Store>>) -> Flow,
) {
    // A store is never closed, so it breaks only if the transducer has failed.
    let flow = side.drive::<A, B, _>(&mut Gate::new(&mut Keep(&mut queue.items)), put);
    queue.ended |= side.finished && flow.is_continue() && side.stage.failure().is_none();
}

impl<T, U, J, C> JoinTransduced<T, U, J, C> {
    /// Runs the join until it wants an item that is not there. Breaks when it is finished, or wants
    /// an item of a side that has failed.
    fn run<A, B>(&mut self, out: &mut impl Sink<B>) -> Flow
    where
        A: Item + ?Sized,
        B: Item + ?Sized,
        T: Transduce<A, B>,
        U: Transduce<A, B>,
        J: Merge<B>,
        C: Store<B>,
    {
        let failed = match self.meeting.run(out)? {
            Wants::Left => self.left.stage.failure().is_some(),
            Wants::Right => self.right.stage.failure().is_some(),
        };
        if failed { FINISHED } else { GO_ON }
    }
}

impl<A, B, T, U, J> Transduce<A, B> for JoinTransduced<T, U, J, B::Store>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: Transduce<A, B>,
    U: Transduce<A, B>,
    J: Merge<B>,
{
    const CHUNKS: bool = true;

    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        let Self { left, right, meeting } = self;
        drive::<A, B, _>(left, &mut meeting.left, |stage, queue| put_now(stage, item, queue));
        drive::<A, B, _>(right, &mut meeting.right, |stage, queue| put_now(stage, item, queue));
        self.run::<A, B>(out)
    }

    fn put_chunk<S: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        let Self { left, right, meeting } = self;
        drive::<A, B, _>(left, &mut meeting.left, |stage, queue| stage.put_chunk(chunk, queue));
        drive::<A, B, _>(right, &mut meeting.right, |stage, queue| stage.put_chunk(chunk, queue));
        self.run::<A, B>(out)
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        let Self { left, right, meeting } = self;
        drive::<A, B, _>(left, &mut meeting.left, |stage, queue| stage.end(queue));
        drive::<A, B, _>(right, &mut meeting.right, |stage, queue| stage.end(queue));
        meeting.left.ended = left.stage.failure().is_none();
        meeting.right.ended = right.stage.failure().is_none();
        self.run::<A, B>(out)?;
        FINISHED
    }

    fn failure(&self) -> Option<&StageError> {
        self.left.stage.failure().or_else(|| self.right.stage.failure())
    }
}

/// The stage of [`join_with`].
#[derive(Debug, Clone)]
pub struct JoinWith<G, J, C> {
    left: G,
    meeting: Meeting<J, C>,
    /// What the join has put since the last chunk.
    joined: C,
}

/// Joins `left` with the stream, which is the right side. `left` generates when the join wants it.
///
/// # Paper
/// [Pipes, Parting and joining the stream] `joinTransduced` of a generator and the identity.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, join, join_with, naturals};
///
/// let raised = from_iter([10, 10, 10]) >> join_with(naturals(), join::zip_with(|a, b| a + b));
/// assert_eq!(raised.collect(), [10, 11, 12]);
/// ```
pub fn join_with<A, G, J>(
    left: Generator<A, G>,
    join: Join<A, J>,
) -> Transducer<A, A, JoinWith<G, J, A::Store>>
where
    A: Item + ?Sized,
    G: Generate<A>,
    J: Merge<A>,
{
    let (meeting, joined) = (Meeting::new(join.stage), A::Store::default());
    Transducer::new(JoinWith { left: left.stage, meeting, joined })
}

impl<G, J, C> JoinWith<G, J, C> {
    /// Runs the join until it wants an item of the stream.
    fn run<A: Item<Store = C> + ?Sized>(&mut self, out: &mut impl Sink<A>) -> Flow
    where
        G: Generate<A>,
        J: Merge<A>,
        C: Store<A>,
    {
        while let Wants::Left = self.meeting.run(out)? {
            pump(&mut self.left, &mut self.meeting.left)?;
        }
        GO_ON
    }
}

impl<A, G, J> Transduce<A, A> for JoinWith<G, J, A::Store>
where
    A: Item + ?Sized,
    G: Generate<A>,
    J: Merge<A>,
{
    const CHUNKS: bool = true;

    fn put<S: Sink<A>>(&mut self, item: &A, out: &mut S) -> Flow {
        TakesRight { left: &mut self.left, meeting: &mut self.meeting, out }.put(item)
    }

    fn put_chunk<S: Sink<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        let mut gather = GatherItems { items: &mut self.joined, out };
        let mut takes = TakesRight { left: &mut self.left, meeting: &mut self.meeting, out: &mut gather };
        let flow = takes.put_chunk(chunk);
        gather.flush()?;
        flow
    }

    fn end<S: Sink<A>>(&mut self, out: &mut S) -> Flow {
        self.meeting.right.ended = true;
        self.run(out)
    }

    fn failure(&self) -> Option<&StageError> {
        self.left.failure()
    }
}
