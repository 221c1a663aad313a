//! The conditions of the grammar. `parse.rs` calls [`Parser::condition`] where a stage asks one.

use super::values::{DEPTH, Parser};
use crate::language::error::ScriptError;
use crate::language::nearest::nearest;
use crate::language::token::TokenKind;
use crate::language::tree::*;
use crate::language::words::CONDITIONS;
use selvedge_pipeline::Number;

/// Makes one condition of two.
type Relation = fn(Box<Condition>, Box<Condition>) -> ConditionKind;

impl Parser<'_> {
    pub(super) fn condition(&mut self) -> Result<Condition, ScriptError> {
        self.deeper(|parser| {
            let mut outer = parser.listed("or", ConditionKind::Or, |parser| {
                parser.listed("and", ConditionKind::And, Self::unary)
            })?;
            let mut rounds = 0;
            loop {
                let place = parser.span();
                let Some(kind) = parser.relation()? else { return Ok(outer) };
                rounds += 1;
                if rounds > DEPTH {
                    return Err(ScriptError::new(place, format!("more than {DEPTH} conditions in a row")));
                }
                let inner = parser.listed("or", ConditionKind::Or, |parser| {
                    parser.listed("and", ConditionKind::And, Self::unary)
                })?;
                outer = Condition { span: outer.span, kind: kind(Box::new(outer), Box::new(inner)) };
            }
        })
    }

    /// The words between two conditions that bind least, if they are next.
    fn relation(&mut self) -> Result<Option<Relation>, ScriptError> {
        let (relation, second): (Relation, _) = match self.word() {
            Some("having") => (ConditionKind::Having, None),
            Some("nested") => (ConditionKind::NestedIn, Some("in")),
            Some("followed") => (ConditionKind::FollowedBy, Some("by")),
            _ => return Ok(None),
        };
        self.at += 1;
        match second {
            Some(word) => self.needs(word)?,
            None if self.takes("only") => return Ok(Some(ConditionKind::HavingOnly)),
            None => {}
        }
        Ok(Some(relation))
    }

    /// Conditions with `word` between them. A single condition is returned as it is.
    fn listed(
        &mut self,
        word: &str,
        kind: fn(Vec<Condition>) -> ConditionKind,
        mut one: impl FnMut(&mut Self) -> Result<Condition, ScriptError>,
    ) -> Result<Condition, ScriptError> {
        let first = one(self)?;
        if self.word() != Some(word) {
            return Ok(first);
        }
        let span = first.span;
        let mut all = vec![first];
        while self.takes(word) {
            all.push(one(self)?);
        }
        Ok(Condition { span, kind: kind(all) })
    }

    /// One condition, boxed, one level deeper.
    fn inner(&mut self) -> Result<Box<Condition>, ScriptError> {
        self.deeper(Self::unary).map(Box::new)
    }

    fn unary(&mut self) -> Result<Condition, ScriptError> {
        self.part()?;
        let span = self.span();
        if self.peek() == Some(&TokenKind::Open) {
            self.at += 1;
            let inner = self.condition()?;
            self.needs_sign(&TokenKind::Close, "`)`")?;
            return Ok(inner);
        }
        if let Some(test) = self.test()? {
            return Ok(Condition { span, kind: ConditionKind::Test(test) });
        }
        let Some(word) = self.word().map(str::to_string) else {
            let error = self.expected("a condition");
            return Err(match self.is_text() {
                true => error
                    .with_help("before a text stands `substring`, `regex`, `prefix` or another condition"),
                false => error,
            });
        };
        self.at += 1;
        if let Some((_, class)) = CLASSES.iter().find(|(other, _)| *other == word) {
            return Ok(Condition { span, kind: ConditionKind::Class(*class) });
        }
        for known in [Self::plain_of, Self::format_of, Self::place_of] {
            if let Some(kind) = known(self, &word)? {
                return Ok(Condition { span, kind });
            }
        }
        let error = ScriptError::new(span, format!("there is no condition `{word}`"));
        Err(match nearest(&word, CONDITIONS.iter().copied()) {
            Some(near) => error.with_help(format!("is it `{near}`?")),
            None => error,
        })
    }

    /// A condition that is neither about a format nor about a place.
    fn plain_of(&mut self, word: &str) -> Result<Option<ConditionKind>, ScriptError> {
        Ok(Some(match word {
            "column" => {
                let column = self.place()?;
                let Some(test) = self.test()? else { return Err(self.expected("what the column is to be")) };
                ConditionKind::Column(column, test)
            }
            "line" => ConditionKind::Line,
            "everything" => ConditionKind::Everything,
            "nothing" => ConditionKind::Nothing,
            "not" => ConditionKind::Not(self.inner()?),
            "between" => {
                let from = self.inner()?;
                self.needs("and")?;
                ConditionKind::Between(from, self.inner()?)
            }
            _ => return Ok(None),
        }))
    }

    /// A part of CSV, JSON or XML.
    fn format_of(&mut self, word: &str) -> Result<Option<ConditionKind>, ScriptError> {
        Ok(Some(match word {
            "csv" if self.takes("row") => ConditionKind::CsvRow(self.comma_or_other()?),
            "csv" if self.takes("column") => {
                let column = self.place()?;
                ConditionKind::CsvColumn(column, self.comma_or_other()?)
            }
            "csv" => return Err(self.expected("`row` or `column`")),
            "json" if self.takes("value") => ConditionKind::JsonValue,
            "json" if self.takes("member") => ConditionKind::JsonMember(self.string()?),
            "json" => return Err(self.expected("`value` or `member`")),
            "xml" if self.takes("element") => ConditionKind::XmlElement(self.string()?),
            "xml" if self.takes("content") => ConditionKind::XmlContent(self.string()?),
            "xml" if self.takes("attribute") => ConditionKind::XmlAttribute(self.string()?),
            "xml" => return Err(self.expected("`element`, `content` or `attribute`")),
            _ => return Ok(None),
        }))
    }

    /// The place of a section among those of the condition behind it.
    fn place_of(&mut self, word: &str) -> Result<Option<ConditionKind>, ScriptError> {
        Ok(Some(match word {
            "first" => ConditionKind::Place(Place::First, self.inner()?),
            "last" if self.takes("and") => {
                self.needs("after")?;
                ConditionKind::Place(Place::LastAndAfter, self.inner()?)
            }
            "last" => ConditionKind::Place(Place::Last, self.inner()?),
            "even" => ConditionKind::Place(Place::Even, self.inner()?),
            "upto" => {
                self.needs("first")?;
                ConditionKind::Place(Place::UptoFirst, self.inner()?)
            }
            "prefix" => ConditionKind::Place(Place::Prefix, self.inner()?),
            "suffix" => ConditionKind::Place(Place::Suffix, self.inner()?),
            "start" | "end" => {
                self.needs("of")?;
                let place = if word == "start" { Place::StartOf } else { Place::EndOf };
                ConditionKind::Place(place, self.inner()?)
            }
            _ => return Ok(None),
        }))
    }

    /// A question about a text, if one begins here.
    fn test(&mut self) -> Result<Option<Test>, ScriptError> {
        let Some(word) = self.word() else { return Ok(None) };
        if let Some((sign, comparison)) = COMPARISONS.iter().find(|(sign, _)| word.starts_with(sign)) {
            let glued = word[sign.len()..].to_string();
            self.at += 1;
            let digits = match glued.is_empty() {
                true => self.word().unwrap_or_default().to_string(),
                false => glued.clone(),
            };
            let Some(number) = Number::of(&digits) else {
                self.at -= usize::from(!glued.is_empty());
                return Err(self.expected("a number"));
            };
            self.at += usize::from(glued.is_empty());
            return Ok(Some(Test::Compare(*comparison, number)));
        }
        let texts = self.text_follows();
        let word = word.to_string();
        self.at += 1;
        Ok(Some(match &word[..] {
            "substring" => Test::Substring(self.some_text()?),
            "regex" => Test::Regex(self.regex()?),
            "prefix" if texts => Test::Prefix(self.some_text()?),
            "suffix" if texts => Test::Suffix(self.some_text()?),
            "equals" => Test::Equals(self.text()?),
            "empty" => Test::Empty,
            _ => {
                self.at -= 1;
                return Ok(None);
            }
        }))
    }
}
