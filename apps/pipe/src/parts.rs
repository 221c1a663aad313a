//! The stages that run on parts of a file side by side: which they are, and how they are put
//! together.
//!
//! `stream::stream` calls [`PartStages::of`] and [`PartStages::origin`] for a pipeline that begins
//! with one large file. `run.rs` calls [`runs_in_parts`] to choose the scheduler, and `explain.rs`
//! calls it for the plan. `in_parts` of the crate `selvedge-flow` has the threads, and the module
//! `edges/parts.rs` of the pipeline crate says how a file is cut and put together again.
//!
//! A thread gets whole lines. So a stage may stand here if two things hold. What it makes of a line
//! depends on that line alone. And it has put all of that out when it has taken the line end. The
//! function `by_line::is_by_line` names these stages. `fuzz::pipeline` compares them with the same
//! stages over the whole input. Stages over bytes may stand here too: all text between them ends
//! with a line end, but for the last line of the file.
//!
//! The numbers of lines are known behind `lines` alone, so a stage that writes them stands there or
//! not at all.
//!
//! A thread cannot tell the place of a failure in the whole stream. So a pipeline that has failed
//! is run again, without parts and without a target, and that run tells the failure: `run.rs`. A
//! pipeline in which that would start a command again must not fail before the command, or it does
//! not run in parts: [`runs_in_parts`].

use crate::by_line::{after, is_by_line};
use crate::condition;
use crate::kinds::{Before, waiting_within};
use crate::language::tree::*;
use crate::origin::{Origin, OriginKind};
use crate::progress::Progress;
use crate::source::Files;
use crate::stage::{Taker, may_fail, over_text_of_lines, then, to_text, together};
use crate::stages::{
    TooDeep, add_counts, complete_line, count_chunks, count_lines, line_number, number_lines,
};
use crate::test::Question;
use selvedge_flow::{FlowSource, in_parts};
use selvedge_pipeline::csv::Fields;
use selvedge_pipeline::{
    BoxedSplit, Cut, DynStage, Flow, GroupBy, HasKind, ItemByItem, ItemKind, LineSplit, Lists, Number,
    PartByPart, PlaceKnown, Sections, Sink, Split, SplitByItem, Splitter, StageError, StreamPlace, Transduce,
    Transducer, everything, group_by, id, select_numbered, whole_line,
};

/// How many bytes a file has at least that is read in parts. The start of the threads takes 1 ms,
/// and two threads save that time with this number of bytes if the stages only search.
pub const LEAST: u64 = 8 << 20;

/// How many threads a run has at most, unless the user names a number. Each of them keeps up to
/// eight parts of 256 KiB, and what was made of them.
const THREADS: usize = 16;

/// How many threads a run has, however large the number is that the user names.
const MOST: usize = 256;

/// How many threads a run has if the user names `wanted`. With 0 it has one for each CPU that the
/// process may use, and 16 at most.
pub fn threads_of(wanted: usize) -> usize {
    match wanted {
        0 => std::thread::available_parallelism().map_or(1, |cpus| cpus.get().min(THREADS)),
        _ => wanted.min(MOST),
    }
}

/// The first stages of a pipeline, if they may run on parts of their input.
#[derive(Debug)]
pub struct PartStages<'a> {
    /// Which lines are numbered. If there are such, then `lines` stands before them.
    numbered: Option<Numbered<'a>>,
    /// The stages after the numbers, or all of them.
    stages: &'a [Stage],
    counts: bool,
    /// Whether the text of the items is made in the threads.
    writes: bool,
    /// How many stages of the pipeline they are.
    pub count: usize,
    /// The kind of the items behind them.
    kind: ItemKind,
}

/// Which lines get numbers.
#[derive(Debug, Clone, Copy)]
enum Numbered<'a> {
    All,
    Having(&'a Condition),
}

/// A function for the stages of [`PartStages`]. The type of the stages depends on the tree.
pub trait WithStages {
    /// What the function returns.
    type Result;

