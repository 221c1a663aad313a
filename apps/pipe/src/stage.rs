//! Stages of the tree as transducers: `DynStage`s, which know their kinds while the program runs.
//!
//! `stream.rs` calls [`leading`] for the next stages, joins them with [`then`], and ends them with
//! [`to_text`]. Everything here presumes a script that [`check`](crate::kinds::check) has passed,
//! and panics otherwise.
//!
//! These stages never wait. Sources, commands, joins and targets are in `stream.rs` and `run.rs`.
//! The caller makes one virtual call for each chunk, and the code of a stage is a loop over the
//! chunk.

use crate::condition;
use crate::language::print;
use crate::language::tree::*;
use crate::stages::*;
use selvedge_pipeline::csv::{self, Fields};
use selvedge_pipeline::{
    DynStage, HasKind, ItemKind, Number, Transducer, concatenate, group_by, id, located, skip, substitute,
    take, try_lift121, whole_line,
};

/// The name under which a stage fails: the place of its first word in the script.
pub fn failure_name(stage: &Stage) -> String {
    format!("@{}:{}", stage.span.begin, stage.span.end)
}

/// The name under which standard input or output fails at the stage beside it. `what` says what was
/// done.
pub fn stream_name(stage: &Stage, what: &str) -> String {
    format!("{}:{what}", failure_name(stage))
}

/// The stage that makes text of items: lines as they are, records as CSV, each number on a line.
/// `None` for bytes, which are text.
pub fn to_text(kind: ItemKind) -> Option<DynStage> {
    Some(match kind {
        ItemKind::Bytes => return None,
        ItemKind::Lists => DynStage::new(concatenate()),
        ItemKind::Records => DynStage::new(csv::encode(b',')),
        ItemKind::Numbers => DynStage::new(written_numbers() >> concatenate()),
    })
}

/// Two stages that the check has put together.
pub fn then(up: DynStage, down: DynStage) -> DynStage {
    up.then(down).expect("the check has compared the kinds")
}

/// What takes the items of the last of some stages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Taker {
    /// Something that wants their text alone: a target, a command, a stage over bytes.
    Text,
    /// Something that wants the items.
    Items,
}

/// The stages `stages`, fed with items of `kind`, as one. `None` if there is none. Where `taker`
/// wants text alone, it may yield bytes in place of lines.
pub fn together(stages: &[Stage], kind: ItemKind, taker: Taker) -> Option<DynStage> {
    let mut whole: Option<DynStage> = None;
    let mut rest = stages;
    while !rest.is_empty() {
        let fed = whole.as_ref().map_or(kind, DynStage::yields);
        let (made, count) = leading(rest, fed, taker);
        whole = Some(match whole {
            Some(up) => then(up, made),
            None => made,
        });
        rest = &rest[count..];
    }
    whole
}

/// The stages of a branch over `kind`. Those over bytes end with bytes.
pub fn branch(stages: &[Stage], kind: ItemKind) -> DynStage {
    let taker = if kind == ItemKind::Bytes { Taker::Text } else { Taker::Items };
    let Some(whole) = together(stages, kind, taker) else {
        return match kind {
            ItemKind::Bytes => DynStage::new(id::<u8>()),
            ItemKind::Lists => DynStage::new(id::<[u8]>()),
            ItemKind::Records => DynStage::new(id::<Fields>()),
            ItemKind::Numbers => DynStage::new(id::<Number>()),
        };
    };
    match to_text(whole.yields()) {
        Some(text) if taker == Taker::Text => then(whole, text),
        _ => whole,
    }
}

/// Whether a stage may fail at an item that is not as it should be, or a stage in it may.
pub fn may_fail(stage: &Stage) -> bool {
    match &stage.kind {
        StageKind::Csv(_) | StageKind::Decimals | StageKind::Integers | StageKind::Fold(_) => true,
        StageKind::Change(change) => {
            matches!(change, Change::Unquote | Change::Quote | Change::Unescape) || unpacks(*change)
        }
        StageKind::Each(condition) | StageKind::Having(condition, _) => condition::nests(condition),
        StageKind::Branch(of) => {
            let stages = of.then.iter().chain(&of.otherwise);
            condition::nests(&of.condition) || stages.into_iter().any(may_fail)
        }
        // It may need too many rounds.
        StageKind::While(..) => true,
        _ => false,
    }
}

/// Whether a stage takes packed bytes.
fn unpacks(change: Change) -> bool {
    CHANGES.iter().any(|(word, known)| *known == change && ["gunzip", "unzstd"].contains(word))
}

