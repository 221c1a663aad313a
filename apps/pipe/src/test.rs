//! Questions about one item: a line, a record, a number.
//!
//! `condition.rs` and `stage.rs` call [`Question::of`] for a condition, and [`Asked::answers`] for
//! each item. [`Question::of`] returns `None` for a condition that needs more than one item, such
//! as `first` or `between`; a splitter answers these.
//!
//! A line is asked without its end.

use crate::language::tree::{Comparison, Condition, ConditionKind, Test};
use crate::regex::{self, chomp};
use memchr::memmem::Finder;
use regex_automata::meta::Regex;
use selvedge_pipeline::{HasKind, Number, csv::Fields};
use std::cmp::Ordering;
use std::sync::Arc;

/// What is asked about an item.
#[derive(Debug, Clone)]
pub enum Question {
    /// About a text.
    Text(TextQuestion),
    /// About a column, from 1. A record without it answers no.
    Column(usize, TextQuestion),
    /// The answer is always the same.
    Always(bool),
    /// The opposite.
    Not(Box<Question>),
    /// All of them.
    All(Vec<Question>),
    /// At least one of them.
    Any(Vec<Question>),
}

/// What is asked about a text.
#[derive(Debug, Clone)]
pub enum TextQuestion {
    /// It holds a text.
    Substring(Arc<Finder<'static>>),
    /// It holds a match.
    Regex(Regex),
    /// It begins with a text.
    Prefix(Vec<u8>),
    /// It ends with a text.
    Suffix(Vec<u8>),
    /// It is a text.
    Equals(Vec<u8>),
    /// It is empty.
    Empty,
    /// It is such a number.
    Compare(Comparison, Number),
}

impl TextQuestion {
    /// The question of a test.
    pub fn of(test: &Test) -> TextQuestion {
        match test {
            Test::Substring(text) => TextQuestion::Substring(Arc::new(Finder::new(text).into_owned())),
            Test::Regex(pattern) => {
                TextQuestion::Regex(regex::lines(pattern).expect("the parser has built the same expression"))
            }
            Test::Prefix(text) => TextQuestion::Prefix(text.clone()),
            Test::Suffix(text) => TextQuestion::Suffix(text.clone()),
            Test::Equals(text) => TextQuestion::Equals(text.clone()),
            Test::Empty => TextQuestion::Empty,
            Test::Compare(comparison, number) => TextQuestion::Compare(*comparison, number.clone()),
        }
    }

    fn answer(&self, text: &[u8]) -> bool {
        match self {
            TextQuestion::Substring(finder) => finder.find(text).is_some(),
            TextQuestion::Regex(regex) => regex.is_match(text),
            TextQuestion::Prefix(prefix) => text.starts_with(prefix),
            TextQuestion::Suffix(suffix) => text.ends_with(suffix),
            TextQuestion::Equals(other) => text == other,
            TextQuestion::Empty => text.is_empty(),
            TextQuestion::Compare(comparison, number) => {
                let order = std::str::from_utf8(text).ok().and_then(|text| number.order_of(text.trim()));
                order.is_some_and(|order| holds(*comparison, order))
            }
        }
    }
}

/// Whether a comparison holds for two numbers of this order.
fn holds(comparison: Comparison, order: Ordering) -> bool {
    match comparison {
        Comparison::Greater => order.is_gt(),
        Comparison::Less => order.is_lt(),
        Comparison::AtLeast => order.is_ge(),
        Comparison::AtMost => order.is_le(),
        Comparison::Equal => order.is_eq(),
        Comparison::Differs => order.is_ne(),
    }
}

impl Question {
    /// The question of a condition that asks about each item by itself.
    pub fn of(condition: &Condition) -> Option<Question> {
        let all = |conditions: &[Condition]| conditions.iter().map(Question::of).collect::<Option<Vec<_>>>();
        Some(match &condition.kind {
            ConditionKind::Test(test) => Question::Text(TextQuestion::of(test)),
            ConditionKind::Column(column, test) => Question::Column(*column, TextQuestion::of(test)),
            ConditionKind::Everything => Question::Always(true),
            ConditionKind::Nothing => Question::Always(false),
            ConditionKind::Not(inner) => Question::Not(Box::new(Question::of(inner)?)),
            ConditionKind::And(conditions) => Question::All(all(conditions)?),
            ConditionKind::Or(conditions) => Question::Any(all(conditions)?),
            _ => return None,
        })
    }

    /// The answer, where `text` and `column` answer about the item.
    fn with(
        &self,
        text: &dyn Fn(&TextQuestion) -> bool,
        column: &dyn Fn(usize, &TextQuestion) -> bool,
    ) -> bool {
        match self {
            Question::Text(question) => text(question),
            Question::Column(number, question) => column(*number, question),
            Question::Always(answer) => *answer,
            Question::Not(question) => !question.with(text, column),
            Question::All(questions) => questions.iter().all(|question| question.with(text, column)),
            Question::Any(questions) => questions.iter().any(|question| question.with(text, column)),
        }
    }
}

/// An item that can be asked.
pub trait Asked: HasKind {
    /// What the item answers.
    fn answers(&self, question: &Question) -> bool;
}

impl Asked for [u8] {
    fn answers(&self, question: &Question) -> bool {
        let line = chomp(self);
        match question {
            Question::Text(question) => question.answer(line),
            other => other.with(&|question| question.answer(line), &|_, _| false),
        }
    }
}

impl Asked for Fields {
    fn answers(&self, question: &Question) -> bool {
        let column = |number: usize, question: &TextQuestion| {
            self.get(number - 1).is_some_and(|field| question.answer(field))
        };
        question.with(&|_| false, &column)
    }
}

impl Asked for Number {
    fn answers(&self, question: &Question) -> bool {
        let text = |question: &TextQuestion| match question {
            TextQuestion::Compare(comparison, number) => holds(*comparison, self.cmp(number)),
            other => other.answer(self.to_string().as_bytes()),
        };
        question.with(&text, &|_, _| false)
    }
}
