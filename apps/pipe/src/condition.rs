//! Conditions of the tree as splitters, which cut a stream into true and false sections.
//!
//! `stage.rs` calls [`bytes`], [`lines`] or [`items`], by the kind of the items. `kinds.rs`,
//! `explain.rs` and `stage.rs` call [`of_lines`] to find conditions that ask about whole lines:
//! these run over blocks without a split into items.
//!
//! A condition that asks about each item by itself becomes a [`Question`]. The others become the
//! splitters of the pipeline crate.
//!
//! The combinators are those of the paper's section "Parting and joining the stream" (Pipes in
//! `docs/PAPERS.md`).

use crate::language::tree::{Class, Condition, ConditionKind, Place, Test};
use crate::regex::{chomp, matches};
use crate::stages::{TooDeep, nested_in};
use crate::test::{Asked, Question};
use selvedge_pipeline::{
    BoxedSplitter, Flow, HasKind, Sections, Split, Splitter, any, between, csv, end_of, even, everything,
    first, followed_by, having, having_only, json, last, last_and_after, prefix, satisfies, start_of,
    substring, suffix, upto_first, whole_line, xml,
};
use std::ops::ControlFlow;

/// The condition within `line having ..`, if it asks about each line by itself.
pub fn of_lines(condition: &Condition) -> Option<&Condition> {
    match &condition.kind {
        ConditionKind::Having(outer, inner) if outer.kind == ConditionKind::Line => {
            Question::of(inner).is_some().then_some(&**inner)
        }
        _ => None,
    }
}

/// A combination of conditions, where `inner` makes the splitters of its parts.
fn combined<A: HasKind + ?Sized>(
    kind: &ConditionKind,
    too_deep: &TooDeep,
    inner: &dyn Fn(&Condition) -> BoxedSplitter<A>,
) -> Option<BoxedSplitter<A>> {
    let together = |conditions: &[Condition],
                    join: fn(BoxedSplitter<A>, BoxedSplitter<A>) -> BoxedSplitter<A>| {
        conditions.iter().map(inner).reduce(join).expect("the parser lists at least two")
    };
    Some(match kind {
        ConditionKind::Everything => everything().boxed(),
        ConditionKind::Nothing => (!everything()).boxed(),
        ConditionKind::Not(one) => (!inner(one)).boxed(),
        ConditionKind::And(all) => together(all, |a, b| (a & b).boxed()),
        ConditionKind::Or(all) => together(all, |a, b| (a | b).boxed()),
        ConditionKind::Place(place, one) => match place {
            Place::First => first(inner(one)).boxed(),
            Place::Last => last(inner(one)).boxed(),
            Place::Even => even(inner(one)).boxed(),
            Place::UptoFirst => upto_first(inner(one)).boxed(),
            Place::LastAndAfter => last_and_after(inner(one)).boxed(),
            Place::Prefix => prefix(inner(one)).boxed(),
            Place::Suffix => suffix(inner(one)).boxed(),
            Place::StartOf => start_of(inner(one)).boxed(),
            Place::EndOf => end_of(inner(one)).boxed(),
        },
        ConditionKind::Between(from, to) => between(inner(from), inner(to)).boxed(),
        ConditionKind::Having(outer, one) => having(inner(outer), inner(one)).boxed(),
        ConditionKind::HavingOnly(outer, one) => having_only(inner(outer), inner(one)).boxed(),
        ConditionKind::FollowedBy(one, other) => followed_by(inner(one), inner(other)).boxed(),
        ConditionKind::NestedIn(found, around) => nested_in(inner(found), inner(around), too_deep),
        _ => return None,
    })
}

/// Whether [`nested_in`] is in the condition, so that it may set a [`TooDeep`].
pub fn nests(condition: &Condition) -> bool {
    match &condition.kind {
        ConditionKind::NestedIn(..) => true,
        ConditionKind::Not(inner) | ConditionKind::Place(_, inner) => nests(inner),
        ConditionKind::And(all) | ConditionKind::Or(all) => all.iter().any(nests),
        ConditionKind::Between(a, b)
        | ConditionKind::Having(a, b)
        | ConditionKind::HavingOnly(a, b)
        | ConditionKind::FollowedBy(a, b) => nests(a) || nests(b),
        _ => false,
    }
}