/// Whether the line of the input is not known for the items that come out of a stage: the stage
/// keeps its items to the end, or its input is packed.
pub fn leaves_lines(stage: &Stage) -> bool {
    match &stage.kind {
        StageKind::Sort(_) | StageKind::Last(_) | StageKind::Tally => true,
        StageKind::Change(change) => unpacks(*change),
        // A branch of `foreach` ends with each of its sections, and a branch of `if` at the end.
        StageKind::Branch(of) => !of.foreach && of.then.iter().chain(&of.otherwise).any(leaves_lines),
        StageKind::While(_, body) => body.iter().any(leaves_lines),
        _ => false,
    }
}

/// Stages over bytes, which tell the line of their input in which one of them fails.
pub fn located_in_lines(stages: DynStage) -> DynStage {
    let line = whole_line;
    match stages.yields() {
        ItemKind::Bytes => DynStage::new(located(line(), typed::<u8, u8>(stages))),
        ItemKind::Lists => DynStage::new(located(line(), typed::<u8, [u8]>(stages))),
        ItemKind::Records => DynStage::new(located(line(), typed::<u8, Fields>(stages))),
        ItemKind::Numbers => DynStage::new(located(line(), typed::<u8, Number>(stages))),
    }
}

/// The stage with types: they are those of its kinds, because the check has compared them.
pub(crate) fn typed<A: HasKind + ?Sized, B: HasKind + ?Sized>(stage: DynStage) -> Transducer<A, B, DynStage> {
    stage.transducer().expect("the check has compared the kinds")
}

/// The stage over bytes that does with their lines what `stage` does with each line. `None` if
/// there is none.
///
/// What stands in place of something else must have no line end, because a line with one in it
/// would become two.
fn over_bytes(stage: &Stage) -> Option<DynStage> {
    let in_line = |texts: &[&[u8]]| texts.iter().all(|text| !text.contains(&b'\n'));
    Some(match &stage.kind {
        StageKind::Number => DynStage::new(number_lines()),
        StageKind::Prepend(text) if in_line(&[text]) => DynStage::new(around_lines(text, b"")),
        StageKind::Append(text) if in_line(&[text]) => DynStage::new(around_lines(b"", text)),
        StageKind::Replace(Pattern::Text(text), with) if in_line(&[text, with]) => {
            replace(&Pattern::Text(text.clone()), with, ItemKind::Bytes)
        }
        StageKind::Replace(pattern @ Pattern::Regex(_), with) if in_line(&[with]) => {
            replace(pattern, with, ItemKind::Bytes)
        }
        StageKind::Change(change @ (Change::Uppercase | Change::Lowercase)) => {
            self::change(*change, ItemKind::Bytes, failure_name(stage))
        }
        _ => return None,
    })
}

/// The first stages of `stages`, which stand behind `lines`, behind `whole` as one stage over
/// bytes, and how many they are: all up to the first that needs lines.
pub fn over_text_of_lines(mut whole: DynStage, stages: &[Stage]) -> (DynStage, usize) {
    for (count, stage) in stages.iter().enumerate() {
        let Some(next) = over_bytes(stage) else { return (whole, count) };
        whole = then(whole, next);
    }
    (whole, stages.len())
}

/// `lines` and the stages behind it as one stage over bytes, and how many they are. `None` if a
/// line is wanted as an item.
fn lines_as_bytes(stages: &[Stage], taker: Taker) -> Option<(DynStage, usize)> {
    let (whole, behind) = over_text_of_lines(DynStage::new(complete_text()), &stages[1..]);
    let count = 1 + behind;
    match stages.get(count).map(|next| &next.kind) {
        Some(StageKind::Count) if behind == 0 => Some((DynStage::new(count_lines() >> add_counts()), 2)),
        Some(StageKind::Bytes | StageKind::Shell(_) | StageKind::To(_) | StageKind::AppendTo(_)) => {
            Some((whole, count))
        }
        None if taker == Taker::Text => Some((whole, count)),
        _ => None,
    }
}

/// The first stages of `stages` as one stage, fed with items of `kind`, and how many they are.
/// `taker` takes what the last of `stages` yields. If that is text alone, the stage may yield bytes
/// in place of lines.
///
/// # Panics
/// As [`dynamic`], and if there is no stage.
pub fn leading(stages: &[Stage], kind: ItemKind, taker: Taker) -> (DynStage, usize) {
    match stages {
        [Stage { kind: StageKind::Lines, .. }, ..] => {
            if let Some(made) = lines_as_bytes(stages, taker) {
                return made;
            }
        }
        [
            Stage { kind: StageKind::Fields(delimiter), .. },
            Stage { kind: StageKind::Column(column), .. },
            ..,
        ] => return (field(*delimiter, *column), 2),
        _ => {}
    }
    (dynamic(&stages[0], kind), 1)
}

fn sorted(order: Order, kind: ItemKind) -> DynStage {
    match kind {
        ItemKind::Records => DynStage::new(sort::<Fields>(order)),
        ItemKind::Numbers => DynStage::new(sort::<Number>(order)),
        _ => DynStage::new(sort::<[u8]>(order)),
    }
}

