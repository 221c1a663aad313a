//! Loops: what a stage yields goes back to its input, level by level.
//!
//! A level is the loop's parts once more. It is made when its first item comes, so that the depth
//! of the recursion is the depth that the items need.
//!
//! Users call `while_` and `nested_in`. A loop that needs more than `LEVELS` levels would not end.
//! So `while_` fails there. A splitter cannot fail, so `nested_in` panics.

use super::branch::{BranchSide, Gate};
use super::failure::{StageFailure, StreamPlace};
use super::flow::{Flowing, flowing};
use super::item::{Chunk, FINISHED, Flow, GO_ON, Item, Store};
use super::role::{Keep, Splitter, Transducer};
use super::stage::{Sections, Sink, Split, Transduce};

/// How many levels a loop may have. A loop that needs more does not end.
const LEVELS: usize = 256;

/// The stage of [`while_`].
#[derive(Debug, Clone)]
pub struct While<S, T, C> {
    recipe: (S, T),
    depth: usize,
    level: Option<Box<Level<S, T, C>>>,
    /// This is the level that is one too many.
    failure: Option<StageFailure>,
}

impl<S, T, C> While<S, T, C> {
    fn new(recipe: (S, T), depth: usize) -> Self {
        While { recipe, depth, level: None, failure: None }
    }
}

#[derive(Debug, Clone)]
struct Level<S, T, C> {
    splitter: S,
    body: BranchSide<T>,
    /// What the body has made.
    made: C,
    deeper: While<S, T, C>,
}

/// The true sections of `splitter` go through `body`, and what comes out goes back to the splitter,
/// until all is false. False items pass.
///
/// The order is that of [`if_then_else`](super::if_then_else): this is
/// `if_then_else(splitter, body >> while_(body, splitter), id())`.
///
/// # Errors
/// It fails if an item is still true after 256 rounds. So a loop that never ends is told. The
/// failure counts no items.
///
/// # Examples
/// ```
/// use selvedge::coroutine::pipeline::{from_iter, lift121, satisfies, while_};
///
/// let odd_part = while_(lift121(|n: &u32| n / 2), satisfies(|n: &u32| n % 2 == 0));
/// assert_eq!((from_iter(1..=8) >> odd_part).collect(), [1, 1, 3, 1, 5, 3, 7, 1]);
/// ```
pub fn while_<A, S, T>(
    body: Transducer<A, A, T>,
    splitter: Splitter<A, S>,
) -> Transducer<A, A, While<S, T, A::Store>>
where
    A: Item + ?Sized,
    S: Split<A> + Clone,
    T: Transduce<A, A> + Clone,
{
    Transducer::new(While::new((splitter.stage, body.stage), 0))
}

/// The true sections go through the body and one level deeper.
struct Again<'a, 'b, S, T, C, O> {
    body: &'a mut BranchSide<T>,
    made: &'a mut C,
    deeper: &'a mut While<S, T, C>,
    gate: &'a mut Gate<'b, O>,
}

impl<S, T, C, O> Again<'_, '_, S, T, C, O> {
    fn drive<A>(&mut self, put: impl FnOnce(&mut T, &mut Gate<'_, Keep<'_, C>>) -> Flow) -> Flow
    where
        A: Item<Store = C> + ?Sized,
        S: Split<A> + Clone,
        T: Transduce<A, A> + Clone,
        C: Store<A>,
        O: Sink<A>,
    {
        self.made.clear();
        // A store is never closed, so it breaks only if the body has failed.
        let flow = self.body.drive::<A, A, _>(&mut Gate::new(&mut Keep(&mut *self.made)), put);
        if self.made.count() > 0 {
            self.deeper.feed(self.made.all(), self.gate)?;
        }
        flow
    }
}

impl<A, S, T, C, O> Sections<A> for Again<'_, '_, S, T, C, O>
where
    A: Item<Store = C> + ?Sized,
    S: Split<A> + Clone,
    T: Transduce<A, A> + Clone,
    C: Store<A>,
    O: Sink<A>,
{
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        if verdict { self.drive(|body, made| body.put(item, made)) } else { self.gate.put(item) }
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if verdict {
            self.drive(|body, made| body.put_chunk(chunk, made))
        } else {
            self.gate.put_chunk(chunk)
        }
    }

    fn close(&mut self, _verdict: bool) -> Flow {
        GO_ON
    }
}

