//! Which stages and conditions work line by line ([`is_by_line`], [`are_by_line`], [`asks_lines`]).
//!
//! `parts.rs` runs such stages on parts of a file side by side. `stage.rs` asks about the body of a
//! `while`, because one that works line by line may run over several sections at once.

use crate::condition::of_lines;
use crate::kinds::{Before, yields};
use crate::language::tree::*;
use crate::test::Question;
use selvedge_pipeline::ItemKind;

/// The place behind a stage.
pub(crate) fn after<'a>(stage: &'a Stage, before: Before<'a>) -> Before<'a> {
    Before::Stage(yields(stage, before).expect("the check has passed"), stage)
}

/// Whether a stage fed with items of a kind makes of each line, or of what was made of a line, what
/// depends on that alone.
pub(crate) fn is_by_line(stage: &Stage, fed: ItemKind) -> bool {
    let bytes = fed == ItemKind::Bytes;
    match &stage.kind {
        StageKind::Lines
        | StageKind::Bytes
        | StageKind::Rows(_)
        | StageKind::Fields(_)
        | StageKind::Column(_)
        | StageKind::Columns(_)
        | StageKind::Join(_)
        | StageKind::Decimals
        | StageKind::Integers => true,
        StageKind::Each(condition) => condition.kind == ConditionKind::Line || of_lines(condition).is_some(),
        StageKind::Having(condition, numbered) => !numbered && asks_lines(condition, fed),
        StageKind::Replace(Pattern::Text(text), _) if bytes => !text.contains(&b'\n'),
        StageKind::Replace(..) => true,
        // Over bytes these stand around the whole stream.
        StageKind::Prepend(_) | StageKind::Append(_) => !bytes,
        StageKind::Change(change) => match change {
            Change::Uppercase | Change::Lowercase | Change::Suppress => true,
            Change::Unquote | Change::Quote | Change::Unescape | Change::Escape => true,
            #[cfg(feature = "gzip")]
            Change::Gzip | Change::Gunzip => false,
            #[cfg(feature = "zstd")]
            Change::Zstd | Change::Unzstd => false,
        },
        StageKind::Branch(of) => {
            asks_lines(&of.condition, fed)
                && [&of.then, &of.otherwise].iter().all(|one| are_by_line(one, fed))
        }
        _ => false,
    }
}

/// Whether [`is_by_line`] holds of all stages of a branch over a kind.
pub(crate) fn are_by_line(branch: &[Stage], kind: ItemKind) -> bool {
    let mut before = Before::Branch(kind);
    branch.iter().all(|stage| {
        let fed = before.kind();
        before = after(stage, before);
        is_by_line(stage, fed)
    })
}

/// Whether a condition asks about each line, or about each item that is no byte, by itself.
pub(crate) fn asks_lines(condition: &Condition, fed: ItemKind) -> bool {
    match fed {
        ItemKind::Bytes => of_lines(condition).is_some(),
        _ => Question::of(condition).is_some(),
    }
}
