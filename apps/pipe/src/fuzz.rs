//! The properties that the fuzz targets and the tests check: [`script`] of any text, which is that
//! of the language, and [`pipeline`] of any bytes, which is that of the stages.
//!
//! The fuzz targets are `scripts` and `pipelines`. `tests/suite/language.rs` and
//! `tests/suite/chunks.rs` call the same functions. `fuzz/random.rs` makes the pipelines.

mod random;

use crate::explain::plan;
use crate::kinds::{Before, check, waiting_within, yields};
use crate::language::tree::{Stage, StageKind};
use crate::language::{parse, print};
use crate::parts::{PartStages, WithStages};
use crate::run::prepare;
use crate::stage::{Taker, dynamic, then, to_text, together};
use crate::stream::OriginKind;
use selvedge_pipeline::csv::Fields;
use selvedge_pipeline::{
    DynStage, ItemKind, Number, Part, PartByPart, PartJoiner, StageError, Store, StreamPlace, Transducer, id,
};

/// Any text is a script or is refused with a place in the text. A script is printed as a text that
/// is the same script. A script that passes the check has a plan, and `stage::dynamic` can build
/// its stages.
///
/// # Panics
/// If this does not hold.
pub fn script(text: &str) {
    let tree = match parse(text) {
        Ok(tree) => tree,
        Err(complaint) => {
            assert!(complaint.span.begin <= complaint.span.end && complaint.span.end <= text.len());
            assert!(complaint.shown("script", text).contains(&complaint.message));
            return;
        }
    };
    let printed = print::script(&tree);
    assert_eq!(parse(&printed).as_ref(), Ok(&tree), "{printed}");
    match check(&tree) {
        Ok(()) => {
            assert_eq!(plan(&tree, 2).is_empty(), tree.is_empty());
            tree.iter().for_each(|pipeline| build(pipeline, Before::Start));
        }
        Err(complaint) => assert!(complaint.shown("script", text).contains('^')),
    }
}

/// Makes the stages of a pipeline that do not wait, and those in the brackets of its joins.
fn build(pipeline: &[Stage], start: Before<'_>) {
    let mut before = start;
    for stage in pipeline {
        match &stage.kind {
            StageKind::Join2(_, inner) => build(inner, Before::Start),
            StageKind::Branch(of) if waiting_within(stage).is_some() => {
                build(&of.then, Before::Branch(before.kind()));
                build(&of.otherwise, Before::Branch(before.kind()));
            }
            StageKind::File(_)
            | StageKind::Stdin
            | StageKind::Text(_)
            | StageKind::Range(..)
            | StageKind::Shell(_)
            | StageKind::To(_)
            | StageKind::AppendTo(_) => {}
            _ => assert_eq!(dynamic(stage, before.kind()).takes(), before.kind()),
        }
        before = Before::Stage(yields(stage, before).expect("the check has passed"), stage);
    }
}

/// A pipeline that is made of the bytes, fed with an input that is made of them, does the same at
/// each cut of the input, also if its first stages run on parts of the input in one, two or three
/// threads. Returns the script, the input, and what the pipeline makes of it.
///
/// # Panics
/// If this does not hold.
pub fn pipeline(data: &[u8]) -> (String, Vec<u8>, PipelineOutcome) {
    let mut choices = random::Choices::new(data);
    let text = choices.script();
    let input = choices.input();
    let script = prepare(&text).unwrap_or_else(|complaint| panic!("{}", complaint.shown("made", &text)));
    let whole = outcome(&script[0], &[&input]);
    let check = |chunks: &[&[u8]]| {
        let lengths: Vec<usize> = chunks.iter().map(|chunk| chunk.len()).collect();
        let made = outcome(&script[0], chunks);
        assert!(made == whole, "{text}\nin chunks of {lengths:?} of {}", input.escape_ascii());
    };
    for length in [1, 2, 7] {
        let chunks = input.chunks(length).collect::<Vec<_>>();
        check(&chunks);
        for threads in [1, 2, 3] {
            let Some(made) = outcome_in_parts(&script[0], &chunks, threads) else { break };
            assert!(
                made == cause_alone(&whole),
                "{text}\nby {threads} threads in blocks of {length} of {}",
                input.escape_ascii()
            );
        }
    }
    // A few cuts in two. The next pipeline has others.
    for cut in (1..input.len()).step_by(input.len() / 6 + 1) {
        check(&<[&[u8]; 2]>::from(input.split_at(cut)));
    }
    (text, input, whole)
}

/// What came out of a pipeline, and the failure that ended it, if one did.
pub type PipelineOutcome = (Vec<u8>, Option<String>);

