//! The stages that begin a component anew for each section: `foreach`, `having` and `having_only`.
//! `substitute` is the usual component of `foreach`. Users call them.
//!
//! A fresh component is a clone of a recipe that was never fed. `foreach` ends its component at
//! each `close`, so an empty section runs a component as well. `having` keeps the items of a
//! section until its trial decides, and `Detector` of `any.rs` stops the trial as soon as it has.
//! [Pipes, Parting and joining the stream].

use super::any::Detector;
use super::branch::{BranchSide, Gate};
use super::failure::{StageFailure, StreamPlace};
use super::item::{Chunk, FINISHED, Flow, GO_ON, Item, Store};
use super::role::{Splitter, Transducer};
use super::stage::{Sections, Sink, Split, Transduce};
use std::marker::PhantomData;

/// The stage of [`foreach`].
#[derive(Debug, Clone)]
pub struct Foreach<S, T, U> {
    splitter: S,
    sides: Sides<T, U>,
    failure: Option<StageFailure>,
}

#[derive(Debug, Clone)]
struct Sides<T, U> {
    /// The recipes.
    recipes: (T, U),
    /// The side that runs, from its first item to the end of its section.
    yes: Option<BranchSide<T>>,
    no: Option<BranchSide<U>>,
    place: SectionPlace,
}

/// Where the sections of a stream begin.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SectionPlace {
    /// Where the section begins that is open: the sections and the elements before it.
    pub(super) begun: StreamPlace,
    /// Where the last section begins that has an element.
    pub(super) last: StreamPlace,
    /// The elements before what comes next.
    elements: u64,
}

impl SectionPlace {
    pub(super) fn pass(&mut self, elements: u64) {
        self.elements += elements;
        if elements > 0 {
            self.last = self.begun;
        }
    }

    pub(super) fn close(&mut self) {
        self.begun = StreamPlace { items: self.begun.items + 1, elements: self.elements };
    }
}

/// Pipes each true section of `splitter` into a `yes` of its own, and each false one into a `no` of
/// its own. Each of them is ended with its section, an empty section too.
///
/// A stage in it that fails counts items and offset from the beginning of its section, and
/// [`StageFailure::section`] tells which section that was.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{foreach, from_chunks, id, lift_stateful, line};
///
/// // A line is replaced by its length.
/// let add = |count: &mut u8, _: &u8| {
///     *count += 1;
///     None
/// };
/// let length = lift_stateful(add, |count| [*count + b'0'], 0);
/// let lengths = from_chunks(["warp\n\nwe", "ft\n"]) >> foreach(line(), length, id());
/// assert_eq!(lengths.collect(), b"4\n0\n4\n");
/// ```
pub fn foreach<A, B, S, T, U>(
    splitter: Splitter<A, S>,
    yes: Transducer<A, B, T>,
    no: Transducer<A, B, U>,
) -> Transducer<A, B, Foreach<S, T, U>>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Split<A>,
    T: Transduce<A, B> + Clone,
    U: Transduce<A, B> + Clone,
{
    let sides = Sides { recipes: (yes.stage, no.stage), yes: None, no: None, place: SectionPlace::default() };
    Transducer::new(Foreach { splitter: splitter.stage, sides, failure: None })
}

struct Restart<'a, 'b, T, U, O, B: ?Sized> {
    sides: &'a mut Sides<T, U>,
    gate: &'a mut Gate<'b, O>,
    yields: PhantomData<fn(&B)>,
}

impl<T, U, O, B: Item + ?Sized> Restart<'_, '_, T, U, O, B> {
    /// The side that runs takes the items that it has gathered. At the end of a section its `end`
    /// does so.
    fn flush<A: Item + ?Sized>(&mut self) -> Flow
    where
        T: Transduce<A, B>,
        U: Transduce<A, B>,
        O: Sink<B>,
    {
        if let Some(yes) = &mut self.sides.yes {
            yes.flush::<A, B, _>(self.gate)?;
        }
        match &mut self.sides.no {
            Some(no) => no.flush::<A, B, _>(self.gate),
            None => GO_ON,
        }
    }
}

