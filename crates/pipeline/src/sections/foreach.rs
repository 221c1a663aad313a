//! `foreach`: a component that begins anew for each section. `substitute` is its usual component.
//!
//! A fresh component is a clone of a recipe that was never fed. `foreach` ends its component at
//! each `close`, so an empty section runs a component as well. [Pipes, Parting and joining the
//! stream].

use crate::error::StageError;
use crate::item::place::StreamPlace;
use crate::item::{Chunk, FINISHED, Flow, GO_ON, Item};
use crate::role::{Splitter, Transducer};
use crate::sections::branch::{BranchSide, Gate, SideInput};
use crate::stage::{Sections, Sink, Split, Transduce};
use std::marker::PhantomData;

/// The stage of [`foreach`].
#[derive(Debug, Clone)]
pub struct Foreach<S, T, U> {
    splitter: S,
    sides: Sides<T, U>,
    failure: Option<StageError>,
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
pub(crate) struct SectionPlace {
    /// Where the section begins that is open: the sections and the elements before it.
    pub(crate) begun: StreamPlace,
    /// Where the last section begins that has an element.
    pub(crate) last: StreamPlace,
    /// The elements before what comes next.
    elements: u64,
}

impl SectionPlace {
    pub(crate) fn pass(&mut self, elements: u64) {
        self.elements += elements;
        if elements > 0 {
            self.last = self.begun;
        }
    }

    pub(crate) fn close(&mut self) {
        self.begun = StreamPlace { items: self.begun.items + 1, elements: self.elements };
    }
}

/// Pipes each true section of `splitter` into a `yes` of its own, and each false one into a `no` of
/// its own. Each of them is ended with its section, an empty section too.
///
/// A stage in it that fails counts items and offset from the beginning of its section, and
/// [`StageError::section`] tells which section that was.
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
    /// Feeds the side for `verdict`, which begins here if none runs.
    #[inline(always)]
    fn feed<A: Item + ?Sized>(&mut self, verdict: bool, input: SideInput<'_, A>) -> Flow
    where
        T: Transduce<A, B> + Clone,
        U: Transduce<A, B> + Clone,
        O: Sink<B>,
    {
        let Sides { recipes, yes, no, .. } = &mut *self.sides;
        if verdict {
            let side = yes.get_or_insert_with(|| BranchSide::new(recipes.0.clone()));
            side.feed::<A, B, _>(input, self.gate)
        } else {
            let side = no.get_or_insert_with(|| BranchSide::new(recipes.1.clone()));
            side.feed::<A, B, _>(input, self.gate)
        }
    }

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
        self.feed::<A>(verdict, SideInput::Item(item))?;
        self.sides.place.pass(A::elements(item));
        GO_ON
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        // Without items no section has begun, and so no side does.
        if chunk.is_empty() {
            return GO_ON;
        }
        self.feed::<A>(verdict, SideInput::Chunk(chunk))?;
        self.sides.place.pass(A::elements_of(chunk));
        GO_ON
    }

    fn close(&mut self, verdict: bool) -> Flow {
        self.feed::<A>(verdict, SideInput::End)?;
        let Sides { yes, no, place, .. } = &mut *self.sides;
        if verdict {
            *yes = None;
        } else {
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

    fn failure(&self) -> Option<&StageError> {
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

/// The stage of [`substitute`].
#[derive(Debug, Clone)]
struct Substitute<E> {
    list: Vec<E>,
}

/// Yields `list` once in place of the whole stream: at its first item, or at the end of an empty
/// one. A side of [`foreach`] that is to replace its section.
pub fn substitute<A: Item + ?Sized, E: Clone + 'static>(
    list: &[E],
) -> Transducer<A, E, impl Transduce<A, E> + Clone + use<A, E>> {
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
