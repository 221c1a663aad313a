//! The check: what each stage takes and yields, and which conditions fit where.
//!
//! `run::prepare` calls [`check`] before anything runs. `stage.rs`, `stream.rs`, `explain.rs` and
//! `interactive/complete.rs` call [`yields`] to follow the kind of the items through a pipeline.
//!
//! [`yields`] must refuse each stage that `stage::dynamic` cannot build for this kind, because
//! `stage.rs` and `condition.rs` panic on a tree that has not passed.

use crate::condition::of_lines;
use crate::language::error::ScriptError;
use crate::language::tree::*;
use selvedge_pipeline::ItemKind;

/// The word for the items of a kind.
pub fn name(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Bytes => "bytes",
        ItemKind::Lists => "lines",
        ItemKind::Records => "records",
        ItemKind::Numbers => "numbers",
    }
}

/// The part of the script before a stage, from which the stage takes its items.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Before<'a> {
    /// Nothing: the stage is the first one.
    Start,
    /// The beginning of a branch over items of this kind.
    Branch(ItemKind),
    /// A stage that yields items of this kind.
    Stage(ItemKind, &'a Stage),
}

/// Where a pipeline stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Position {
    /// A pipeline of the script.
    Script,
    /// In the brackets of a join: it ends with lines, and nothing is written.
    Joined,
}

/// The first word of a stage.
pub fn first_word(stage: &Stage) -> String {
    let text = stage.kind.to_string();
    text.split(' ').next().unwrap_or_default().to_string()
}

impl Before<'_> {
    /// What the stage is fed with. A first stage that is no source reads standard input.
    pub fn kind(self) -> ItemKind {
        match self {
            Before::Start => ItemKind::Bytes,
            Before::Branch(kind) | Before::Stage(kind, _) => kind,
        }
    }

    fn yields(self) -> String {
        let kind = name(self.kind());
        match self {
            Before::Start => format!("standard input yields {kind}"),
            Before::Branch(_) => format!("the branch is fed with {kind}"),
            Before::Stage(_, stage) => format!("`{}` yields {kind}", first_word(stage)),
        }
    }
}

/// Checks a script.
///
/// # Errors
/// The first stage or condition that does not fit, and what was expected.
pub fn check(script: &[Pipeline]) -> Result<(), ScriptError> {
    script.iter().try_for_each(|stages| check_pipeline(stages, Position::Script).map(drop))
}

/// Checks a pipeline with its source. Returns what it yields, which is `None` after `to`.
///
/// # Errors
/// As [`check`].
pub fn check_pipeline(stages: &[Stage], position: Position) -> Result<Option<ItemKind>, ScriptError> {
    let mut before = Before::Start;
    for (index, stage) in stages.iter().enumerate() {
        if let StageKind::To(_) | StageKind::AppendTo(_) = stage.kind {
            if let Some(next) = stages.get(index + 1) {
                let message = format!("`{}` writes the file, and nothing comes behind it", first_word(stage));
                return Err(ScriptError::new(next.span, message).with_help("end the pipeline with `;`"));
            }
            if position == Position::Joined {
                return Err(ScriptError::new(
                    stage.span,
                    "a pipeline in brackets is joined, and cannot write a file",
                ));
            }
            return Ok(None);
        }
        before = Before::Stage(yields(stage, before)?, stage);
    }
    if let (Position::Joined, Before::Stage(kind, stage)) = (position, before)
        && kind != ItemKind::Lists
    {
        let message = format!("a join takes lines, and this pipeline ends with {}", name(kind));
        return Err(ScriptError::new(stage.span, message).with_help(before_lines(kind)));
    }
    Ok(Some(before.kind()))
}

/// The first command or join in the branches of a stage. Such a stage waits.
pub fn waiting_within(stage: &Stage) -> Option<&Stage> {
    let StageKind::Branch(of) = &stage.kind else { return None };
    of.then.iter().chain(&of.otherwise).find_map(|inner| match inner.kind {
        StageKind::Shell(_) | StageKind::Join2(..) => Some(inner),
        _ => waiting_within(inner),
    })
}

