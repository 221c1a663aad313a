//! A pipeline that is put together: a source, and the stages after it so far.
//!
//! `run::run_pipeline` calls [`stream`] for each pipeline, and [`Stream::pour`] to run it.
//! [`stream`] calls itself for the pipeline in the brackets of a join.
//!
//! Stages that do not wait become one `DynStage`. A stage that waits makes a new source of all that
//! is before it: a command, a join, a `sort`, or a `foreach` with a command or a join in its
//! branches. The kind of the source and of the last stage always match, because `kinds.rs` has
//! checked the script.

use crate::join::LineJoin;
use crate::kinds::waiting_within;
use crate::language::tree::*;
use crate::origin::{Origin, OriginKind};
use crate::parts::PartStages;
use crate::progress::Progress;
use crate::sections::{Conditional, SectionRuns};
use crate::sort::{Sorted, SortedSource};
use crate::source::{Files, NamedSource, failed};
use crate::stage::{Taker, leading, leaves_lines, located_in_lines, may_fail, stream_name, then, to_text};
use crate::stages::range;
use crate::target::Target;
use selvedge_flow::{
    BoxedFlowSource, BoxedSource, FlowSource, FlowTarget, Source, ahead, join_sources, made, through,
};
use selvedge_io::process::Command;
use selvedge_pipeline::csv::Fields;
use selvedge_pipeline::{DynStage, HasKind, ItemKind, Number, StageError, Store, from_chunks, from_iter, id};

/// The items of a section, as the source of a branch.
struct SectionItems<A: OriginKind + ?Sized> {
    items: A::Store,
    lent: bool,
}

impl<A: OriginKind + ?Sized> Source<A> for SectionItems<A> {
    async fn next(&mut self) -> Result<Option<A::Chunk<'_>>, StageError> {
        let first = !std::mem::replace(&mut self.lent, true);
        Ok((first && self.items.count() > 0).then(|| self.items.all()))
    }

    fn is_prompt(&self) -> bool {
        true
    }
}

/// What the branch `stages` of a `foreach` makes of the section `items`.
///
/// # Errors
/// If standard input cannot be read.
pub fn branch_supply<A: OriginKind + ?Sized>(
    stages: &[Stage],
    items: A::Store,
) -> Result<BoxedSource<A>, StageError> {
    let origin = A::origin(FlowSource::new(SectionItems { items, lent: false }).boxed());
    // The caller tells the section of a failure, so the stages need not tell its line.
    let whole = Stream { origin, stages: None, kind: A::KIND, fails: false, apart: true };
    // The bar tells how much of the files of the whole pipeline has been read.
    let taker = if A::KIND == ItemKind::Bytes { Taker::Text } else { Taker::Items };
    let whole = whole.grown(stages, taker, &Progress::of(&[], false))?;
    let whole = if A::KIND == ItemKind::Bytes { whole.text() } else { whole };
    Ok(whole.supply())
}

/// A source and its stages.
#[derive(Debug)]
pub struct Stream {
    origin: Origin,
    stages: Option<DynStage>,
    kind: ItemKind,
    /// Whether one of the stages may fail at an item that lies behind the first stage. Only these
    /// need the place in the input besides their own.
    fails: bool,
    /// Whether the items are no longer those of one line of the input.
    apart: bool,
}

fn shell(command: &str) -> Command {
    let mut sh = Command::new("sh");
    sh.arg("-c").arg(command);
    sh
}

