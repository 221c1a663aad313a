//! The parser: from tokens to a tree, by recursive descent over the grammar in `language.rs`.
//!
//! `run::prepare` and `interactive/complete.rs` call [`parse`]. This file has the pipelines and the
//! stages, `parse/conditions.rs` the conditions, and `parse/values.rs` what both are made of.
//!
//! The parser knows no kinds: `kinds.rs` checks afterwards whether the stages fit. But it reads
//! each regular expression and each number, so no later module meets a wrong one. `deeper` limits
//! how deep a script may nest, and `part` how long a pipeline may be, because parser, check,
//! printer and the stages recurse.

mod conditions;
mod values;

use super::error::ScriptError;
use super::nearest::nearest;
use super::token::{TokenKind, tokens};
use super::tree::*;
use super::words::{ENCODINGS, STAGES, instead_of, instead_of_sign};
use values::{CLOSING, Parser};

/// Reads a script.
///
/// # Errors
/// The first error, with its place.
pub fn parse(text: &str) -> Result<Vec<Pipeline>, ScriptError> {
    let tokens = tokens(text)?;
    let mut parser = Parser::new(&tokens, text.len());
    let mut pipelines = Vec::new();
    while parser.peek().is_some() {
        parser.begin();
        pipelines.push(parser.pipeline()?);
        match parser.peek() {
            None => break,
            Some(TokenKind::Semicolon) => parser.at += 1,
            Some(_) => {
                let error = parser.expected("`|` or `;`");
                return Err(match parser.word().and_then(instead_of_sign) {
                    Some(help) => error.with_help(help),
                    None => error,
                });
            }
        }
    }
    Ok(pipelines)
}