/// Checks the stages of a branch of `holder`, which takes items of `kind`. Returns what the branch
/// yields.
///
/// Only a branch of `foreach` may have stages that wait. `if` and `while` feed their stages with
/// section after section, and a command cannot tell where in its output a section ends.
fn check_branch(holder: &str, stages: &[Stage], kind: ItemKind) -> Result<ItemKind, ScriptError> {
    let refused = |stage: &Stage, help: &str| {
        let message = format!("`{}` cannot stand in a branch of `{holder}`", first_word(stage));
        Err(ScriptError::new(stage.span, message).with_help(help))
    };
    let mut before = Before::Branch(kind);
    for stage in stages {
        let waits = match &stage.kind {
            StageKind::To(_) | StageKind::AppendTo(_) => {
                return refused(stage, "the branches are merged, and written together");
            }
            StageKind::Shell(_) | StageKind::Join2(..) => Some(stage),
            _ => waiting_within(stage),
        };
        if let (Some(waiting), "if" | "while") = (waits, holder) {
            return refused(waiting, "`foreach` runs commands and joins, once for each section");
        }
        if let StageKind::Join2(_, inner) = &stage.kind
            && reads_stdin(inner)
        {
            let message = "standard input cannot be read anew for each section";
            return Err(ScriptError::new(inner[0].span, message).with_help("name a file"));
        }
        before = Before::Stage(yields(stage, before)?, stage);
    }
    let made = before.kind();
    // `stage::branch` ends a branch over bytes with `to_text`, so any kind is allowed there.
    if kind == ItemKind::Bytes || made == kind {
        return Ok(kind);
    }
    let span = stages.last().map_or_else(Default::default, |stage| stage.span);
    let message = format!("a branch over {} yields {}, and {}", name(kind), name(kind), before.yields());
    Err(ScriptError::new(span, message))
}

/// Whether a pipeline in the brackets of a join reads standard input.
fn reads_stdin(pipeline: &[Stage]) -> bool {
    let first = !matches!(
        pipeline[0].kind,
        StageKind::File(_) | StageKind::Text(_) | StageKind::Range(..) | StageKind::Shell(_)
    );
    let joins = |stage: &Stage| matches!(&stage.kind, StageKind::Join2(_, inner) if reads_stdin(inner));
    first || pipeline.iter().any(joins)
}

/// The help for a stage that needs lines, by the kind of the items before it.
fn before_lines(kind: ItemKind) -> &'static str {
    match kind {
        ItemKind::Bytes => "put `lines |` before it, or `each CONDITION |`",
        ItemKind::Lists => "it is fed with lines",
        ItemKind::Records => "put `column N |` or `join \" \" |` before it",
        ItemKind::Numbers => "put `bytes | lines |` before it",
    }
}

/// The help for a stage that needs items of `wanted`, by the kind of the items before it.
fn help(wanted: &[ItemKind], fed: ItemKind) -> String {
    match wanted.first() {
        Some(ItemKind::Lists) => before_lines(fed).to_string(),
        Some(ItemKind::Records) if fed == ItemKind::Lists => "put `fields |` before it".to_string(),
        Some(ItemKind::Records) if fed == ItemKind::Bytes => {
            "put `csv |` before it, or `lines | fields |`".to_string()
        }
        Some(ItemKind::Records) => "put `bytes | lines | fields |` before it".to_string(),
        Some(ItemKind::Numbers) if fed == ItemKind::Lists => {
            "put `decimals |` or `integers |` before it".to_string()
        }
        Some(ItemKind::Numbers) => "put `decimals |` before it, which takes lines".to_string(),
        _ => "put `bytes |` before it".to_string(),
    }
}