    /// Calls the function.
    fn call<B, T>(self, stages: Transducer<u8, B, T>) -> Self::Result
    where
        B: OriginKind + ?Sized,
        T: PartByPart<u8, B> + Send + 'static;
}

impl<'a> PartStages<'a> {
    /// The first of `stages`, which stand behind a source of bytes, if it is of use to run them on
    /// parts.
    pub fn of(stages: &'a [Stage]) -> Option<PartStages<'a>> {
        let numbered = match stages {
            [Stage { kind: StageKind::Lines, .. }, Stage { kind: StageKind::Number, .. }, ..] => {
                Some(Numbered::All)
            }
            [
                Stage { kind: StageKind::Lines, .. },
                Stage { kind: StageKind::Having(condition, true), .. },
                ..,
            ] => Question::of(condition).map(|_| Numbered::Having(condition)),
            _ => None,
        };
        let begin = if numbered.is_some() { 2 } else { 0 };
        let mut before = Before::Start;
        let mut taken = 0;
        for stage in stages {
            if taken >= begin && !is_by_line(stage, before.kind()) {
                break;
            }
            before = after(stage, before);
            taken += 1;
        }
        let works = |stage: &Stage| !matches!(stage.kind, StageKind::Lines | StageKind::Bytes);
        let counts = stages.get(taken).is_some_and(|stage| stage.kind == StageKind::Count);
        if !counts && !stages[..taken].iter().any(works) {
            return None;
        }
        let (count, kind) = if counts { (taken + 1, ItemKind::Numbers) } else { (taken, before.kind()) };
        let writes = !counts
            && stages.get(count).is_none_or(|next| {
                matches!(next.kind, StageKind::To(_) | StageKind::AppendTo(_) | StageKind::Shell(_))
            });
        let kind = if writes { ItemKind::Bytes } else { kind };
        Some(PartStages { numbered, stages: &stages[begin..taken], counts, writes, count, kind })
    }

    /// The stages after the numbers as one, fed with items of `kind`.
    fn rest(&self, kind: ItemKind) -> DynStage {
        if let (true, [Stage { kind: StageKind::Lines, .. }]) = (self.counts, self.stages) {
            return DynStage::new(count_lines());
        }
        let taker = if self.writes { Taker::Text } else { Taker::Items };
        let whole = together(self.stages, kind, taker).unwrap_or_else(|| match kind {
            ItemKind::Lists => DynStage::new(id::<[u8]>()),
            _ => DynStage::new(id::<u8>()),
        });
        let last = match whole.yields() {
            made if self.counts => Some(counts_of(made)),
            made if self.writes => to_text(made),
            _ => None,
        };
        match last {
            Some(last) => then(whole, last),
            None => whole,
        }
    }

    /// Makes the stages, and passes them to `f`.
    pub fn with<F: WithStages>(&self, f: F) -> F::Result {
        let Some(numbered) = self.numbered else {
            let rest = self.rest(ItemKind::Bytes);
            return match self.kind {
                ItemKind::Bytes => f.call(LineParts::new::<u8>(rest)),
                ItemKind::Lists => f.call(LineParts::new::<[u8]>(rest)),
                ItemKind::Records => f.call(LineParts::new::<Fields>(rest)),
                ItemKind::Numbers => f.call(LineParts::new::<Number>(rest)),
            };
        };
        if let (Numbered::All, true) = (numbered, self.writes)
            && let (rest, count) = over_text_of_lines(DynStage::new(id::<u8>()), self.stages)
            && count == self.stages.len()
        {
            return f.call(number_lines() >> by_line::<u8, u8>(rest));
        }
        let chosen = match numbered {
            Numbered::All => everything().boxed(),
            Numbered::Having(condition) => condition::lines(condition, &TooDeep::default()),
        };
        let chosen = Splitter::<[u8], _>::new(ByLine(chosen.into_stage()));
        let lines = group_by(whole_line()) >> complete_line() >> select_numbered(chosen, line_number);
        let rest = self.rest(ItemKind::Lists);
        match self.kind {
            ItemKind::Bytes => f.call(lines >> by_line::<[u8], u8>(rest)),
            ItemKind::Lists => f.call(lines >> by_line::<[u8], [u8]>(rest)),
            ItemKind::Records => f.call(lines >> by_line::<[u8], Fields>(rest)),
            ItemKind::Numbers => f.call(lines >> by_line::<[u8], Number>(rest)),
        }
    }

    /// What comes of the file behind these stages, made by this number of threads, and what makes
    /// the items of `kind` of it.
    pub fn origin(&self, file: Files, threads: usize, progress: &Progress) -> (Origin, Option<DynStage>) {
        let origin = self.with(SideBySide { file, threads, progress: progress.clone() });
        (origin, self.behind())
    }

    /// The stage that adds up the counts of the parts.
    pub fn behind(&self) -> Option<DynStage> {
        self.counts.then(|| DynStage::new(add_counts()))
    }

    /// The kind of the items behind these stages.
    pub fn kind(&self) -> ItemKind {
        self.kind
    }
}

/// Whether the stages behind the source of `pipeline` run in parts, so far as the script tells: the
/// stages at its beginning.
pub fn runs_in_parts(pipeline: &[Stage]) -> Option<PartStages<'_>> {
    let (first, stages) = pipeline.split_first()?;
    let StageKind::File(names) = &first.kind else { return None };
    if names.len() != 1 {
        return None;
    }
    let waits = |stage: &Stage| {
        matches!(stage.kind, StageKind::Shell(_) | StageKind::Join2(..)) || waiting_within(stage).is_some()
    };
    let until = stages.iter().position(waits);
    if until.is_some_and(|until| stages[..until].iter().any(may_fail)) {
        return None;
    }
    PartStages::of(stages)
}