/// What stages that never wait make of chunks of bytes.
///
/// # Panics
/// If the stages do not fit, or one of them waits.
pub fn outcome(stages: &[Stage], chunks: &[&[u8]]) -> PipelineOutcome {
    let whole = text_of(DynStage::new(id::<u8>()), stages);
    assert_eq!((whole.takes(), whole.yields()), (ItemKind::Bytes, ItemKind::Bytes));
    let mut stages = whole.transducer::<u8, u8>().expect("the kinds are these").step();
    let mut out = Vec::new();
    for chunk in chunks {
        out.extend_from_slice(stages.put_chunk(chunk));
    }
    out.extend_from_slice(stages.end());
    (out, stages.failure().map(ToString::to_string))
}

/// The stages `stages` behind `whole`, with text at the end.
fn text_of(mut whole: DynStage, stages: &[Stage]) -> DynStage {
    if let Some(behind) = together(stages, whole.yields(), Taker::Text) {
        whole = then(whole, behind);
    }
    match to_text(whole.yields()) {
        Some(text) => then(whole, text),
        None => whole,
    }
}

/// What an outcome tells of a failure but for its place. The other part of a pipeline in parts
/// counts its items alone.
pub fn cause_alone((out, failure): &PipelineOutcome) -> PipelineOutcome {
    (out.clone(), failure.as_deref().map(cause_of))
}

/// The text of a failure without its place: its stage and its cause.
fn cause_of(failure: &str) -> String {
    let (stage, rest) = failure.split_once(": item ").expect("a failure tells its item");
    let (_place, cause) = rest.split_once(": ").expect("a failure tells its cause");
    format!("{stage}: {cause}")
}

/// As [`outcome`], with the first stages in this number of threads, each of which takes a block in
/// its turn. A failure tells its stage and its cause. `None` if the stages do not run in parts.
///
/// # Panics
/// As [`outcome`].
pub fn outcome_in_parts(stages: &[Stage], blocks: &[&[u8]], threads: usize) -> Option<PipelineOutcome> {
    let parts = PartStages::of(stages)?;
    let mut behind = match parts.kind() {
        ItemKind::Bytes => DynStage::new(id::<u8>()),
        ItemKind::Lists => DynStage::new(id::<[u8]>()),
        ItemKind::Records => DynStage::new(id::<Fields>()),
        ItemKind::Numbers => DynStage::new(id::<Number>()),
    };
    if let Some(first) = parts.behind() {
        behind = then(behind, first);
    }
    let behind = text_of(behind, &stages[parts.count..]);
    Some(parts.with(InTurn { blocks, threads, behind }))
}

/// Runs stages on blocks, as if by this number of threads that take turns.
struct InTurn<'a> {
    blocks: &'a [&'a [u8]],
    threads: usize,
    behind: DynStage,
}

impl WithStages for InTurn<'_> {
    type Result = PipelineOutcome;

    fn call<B, T>(self, stages: Transducer<u8, B, T>) -> PipelineOutcome
    where
        B: OriginKind + ?Sized,
        T: PartByPart<u8, B> + Send + 'static,
    {
        let mut behind = self.behind.transducer::<B, u8>().expect("the kinds are these").step();
        let mut out = Vec::new();
        let made = |failure: &StageError, out| (out, Some(cause_of(&failure.to_string())));
        let stages = stages.into_stage();
        let mut threads: Vec<T> = (0..self.threads).map(|_| stages.clone()).collect();
        let mut joiner = PartJoiner::new(stages);
        let (mut part, mut place) = (Part::default(), StreamPlace::default());
        for (number, block) in self.blocks.iter().enumerate() {
            let stages = &mut threads[number % self.threads];
            part.cut(stages, block);
            part.make(stages, block, place);
            place.items += part.ended().items;
            place.elements += part.ended().elements;
            let mut joined = B::Store::default();
            let over = joiner.join(&part, &mut joined);
            out.extend_from_slice(behind.put_chunk(joined.all()));
            if over.is_ok() {
                out.extend_from_slice(behind.put_chunk(part.made().all()));
            }
            if let Some(failure) = behind.failure() {
                return made(failure, out);
            }
            if behind.is_finished() {
                return (out, None);
            }
            if let Some(failure) = over.err().as_ref().or(part.failure()) {
                return made(failure, out);
            }
        }
        let mut joined = B::Store::default();
        let over = joiner.end(&mut joined);
        out.extend_from_slice(behind.put_chunk(joined.all()));
        if behind.failure().is_none() && !behind.is_finished() {
            if let Err(failure) = over {
                return made(&failure, out);
            }
            out.extend_from_slice(behind.end());
        }
        match behind.failure() {
            Some(failure) => made(failure, out),
            None => (out, None),
        }
    }
}
