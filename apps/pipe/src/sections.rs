//! `foreach` with commands or joins in its branches.
//!
//! `Stream::grown` in `stream.rs` makes a [`SectionRuns`] as the source of the stages behind such a
//! `foreach`. A `foreach` without them is a stage of `stage.rs`.
//!
//! ```text
//! source -> splitter -> CutSections -> the branch of the open section -> made
//! ```
//!
//! 1. The splitter cuts a chunk of the source. `CutSections` keeps the parts that are decided.
//! 2. A branch that never waits takes the parts as they come, and begins anew with each section.
//! 3. For a branch that waits, `OpenSection::Kept` keeps the section until it closes. Then
//!    `branch_supply` makes a pipeline with this section as its source. The supply passes on all
//!    that comes out of this pipeline before it looks at the next section, so the outputs are in
//!    the order of the sections.
//!
//! The section is kept because a thread that fed a command and read its output at once would wait
//! forever when both pipes are full.

use crate::condition;
use crate::kinds::waiting_within;
use crate::language::tree::{Branch, Condition, Pipeline, Stage, StageKind};
use crate::origin::OriginKind;
use crate::stage::{branch, failure_name};
use crate::stages::TooDeep;
use crate::stream::branch_supply;
use selvedge_flow::{BoxedSource, Source};
use selvedge_pipeline::csv::Fields;
use selvedge_pipeline::{
    BoxedSplit, BoxedSplitter, Chunk, DynStage, Flow, Item, ItemKind, Number, Sections, Split, StageError,
    StepByStep, Store, StreamPlace,
};
use std::collections::VecDeque;
use std::fmt;
use std::ops::ControlFlow;
use std::pin::Pin;

/// An item that a condition can be asked about.
pub trait Conditional: OriginKind {
    /// The splitter of a condition, which tells each item that is asked by itself as a section.
    fn splitter(condition: &Condition, too_deep: &TooDeep) -> BoxedSplitter<Self>;
}

impl Conditional for u8 {
    fn splitter(condition: &Condition, too_deep: &TooDeep) -> BoxedSplitter<u8> {
        condition::bytes(condition, too_deep)
    }
}

impl Conditional for [u8] {
    fn splitter(condition: &Condition, too_deep: &TooDeep) -> BoxedSplitter<[u8]> {
        condition::items(condition, too_deep)
    }
}

impl Conditional for Fields {
    fn splitter(condition: &Condition, too_deep: &TooDeep) -> BoxedSplitter<Fields> {
        condition::items(condition, too_deep)
    }
}

impl Conditional for Number {
    fn splitter(condition: &Condition, too_deep: &TooDeep) -> BoxedSplitter<Number> {
        condition::items(condition, too_deep)
    }
}

/// The parts of sections that the splitter has decided, and that no branch has taken yet.
struct CutSections<A: Item + ?Sized> {
    items: A::Store,
    /// How many of `items` have been taken.
    taken: usize,
    parts: VecDeque<CutPart>,
}

#[derive(Debug, Clone, Copy)]
enum CutPart {
    /// This number of items with this verdict.
    Items(bool, usize),
    /// The section ends.
    Close(bool),
}

impl<A: Item + ?Sized> CutSections<A> {
    /// `items` has grown by items of this verdict.
    fn grown(&mut self, verdict: bool, before: usize) -> Flow {
        let more = self.items.count() - before;
        match self.parts.back_mut() {
            Some(CutPart::Items(_, count)) => *count += more,
            _ if more > 0 => self.parts.push_back(CutPart::Items(verdict, more)),
            _ => {}
        }
        ControlFlow::Continue(())
    }

    /// The next `count` items.
    fn take(&mut self, count: usize) -> A::Chunk<'_> {
        let begin = self.taken;
        self.taken += count;
        self.items.chunk(begin..self.taken)
    }
}

impl<A: Item + ?Sized> Sections<A> for CutSections<A> {
    fn part(&mut self, verdict: bool, item: &A) -> Flow {
        let before = self.items.count();
        self.items.keep(item);
        self.grown(verdict, before)
    }

    fn part_chunk(&mut self, verdict: bool, chunk: A::Chunk<'_>) -> Flow {
        let before = self.items.count();
        self.items.keep_all(chunk);
        self.grown(verdict, before)
    }