/// As [`runs_in_parts`], if the file is there and has at least this number of bytes.
pub fn now_in_parts(pipeline: &[Stage], least: u64) -> Option<PartStages<'_>> {
    let parts = runs_in_parts(pipeline)?;
    let StageKind::File(names) = &pipeline[0].kind else { return None };
    let file = std::fs::metadata(names.first()?).ok()?;
    (file.is_file() && file.len() >= least).then_some(parts)
}

/// Counts of chunks of a kind.
fn counts_of(kind: ItemKind) -> DynStage {
    match kind {
        ItemKind::Bytes => DynStage::new(count_chunks::<u8>()),
        ItemKind::Lists => DynStage::new(count_chunks::<[u8]>()),
        ItemKind::Records => DynStage::new(count_chunks::<Fields>()),
        ItemKind::Numbers => DynStage::new(count_chunks::<Number>()),
    }
}

/// A stage or a splitter of which [`PartStages`] says that it works by lines.
#[derive(Debug, Clone)]
struct ByLine<T>(T);

fn by_line<A: HasKind + ?Sized, B: HasKind + ?Sized>(stages: DynStage) -> Transducer<A, B, ByLine<DynStage>> {
    let stages = stages.transducer::<A, B>().expect("the check has compared the kinds");
    Transducer::new(ByLine(stages.into_stage()))
}

impl<A: HasKind + ?Sized, B: HasKind + ?Sized> Transduce<A, B> for ByLine<DynStage> {
    const CHUNKS: bool = true;

    fn put<S: Sink<B>>(&mut self, item: &A, out: &mut S) -> Flow {
        self.0.put(item, out)
    }

    fn put_chunk<S: Sink<B>>(&mut self, chunk: A::Chunk<'_>, out: &mut S) -> Flow {
        Transduce::<A, B>::put_chunk(&mut self.0, chunk, out)
    }

    fn flush<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        Transduce::<A, B>::flush(&mut self.0, out)
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        Transduce::<A, B>::end(&mut self.0, out)
    }

    fn failure(&self) -> Option<&StageError> {
        Transduce::<A, B>::failure(&self.0)
    }
}

impl<A: HasKind + ?Sized, B: HasKind + ?Sized> ItemByItem<A, B> for ByLine<DynStage> {}

