//! Stages of the tree as transducers: `DynStage`s, which know their kinds while the program runs.
//!
//! `stream.rs` calls [`leading`] for the next stages, joins them with [`then`], and ends them with
//! [`to_text`]. Everything here presumes a script that [`check`](crate::kinds::check) has passed,
//! and panics otherwise.
//!
//! These stages never wait. Sources, commands, joins and targets are in `stream.rs` and `run.rs`.
//! The caller makes one virtual call for each chunk, and the code of a stage is a loop over the
//! chunk.

use crate::by_line::{are_by_line, asks_lines};
use crate::condition;
use crate::language::print;
use crate::language::tree::*;
use crate::regex::{self, chomp};
use crate::stages::*;
use crate::test::{Asked, Question};
use selvedge_pipeline::csv::{self, Fields};
#[cfg(feature = "gzip")]
use selvedge_pipeline::gzip;
#[cfg(feature = "zstd")]
use selvedge_pipeline::zstd;
use selvedge_pipeline::{
    BoxedSplitter, DynStage, HasKind, ItemKind, Number, Transducer, append, concatenate, foreach, group_by,
    id, if_then_else, json, lift121, located, rewrite, satisfies, select, select_numbered, skip, substitute,
    substring, suppress, take, try_lift121, while_, while_each, whole_line, xml,
};
use std::io::Write;
use std::ops::ControlFlow;

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

fn typed<A: HasKind + ?Sized, B: HasKind + ?Sized>(stage: DynStage) -> Transducer<A, B, DynStage> {
    stage.transducer().expect("the check has compared the kinds")
}

/// A branch of items of type `A`.
fn branching<A: HasKind + ?Sized>(splitter: BoxedSplitter<A>, of: &Branch) -> DynStage {
    let then = typed::<A, A>(branch(&of.then, A::KIND));
    // `id` is the branch that changes nothing: it is cheap to begin anew.
    if of.otherwise.is_empty() {
        return match of.foreach {
            true => DynStage::new(foreach(splitter, then, id())),
            false => DynStage::new(if_then_else(splitter, then, id())),
        };
    }
    let otherwise = typed::<A, A>(branch(&of.otherwise, A::KIND));
    match of.foreach {
        true => DynStage::new(foreach(splitter, then, otherwise)),
        false => DynStage::new(if_then_else(splitter, then, otherwise)),
    }
}

/// The loop of `while` over items of type `A`. Each section loops by itself.
///
/// With `by_line`, each item or line is a section, and the body looks at each of them alone. Then
/// one stream for all sections gives the same, and needs no new body for each section.
fn looping<A: HasKind + ?Sized>(by_line: bool, splitter: BoxedSplitter<A>, body: &[Stage]) -> DynStage {
    let stages = typed::<A, A>(branch(body, A::KIND));
    if by_line {
        return DynStage::new(while_(stages, splitter));
    }
    DynStage::new(while_each(stages, splitter))
}

/// A branch of bytes with a condition about whole lines. The search runs over whole blocks, and
/// only the lines that match are copied out of them.
fn branching_by_lines(condition: &Condition, of: &Branch, too_deep: &TooDeep) -> DynStage {
    let lines = condition::lines(condition, too_deep);
    let then = over_text(typed::<u8, u8>(branch(&of.then, ItemKind::Bytes)), of.foreach);
    if of.otherwise.is_empty() {
        return DynStage::new(group_by(whole_line()) >> if_then_else(lines, then, id()) >> concatenate());
    }
    let otherwise = over_text(typed::<u8, u8>(branch(&of.otherwise, ItemKind::Bytes)), of.foreach);
    DynStage::new(group_by(whole_line()) >> if_then_else(lines, then, otherwise) >> concatenate())
}

/// The items for which a condition is true.
fn having<A: Asked + ?Sized>(condition: &Condition, too_deep: &TooDeep) -> DynStage {
    match Question::of(condition) {
        Some(question) => DynStage::new(select(satisfies(move |item: &A| item.answers(&question)))),
        None => DynStage::new(select(condition::items::<A>(condition, too_deep))),
    }
}