/// A condition about bytes.
pub fn bytes(condition: &Condition, too_deep: &TooDeep) -> BoxedSplitter<u8> {
    if let Some(question) = of_lines(condition).and_then(Question::of) {
        return Splitter::new(AskedLines { question, line: Vec::new() }).boxed();
    }
    let class = |test: fn(&u8) -> bool| satisfies(test).boxed();
    match &condition.kind {
        ConditionKind::Test(Test::Substring(text)) => substring(text).boxed(),
        ConditionKind::Test(Test::Prefix(text)) => prefix(substring(text)).boxed(),
        ConditionKind::Test(Test::Suffix(text)) => suffix(substring(text)).boxed(),
        ConditionKind::Test(Test::Regex(pattern)) => matches(pattern).boxed(),
        ConditionKind::Line => whole_line().boxed(),
        ConditionKind::Class(kind) => match kind {
            Class::Letters => class(u8::is_ascii_alphabetic),
            Class::Digits => class(u8::is_ascii_digit),
            Class::Whitespace => class(u8::is_ascii_whitespace),
            Class::Capitals => class(u8::is_ascii_uppercase),
            Class::Smalls => class(u8::is_ascii_lowercase),
        },
        ConditionKind::CsvRow(delimiter) => csv::rows(*delimiter).boxed(),
        ConditionKind::CsvColumn(column, delimiter) => csv::column(*delimiter, column - 1).boxed(),
        ConditionKind::JsonValue => json::values().boxed(),
        ConditionKind::JsonMember(name) => json::member(name).boxed(),
        ConditionKind::XmlElement(name) => xml::element(name).boxed(),
        ConditionKind::XmlContent(name) => xml::content(name).boxed(),
        ConditionKind::XmlAttribute(name) => xml::attribute(name).boxed(),
        other => combined(other, too_deep, &|inner| bytes(inner, too_deep))
            .expect("the check refuses other conditions about bytes"),
    }
}

/// A condition about lines, where the items of a section need not be told apart.
///
/// A search for a text or for a regular expression runs over many lines at once.
pub fn lines(condition: &Condition, too_deep: &TooDeep) -> BoxedSplitter<[u8]> {
    match &condition.kind {
        ConditionKind::Test(Test::Substring(text)) => any(substring(text)).boxed(),
        ConditionKind::Test(Test::Regex(pattern)) => any(matches(pattern)).boxed(),
        ConditionKind::Not(inner) => (!lines(inner, too_deep)).boxed(),
        _ => items(condition, too_deep),
    }
}

/// A condition about items. Each item that is asked by itself is a section.
pub fn items<A: Asked + ?Sized>(condition: &Condition, too_deep: &TooDeep) -> BoxedSplitter<A> {
    if let Some(question) = Question::of(condition) {
        return Splitter::new(AskedItems { question }).boxed();
    }
    combined(&condition.kind, too_deep, &|inner| items(inner, too_deep))
        .expect("the check refuses other conditions about items")
}

/// Each item is a section, with its answer for a verdict.
#[derive(Debug, Clone)]
struct AskedItems {
    question: Question,
}

impl<A: Asked + ?Sized> Split<A> for AskedItems {
    fn put<P: Sections<A>>(&mut self, item: &A, out: &mut P) -> Flow {
        let verdict = item.answers(&self.question);
        out.part(verdict, item)?;
        out.close(verdict)
    }

    fn end<P: Sections<A>>(&mut self, _out: &mut P) -> Flow {
        ControlFlow::Continue(())
    }
}

/// Each line of a text, with its end, is a section, with its answer for a verdict.
#[derive(Debug, Clone)]
struct AskedLines {
    question: Question,
    /// The line that has begun and not ended.
    line: Vec<u8>,
}

impl AskedLines {
    fn line<P: Sections<u8>>(question: &Question, line: &[u8], out: &mut P) -> Flow {
        let verdict = chomp(line).answers(question);
        out.part_chunk(verdict, line)?;
        out.close(verdict)
    }
}

impl Split<u8> for AskedLines {
    fn put<P: Sections<u8>>(&mut self, item: &u8, out: &mut P) -> Flow {
        self.put_chunk(std::slice::from_ref(item), out)
    }

    fn put_chunk<P: Sections<u8>>(&mut self, mut chunk: &[u8], out: &mut P) -> Flow {
        let AskedLines { question, line } = self;
        while let Some(at) = memchr::memchr(b'\n', chunk) {
            let (whole, rest) = chunk.split_at(at + 1);
            chunk = rest;
            if line.is_empty() {
                Self::line(question, whole, out)?;
            } else {
                line.extend_from_slice(whole);
                let flow = Self::line(question, line, out);
                line.clear();
                flow?;
            }
        }
        line.extend_from_slice(chunk);
        ControlFlow::Continue(())
    }

    fn end<P: Sections<u8>>(&mut self, out: &mut P) -> Flow {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() { ControlFlow::Continue(()) } else { Self::line(&self.question, &line, out) }
    }
}