/// What a stage yields where it stands.
///
/// # Errors
/// If it does not fit there.
pub fn yields(stage: &Stage, before: Before<'_>) -> Result<ItemKind, ScriptError> {
    use ItemKind::{Bytes, Lists, Numbers, Records};
    let fed = before.kind();
    let takes = |wanted: &[ItemKind], made: ItemKind| {
        if wanted.contains(&fed) {
            return Ok(made);
        }
        let wanted_names: Vec<&str> = wanted.iter().map(|kind| name(*kind)).collect();
        let (word, names) = (first_word(stage), wanted_names.join(" or "));
        let message = format!("`{word}` takes {names}, and {}", before.yields());
        Err(ScriptError::new(stage.span, message).with_help(help(wanted, fed)))
    };
    match &stage.kind {
        StageKind::File(_) | StageKind::Stdin | StageKind::Text(_) => is_first(stage, before).map(|()| Bytes),
        StageKind::Range(..) => is_first(stage, before).map(|()| Numbers),
        StageKind::Shell(_) | StageKind::Bytes => Ok(Bytes),
        StageKind::To(_) | StageKind::AppendTo(_) => Ok(fed),
        StageKind::Lines => takes(&[Bytes], Lists),
        StageKind::Each(condition) => {
            takes(&[Bytes], Lists)?;
            fits(condition, Bytes).map(|()| Lists)
        }
        StageKind::Csv(_) => takes(&[Bytes], Records),
        StageKind::Rows(_) => takes(&[Records], Bytes),
        StageKind::Fields(_) => takes(&[Lists], Records),
        StageKind::Column(_) | StageKind::Join(_) => takes(&[Records], Lists),
        StageKind::Columns(_) => takes(&[Records], Records),
        StageKind::Decimals | StageKind::Integers => takes(&[Lists], Numbers),
        StageKind::Having(condition, numbered) => {
            if *numbered {
                takes(&[Lists], Lists)?;
            }
            fits(condition, fed)?;
            asks_fed(stage, condition, fed)?;
            Ok(fed)
        }
        StageKind::First(_) | StageKind::Skip(_) | StageKind::Change(Change::Suppress) => Ok(fed),
        StageKind::Last(_) => takes(&[Lists, Records, Numbers], fed),
        StageKind::Count => Ok(Numbers),
        StageKind::Fold(_) => takes(&[Numbers], Numbers),
        StageKind::Unique | StageKind::Number => takes(&[Lists], Lists),
        StageKind::Tally => takes(&[Lists], Records),
        StageKind::Sort(Order { column: Some(_), .. }) => takes(&[Records], Records),
        StageKind::Sort(_) => takes(&[Lists, Numbers], fed),
        StageKind::Substitute(_) => takes(&[Bytes], Bytes),
        StageKind::Replace(..) | StageKind::Prepend(_) | StageKind::Append(_) => takes(&[Lists, Bytes], fed),
        StageKind::Change(Change::Uppercase | Change::Lowercase) => takes(&[Bytes, Lists], fed),
        #[cfg(feature = "gzip")]
        StageKind::Change(Change::Gzip | Change::Gunzip) => takes(&[Bytes], Bytes),
        #[cfg(feature = "zstd")]
        StageKind::Change(Change::Zstd | Change::Unzstd) => takes(&[Bytes], Bytes),
        StageKind::Change(_) => takes(&[Lists], Lists),
        StageKind::Branch(branch) => {
            let holder = if branch.foreach { "foreach" } else { "if" };
            fits(&branch.condition, fed)?;
            check_branch(holder, &branch.then, fed)?;
            check_branch(holder, &branch.otherwise, fed)
        }
        StageKind::While(condition, body) => {
            fits(condition, fed)?;
            check_branch("while", body, fed)
        }
        StageKind::Join2(_, inner) => {
            takes(&[Lists], Lists)?;
            check_pipeline(inner, Position::Joined).map(|_| Lists)
        }
    }
}

