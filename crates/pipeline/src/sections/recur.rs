//! Loops: what a stage yields goes back to its input, level by level.
//!
//! A level is the loop's parts once more. It is made when its first item comes, so that the depth
//! of the recursion is the depth that the items need.
//!
//! Users call `while_`, `while_each` and `nested_in`. A loop that needs more than `LEVELS` levels
//! would not end. So `while_` and `while_each` fail there. A splitter cannot fail, so `nested_in`
//! panics.

use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::item::{Chunk, FINISHED, Flow, GO_ON, Item, Store};
use crate::role::{Keep, Splitter, Transducer};
use crate::sections::branch::{BranchSide, Gate};
use crate::sections::foreach::SectionPlace;
use crate::splitters::flow::{Flowing, flowing};
use crate::stage::{Sections, Sink, Split, Transduce, put_now};

/// How many levels a loop may have. A loop that needs more does not end.
const LEVELS: usize = 256;

/// The stage of [`while_`] and [`while_each`].
#[derive(Debug, Clone)]
pub struct While<S, T, C> {
    recipe: (S, T),
    depth: usize,
    sections: LoopSections,
    level: Option<Box<Level<S, T, C>>>,
    /// This is the level that is one too many.
    failure: Option<StageError>,
}

/// How the sections of one level share the level below it.
#[derive(Debug, Clone, Copy)]
enum LoopSections {
    /// All of them are one stream there.
    Together,
    /// Each of them has a body and a loop of its own. The place is that of the open section.
    Apart(SectionPlace),
}

impl LoopSections {
    /// Elements of the open section have gone by. They are counted where the places are known.
    fn pass(&mut self, elements: impl FnOnce() -> u64) {
        if let LoopSections::Apart(place) = self {
            place.pass(elements());
        }
    }

    /// The open section has ended.
    fn close(&mut self) {
        if let LoopSections::Apart(place) = self {
            place.close();
        }
    }

    /// Those of the level below.
    fn deeper(self) -> LoopSections {
        match self {
            LoopSections::Together => self,
            LoopSections::Apart(_) => LoopSections::Apart(SectionPlace::default()),
        }
    }
}

impl<S, T, C> While<S, T, C> {
    fn new(recipe: (S, T), depth: usize, sections: LoopSections) -> Self {
        While { recipe, depth, sections, level: None, failure: None }
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
/// The order is that of [`if_then_else`](crate::if_then_else): this is
/// `if_then_else(splitter, body >> while_(body, splitter), id())`. So all sections of a round are
/// one stream. A splitter that holds items back, such as [`substring`](crate::substring), may then
/// find a section in what came from two places, and the false items between these places pass it.
/// [`while_each`] lets each section loop by itself.
///
/// # Errors
/// It fails if an item is still true after 256 rounds. So a loop that never ends is told. The
/// failure counts no items.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_iter, lift121, satisfies, while_};
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
    Transducer::new(While::new((splitter.stage, body.stage), 0, LoopSections::Together))
}

/// Each true section of `splitter` goes through a `body` of its own, and what comes out goes
/// through a loop of its own, until all is false. False items pass.
///
/// This is `foreach(splitter, body >> while_each(body, splitter), id())`. So what comes of a
/// section stands in the place of this section. An empty section runs the body too. A section
/// costs a clone of `body`, and one of `splitter` for each further round.
///
/// # Errors
/// It fails if an item is still true after 256 rounds. A failure tells the section as that of
/// [`foreach`](crate::foreach) does.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{foreach, from_chunks, id, substitute, substring};
/// use selvedge::pipeline::while_each;
///
/// let dashes = || substring(b"--");
/// let shorter = while_each(foreach(dashes(), substitute(b"-"), id()), dashes());
/// assert_eq!((from_chunks(["x--y--z"]) >> shorter).collect(), b"x-y-z");
/// ```
pub fn while_each<A, S, T>(
    body: Transducer<A, A, T>,
    splitter: Splitter<A, S>,
) -> Transducer<A, A, While<S, T, A::Store>>
where
    A: Item + ?Sized,
    S: Split<A> + Clone,
    T: Transduce<A, A> + Clone,
{
    let sections = LoopSections::Apart(SectionPlace::default());
    Transducer::new(While::new((splitter.stage, body.stage), 0, sections))
}

/// The true sections go through the body and one level deeper.
struct Again<'a, 'b, S, T, C, O> {
    /// The body that has not been fed.
    fresh: &'a T,
    sections: &'a mut LoopSections,
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

