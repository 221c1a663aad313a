//! `nested in`: what a condition finds within the sections of another one, at each depth, with a
//! limit on the depth that is a failure of the stage and no panic.
//!
//! `condition.rs` calls [`nested_in`]. The splitter of this name in the pipeline crate is the
//! paper's: it finds outside of all sections too, and ends only if each round takes something away.
//! A splitter cannot fail, so the splitter at the limit notes it in a [`TooDeep`], and [`guarded`]
//! makes a failure of the note. `dynamic` in `stage.rs` makes the note, and puts the guard around
//! each stage with such a condition.

use selvedge_pipeline::{
    BoxedSplit, BoxedSplitter, Chunk, DynStage, Flow, HasKind, Sections, Sink, Split, Splitter, StageError,
    Store, StreamPlace, Transduce, Transducer,
};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How deep sections may lie within one another. Each level reads its section once more.
const LEVELS: usize = 256;

/// Whether sections of a condition lie deeper within one another than the limit.
#[derive(Debug, Clone, Default)]
pub struct TooDeep(Arc<AtomicBool>);

/// The splitter of [`nested_in`].
#[derive(Debug, Clone)]
struct Nested<S, C> {
    recipes: Recipes<S>,
    around: S,
    /// The items of the true section of `around` that is open.
    section: C,
    /// The verdict of the section that is open downstream.
    open: Option<bool>,
}

/// The splitters that have not been fed.
#[derive(Debug, Clone)]
struct Recipes<S> {
    found: S,
    around: S,
    too_deep: TooDeep,
}

/// The true sections of `found` within each true section of `around`. Both begin anew in each such
/// section, and `around` looks there for sections that are smaller, in which both begin anew.
///
/// A true section of `around` is kept until it has ended. Empty sections of `found` are lost. At
/// the limit the splitter sets `too_deep`, and drops the items.
pub fn nested_in<A: HasKind + ?Sized>(
    found: BoxedSplitter<A>,
    around: BoxedSplitter<A>,
    too_deep: &TooDeep,
) -> BoxedSplitter<A> {
    let (found, around) = (found.into_stage(), around.into_stage());
    let recipes = Recipes { found, around: around.clone(), too_deep: too_deep.clone() };
    Splitter::new(Nested { recipes, around, section: A::Store::default(), open: None }).boxed()
}

/// What a splitter says of one item.
#[derive(Debug, Clone, Copy, Default)]
struct Mark {
    verdict: bool,
    /// A section begins with the item.
    begins: bool,
}

/// The end of the section that begins at `begin`. False sections that touch are one.
fn section_end(marks: &[Mark], begin: usize) -> usize {
    let first = marks[begin].verdict;
    let more = marks[begin + 1..].iter();
    begin + 1 + more.take_while(|mark| mark.verdict == first && !(mark.begins && first)).count()
}

/// What a splitter says of the items of a section.
struct Marks {
    marks: Vec<Mark>,
    fresh: bool,
}

impl<A: HasKind + ?Sized> Sections<A> for Marks {
    fn part(&mut self, verdict: bool, _item: &A) -> Flow {
        self.marks.push(Mark { verdict, begins: std::mem::take(&mut self.fresh) });
        ControlFlow::Continue(())
    }

    fn close(&mut self, _verdict: bool) -> Flow {
        self.fresh = true;
        ControlFlow::Continue(())
    }
}

impl Marks {
    /// What a new splitter says of `items`.
    fn of<A: HasKind + ?Sized>(recipe: &BoxedSplit<A>, items: A::Chunk<'_>) -> Vec<Mark> {
        let (mut splitter, mut said) = (recipe.clone(), Marks { marks: Vec::new(), fresh: true });
        // It never breaks.
        let _ = splitter.put_chunk(items, &mut said);
        let _ = splitter.end(&mut said);
        said.marks
    }
}

impl<A: HasKind + ?Sized> Recipes<BoxedSplit<A>> {
    /// Marks what is found among the items of `range`, a true section of `around` at this depth.
    /// `marks` are those of `range` alone.
    fn find(&self, items: &A::Store, range: Range<usize>, depth: usize, marks: &mut [Mark]) {
        if depth == LEVELS {
            self.too_deep.0.store(true, Relaxed);
            return;
        }
        for (mark, found) in marks.iter_mut().zip(Marks::of(&self.found, items.chunk(range.clone()))) {
            if !mark.verdict && found.verdict {
                *mark = found;
            }
        }
        let inner = Marks::of(&self.around, items.chunk(range.clone()));
        let mut begin = 0;
        while begin < inner.len() && !self.too_deep.is_set() {
            let end = section_end(&inner, begin);
            // The whole section once more has nothing new.
            if inner[begin].verdict && end - begin < range.len() {
                let within = range.start + begin..range.start + end;
                self.find(items, within, depth + 1, &mut marks[begin..end]);
            }
            begin = end;
        }
    }
}

/// What `around` says: its true sections are kept, and the other items are false.
struct WithinParent<'a, A: HasKind + ?Sized, P> {
    recipes: &'a Recipes<BoxedSplit<A>>,
    section: &'a mut A::Store,
    open: &'a mut Option<bool>,
    out: &'a mut P,
}