/// Refuses a source that is not the first stage.
fn is_first(stage: &Stage, before: Before<'_>) -> Result<(), ScriptError> {
    if before == Before::Start {
        return Ok(());
    }
    let message = format!("`{}` is a source, and takes nothing", first_word(stage));
    let help = "begin a pipeline with it, or join it: `concatenate (file NAME | lines)`";
    Err(ScriptError::new(stage.span, message).with_help(help))
}

/// Refuses a `having` that is fed with bytes and asks about lines.
fn asks_fed(stage: &Stage, condition: &Condition, fed: ItemKind) -> Result<(), ScriptError> {
    if fed != ItemKind::Bytes || !asks_only_texts(condition) {
        return Ok(());
    }
    let message = format!("`{}` asks about a line, and here are bytes", first_word(stage));
    let help = "put `lines |` before it; `each CONDITION` makes a line of each match, and \
        `replace T with \"\"` takes it away";
    Err(ScriptError::new(stage.span, message).with_help(help))
}

/// Whether a condition asks for texts alone, as about lines. Over bytes `having` would pass on the
/// bytes of the matches, in a row.
fn asks_only_texts(condition: &Condition) -> bool {
    match &condition.kind {
        ConditionKind::Test(_) => true,
        ConditionKind::Not(inner) => asks_only_texts(inner),
        ConditionKind::And(all) | ConditionKind::Or(all) => all.iter().all(asks_only_texts),
        _ => false,
    }
}

/// Whether a condition can be asked about items of a kind.
fn fits(condition: &Condition, kind: ItemKind) -> Result<(), ScriptError> {
    let refused = |about: &str, help: &str| {
        let text = condition.to_string();
        let word = text.split([' ', '(']).next().unwrap_or_default();
        let message = format!("`{word}` asks about {about}, and here are {}", name(kind));
        Err(ScriptError::new(condition.span, message).with_help(help))
    };
    if kind == ItemKind::Bytes
        && let Some(inner) = of_lines(condition)
    {
        return fits(inner, ItemKind::Lists);
    }
    match &condition.kind {
        ConditionKind::Test(test) => match (kind, test) {
            (ItemKind::Lists, _) | (ItemKind::Numbers, Test::Compare(..)) => Ok(()),
            (ItemKind::Bytes, Test::Substring(_) | Test::Regex(_) | Test::Prefix(_) | Test::Suffix(_)) => {
                Ok(())
            }
            (ItemKind::Bytes, _) => {
                refused("a line", "write `line having ..`, or put `lines |` before the stage")
            }
            (ItemKind::Records, _) => refused("a text", "write `column N ..`"),
            (ItemKind::Numbers, _) => refused("a text", "numbers are compared: `> 10`"),
        },
        ConditionKind::Column(..) if kind == ItemKind::Records => Ok(()),
        ConditionKind::Column(..) => {
            refused("a record", "put `csv |` or `fields |` before the stage; of bytes, ask `csv column N`")
        }
        ConditionKind::Line
        | ConditionKind::Class(_)
        | ConditionKind::CsvRow(_)
        | ConditionKind::CsvColumn(..)
        | ConditionKind::JsonValue
        | ConditionKind::JsonMember(_)
        | ConditionKind::XmlElement(_)
        | ConditionKind::XmlContent(_)
        | ConditionKind::XmlAttribute(_) => match kind {
            ItemKind::Bytes => Ok(()),
            _ => refused("bytes", "leave out the stage that has cut the bytes, or put `bytes |` behind it"),
        },
        ConditionKind::Everything | ConditionKind::Nothing => Ok(()),
        ConditionKind::Not(inner) | ConditionKind::Place(_, inner) => fits(inner, kind),
        ConditionKind::And(all) | ConditionKind::Or(all) => {
            all.iter().try_for_each(|inner| fits(inner, kind))
        }
        ConditionKind::Between(a, b)
        | ConditionKind::Having(a, b)
        | ConditionKind::HavingOnly(a, b)
        | ConditionKind::NestedIn(a, b)
        | ConditionKind::FollowedBy(a, b) => {
            fits(a, kind)?;
            fits(b, kind)
        }
    }
}