/// The pipeline of `stages`, without its target. `taker` takes what it yields. `parts` are the
/// stages that run on parts of its file, and the number of their threads.
///
/// # Errors
/// If standard input cannot be read.
pub fn stream(
    stages: &[Stage],
    taker: Taker,
    progress: &Progress,
    parts: Option<(PartStages<'_>, usize)>,
) -> Result<Stream, StageError> {
    let named = |stage: &Stage, source: BoxedFlowSource<u8>| {
        Origin::Bytes(FlowSource::new(NamedSource::new(stage, source.into_inner())).boxed())
    };
    let stdin = |stage: &Stage| match selvedge_flow::stdin() {
        Ok(source) => {
            Ok(Origin::Bytes(FlowSource::new(NamedSource::stdin(stage, source.boxed().into_inner())).boxed()))
        }
        Err(error) => Err(failed(&stream_name(stage, "read standard input"), 0, error)),
    };
    let first = &stages[0];
    if let (StageKind::File(names), Some((parts, threads))) = (&first.kind, parts) {
        let (origin, behind) = parts.origin(Files::new(first, names, progress.clone()), threads, progress);
        let (count, kind) = (parts.count, parts.kind());
        // A failure of these stages and of those behind them is told by another run.
        let whole = Stream { origin, stages: behind, kind, fails: false, apart: true };
        return whole.grown(&stages[1 + count..], taker, progress);
    }
    let origin = match &first.kind {
        StageKind::File(names) => {
            Origin::Bytes(FlowSource::new(Files::new(first, names, progress.clone())).boxed())
        }
        StageKind::Text(text) => Origin::Bytes(made(from_chunks([text.clone()])).boxed()),
        StageKind::Range(from, to, step) => {
            Origin::Numbers(made(from_iter(range(from.clone(), to.clone(), step.clone()))).boxed())
        }
        StageKind::Shell(command) => named(first, selvedge_flow::command(shell(command)).boxed()),
        _ => stdin(first)?,
    };
    let is_source = matches!(
        first.kind,
        StageKind::File(_)
            | StageKind::Text(_)
            | StageKind::Range(..)
            | StageKind::Shell(_)
            | StageKind::Stdin
    );
    let kind = if let Origin::Numbers(_) = origin { ItemKind::Numbers } else { ItemKind::Bytes };
    let whole = Stream { origin, stages: None, kind, fails: false, apart: false };
    if is_source {
        return whole.grown(&stages[1..], taker, progress);
    }
    whole.grown(stages, taker, progress)
}

impl Stream {
    /// With `stages` behind it.
    fn grown(self, stages: &[Stage], taker: Taker, progress: &Progress) -> Result<Stream, StageError> {
        let (mut whole, mut rest) = (self, stages);
        while let Some(stage) = rest.first() {
            let count;
            (whole, count) = match &stage.kind {
                StageKind::To(_) | StageKind::AppendTo(_) => (whole, 1),
                StageKind::Shell(command) => (whole.through_named(stage, command), 1),
                StageKind::Join2(join, inner) => {
                    (whole.joined(*join, stream(inner, Taker::Items, progress, None)?), 1)
                }
                StageKind::Branch(of) if waiting_within(stage).is_some() => (whole.sectioned(stage, of), 1),
                StageKind::Sort(order) => (whole.sorted(stage, *order), 1),
                _ => whole.with(rest, taker),
            };
            rest = &rest[count..];
        }
        Ok(whole)
    }

    /// With a `foreach` that has branches that wait.
    fn sectioned(self, stage: &Stage, of: &Branch) -> Stream {
        fn cut<A: Conditional + ?Sized>(stream: Stream, stage: &Stage, of: &Branch) -> Origin {
            A::origin(FlowSource::new(SectionRuns::<A>::new(stage, of, stream.supply())).boxed())
        }
        let kind = self.kind;
        let origin = match kind {
            ItemKind::Bytes => cut::<u8>(self, stage, of),
            ItemKind::Lists => cut::<[u8]>(self, stage, of),
            ItemKind::Records => cut::<Fields>(self, stage, of),
            ItemKind::Numbers => cut::<Number>(self, stage, of),
        };
        // The lines behind it are not those of the input.
        Stream { origin, stages: None, kind, fails: false, apart: true }
    }

    /// With a `sort`, which may need temporary files.
    fn sorted(self, stage: &Stage, order: Order) -> Stream {
        fn sorted<A: OriginKind + Sorted + ?Sized>(stream: Stream, stage: &Stage, order: Order) -> Origin {
            A::origin(FlowSource::new(SortedSource::<A>::new(stage, order, stream.supply())).boxed())
        }
        let kind = self.kind;
        let origin = match kind {
            ItemKind::Records => sorted::<Fields>(self, stage, order),
            ItemKind::Numbers => sorted::<Number>(self, stage, order),
            _ => sorted::<[u8]>(self, stage, order),
        };
        Stream { origin, stages: None, kind, fails: false, apart: true }
    }

    /// With the first stages of `stages`, and how many they are.
    fn with(mut self, stages: &[Stage], taker: Taker) -> (Stream, usize) {
        let (made, count) = leading(stages, self.kind, taker);
        self.kind = made.yields();
        // A first stage `csv` reads the input itself, and tells the very byte.
        let first = self.stages.is_none() && matches!(stages[0].kind, StageKind::Csv(_));
        if stages[..count].iter().any(leaves_lines) {
            self = self.located();
            self.apart = true;
        }
        self.fails |= !first && !self.apart && stages[..count].iter().any(may_fail);
        self.stages = Some(match self.stages {
            Some(up) => then(up, made),
            None => made,
        });
        (self, count)
    }

    fn through_named(self, stage: &Stage, command: &str) -> Stream {
        let supply = self.through(shell(command)).into_inner();
        let origin = Origin::Bytes(FlowSource::new(NamedSource::new(stage, supply)).boxed());
        Stream { origin, stages: None, kind: ItemKind::Bytes, fails: false, apart: false }
    }

    fn joined(self, join: JoinKind, other: Stream) -> Stream {
        let (left, right) = (FlowSource::new(self.lines()), FlowSource::new(other.lines()));
        let origin = Origin::Lines(join_sources(left, right, LineJoin::of(join)).boxed());
        Stream { origin, stages: None, kind: ItemKind::Lists, fails: false, apart: false }
    }

    /// The same stream. The failures of its stages tell the line of the input, but for those behind
    /// a stage that [leaves the lines](leaves_lines).
    fn located(self) -> Stream {
        match (self.origin, self.stages) {
            (Origin::Bytes(source), Some(stages)) if self.fails => Stream {
                origin: Origin::Bytes(source),
                stages: Some(located_in_lines(stages)),
                kind: self.kind,
                fails: false,
                apart: self.apart,
            },
            (origin, stages) => Stream { origin, stages, ..self },
        }
    }

    /// The same stream as text.
    fn text(mut self) -> Stream {
        self = self.located();
        if let Some(text) = to_text(self.kind) {
            self.stages = Some(match self.stages {
                Some(up) => then(up, text),
                None => text,
            });
            self.kind = ItemKind::Bytes;
        }
        self
    }

    fn through(self, command: Command) -> BoxedFlowSource<u8> {
        fn fed<A: HasKind + ?Sized>(
            source: BoxedFlowSource<A>,
            stages: DynStage,
            command: Command,
        ) -> BoxedFlowSource<u8> {
            let stages = stages.transducer::<A, u8>().expect("the check has compared the kinds");
            (source >> stages >> through(command)).boxed()
        }
        let text = self.text();
        match (text.origin, text.stages) {
            (Origin::Bytes(source), None) => (source >> through(command)).boxed(),
            (Origin::Bytes(source), Some(stages)) => fed(source, stages, command),
            (Origin::Lines(source), stages) => fed(source, stages.expect("lines become text"), command),
            (Origin::Records(source), stages) => fed(source, stages.expect("records become text"), command),
            (Origin::Numbers(source), stages) => fed(source, stages.expect("numbers become text"), command),
        }
    }

    /// The items, of the type of `kind`.
    fn supply<A: HasKind + ?Sized>(self) -> BoxedSource<A> {
        fn staged<A: HasKind + ?Sized, B: HasKind + ?Sized>(
            source: BoxedFlowSource<A>,
            stages: Option<DynStage>,
        ) -> BoxedSource<B> {
            let stages = stages.unwrap_or_else(|| DynStage::new(id::<A>()));
            let stages = stages.transducer::<A, B>().expect("the check has compared the kinds");
            (source >> stages).into_source().boxed().into_inner()
        }
        let stream = self.located();
        match stream.origin {
            Origin::Bytes(source) => staged(source, stream.stages),
            Origin::Lines(source) => staged(source, stream.stages),
            Origin::Records(source) => staged(source, stream.stages),
            Origin::Numbers(source) => staged(source, stream.stages),
        }
    }

    /// The lines, made in a thread of their own. A join without stages behind it needs none,
    /// because its sides have threads.
    fn lines(self) -> BoxedSource<[u8]> {
        fn apart<A: HasKind + ?Sized>(source: BoxedFlowSource<A>, stages: DynStage) -> BoxedSource<[u8]> {
            let stages = stages.transducer::<A, [u8]>().expect("the check has compared the kinds");
            (source >> stages >> ahead(1)).boxed().into_inner()
        }
        let stream = self.located();
        match (stream.origin, stream.stages) {
            (Origin::Lines(source), None) => source.into_inner(),
            (Origin::Lines(source), Some(stages)) => apart(source, stages),
            (Origin::Bytes(source), stages) => apart(source, stages.expect("bytes have become lines")),
            (Origin::Records(source), stages) => apart(source, stages.expect("records have become lines")),
            (Origin::Numbers(source), stages) => apart(source, stages.expect("numbers have become lines")),
        }
    }

    /// Runs the stream without a target, and returns the failure of a stage.
    pub async fn failure(self) -> Option<StageError> {
        let mut text = self.text().supply::<u8>();
        let failure = loop {
            match text.next().await {
                Ok(Some(_)) => {}
                Ok(None) => break None,
                Err(failure) => break Some(failure),
            }
        };
        text.close().await;
        failure
    }

    /// Writes the stream as text.
    ///
    /// # Errors
    /// The failure of a stage.
    pub async fn pour(self, target: Target) -> Result<(), StageError> {
        async fn poured<A: HasKind + ?Sized>(
            source: BoxedFlowSource<A>,
            stages: DynStage,
            target: Target,
        ) -> Result<(), StageError> {
            let stages = stages.transducer::<A, u8>().expect("the check has compared the kinds");
            (source >> stages >> FlowTarget::new(target)).run().await
        }
        let text = self.text();
        let stages = text.stages;
        match text.origin {
            Origin::Bytes(source) => {
                poured(source, stages.unwrap_or_else(|| DynStage::new(id::<u8>())), target).await
            }
            Origin::Lines(source) => poured(source, stages.expect("lines become text"), target).await,
            Origin::Records(source) => poured(source, stages.expect("records become text"), target).await,
            Origin::Numbers(source) => poured(source, stages.expect("numbers become text"), target).await,
        }
    }
}