    fn close(&mut self, verdict: bool) -> Flow {
        self.parts.push_back(CutPart::Close(verdict));
        ControlFlow::Continue(())
    }
}

/// What happens to the sections of one verdict.
enum SectionBranch {
    /// They pass unchanged.
    Passes,
    /// A stage that never waits, which begins anew for each section.
    Steps(DynStage),
    /// A pipeline for each section.
    Waits(Pipeline),
}

impl SectionBranch {
    fn of(stages: &[Stage], kind: ItemKind) -> SectionBranch {
        let waits = |stage: &Stage| {
            matches!(stage.kind, StageKind::Shell(_) | StageKind::Join2(..))
                || waiting_within(stage).is_some()
        };
        match stages {
            [] => SectionBranch::Passes,
            _ if stages.iter().any(waits) => SectionBranch::Waits(stages.to_vec()),
            _ => SectionBranch::Steps(branch(stages, kind)),
        }
    }
}

/// The state of the section that is open.
enum OpenSection<A: OriginKind + ?Sized> {
    /// It has no items yet, or it passes.
    Idle,
    Steps(StepByStep<A, A, DynStage>),
    /// The items of a section, for a branch that waits.
    Kept(A::Store),
    /// The section has ended, and its pipeline runs.
    Runs(BoxedSource<A>),
    /// The pipeline has ended, and is being closed. The future stays here, so that a `next` that is
    /// dropped does not drop it.
    Closes(Pin<Box<dyn Future<Output = ()> + Send>>),
}

/// The supply of a `foreach` that waits.
pub struct SectionRuns<A: OriginKind + ?Sized> {
    source: BoxedSource<A>,
    splitter: BoxedSplit<A>,
    name: String,
    too_deep: TooDeep,
    /// A condition may set `too_deep`.
    nests: bool,
    then: SectionBranch,
    otherwise: SectionBranch,
    cut: CutSections<A>,
    open: OpenSection<A>,
    /// Where the open section begins.
    begun: StreamPlace,
    /// Elements of the source that the branches have taken.
    elements: u64,
    /// The source has ended, or nothing more is wanted of it.
    ended: bool,
    /// A failure that comes when `made` has gone on.
    failure: Option<StageError>,
    made: A::Store,
}

impl<A: Conditional + ?Sized> SectionRuns<A> {
    /// The branches `of` of the stage `stage`, fed by `source`.
    pub fn new(stage: &Stage, of: &Branch, source: BoxedSource<A>) -> SectionRuns<A> {
        let too_deep = TooDeep::default();
        SectionRuns {
            source,
            splitter: A::splitter(&of.condition, &too_deep).into_stage(),
            name: failure_name(stage),
            too_deep,
            nests: condition::nests(&of.condition),
            then: SectionBranch::of(&of.then, A::KIND),
            otherwise: SectionBranch::of(&of.otherwise, A::KIND),
            cut: CutSections { items: A::Store::default(), taken: 0, parts: VecDeque::new() },
            open: OpenSection::Idle,
            begun: StreamPlace::default(),
            elements: 0,
            ended: false,
            failure: None,
            made: A::Store::default(),
        }
    }
}

impl<A: OriginKind + ?Sized> fmt::Debug for SectionRuns<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SectionRuns").field("begun", &self.begun).finish_non_exhaustive()
    }
}

impl<A: OriginKind + ?Sized> SectionRuns<A> {
    /// Waits for the next chunk of the source, and cuts it.
    async fn cut_more(&mut self) -> Result<(), StageError> {
        self.cut.items.clear();
        self.cut.taken = 0;
        let SectionRuns { splitter, cut, too_deep, .. } = self;
        // `CutSections` never breaks, so the splitter does not.
        let _never_breaks = match self.source.next().await? {
            // Item by item, as `Guarded` does: what comes out must not depend on the chunk.
            Some(chunk) if self.nests => chunk.each(|item| {
                splitter.put(item, cut)?;
                if too_deep.is_set() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            }),
            Some(chunk) => splitter.put_chunk(chunk, cut),
            None => {
                self.ended = true;
                splitter.end(cut)
            }
        };
        if let Some(failure) = self.too_deep.failure(&self.name) {
            self.fails(failure);
        }
        Ok(())
    }