impl<A: HasKind + ?Sized, P: Sections<A>> WithinParent<'_, A, P> {
    /// Items of one verdict go on. With `begins` they begin a section.
    fn pass(open: &mut Option<bool>, out: &mut P, mark: Mark, chunk: A::Chunk<'_>) -> Flow {
        let Mark { verdict, begins } = mark;
        if let Some(before) = open.replace(verdict)
            && (before != verdict || (begins && verdict))
        {
            out.close(before)?;
        }
        out.part_chunk(verdict, chunk)
    }

    /// The true section of `around` has ended.
    fn decide(&mut self) -> Flow {
        let WithinParent { recipes, section, open, out } = self;
        let count = section.count();
        let mut marks = vec![Mark::default(); count];
        recipes.find(section, 0..count, 0, &mut marks);
        if recipes.too_deep.is_set() {
            return ControlFlow::Continue(());
        }
        let mut begin = 0;
        while begin < count {
            let end = section_end(&marks, begin);
            Self::pass(open, out, marks[begin], section.chunk(begin..end))?;
            begin = end;
        }
        section.clear();
        ControlFlow::Continue(())
    }
}

impl<A: HasKind + ?Sized, P: Sections<A>> Sections<A> for WithinParent<'_, A, P> {
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        self.part_chunk(verdict, A::Chunk::one(item))
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        if chunk.is_empty() {
            return ControlFlow::Continue(());
        }
        if verdict {
            self.section.keep_all(chunk);
            return ControlFlow::Continue(());
        }
        Self::pass(self.open, self.out, Mark::default(), chunk)
    }

    fn close(&mut self, verdict: bool) -> Flow {
        if verdict { self.decide() } else { ControlFlow::Continue(()) }
    }
}

impl<A: HasKind<Store = C> + ?Sized, C: Store<A>> Split<A> for Nested<BoxedSplit<A>, C> {
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.put_chunk(A::Chunk::one(item), out)
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        let Nested { recipes, around, section, open } = self;
        around.put_chunk(chunk, &mut WithinParent { recipes, section, open, out })
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        let Nested { recipes, around, section, open } = self;
        around.end(&mut WithinParent { recipes, section, open: &mut *open, out: &mut *out })?;
        open.take().map_or(ControlFlow::Continue(()), |verdict| out.close(verdict))
    }
}

/// The stage of [`guarded`].
#[derive(Debug, Clone)]
pub struct Guarded {
    stage: DynStage,
    name: String,
    /// If a condition of the stage may set it.
    too_deep: Option<TooDeep>,
    failure: Option<StageError>,
}

impl TooDeep {
    /// Whether a condition has reached the limit.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Why a stage with this name cannot go on, if a condition of it has reached the limit.
    pub fn failure(&self, name: &str) -> Option<StageError> {
        let cause = || format!("sections of a condition lie more than {LEVELS} levels deep in one another");
        let failed = || StageError::new(name.to_string(), StreamPlace::default(), cause());
        self.is_set().then(failed)
    }
}

/// The stage `stage`, which fails under `name` when `too_deep` is set. `None` if no condition of it
/// sets one.
///
/// A failure of `stage` that has no place in the script gets the name too.
pub fn guarded<A: HasKind + ?Sized, B: HasKind + ?Sized>(
    stage: Transducer<A, B, DynStage>,
    name: String,
    too_deep: Option<TooDeep>,
) -> DynStage {
    let stage = Guarded { stage: stage.into_stage(), name, too_deep, failure: None };
    DynStage::new(Transducer::<A, B, Guarded>::new(stage))
}

impl Guarded {
    /// Fails if the stage has reached the limit while it took the last items.
    fn looked_after<A: HasKind + ?Sized, B: HasKind + ?Sized>(&mut self, flow: Flow) -> Flow {
        let Guarded { stage, name, too_deep, failure } = self;
        *failure = too_deep.as_ref().and_then(|too_deep| too_deep.failure(name));
        if failure.is_some() {
            return ControlFlow::Break(());
        }
        if flow.is_break()
            && let Some(own) = Transduce::<A, B>::failure(stage)
            && !own.stage().starts_with('@')
        {
            *failure = Some(own.renamed(name.clone()));
        }
        flow
    }
}

impl<A: HasKind + ?Sized, B: HasKind + ?Sized> Transduce<A, B> for Guarded {
    const CHUNKS: bool = true;

    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        let flow = self.stage.put(item, out);
        self.looked_after::<A, B>(flow)
    }

    fn put_chunk<S: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        if self.too_deep.is_none() {
            let flow = Transduce::<A, B>::put_chunk(&mut self.stage, chunk, out);
            return self.looked_after::<A, B>(flow);
        }
        // Item by item, because any item may reach the limit. What comes out before it must not
        // depend on the chunk, and a next stage that is finished before it hears of no failure.
        chunk.each(|item| self.put(item, out))
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        let flow = Transduce::<A, B>::end(&mut self.stage, out);
        self.looked_after::<A, B>(flow)
    }

    fn failure(&self) -> Option<&StageError> {
        self.failure.as_ref().or_else(|| Transduce::<A, B>::failure(&self.stage))
    }
}