impl Parser<'_> {
    fn pipeline(&mut self) -> Result<Pipeline, ScriptError> {
        let mut stages = vec![self.stage()?];
        while self.peek() == Some(&TokenKind::Pipe) {
            self.at += 1;
            stages.push(self.stage()?);
        }
        Ok(stages)
    }

    fn stage(&mut self) -> Result<Stage, ScriptError> {
        self.part()?;
        let span = self.span();
        if let Some(TokenKind::Command(command)) = self.peek() {
            let kind = StageKind::Shell(command.clone());
            self.at += 1;
            return self.command(Stage { span, kind });
        }
        let Some(word) = self.word().map(str::to_string) else { return Err(self.expected("a stage")) };
        self.at += 1;
        let Some(kind) = self.stage_of(&word)? else {
            let error = ScriptError::new(span, format!("there is no stage `{word}`"));
            let known = STAGES.iter().chain(ENCODINGS).copied();
            let command = "a command of the system is written sh \"..\"";
            return Err(match (instead_of(&word), nearest(&word, known)) {
                (Some(stage), _) => error.with_help(format!("{stage}; {command}")),
                (None, Some(near)) => error.with_help(format!("is it `{near}`? {command}")),
                (None, None) => error.with_help(command),
            });
        };
        self.command(Stage { span, kind })
    }

    /// Refuses a command with a zero byte, because no argument of a process may hold one.
    fn command(&self, stage: Stage) -> Result<Stage, ScriptError> {
        match &stage.kind {
            StageKind::Shell(command) if command.contains('\0') => {
                Err(ScriptError::new(self.behind(), "a command holds no zero byte"))
            }
            _ => Ok(stage),
        }
    }

    fn stage_of(&mut self, word: &str) -> Result<Option<StageKind>, ScriptError> {
        let of =
            |table: &[(&str, _)]| table.iter().find(|(other, _)| *other == word).map(|(_, thing)| *thing);
        if let Some(change) = of(CHANGES) {
            return Ok(Some(StageKind::Change(change)));
        }
        if let Some((_, kind)) = FOLDS.iter().find(|(other, _)| *other == word) {
            return Ok(Some(StageKind::Fold(*kind)));
        }
        if let Some((_, kind)) = JOINS.iter().find(|(other, _)| *other == word) {
            self.needs_sign(&TokenKind::Open, "`(` and a pipeline")?;
            let inner = self.deeper(Self::pipeline)?;
            self.needs_sign(&TokenKind::Close, "`|` or `)`")?;
            return Ok(Some(StageKind::Join2(*kind, inner)));
        }
        for known in [Self::end_of, Self::record_of, Self::item_of, Self::change_of, Self::branch_of] {
            if let Some(kind) = known(self, word)? {
                return Ok(Some(kind));
            }
        }
        Ok(None)
    }

    /// A source or a target, or a command of the system.
    fn end_of(&mut self, word: &str) -> Result<Option<StageKind>, ScriptError> {
        Ok(Some(match word {
            "file" | "cat" => {
                let mut names = vec![self.name()?];
                while self.is_text() || self.word().is_some_and(|word| !CLOSING.contains(&word)) {
                    names.push(self.name()?);
                }
                StageKind::File(names)
            }
            "stdin" => StageKind::Stdin,
            "text" => StageKind::Text(self.text()?),
            "range" => self.range()?,
            "sh" => StageKind::Shell(self.string()?),
            "append" if self.takes("to") => StageKind::AppendTo(self.name()?),
            "to" => StageKind::To(self.name()?),
            _ => return Ok(None),
        }))
    }

    /// A stage that makes items of another kind.
    fn record_of(&mut self, word: &str) -> Result<Option<StageKind>, ScriptError> {
        Ok(Some(match word {
            "lines" => StageKind::Lines,
            "each" => StageKind::Each(self.condition()?),
            "csv" => StageKind::Csv(self.comma_or_other()?),
            "rows" => StageKind::Rows(self.comma_or_other()?),
            "fields" => StageKind::Fields(if self.is_text() { Some(self.separator()?) } else { None }),
            "column" => StageKind::Column(self.place()?),
            "columns" => {
                let mut columns = vec![self.place()?];
                while self.word().is_some_and(|word| word.bytes().all(|byte| byte.is_ascii_digit())) {
                    columns.push(self.place()?);
                }
                StageKind::Columns(columns)
            }
            "join" => StageKind::Join(self.text()?),
            "bytes" => StageKind::Bytes,
            "decimals" => StageKind::Decimals,
            "integers" => StageKind::Integers,
            _ => return Ok(None),
        }))
    }

    /// A stage that chooses, counts or orders items.
    fn item_of(&mut self, word: &str) -> Result<Option<StageKind>, ScriptError> {
        Ok(Some(match word {
            "having" | "select" => {
                let condition = self.condition()?;
                StageKind::Having(condition, self.takes("numbered"))
            }
            "first" => StageKind::First(self.natural()?),
            "skip" => StageKind::Skip(self.natural()?),
            "last" => StageKind::Last(self.natural()?),
            "count" => StageKind::Count,
            "unique" => StageKind::Unique,
            "tally" => StageKind::Tally,
            "sort" => {
                let mut order = Order::default();
                if self.takes("by") {
                    self.needs("column")?;
                    order.column = Some(self.place()?);
                }
                order.numeric = self.takes("numeric");
                order.descending = self.takes("descending");
                StageKind::Sort(order)
            }
            _ => return Ok(None),
        }))
    }

    /// A stage that changes text.
    fn change_of(&mut self, word: &str) -> Result<Option<StageKind>, ScriptError> {
        Ok(Some(match word {
            "number" => StageKind::Number,
            "replace" => {
                let pattern = match self.takes("regex") {
                    true => Pattern::Regex(self.regex()?),
                    false => Pattern::Text(self.some_text()?),
                };
                self.needs("with")?;
                StageKind::Replace(pattern.clone(), self.replacement(&pattern)?)
            }
            "substitute" => StageKind::Substitute(self.text()?),
            "prepend" => StageKind::Prepend(self.text()?),
            "append" => StageKind::Append(self.text()?),
            _ => return Ok(None),
        }))
    }

    /// A stage that has stages within.
    fn branch_of(&mut self, word: &str) -> Result<Option<StageKind>, ScriptError> {
        Ok(Some(match word {
            "if" | "foreach" => {
                let condition = self.condition()?;
                self.needs("then")?;
                let then = self.branch()?;
                let otherwise = if self.takes("else") { self.branch()? } else { Vec::new() };
                self.needs("end")?;
                let foreach = word == "foreach";
                StageKind::Branch(Box::new(Branch { foreach, condition, then, otherwise }))
            }
            "while" => {
                let condition = self.condition()?;
                self.needs("then")?;
                let body = self.deeper(Self::pipeline)?;
                self.needs("end")?;
                StageKind::While(Box::new(condition), body)
            }
            _ => return Ok(None),
        }))
    }

    /// The stages of a branch, which may be none.
    fn branch(&mut self) -> Result<Pipeline, ScriptError> {
        if matches!(self.word(), Some("else" | "end")) {
            return Ok(Vec::new());
        }
        self.deeper(Self::pipeline)
    }
}
