//! `Splitter::boxed`: a splitter behind a pointer, so that a program can combine splitters that it
//! reads at run time. The stages call it as any other `Split`.
//!
//! One call through the pointer passes a chunk of items. The parts that the inner splitter yields
//! one by one are gathered into chunks before they go through the pointer back, and a `close`
//! flushes them, so that the order of parts and ends stays.

use super::{CHUNK, Gathering, LARGE};
use crate::item::{Chunk, Flow, GO_ON, Item, Store};
use crate::role::Splitter;
use crate::stage::{Sections, Split};
use std::fmt;

/// A splitter of a type that tells its items alone.
pub type BoxedSplitter<A> = Splitter<A, BoxedSplit<A>>;

/// The downstream side of a boxed splitter.
trait DynSections<A: Item + ?Sized> {
    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow;
    fn close(&mut self, verdict: bool) -> Flow;
}

impl<A: Item + ?Sized, P: Sections<A>> DynSections<A> for P {
    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        Sections::part_chunk(self, verdict, chunk)
    }

    fn close(&mut self, verdict: bool) -> Flow {
        Sections::close(self, verdict)
    }
}

/// Gathers the single items of a section, and passes chunks on.
struct GatherSections<'a, 'b, A: Item + ?Sized> {
    items: &'a mut A::Store,
    /// The verdict of the items that are gathered.
    verdict: bool,
    out: &'a mut (dyn DynSections<A> + 'b),
}

impl<A: Item + ?Sized> GatherSections<'_, '_, A> {
    fn flush(&mut self) -> Flow {
        if self.items.count() == 0 {
            return GO_ON;
        }
        let flow = self.out.part_chunk(self.verdict, self.items.all());
        self.items.clear();
        flow
    }
}

impl<A: Item + ?Sized> Sections<A> for GatherSections<'_, '_, A> {
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        // A change of the verdict comes after a `close`, which has flushed.
        self.verdict = verdict;
        if A::elements(item) >= LARGE {
            return Sections::<A>::part_chunk(self, verdict, A::Chunk::one(item));
        }
        self.items.keep(item);
        if self.items.count() < CHUNK { GO_ON } else { self.flush() }
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        self.flush()?;
        self.out.part_chunk(verdict, chunk)
    }

    fn close(&mut self, verdict: bool) -> Flow {
        self.flush()?;
        self.out.close(verdict)
    }
}

/// A splitter behind a pointer.
trait DynSplit<A: Item + ?Sized>: Send {
    fn put_chunk(&mut self, chunk: A::Chunk<'_>, out: &mut dyn DynSections<A>) -> Flow;
    fn end(&mut self, out: &mut dyn DynSections<A>) -> Flow;
    fn again(&self) -> Box<dyn DynSplit<A>>;
}

impl<A, S> DynSplit<A> for Gathering<S, A::Store>
where
    A: Item<Store: Send> + ?Sized,
    S: Split<A> + Clone + Send + 'static,
{
    fn put_chunk(&mut self, chunk: A::Chunk<'_>, out: &mut dyn DynSections<A>) -> Flow {
        let mut gather = GatherSections { items: &mut self.items, verdict: false, out };
        let flow = self.stage.put_chunk(chunk, &mut gather);
        gather.flush()?;
        flow
    }

    fn end(&mut self, out: &mut dyn DynSections<A>) -> Flow {
        let mut gather = GatherSections { items: &mut self.items, verdict: false, out };
        let flow = self.stage.end(&mut gather);
        gather.flush()?;
        flow
    }

    fn again(&self) -> Box<dyn DynSplit<A>> {
        Box::new(self.clone())
    }
}

/// The stage of [`Splitter::boxed`].
pub struct BoxedSplit<A: ?Sized> {
    stage: Box<dyn DynSplit<A>>,
}

impl<A, S> Splitter<A, S>
where
    A: Item<Store: Send> + ?Sized,
    S: Split<A> + Clone + Send + 'static,
{
    /// Forgets what the splitter is made of: a splitter of a type that tells its items alone. See
    /// [`Transducer::boxed`](crate::Transducer::boxed).
    ///
    /// The combinators that search a block as a whole, [`group_by`](crate::group_by) of
    /// lines and [`any`](crate::any()) of a substring, do not see into a boxed splitter:
    /// box what they make.
    ///
    /// # Examples
    /// ```
    /// use selvedge::pipeline::{BoxedSplitter, from_chunks, satisfies, select};
    ///
    /// let classes: [BoxedSplitter<u8>; 2] = [
    ///     satisfies(|c: &u8| c.is_ascii_alphabetic()).boxed(),
    ///     satisfies(|c: &u8| c.is_ascii_lowercase()).boxed(),
    /// ];
    /// let both = classes.into_iter().reduce(|a, b| (a & !b).boxed()).unwrap();
    /// assert_eq!((from_chunks(["Warp, 2 WEFT"]) >> select(both)).collect(), b"WWEFT");
    /// ```
    pub fn boxed(self) -> BoxedSplitter<A> {
        let stage = Gathering { stage: self.into_stage(), items: A::Store::default() };
        Splitter::new(BoxedSplit { stage: Box::new(stage) })
    }
}

impl<A: Item + ?Sized> Clone for BoxedSplit<A> {
    fn clone(&self) -> Self {
        BoxedSplit { stage: self.stage.again() }
    }
}

impl<A: ?Sized> fmt::Debug for BoxedSplit<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedSplit").finish_non_exhaustive()
    }
}

impl<A: Item + ?Sized> Split<A> for BoxedSplit<A> {
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.stage.put_chunk(A::Chunk::one(item), out)
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        self.stage.put_chunk(chunk, out)
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        self.stage.end(out)
    }
}