/// The lines for which a condition is true.
fn having_lines(condition: &Condition, numbered: bool, too_deep: &TooDeep) -> DynStage {
    if let (ConditionKind::And(all), false) = (&condition.kind, numbered)
        && Question::of(condition).is_some()
    {
        // Each part of the `and` searches whole blocks, and leaves few lines for the next part.
        let stages = all.iter().map(|part| having_lines(part, false, too_deep));
        return stages.reduce(then).expect("the parser lists at least two");
    }
    let lines = condition::lines(condition, too_deep);
    if !numbered {
        return DynStage::new(select(lines));
    }
    DynStage::new(select_numbered(lines, line_number))
}

/// Writes the number of a line before it.
pub fn line_number(number: u64, line: &mut Vec<u8>) {
    write!(line, "{number}:").expect("vectors can be written");
}

/// Changes the text of each line, which stays a line.
fn change_line(f: impl Fn(&[u8], &mut Vec<u8>) + Clone + Send + 'static) -> DynStage {
    DynStage::new(rewrite(move |line: &[u8], text: &mut Vec<u8>| {
        f(chomp(line), text);
        text.push(b'\n');
    }))
}

/// Lines without their ends.
fn bare() -> Transducer<[u8], [u8], impl selvedge_pipeline::Transduce<[u8], [u8]> + Clone + Send> {
    rewrite(|line: &[u8], text: &mut Vec<u8>| text.extend_from_slice(chomp(line)))
}

fn replace(pattern: &Pattern, with: &[u8], kind: ItemKind) -> DynStage {
    let with = with.to_vec();
    match (pattern, kind) {
        (Pattern::Text(text), ItemKind::Bytes) => {
            DynStage::new(foreach(substring(text), substitute(&with), id()))
        }
        (Pattern::Text(text), _) => {
            let finder = memchr::memmem::Finder::new(text).into_owned();
            change_line(move |mut line, text| {
                while let Some(at) = finder.find(line) {
                    text.extend_from_slice(&line[..at]);
                    text.extend_from_slice(&with);
                    line = &line[at + finder.needle().len()..];
                }
                text.extend_from_slice(line);
            })
        }
        (Pattern::Regex(pattern), kind) => {
            let regex = regex::lines(pattern).expect("the parser has built the same expression");
            if kind == ItemKind::Bytes {
                return DynStage::new(group_by(whole_line()) >> replace_in_lines(regex, &with));
            }
            let mut expanded = Vec::new();
            DynStage::new(rewrite(move |line: &[u8], text: &mut Vec<u8>| {
                let _never_breaks = replaced(&regex, &with, line, &mut expanded, |piece| {
                    text.extend_from_slice(piece);
                    ControlFlow::Continue(())
                });
            }))
        }
    }
}