    /// Ends the body, and the levels below it.
    fn finish_body<A>(&mut self) -> Flow
    where
        A: Item<Store = C> + ?Sized,
        S: Split<A> + Clone,
        T: Transduce<A, A> + Clone,
        C: Store<A>,
        O: Sink<A>,
    {
        self.drive(|body, made| body.end(made))?;
        self.deeper.finish(self.gate)
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
        if verdict {
            self.drive(|body, made| put_now(body, item, made))?;
        } else {
            self.gate.put(item)?;
        }
        self.sections.pass(|| A::elements(item));
        GO_ON
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if verdict {
            self.drive(|body, made| body.put_chunk(chunk, made))?;
        } else {
            self.gate.put_chunk(chunk)?;
        }
        self.sections.pass(|| A::elements_of(chunk));
        GO_ON
    }

    fn close(&mut self, verdict: bool) -> Flow {
        if let LoopSections::Together = self.sections {
            return GO_ON;
        }
        if verdict {
            self.finish_body()?;
            *self.body = BranchSide::new(self.fresh.clone());
            self.deeper.level = None;
        }
        self.sections.close();
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
        let While { recipe, depth, sections, level, failure } = self;
        if *depth == LEVELS {
            let cause = format!("an item is still true after {LEVELS} rounds");
            *failure = Some(StageError::new("while_", StreamPlace::default(), cause));
            return FINISHED;
        }
        let level = level.get_or_insert_with(|| {
            let (splitter, body) = recipe.clone();
            let deeper = While::new(recipe.clone(), *depth + 1, sections.deeper());
            Box::new(Level { splitter, body: BranchSide::new(body), made: C::default(), deeper })
        });
        let Level { splitter, body, made, deeper } = &mut **level;
        splitter.put_chunk(chunk, &mut Again { fresh: &recipe.1, sections, body, made, deeper, gate })
    }

    fn finish<A, O>(&mut self, gate: &mut Gate<'_, O>) -> Flow
    where
        A: Item<Store = C> + ?Sized,
        S: Split<A> + Clone,
        T: Transduce<A, A> + Clone,
        C: Store<A>,
        O: Sink<A>,
    {
        let While { recipe, sections, level, .. } = self;
        let Some(level) = level else { return GO_ON };
        let Level { splitter, body, made, deeper } = &mut **level;
        let mut again = Again { fresh: &recipe.1, sections, body, made, deeper, gate };
        splitter.end(&mut again)?;
        match again.sections {
            LoopSections::Together => again.finish_body(),
            // Each section has ended its body.
            LoopSections::Apart(_) => GO_ON,
        }
    }

    /// Keeps the failure of a section, with its place. The sections of one stream have none.
    fn looked_after<A>(&mut self, flow: Flow) -> Flow
    where
        A: Item<Store = C> + ?Sized,
        S: Split<A> + Clone,
        T: Transduce<A, A> + Clone,
        C: Store<A>,
    {
        if let (true, LoopSections::Apart(place)) = (flow.is_break(), self.sections) {
            self.failure = Transduce::<A, A>::failure(self).map(|failure| failure.within(place.begun));
        }
        flow
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
        let flow = self.feed(chunk, &mut Gate::new(out));
        self.looked_after::<A>(flow)
    }

    fn end<O: Sink<A>>(&mut self, out: &mut O) -> Flow {
        let flow = self.finish(&mut Gate::new(out));
        self.looked_after::<A>(flow)
    }

    fn failure(&self) -> Option<&StageError> {
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
/// use selvedge::pipeline::{between, end_of, from_chunks, nested_in};
/// use selvedge::pipeline::{prefix, satisfies, select, start_of, substring};
///
/// // Each `x` that begins the text, or the content of brackets, at each depth.
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
