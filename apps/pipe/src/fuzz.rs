//! The property of the language that the fuzz target `scripts` and `tests/suite/language.rs` check
//! on any text.

use crate::explain::plan;
use crate::kinds::{Before, check, waiting_within, yields};
use crate::language::tree::{Stage, StageKind};
use crate::language::{parse, print};
use crate::stage::dynamic;

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