fn change(change: Change, kind: ItemKind, named: String) -> DynStage {
    match (change, kind) {
        (Change::Uppercase, ItemKind::Bytes) => DynStage::new(change_case(<[u8]>::make_ascii_uppercase)),
        (Change::Lowercase, ItemKind::Bytes) => DynStage::new(change_case(<[u8]>::make_ascii_lowercase)),
        (Change::Uppercase, _) => {
            change_line(|line, text| text.extend(line.iter().map(u8::to_ascii_uppercase)))
        }
        (Change::Lowercase, _) => {
            change_line(|line, text| text.extend(line.iter().map(u8::to_ascii_lowercase)))
        }
        (Change::Suppress, ItemKind::Bytes) => DynStage::new(suppress::<u8, u8>()),
        (Change::Suppress, ItemKind::Lists) => DynStage::new(suppress::<[u8], [u8]>()),
        (Change::Suppress, ItemKind::Records) => DynStage::new(suppress::<Fields, Fields>()),
        (Change::Suppress, ItemKind::Numbers) => DynStage::new(suppress::<Number, Number>()),
        (Change::Unquote, _) => {
            let is_string = satisfies(|line: &[u8]| line.starts_with(b"\""));
            let decode = json::decode_strings().named(named) >> append(b"\n");
            DynStage::new(bare() >> if_then_else(is_string, decode, append(b"\n")))
        }
        (Change::Quote, _) => DynStage::new(bare() >> json::encode_strings().named(named) >> append(b"\n")),
        (Change::Unescape, _) => DynStage::new(bare() >> xml::unescape().named(named) >> append(b"\n")),
        (Change::Escape, _) => DynStage::new(bare() >> xml::escape() >> append(b"\n")),
        // The levels are those of the tools.
        #[cfg(feature = "gzip")]
        (Change::Gzip, _) => DynStage::new(gzip::gzip(6)),
        #[cfg(feature = "gzip")]
        (Change::Gunzip, _) => DynStage::new(gzip::gunzip().named(named)),
        #[cfg(feature = "zstd")]
        (Change::Zstd, _) => DynStage::new(zstd::zstd(3)),
        #[cfg(feature = "zstd")]
        (Change::Unzstd, _) => DynStage::new(zstd::unzstd().named(named)),
    }
}

fn is_blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t')
}

fn fields(delimiter: Option<u8>) -> DynStage {
    // A line often has as many fields as the one before it.
    let mut columns = 0;
    DynStage::new(lift121(move |line: &[u8]| -> Fields {
        let line = chomp(line);
        let mut record = Fields::with_capacity(columns, line.len());
        match delimiter {
            Some(delimiter) => line.split(|byte| *byte == delimiter).for_each(|field| record.push(field)),
            None => {
                line.split(is_blank).filter(|field| !field.is_empty()).for_each(|field| record.push(field))
            }
        }
        columns = record.len();
        record
    }))
}

