//! `nested in`, with a limit on its levels that is a failure of the stage and no panic.
//!
//! `condition.rs` calls [`nested_in`] in place of the splitter of the coroutine crate, which panics
//! at its limit. A splitter cannot fail, so the splitter at the limit notes it in a [`TooDeep`],
//! and [`guarded`] makes a failure of the note. `dynamic` in `stage.rs` makes the note, and puts
//! the guard around each stage with such a condition.

use selvedge_coroutine::pipeline::{
    BoxedSplit, BoxedSplitter, Chunk, DynStage, Flow, HasKind, Sections, Sink, Split, Splitter, StageFailure,
    StreamPlace, Transduce, Transducer,
};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// How many levels a condition may have. A condition that takes nothing away in a level needs more
/// and more of them.
const LEVELS: usize = 256;

/// Whether a condition of a stage needs more levels than the limit.
#[derive(Debug, Clone, Default)]
pub struct TooDeep(Arc<AtomicBool>);

/// The splitter of [`nested_in`].
#[derive(Debug, Clone)]
struct Nested<S> {
    found: S,
    around: S,
    depth: usize,
    too_deep: TooDeep,
    /// It is made when its first item comes.
    level: Option<S>,
}

/// The true sections of `found` at each depth: what `found` calls false flows into `around`, and
/// what `around` calls true flows back into `found`.
///
/// At the limit the splitter sets `too_deep`, and drops the items.
pub fn nested_in<A: HasKind + ?Sized>(
    found: BoxedSplitter<A>,
    around: BoxedSplitter<A>,
    too_deep: &TooDeep,
) -> BoxedSplitter<A> {
    let (found, around, too_deep) = (found.into_stage(), around.into_stage(), too_deep.clone());
    Splitter::new(Nested { found, around, depth: 0, too_deep, level: None }).boxed()
}

impl<A: HasKind + ?Sized> Nested<BoxedSplit<A>> {
    /// The splitters of this level, and all levels below it. `None` at the limit.
    fn level(&mut self) -> Option<&mut BoxedSplit<A>> {
        let Nested { found, around, depth, too_deep, level } = self;
        if *depth == LEVELS {
            too_deep.0.store(true, Relaxed);
            return None;
        }
        Some(level.get_or_insert_with(|| {
            let deeper = Nested {
                found: found.clone(),
                around: around.clone(),
                depth: *depth + 1,
                too_deep: too_deep.clone(),
                level: None,
            };
            let inside = Splitter::new(around.clone()).and_then(Splitter::new(deeper));
            Splitter::new(found.clone()).or_else(inside).boxed().into_stage()
        }))
    }
}

impl<A: HasKind + ?Sized> Split<A> for Nested<BoxedSplit<A>> {
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        self.put_chunk(A::Chunk::one(item), out)
    }

    fn put_chunk<P: Sections<A>>(&mut self, chunk: A::Chunk<'_>, out: &mut P) -> Flow {
        match self.level() {
            Some(level) => level.put_chunk(chunk, out),
            None => ControlFlow::Continue(()),
        }
    }

    fn end<P: Sections<A>>(&mut self, out: &mut P) -> Flow {
        match &mut self.level {
            Some(level) => level.end(out),
            None => ControlFlow::Continue(()),
        }
    }
}

/// The stage of [`guarded`].
#[derive(Debug, Clone)]
pub struct Guarded {
    stage: DynStage,
    name: String,
    /// If a condition of the stage may set it.
    too_deep: Option<TooDeep>,
    failure: Option<StageFailure>,
}

impl TooDeep {
    /// Whether a condition has reached the limit.
    pub fn is_set(&self) -> bool {
        self.0.load(Relaxed)
    }

    /// Why a stage with this name cannot go on, if a condition of it has reached the limit.
    pub fn failure(&self, name: &str) -> Option<StageFailure> {
        let cause = || format!("a condition is nested more than {LEVELS} levels deep");
        let failed = || StageFailure::new(name.to_string(), StreamPlace::default(), cause());
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

    fn failure(&self) -> Option<&StageFailure> {
        self.failure.as_ref().or_else(|| Transduce::<A, B>::failure(&self.stage))
    }
}
