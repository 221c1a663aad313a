//! The parser: from tokens to a tree, by recursive descent over the grammar in `language/mod.rs`.
//!
//! `run::prepare` and `interactive/complete.rs` call [`parse`].
//!
//! The parser knows no kinds: `kinds.rs` checks afterwards whether the stages fit. But it reads
//! each regular expression and each number, so no later module meets a wrong one. `deeper` limits
//! how deep a script may nest, and `part` how long a pipeline may be, because parser, check,
//! printer and the stages recurse.

use super::error::{ScriptError, Span};
use super::nearest::nearest;
use super::token::{Token, TokenKind, tokens};
use super::tree::*;
use super::words::{CONDITIONS, ENCODINGS, STAGES, instead_of, instead_of_sign};
use selvedge_coroutine::pipeline::Number;

/// How deep stages and conditions may lie within one another.
const DEPTH: usize = 64;

/// How many stages and conditions a pipeline may have. Each stage calls the next one, so a long
/// pipeline needs a deep stack.
const PARTS: usize = 1000;

/// Words that end the part of a script before them.
const CLOSING: [&str; 3] = ["then", "else", "end"];

/// Reads a script.
///
/// # Errors
/// The first error, with its place.
pub fn parse(text: &str) -> Result<Vec<Pipeline>, ScriptError> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, end: text.len(), depth: 0, parts: 0 };
    let mut pipelines = Vec::new();
    while parser.peek().is_some() {
        parser.parts = 0;
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

/// Makes one condition of two.
type Relation = fn(Box<Condition>, Box<Condition>) -> ConditionKind;

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    /// The length of the script.
    end: usize,
    depth: usize,
    /// The stages and conditions of this pipeline that have been read.
    parts: usize,
}