/// `fields | column N` as one stage, which makes no record.
fn field(delimiter: Option<u8>, column: usize) -> DynStage {
    DynStage::new(rewrite(move |line: &[u8], made: &mut Vec<u8>| {
        let line = chomp(line);
        let field = match delimiter {
            Some(delimiter) => line.split(|byte| *byte == delimiter).nth(column - 1),
            None => line.split(is_blank).filter(|field| !field.is_empty()).nth(column - 1),
        };
        made.extend_from_slice(field.unwrap_or_default());
        made.push(b'\n');
    }))
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
        StageKind::Each(condition) => {
            let line = |section: &[u8], line: &mut Vec<u8>| {
                line.extend_from_slice(chomp(section));
                line.push(b'\n');
            };
            DynStage::new(group_by(condition::bytes(condition, too_deep)) >> rewrite(line))
        }
        StageKind::Csv(delimiter) => DynStage::new(csv::records(*delimiter).named(named)),
        StageKind::Rows(delimiter) => DynStage::new(csv::encode(*delimiter)),
        StageKind::Fields(delimiter) => fields(*delimiter),
        StageKind::Column(column) => {
            let column = column - 1;
            DynStage::new(rewrite(move |record: &Fields, line: &mut Vec<u8>| {
                line.extend_from_slice(record.get(column).unwrap_or_default());
                line.push(b'\n');
            }))
        }
        StageKind::Columns(columns) => {
            let columns = columns.clone();
            let column =
                |record: &Fields, column: &usize| record.get(column - 1).unwrap_or_default().to_vec();
            DynStage::new(lift121(move |record: &Fields| -> Fields {
                columns.iter().map(|number| column(record, number)).collect()
            }))
        }
        StageKind::Join(text) => {
            let text = text.clone();
            DynStage::new(rewrite(move |record: &Fields, line: &mut Vec<u8>| {
                for (index, field) in record.iter().enumerate() {
                    line.extend_from_slice(if index > 0 { &text } else { b"" });
                    line.extend_from_slice(field);
                }
                line.push(b'\n');
            }))
        }
        StageKind::Bytes => to_text(kind).unwrap_or_else(|| DynStage::new(id::<u8>())),
        StageKind::Decimals => DynStage::new(try_lift121(decimal_of).named(named)),
        StageKind::Integers => DynStage::new(try_lift121(integer_of).named(named)),
        StageKind::Having(condition, numbered) => match kind {
            ItemKind::Lists => having_lines(condition, *numbered, too_deep),
            ItemKind::Bytes => match condition::of_lines(condition) {
                Some(inner) => DynStage::new(
                    group_by(whole_line()) >> select(condition::lines(inner, too_deep)) >> concatenate(),
                ),
                None => DynStage::new(select(condition::bytes(condition, too_deep))),
            },
            ItemKind::Records => having::<Fields>(condition, too_deep),
            ItemKind::Numbers => having::<Number>(condition, too_deep),
        },
        StageKind::First(count) => by_kind!(take(*count)),
        StageKind::Skip(count) => by_kind!(skip(*count)),
        StageKind::Last(count) => by_kind!(last_items(usize::try_from(*count).unwrap_or(usize::MAX))),
        StageKind::Count => by_kind!(count_all()),
        StageKind::Fold(fold) => DynStage::new(fold_numbers(*fold).named(named)),
        StageKind::Unique => DynStage::new(unique()),
        StageKind::Tally => DynStage::new(tally()),
        StageKind::Sort(order) => sorted(*order, kind),
        StageKind::Number => {
            let mut number = 0;
            DynStage::new(rewrite(move |line: &[u8], text: &mut Vec<u8>| {
                number += 1;
                line_number(number, text);
                text.extend_from_slice(line);
            }))
        }
        StageKind::Replace(pattern, with) => replace(pattern, with, kind),
        StageKind::Substitute(text) => DynStage::new(substitute::<u8, u8>(text)),
        StageKind::Prepend(text) | StageKind::Append(text) => {
            let before = matches!(stage.kind, StageKind::Prepend(_));
            let (before, after) = if before { (&text[..], &b""[..]) } else { (&b""[..], &text[..]) };
            if kind == ItemKind::Bytes {
                return DynStage::new(around_stream(before, after));
            }
            let (before, after) = (before.to_vec(), after.to_vec());
            change_line(move |line, text| {
                [&before, line, &after].iter().for_each(|part| text.extend_from_slice(part))
            })
        }
        StageKind::Change(kind_of) => change(*kind_of, kind, named),
        StageKind::Branch(of) => match kind {
            ItemKind::Bytes => match condition::of_lines(&of.condition) {
                Some(inner) => branching_by_lines(inner, of, too_deep),
                None => branching(condition::bytes(&of.condition, too_deep), of),
            },
            // A branch that begins anew must see each line as a section of its own.
            ItemKind::Lists if of.foreach => branching(condition::items::<[u8]>(&of.condition, too_deep), of),
            ItemKind::Lists => branching(condition::lines(&of.condition, too_deep), of),
            ItemKind::Records => branching(condition::items::<Fields>(&of.condition, too_deep), of),
            ItemKind::Numbers => branching(condition::items::<Number>(&of.condition, too_deep), of),
        },
        StageKind::While(condition, body) => {
            let by_line = asks_lines(condition, kind) && are_by_line(body, kind);
            match kind {
                ItemKind::Bytes => looping(by_line, condition::bytes(condition, too_deep), body),
                ItemKind::Lists if by_line => looping(by_line, condition::lines(condition, too_deep), body),
                ItemKind::Lists => looping(by_line, condition::items::<[u8]>(condition, too_deep), body),
                ItemKind::Records => looping(by_line, condition::items::<Fields>(condition, too_deep), body),
                ItemKind::Numbers => looping(by_line, condition::items::<Number>(condition, too_deep), body),
            }
        }
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