/// Stages over bytes that work by lines. They are fed with the bytes as they lie in the block. So a
/// stage that needs no whole line keeps none, however long the line is.
#[derive(Debug, Clone)]
struct LineParts {
    stages: DynStage,
    /// It is asked for the ends of lines alone.
    lines: GroupBy<LineSplit, u8>,
}

impl LineParts {
    fn new<B: HasKind + ?Sized>(stages: DynStage) -> Transducer<u8, B, LineParts> {
        let stages = stages.transducer::<u8, B>().expect("the check has compared the kinds").into_stage();
        Transducer::new(LineParts { stages, lines: group_by(whole_line()).into_stage() })
    }
}

impl<B: HasKind + ?Sized> Transduce<u8, B> for LineParts {
    const CHUNKS: bool = true;

    fn put<S: Sink<B>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.stages.put(item, out)
    }

    fn put_chunk<S: Sink<B>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        Transduce::<u8, B>::put_chunk(&mut self.stages, chunk, out)
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        Transduce::<u8, B>::end(&mut self.stages, out)
    }

    fn failure(&self) -> Option<&StageError> {
        Transduce::<u8, B>::failure(&self.stages)
    }
}

impl<B: HasKind + ?Sized> PartByPart<u8, B> for LineParts {
    fn ends(&self) -> &dyn Cut<u8> {
        self.lines.ends()
    }

    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        place
    }
}

impl Split<[u8]> for ByLine<BoxedSplit<[u8]>> {
    fn put<P: Sections<[u8]>>(&mut self, line: &[u8], out: &mut P) -> Flow {
        self.0.put(line, out)
    }

    fn put_chunk<P: Sections<[u8]>>(&mut self, chunk: Lists<'_, u8>, out: &mut P) -> Flow {
        self.0.put_chunk(chunk, out)
    }

    fn end<P: Sections<[u8]>>(&mut self, out: &mut P) -> Flow {
        self.0.end(out)
    }
}

impl SplitByItem<[u8]> for ByLine<BoxedSplit<[u8]>> {}

/// Stages that tell the bar how much they have taken.
#[derive(Debug, Clone)]
struct Watched<T> {
    stages: T,
    progress: Progress,
}

impl<B: HasKind + ?Sized, T: Transduce<u8, B>> Transduce<u8, B> for Watched<T> {
    const CHUNKS: bool = true;

    fn put<S: Sink<B>>(&mut self, item: &u8, out: &mut S) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<S: Sink<B>>(&mut self, chunk: &[u8], out: &mut S) -> Flow {
        self.progress.pass(chunk.len() as u64);
        self.stages.put_chunk(chunk, out)
    }

    fn end<S: Sink<B>>(&mut self, out: &mut S) -> Flow {
        self.stages.end(out)
    }

    fn failure(&self) -> Option<&StageError> {
        self.stages.failure()
    }
}

impl<B: HasKind + ?Sized, T: PartByPart<u8, B>> PartByPart<u8, B> for Watched<T> {
    const NEEDS: PlaceKnown = T::NEEDS;

    const TELLS: PlaceKnown = T::TELLS;

    fn ends(&self) -> &dyn Cut<u8> {
        self.stages.ends()
    }

    fn begin_part(&mut self, place: StreamPlace) -> StreamPlace {
        self.stages.begin_part(place)
    }
}

/// Runs stages behind a file, in threads side by side.
struct SideBySide {
    file: Files,
    threads: usize,
    progress: Progress,
}

impl WithStages for SideBySide {
    type Result = Origin;

    fn call<B, T>(self, stages: Transducer<u8, B, T>) -> Origin
    where
        B: OriginKind + ?Sized,
        T: PartByPart<u8, B> + Send + 'static,
    {
        let SideBySide { file, threads, progress } = self;
        let watched: Transducer<u8, B, _> =
            Transducer::new(Watched { stages: stages.into_stage(), progress });
        let threads = u32::try_from(threads).unwrap_or(u32::MAX);
        B::origin((FlowSource::new(file) >> in_parts(threads, watched)).boxed())
    }
}