    /// Nothing comes after what is in `made` and in `cut` now.
    fn fails(&mut self, failure: StageError) {
        self.failure = Some(failure);
        self.ended = true;
    }

    /// Gives the next part to its branch.
    fn take_part(&mut self, part: CutPart) {
        match part {
            CutPart::Items(verdict, count) => {
                let chunk = self.cut.take(count);
                self.elements += A::elements_of(chunk);
                match Self::begun(&mut self.open, if verdict { &self.then } else { &self.otherwise }) {
                    OpenSection::Steps(stage) => self.made.keep_all(stage.put_chunk(chunk)),
                    OpenSection::Kept(items) => items.keep_all(chunk),
                    _ => self.made.keep_all(chunk),
                }
            }
            CutPart::Close(verdict) => {
                let branch = if verdict { &self.then } else { &self.otherwise };
                Self::begun(&mut self.open, branch);
                match (std::mem::replace(&mut self.open, OpenSection::Idle), branch) {
                    (OpenSection::Steps(mut stage), _) => {
                        self.made.keep_all(stage.end());
                        self.open = OpenSection::Steps(stage);
                    }
                    (OpenSection::Kept(items), SectionBranch::Waits(stages)) => {
                        match branch_supply::<A>(stages, items) {
                            // The section is over when its pipeline is closed.
                            Ok(supply) => return self.open = OpenSection::Runs(supply),
                            Err(failure) => self.fails(failure.within(self.begun)),
                        }
                    }
                    _ => {}
                }
            }
        }
        if let OpenSection::Steps(stage) = &self.open
            && let Some(failure) = stage.failure()
        {
            let failure = failure.within(self.begun);
            self.cut.parts.clear();
            self.fails(failure);
        }
        if let CutPart::Close(_) = part {
            self.section_over();
        }
    }

    /// The open section, which has begun.
    fn begun<'a>(open: &'a mut OpenSection<A>, branch: &SectionBranch) -> &'a mut OpenSection<A> {
        if let OpenSection::Idle = open {
            *open = match branch {
                SectionBranch::Passes => OpenSection::Idle,
                SectionBranch::Steps(recipe) => {
                    let stage = recipe.clone().transducer::<A, A>();
                    OpenSection::Steps(stage.expect("the check has compared the kinds").step())
                }
                SectionBranch::Waits(_) => OpenSection::Kept(A::Store::default()),
            };
        }
        open
    }

    fn section_over(&mut self) {
        self.open = OpenSection::Idle;
        self.begun = StreamPlace { items: self.begun.items + 1, elements: self.elements };
    }
}

impl<A: OriginKind + ?Sized> Source<A> for SectionRuns<A> {
    async fn next(&mut self) -> Result<Option<A::Chunk<'_>>, StageError> {
        self.made.clear();
        loop {
            if let OpenSection::Runs(supply) = &mut self.open {
                // What the sections before have made goes on before this one is waited for.
                if self.made.count() > 0 {
                    break;
                }
                let ended = match supply.next().await {
                    Ok(Some(chunk)) => {
                        self.made.keep_all(chunk);
                        false
                    }
                    Ok(None) => true,
                    Err(failure) => return Err(failure.within(self.begun)),
                };
                if ended
                    && let OpenSection::Runs(supply) = std::mem::replace(&mut self.open, OpenSection::Idle)
                {
                    self.open = OpenSection::Closes(Box::pin(supply.close()));
                }
            } else if let OpenSection::Closes(closed) = &mut self.open {
                closed.await;
                self.section_over();
            } else if let Some(part) = self.cut.parts.pop_front() {
                self.take_part(part);
            } else if self.made.count() > 0 {
                break;
            } else if let Some(failure) = self.failure.take() {
                return Err(failure);
            } else if self.ended {
                return Ok(None);
            } else {
                self.cut_more().await?;
            }
        }
        Ok(Some(self.made.all()))
    }

    async fn close(self) {
        match self.open {
            OpenSection::Runs(supply) => supply.close().await,
            OpenSection::Closes(closed) => closed.await,
            _ => {}
        }
        self.source.close().await;
    }
}