impl<S, T, C> While<S, T, C> {
    fn feed<A, O>(&mut self, chunk: A::Chunk<'_>, gate: &mut Gate<'_, O>) -> Flow
    where
        A: Item<Store = C> + ?Sized,
        S: Split<A> + Clone,
        T: Transduce<A, A> + Clone,
        C: Store<A>,
        O: Sink<A>,
    {
        let While { recipe, depth, level, failure } = self;
        if *depth == LEVELS {
            let cause = format!("an item is still true after {LEVELS} rounds");
            *failure = Some(StageFailure::new("while_", StreamPlace::default(), cause));
            return FINISHED;
        }
        let level = level.get_or_insert_with(|| {
            let (splitter, body) = recipe.clone();
            let deeper = While::new(recipe.clone(), *depth + 1);
            Box::new(Level { splitter, body: BranchSide::new(body), made: C::default(), deeper })
        });
        let Level { splitter, body, made, deeper } = &mut **level;
        splitter.put_chunk(chunk, &mut Again { body, made, deeper, gate })
    }

    fn finish<A, O>(&mut self, gate: &mut Gate<'_, O>) -> Flow
    where
        A: Item<Store = C> + ?Sized,
        S: Split<A> + Clone,
        T: Transduce<A, A> + Clone,
        C: Store<A>,
        O: Sink<A>,
    {
        let Some(level) = &mut self.level else { return GO_ON };
        let Level { splitter, body, made, deeper } = &mut **level;
        let mut again = Again { body, made, deeper, gate };
        splitter.end(&mut again)?;
        again.drive(|body, made| body.end(made))?;
        level.deeper.finish(gate)
    }
}

impl<A, S, T, C> Transduce<A, A> for While<S, T, C>
where
    A: Item<Store = C> + ?Sized,
    S: Split<A> + Clone,
    T: Transduce<A, A> + Clone,
    C: Store<A>,
{
    const CHUNKS: bool = true;

    fn put<O: Sink<A>>(&mut self, item: &A, out: &mut O) -> Flow {
        self.put_chunk(A::Chunk::one(item), out)
    }

    fn put_chunk<O: Sink<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut O) -> Flow {
        self.feed(chunk, &mut Gate::new(out))
    }

    fn end<O: Sink<A>>(&mut self, out: &mut O) -> Flow {
        self.finish(&mut Gate::new(out))
    }

    fn failure(&self) -> Option<&StageFailure> {
        let below = || {
            let level = self.level.as_ref()?;
            level.body.stage.failure().or_else(|| level.deeper.failure())
        };
        self.failure.as_ref().or_else(below)
    }
}

/// The stage of [`nested_in`].
#[derive(Debug, Clone)]
pub struct Nested<S, T, C> {
    recipe: (S, T),
    depth: usize,
    level: Option<Box<Round<S, T, C>>>,
}

/// `found`, or in the true sections of `around` once more.
type Round<S, T, C> = Flowing<S, Flowing<T, Nested<S, T, C>, C>, C>;

/// Looks for the true sections of `found` at each depth of a nested structure. What `found` calls
/// false flows into `around`, and what `around` calls true flows back into `found`.
///
/// Both must take something away in each round, as the splitter of the inside of a bracket does. It
/// is `found.or_else(around.and_then(nested_in(found, around)))`.
///
/// # Panics
/// If an item is in the loop in the 256th round. A splitter that decides each item by itself
/// never takes it out.
///
/// # Examples
/// ```
/// use selvedge::coroutine::pipeline::{between, end_of, from_chunks, nested_in};
/// use selvedge::coroutine::pipeline::{prefix, satisfies, select, start_of, substring};
///
/// // The `x` that begin the text, and those that begin all that is within brackets, at each depth.
/// let x = prefix(satisfies(|c: &u8| *c == b'x'));
/// let inside = between(end_of(substring(b"(")), start_of(substring(b")")));
/// let found = from_chunks(["xa(xb(xc))x"]) >> select(nested_in(x, inside));
/// assert_eq!(found.collect(), b"xxx");
/// ```
pub fn nested_in<A, S, T>(
    found: Splitter<A, S>,
    around: Splitter<A, T>,
) -> Splitter<A, Nested<S, T, A::Store>>
where
    A: Item + ?Sized,
    S: Split<A> + Clone,
    T: Split<A> + Clone,
{
    Splitter::new(Nested { recipe: (found.stage, around.stage), depth: 0, level: None })
}

impl<A, S, T, C> Split<A> for Nested<S, T, C>
where
    A: Item<Store = C> + ?Sized,
    S: Split<A> + Clone,
    T: Split<A> + Clone,
    C: Store<A>,
{
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.put_chunk(A::Chunk::one(item), out)
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        let Nested { recipe, depth, level } = self;
        let level = level.get_or_insert_with(|| {
            assert!(*depth < LEVELS, "nested_in: an item is still in the loop after {LEVELS} rounds");
            let deeper = Nested { recipe: recipe.clone(), depth: *depth + 1, level: None };
            let (found, around) = recipe.clone();
            Box::new(flowing(false, found, flowing(true, around, deeper)))
        });
        level.put_chunk(chunk, out)
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        match &mut self.level {
            Some(level) => Split::<A>::end(&mut **level, out),
            None => GO_ON,
        }
    }
}