impl<A, B, T, U, O> Sections<A> for Restart<'_, '_, T, U, O, B>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    T: Transduce<A, B> + Clone,
    U: Transduce<A, B> + Clone,
    O: Sink<B>,
{
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        let Sides { recipes, yes, no, place } = &mut *self.sides;
        if verdict {
            let side = yes.get_or_insert_with(|| BranchSide::new(recipes.0.clone()));
            side.drive::<A, B, _>(self.gate, |stage, out| stage.gather(item, out))
        } else {
            let side = no.get_or_insert_with(|| BranchSide::new(recipes.1.clone()));
            side.drive::<A, B, _>(self.gate, |stage, out| stage.gather(item, out))
        }?;
        place.pass(A::elements(item));
        GO_ON
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        // Without items no section has begun, and so no side does.
        if chunk.is_empty() {
            return GO_ON;
        }
        let Sides { recipes, yes, no, place } = &mut *self.sides;
        if verdict {
            let side = yes.get_or_insert_with(|| BranchSide::new(recipes.0.clone()));
            side.drive::<A, B, _>(self.gate, |stage, out| stage.put_chunk(chunk, out))
        } else {
            let side = no.get_or_insert_with(|| BranchSide::new(recipes.1.clone()));
            side.drive::<A, B, _>(self.gate, |stage, out| stage.put_chunk(chunk, out))
        }?;
        place.pass(A::elements_of(chunk));
        GO_ON
    }

    fn close(&mut self, verdict: bool) -> Flow {
        let Sides { recipes, yes, no, place } = &mut *self.sides;
        if verdict {
            let side = yes.get_or_insert_with(|| BranchSide::new(recipes.0.clone()));
            side.drive::<A, B, _>(self.gate, |stage, out| stage.end(out))?;
            *yes = None;
        } else {
            let side = no.get_or_insert_with(|| BranchSide::new(recipes.1.clone()));
            side.drive::<A, B, _>(self.gate, |stage, out| stage.end(out))?;
            *no = None;
        }
        place.close();
        GO_ON
    }
}

impl<A, B, S, T, U> Transduce<A, B> for Foreach<S, T, U>
where
    A: Item + ?Sized,
    B: Item + ?Sized,
    S: Split<A>,
    T: Transduce<A, B> + Clone,
    U: Transduce<A, B> + Clone,
{
    const CHUNKS: bool = true;

    fn put<O: Sink<B>>(&mut self, item: &A, out: &mut O) -> Flow {
        let gate = &mut Gate::new(out);
        let sections = &mut Restart { sides: &mut self.sides, gate, yields: PhantomData };
        let mut flow = self.splitter.put(item, sections);
        if flow.is_continue() {
            flow = sections.flush::<A>();
        }
        self.looked_after::<A, B>(flow)
    }

    fn put_chunk<O: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut O) -> Flow {
        let gate = &mut Gate::new(out);
        let sections = &mut Restart { sides: &mut self.sides, gate, yields: PhantomData };
        let mut flow = self.splitter.put_chunk(chunk, sections);
        if flow.is_continue() {
            flow = sections.flush::<A>();
        }
        self.looked_after::<A, B>(flow)
    }

    fn end<O: Sink<B>>(&mut self, out: &mut O) -> Flow {
        let gate = &mut Gate::new(out);
        let sections = &mut Restart { sides: &mut self.sides, gate, yields: PhantomData };
        let flow = self.splitter.end(sections);
        self.looked_after::<A, B>(flow)
    }

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref()
    }
}

impl<S, T, U> Foreach<S, T, U> {
    /// Keeps the failure of a side, with the place of its section.
    fn looked_after<A, B>(&mut self, flow: Flow) -> Flow
    where
        A: Item + ?Sized,
        B: Item + ?Sized,
        T: Transduce<A, B>,
        U: Transduce<A, B>,
    {
        if flow.is_break() {
            let Sides { yes, no, place, .. } = &self.sides;
            let failure = yes.as_ref().and_then(|side| side.stage.failure());
            let failure = failure.or_else(|| no.as_ref().and_then(|side| side.stage.failure()));
            self.failure = failure.map(|failure| failure.within(place.begun));
        }
        flow
    }
}

/// The stage of [`having`] and [`having_only`].
#[derive(Debug, Clone)]
pub struct Having<S, T, C> {
    splitter: S,
    trial: Trial<T, C>,
}

#[derive(Debug, Clone)]
struct Trial<T, C> {
    recipe: T,
    /// An item with this verdict decides that its section has this verdict.
    wanted: bool,
    /// What is known of the true section that is open.
    section: Section<T>,
    /// The items of a section that is not decided.
    items: C,
}

#[derive(Debug, Clone)]
enum Section<T> {
    /// It has no items yet.
    Empty,
    Undecided(T),
    Decided(bool),
}

/// A true section of `splitter` stays true if `trial` deems any item in it true, otherwise it
/// becomes false. The trial begins anew for each section.
///
/// A section is kept until it is decided.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, having, select, substring, whole_line};
///
/// let found = from_chunks(["a warp\nweft\n"]) >> select(having(whole_line(), substring(b"warp")));
/// assert_eq!(found.collect(), b"a warp\n");
/// ```
pub fn having<A, S, T>(splitter: Splitter<A, S>, trial: Splitter<A, T>) -> Splitter<A, Having<S, T, A::Store>>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A> + Clone,
{
    tried(splitter, trial, true)
}