/// The stage of a tree, fed with items of `kind`. It fails under [its name](failure_name).
///
/// # Panics
/// If the stage waits: a source, a command, a join, a target, or a branch with one of these.
pub fn dynamic(stage: &Stage, kind: ItemKind) -> DynStage {
    let too_deep = TooDeep::default();
    let made = made(stage, kind, &too_deep);
    let condition = match &stage.kind {
        StageKind::Each(condition) | StageKind::Having(condition, _) => condition,
        StageKind::Branch(of) => &of.condition,
        StageKind::While(condition, _) => condition,
        _ => return made,
    };
    let nests = condition::nests(condition);
    match &stage.kind {
        StageKind::Each(_) if nests => guarded::<u8, [u8]>(typed(made), failure_name(stage), Some(too_deep)),
        // The guard gives a loop its name.
        StageKind::While(..) => alike(made, failure_name(stage), nests.then_some(too_deep)),
        _ if nests => alike(made, failure_name(stage), Some(too_deep)),
        _ => made,
    }
}

/// A stage that yields what it takes, with the guard around it.
fn alike(made: DynStage, name: String, too_deep: Option<TooDeep>) -> DynStage {
    match made.takes() {
        ItemKind::Bytes => guarded::<u8, u8>(typed(made), name, too_deep),
        ItemKind::Lists => guarded::<[u8], [u8]>(typed(made), name, too_deep),
        ItemKind::Records => guarded::<Fields, Fields>(typed(made), name, too_deep),
        ItemKind::Numbers => guarded::<Number, Number>(typed(made), name, too_deep),
    }
}

/// The stage of a tree, without the guard. A condition that nests too deep sets `too_deep`.
fn made(stage: &Stage, kind: ItemKind, too_deep: &TooDeep) -> DynStage {
    /// Calls a generic function for the type of a kind.
    macro_rules! by_kind {
        ($f:ident($($argument:expr),*)) => {
            match kind {
                ItemKind::Bytes => DynStage::new($f::<u8>($($argument),*)),
                ItemKind::Lists => DynStage::new($f::<[u8]>($($argument),*)),
                ItemKind::Records => DynStage::new($f::<Fields>($($argument),*)),
                ItemKind::Numbers => DynStage::new($f::<Number>($($argument),*)),
            }
        };
    }
    let named = failure_name(stage);
    match &stage.kind {
        StageKind::Lines => DynStage::new(group_by(whole_line()) >> complete_line()),
        StageKind::Each(condition) => each_match(condition, too_deep),
        StageKind::Csv(delimiter) => DynStage::new(csv::records(*delimiter).named(named)),
        StageKind::Rows(delimiter) => DynStage::new(csv::encode(*delimiter)),
        StageKind::Fields(delimiter) => fields(*delimiter),
        StageKind::Column(number) => column(*number),
        StageKind::Columns(numbers) => columns(numbers),
        StageKind::Join(text) => joined_fields(text),
        StageKind::Bytes => to_text(kind).unwrap_or_else(|| DynStage::new(id::<u8>())),
        StageKind::Decimals => DynStage::new(try_lift121(decimal_of).named(named)),
        StageKind::Integers => DynStage::new(try_lift121(integer_of).named(named)),
        StageKind::Having(condition, numbered) => having(condition, *numbered, kind, too_deep),
        StageKind::First(count) => by_kind!(take(*count)),
        StageKind::Skip(count) => by_kind!(skip(*count)),
        StageKind::Last(count) => by_kind!(last_items(usize::try_from(*count).unwrap_or(usize::MAX))),
        StageKind::Count => by_kind!(count_all()),
        StageKind::Fold(fold) => DynStage::new(fold_numbers(*fold).named(named)),
        StageKind::Unique => DynStage::new(unique()),
        StageKind::Tally => DynStage::new(tally()),
        StageKind::Sort(order) => sorted(*order, kind),
        StageKind::Number => numbered(),
        StageKind::Replace(pattern, with) => replace(pattern, with, kind),
        StageKind::Substitute(text) => DynStage::new(substitute::<u8, u8>(text)),
        StageKind::Prepend(text) => around(text, b"", kind),
        StageKind::Append(text) => around(b"", text, kind),
        StageKind::Change(kind_of) => change(*kind_of, kind, named),
        StageKind::Branch(of) => branch_of(of, kind, too_deep),
        StageKind::While(condition, body) => loop_of(condition, body, kind, too_deep),
        StageKind::File(_)
        | StageKind::Stdin
        | StageKind::Text(_)
        | StageKind::Range(..)
        | StageKind::Shell(_)
        | StageKind::Join2(..)
        | StageKind::To(_)
        | StageKind::AppendTo(_) => panic!("`{}` waits", print::pipeline(std::slice::from_ref(stage))),
    }
}
