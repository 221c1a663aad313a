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
use crate::run::prepare;
use crate::stage::{dynamic, leading, then, to_text};
use selvedge_coroutine::pipeline::{DynStage, ItemKind, id};

/// Any text is a script or is refused with a place in the text. A script is printed as a text that
/// is the same script. One that fits has a plan, and stages can be made of it: those that the check
/// lets through are those that `stage::dynamic` can build.
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
            assert_eq!(plan(&tree).is_empty(), tree.is_empty());
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
/// each cut of the input. Returns the script, the input, and what the pipeline makes of it.
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
        check(&input.chunks(length).collect::<Vec<_>>());
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
    let mut whole = DynStage::new(id::<u8>());
    let (mut before, mut rest) = (Before::Start, stages);
    while !rest.is_empty() {
        let (made, count) = leading(rest, before.kind());
        let (together, others) = rest.split_at(count);
        for stage in together {
            before = Before::Stage(yields(stage, before).expect("the stages fit"), stage);
        }
        (whole, rest) = (then(whole, made), others);
    }
    if let Some(text) = to_text(before.kind()) {
        whole = then(whole, text);
    }
    assert_eq!((whole.takes(), whole.yields()), (ItemKind::Bytes, ItemKind::Bytes));
    let mut stages = whole.transducer::<u8, u8>().expect("the kinds are these").step();
    let mut out = Vec::new();
    for chunk in chunks {
        out.extend_from_slice(stages.put_chunk(chunk));
    }
    out.extend_from_slice(stages.end());
    (out, stages.failure().map(ToString::to_string))
}