/// A true section of `splitter` stays true if `trial` deems all items in it true, otherwise it
/// becomes false. The trial begins anew for each section. An empty section stays true.
///
/// A section is kept until it is decided.
///
/// # Examples
/// ```
/// use selvedge::pipeline::{from_chunks, having_only, line, satisfies, select};
///
/// let digits = satisfies(|c: &u8| c.is_ascii_digit());
/// let numbers = from_chunks(["12\n3a\n4"]) >> select(having_only(line(), digits));
/// assert_eq!(numbers.collect(), b"124");
/// ```
pub fn having_only<A, S, T>(
    splitter: Splitter<A, S>,
    trial: Splitter<A, T>,
) -> Splitter<A, Having<S, T, A::Store>>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A> + Clone,
{
    tried(splitter, trial, false)
}

fn tried<A, S, T>(
    splitter: Splitter<A, S>,
    trial: Splitter<A, T>,
    wanted: bool,
) -> Splitter<A, Having<S, T, A::Store>>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A> + Clone,
{
    let trial = Trial { recipe: trial.stage, wanted, section: Section::Empty, items: A::Store::default() };
    Splitter::new(Having { splitter: splitter.stage, trial })
}

struct Try<'a, T, C, P> {
    trial: &'a mut Trial<T, C>,
    out: &'a mut P,
}

impl<T, C, P> Try<'_, T, C, P> {
    /// Feeds the trial by `put`. Returns the verdict of the section if that is decided now, or was.
    fn decide<A: Item + ?Sized>(&mut self, put: impl FnOnce(&mut T, &mut Detector) -> Flow) -> Option<bool>
    where
        T: Clone,
        C: Store<A>,
        P: Sections<A>,
    {
        let Trial { recipe, wanted, section, .. } = &mut *self.trial;
        if let Section::Empty = section {
            *section = Section::Undecided(recipe.clone());
        }
        match section {
            Section::Decided(verdict) => return Some(*verdict),
            Section::Undecided(trial) => {
                let mut detector = Detector::of(*wanted);
                let _found = put(trial, &mut detector);
                if !detector.found {
                    return None;
                }
            }
            Section::Empty => return None,
        }
        *section = Section::Decided(*wanted);
        Some(*wanted)
    }

    fn release<A: Item + ?Sized>(&mut self, verdict: bool) -> Flow
    where
        C: Store<A>,
        P: Sections<A>,
    {
        if self.trial.items.count() > 0 {
            self.out.part_chunk(verdict, self.trial.items.all())?;
            self.trial.items.clear();
        }
        GO_ON
    }
}

impl<A, T, C, P> Sections<A> for Try<'_, T, C, P>
where
    A: Item + ?Sized,
    T: Split<A> + Clone,
    C: Store<A>,
    P: Sections<A>,
{
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        if !verdict {
            return self.out.part(false, item);
        }
        match self.decide(|trial, detector| trial.put(item, detector)) {
            Some(verdict) => {
                self.release(verdict)?;
                self.out.part(verdict, item)
            }
            None => {
                self.trial.items.keep(item);
                GO_ON
            }
        }
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if !verdict {
            return self.out.part_chunk(false, chunk);
        }
        match self.decide(|trial, detector| trial.put_chunk(chunk, detector)) {
            Some(verdict) => {
                self.release(verdict)?;
                self.out.part_chunk(verdict, chunk)
            }
            None => {
                self.trial.items.keep_all(chunk);
                GO_ON
            }
        }
    }

    fn close(&mut self, verdict: bool) -> Flow {
        if !verdict {
            return self.out.close(false);
        }
        let decided = self.decide(|trial, detector| trial.end(detector));
        let verdict = decided.unwrap_or(!self.trial.wanted);
        self.trial.section = Section::Empty;
        self.release(verdict)?;
        self.out.close(verdict)
    }
}

impl<A, S, T, C> Split<A> for Having<S, T, C>
where
    A: Item + ?Sized,
    S: Split<A>,
    T: Split<A> + Clone,
    C: Store<A>,
{
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.splitter.put(item, &mut Try { trial: &mut self.trial, out })
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.splitter.put_chunk(chunk, &mut Try { trial: &mut self.trial, out })
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        self.splitter.end(&mut Try { trial: &mut self.trial, out })
    }
}

/// The stage of [`substitute`].
#[derive(Debug, Clone)]
pub struct Substitute<E> {
    list: Vec<E>,
}

/// Yields `list` once in place of the whole stream: at its first item, or at the end of an empty
/// one. A side of [`foreach`] that is to replace its section.
pub fn substitute<A: Item + ?Sized, E: Clone + 'static>(list: &[E]) -> Transducer<A, E, Substitute<E>> {
    Transducer::new(Substitute { list: list.to_vec() })
}

impl<A: Item + ?Sized, E: Clone + 'static> Transduce<A, E> for Substitute<E> {
    const CHUNKS: bool = true;

    fn put<S: Sink<E>>(&mut self, _item: &A, out: &mut S) -> Flow {
        out.put_chunk(&self.list)?;
        FINISHED
    }

    fn end<S: Sink<E>>(&mut self, out: &mut S) -> Flow {
        out.put_chunk(&self.list)
    }
}
