//! The stages that ask a condition: `each`, `having`, `if`, `foreach` and `while`. `stage.rs` calls
//! them, and they call [`branch`] for the stages in them.

use super::{TooDeep, over_text};
use crate::by_line::{are_by_line, asks_lines};
use crate::condition;
use crate::language::tree::{Branch, Condition, ConditionKind, Stage};
use crate::regex::chomp;
use crate::stage::{branch, then, typed};
use crate::stages::line_number;
use crate::test::{Asked, Question};
use selvedge_pipeline::csv::Fields;
use selvedge_pipeline::{
    BoxedSplitter, DynStage, HasKind, ItemKind, Number, concatenate, foreach, group_by, id, if_then_else,
    rewrite, satisfies, select, select_numbered, while_, while_each, whole_line,
};

/// `each`: a line for each section for which the condition is true.
pub(crate) fn each_match(condition: &Condition, too_deep: &TooDeep) -> DynStage {
    let line = |section: &[u8], line: &mut Vec<u8>| {
        line.extend_from_slice(chomp(section));
        line.push(b'\n');
    };
    DynStage::new(group_by(condition::bytes(condition, too_deep)) >> rewrite(line))
}

/// `having`, over items of a kind. With `numbered`, each line has its number before it.
pub(crate) fn having(condition: &Condition, numbered: bool, kind: ItemKind, too_deep: &TooDeep) -> DynStage {
    match kind {
        ItemKind::Lists => having_lines(condition, numbered, too_deep),
        ItemKind::Bytes => match condition::of_lines(condition) {
            Some(inner) => DynStage::new(
                group_by(whole_line()) >> select(condition::lines(inner, too_deep)) >> concatenate(),
            ),
            None => DynStage::new(select(condition::bytes(condition, too_deep))),
        },
        ItemKind::Records => having_items::<Fields>(condition, too_deep),
        ItemKind::Numbers => having_items::<Number>(condition, too_deep),
    }
}

/// The items for which a condition is true.
fn having_items<A: Asked + ?Sized>(condition: &Condition, too_deep: &TooDeep) -> DynStage {
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

/// `if` and `foreach`, over items of a kind.
pub(crate) fn branch_of(of: &Branch, kind: ItemKind, too_deep: &TooDeep) -> DynStage {
    match kind {
        ItemKind::Bytes => match condition::of_lines(&of.condition) {
            Some(inner) => branching_by_lines(inner, of, too_deep),
            None => branching(condition::bytes(&of.condition, too_deep), of),
        },
        // A branch that begins anew must see each line as a section of its own.
        ItemKind::Lists if of.foreach => branching(condition::items::<[u8]>(&of.condition, too_deep), of),
        ItemKind::Lists => branching(condition::lines(&of.condition, too_deep), of),
        ItemKind::Records => branching(condition::items::<Fields>(&of.condition, too_deep), of),
        ItemKind::Numbers => branching(condition::items::<Number>(&of.condition, too_deep), of),
    }
}

/// `while`, over items of a kind.
pub(crate) fn loop_of(condition: &Condition, body: &[Stage], kind: ItemKind, too_deep: &TooDeep) -> DynStage {
    let by_line = asks_lines(condition, kind) && are_by_line(body, kind);
    match kind {
        ItemKind::Bytes => looping(by_line, condition::bytes(condition, too_deep), body),
        ItemKind::Lists if by_line => looping(by_line, condition::lines(condition, too_deep), body),
        ItemKind::Lists => looping(by_line, condition::items::<[u8]>(condition, too_deep), body),
        ItemKind::Records => looping(by_line, condition::items::<Fields>(condition, too_deep), body),
        ItemKind::Numbers => looping(by_line, condition::items::<Number>(condition, too_deep), body),
    }
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