impl Parser<'_> {
    fn peek(&self) -> Option<&TokenKind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    /// The next token, if it is a word.
    fn word(&self) -> Option<&str> {
        match self.peek() {
            Some(TokenKind::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Where the next token is.
    fn span(&self) -> Span {
        self.tokens.get(self.at).map_or(Span::new(self.end, self.end), |token| token.span)
    }

    /// Where the last token is.
    fn behind(&self) -> Span {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(Span::default(), |token| token.span)
    }

    /// The error that the next token is not `what`.
    fn expected(&self, what: &str) -> ScriptError {
        let found = match self.peek() {
            None => "the end".to_string(),
            Some(TokenKind::Word(word)) => format!("`{word}`"),
            Some(TokenKind::Text(_)) => "a text".to_string(),
            Some(TokenKind::Command(_)) => "a command".to_string(),
            Some(TokenKind::Pipe) => "`|`".to_string(),
            Some(TokenKind::Semicolon) => "`;`".to_string(),
            Some(TokenKind::Open) => "`(`".to_string(),
            Some(TokenKind::Close) => "`)`".to_string(),
        };
        ScriptError::new(self.span(), format!("expected {what}, found {found}"))
    }

    /// Takes the word if it is the next token.
    fn takes(&mut self, word: &str) -> bool {
        let is = self.word() == Some(word);
        self.at += usize::from(is);
        is
    }

    fn needs(&mut self, word: &str) -> Result<(), ScriptError> {
        if self.takes(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    fn needs_sign(&mut self, sign: &TokenKind, name: &str) -> Result<(), ScriptError> {
        if self.peek() != Some(sign) {
            return Err(self.expected(name));
        }
        self.at += 1;
        Ok(())
    }

    fn is_text(&self) -> bool {
        matches!(self.peek(), Some(TokenKind::Text(_)))
    }

    /// A text in quotes.
    fn text(&mut self) -> Result<Vec<u8>, ScriptError> {
        let Some(TokenKind::Text(text)) = self.peek() else { return Err(self.expected("a text in quotes")) };
        let text = text.clone();
        self.at += 1;
        Ok(text)
    }

    /// A text in quotes that is not empty.
    fn some_text(&mut self) -> Result<Vec<u8>, ScriptError> {
        let text = self.text()?;
        if text.is_empty() {
            Err(ScriptError::new(self.behind(), "the text must not be empty"))
        } else {
            Ok(text)
        }
    }

    /// A text in quotes that is UTF-8.
    fn string(&mut self) -> Result<String, ScriptError> {
        let text = self.text()?;
        String::from_utf8(text).map_err(|_| ScriptError::new(self.behind(), "this text must be UTF-8"))
    }

    /// A regular expression.
    fn regex(&mut self) -> Result<String, ScriptError> {
        let pattern = self.string()?;
        if crate::regex::names_line_end(&pattern) == Ok(true) {
            let error =
                ScriptError::new(self.behind(), "no match has a line end in it, so `\\n` finds nothing");
            return Err(error.with_help(
                "`$` is the end of a line; over bytes, `replace \"\\n\" with \"..\"` finds line ends",
            ));
        }
        match crate::regex::lines(&pattern) {
            Ok(_) => Ok(pattern),
            Err(error) => Err(ScriptError::new(self.behind(), format!("not a regular expression: {error}"))),
        }
    }

    /// The text that comes in place of a match. It may name groups of a regular expression.
    fn replacement(&mut self, pattern: &Pattern) -> Result<Vec<u8>, ScriptError> {
        let text = self.text()?;
        let Pattern::Regex(pattern) = pattern else { return Ok(text) };
        let regex = crate::regex::lines(pattern).expect("it has just been read");
        match crate::regex::unknown_group(&regex, &text) {
            None => Ok(text),
            Some(group) => {
                let error = ScriptError::new(self.behind(), format!("the expression has no group `{group}`"));
                Err(error.with_help("a group before a letter or digit is ${1}, and $$ is a dollar sign"))
            }
        }
    }

    /// The name of a file: a word, or a text in quotes.
    fn name(&mut self) -> Result<String, ScriptError> {
        let name = match self.peek() {
            Some(TokenKind::Word(word)) if !CLOSING.contains(&word.as_str()) => {
                if let Some(help) = instead_of_sign(word) {
                    let message = format!("`{word}` is a sign of other shells, and no name of a file");
                    let help = format!("{help}; a file of this name stands in quotes");
                    return Err(ScriptError::new(self.span(), message).with_help(help));
                }
                word.clone()
            }
            Some(TokenKind::Text(_)) => {
                let name = self.string()?;
                return self.file_name(name);
            }
            _ => return Err(self.expected("the name of a file")),
        };
        self.at += 1;
        self.file_name(name)
    }

    /// Refuses a name that no file has. The name is the last token.
    fn file_name(&self, name: String) -> Result<String, ScriptError> {
        if name.is_empty() || name.contains('\0') {
            return Err(ScriptError::new(self.behind(), "no file has this name"));
        }
        Ok(name)
    }

    /// How many, or which: a natural number from 1.
    fn natural(&mut self) -> Result<u64, ScriptError> {
        let number = self.word().and_then(|word| word.parse().ok()).filter(|number| *number >= 1);
        let Some(number) = number else { return Err(self.expected("a whole number from 1")) };
        self.at += 1;
        Ok(number)
    }

    /// Any number.
    fn number(&mut self) -> Result<Number, ScriptError> {
        let Some(number) = self.word().and_then(Number::of) else { return Err(self.expected("a number")) };
        self.at += 1;
        Ok(number)
    }

    fn range(&mut self) -> Result<StageKind, ScriptError> {
        let (from, to) = (self.number()?, self.number()?);
        let step = if self.takes("by") { self.number()? } else { Number::from(1_u64) };
        if step == Number::from(0_u64) {
            return Err(ScriptError::new(self.behind(), "a range with steps of 0 has no end"));
        }
        // A sum of two of them has as many digits as a number of the range has at most.
        if [(&from, &to), (&from, &step), (&to, &step)].iter().any(|(a, b)| a.checked_add(b).is_none()) {
            let message = "a number of this range has more than a million digits";
            return Err(ScriptError::new(self.behind(), message));
        }
        Ok(StageKind::Range(from, to, step))
    }

    /// The number of a column, from 1.
    fn place(&mut self) -> Result<usize, ScriptError> {
        let number = self.natural()?;
        usize::try_from(number).map_err(|_| ScriptError::new(self.behind(), "no record is so long"))
    }

    /// What stands between the fields of a line: one byte in quotes. A quote is a byte like others,
    /// because `fields` knows no quoted fields.
    fn separator(&mut self) -> Result<u8, ScriptError> {
        match self.text()?[..] {
            [byte] if byte != b'\n' => Ok(byte),
            _ => Err(ScriptError::new(self.behind(), "`fields` cuts at one byte, and at no line end")),
        }
    }

    /// A delimiter of CSV: one byte in quotes.
    fn delimiter(&mut self) -> Result<u8, ScriptError> {
        match self.text()?[..] {
            [byte] if byte != b'"' && byte != b'\n' && byte != b'\r' => Ok(byte),
            _ => {
                Err(ScriptError::new(self.behind(), "a delimiter is one byte, and no quote and no line end"))
            }
        }
    }

    /// A delimiter of CSV, which may be left out.
    fn comma_or_other(&mut self) -> Result<u8, ScriptError> {
        if self.is_text() { self.delimiter() } else { Ok(b',') }
    }

    /// Calls `inner` one level deeper.
    fn deeper<T>(
        &mut self,
        inner: impl FnOnce(&mut Self) -> Result<T, ScriptError>,
    ) -> Result<T, ScriptError> {
        if self.depth == DEPTH {
            return Err(ScriptError::new(
                self.span(),
                format!("more than {DEPTH} levels within one another"),
            ));
        }
        self.depth += 1;
        let made = inner(self);
        self.depth -= 1;
        made
    }

    /// Counts a stage or a condition, which begins here.
    fn part(&mut self) -> Result<(), ScriptError> {
        self.parts += 1;
        if self.parts <= PARTS {
            return Ok(());
        }
        let message = format!("more than {PARTS} stages and conditions in one pipeline");
        Err(ScriptError::new(self.span(), message))
    }

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
            "append" if self.takes("to") => StageKind::AppendTo(self.name()?),
            "append" => StageKind::Append(self.text()?),
            "to" => StageKind::To(self.name()?),
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

    fn condition(&mut self) -> Result<Condition, ScriptError> {
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
        let kind = match &word[..] {
            "column" => {
                let column = self.place()?;
                let Some(test) = self.test()? else { return Err(self.expected("what the column is to be")) };
                ConditionKind::Column(column, test)
            }
            "line" => ConditionKind::Line,
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
            "everything" => ConditionKind::Everything,
            "nothing" => ConditionKind::Nothing,
            "not" => ConditionKind::Not(self.inner()?),
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
            "between" => {
                let from = self.inner()?;
                self.needs("and")?;
                ConditionKind::Between(from, self.inner()?)
            }
            _ => {
                let error = ScriptError::new(span, format!("there is no condition `{word}`"));
                return Err(match nearest(&word, CONDITIONS.iter().copied()) {
                    Some(near) => error.with_help(format!("is it `{near}`?")),
                    None => error,
                });
            }
        };
        Ok(Condition { span, kind })
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
        let texts = matches!(self.tokens.get(self.at + 1), Some(Token { kind: TokenKind::Text(_), .. }));
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
