//! [`Parser`], and what it reads for all of the grammar: words, signs, texts, names and numbers,
//! each with the error that says what was expected. `parse.rs` and `conditions.rs` call it.

use crate::language::error::{ScriptError, Span};
use crate::language::token::{Token, TokenKind};
use crate::language::tree::*;
use crate::language::words::instead_of_sign;
use selvedge_pipeline::Number;

/// How deep stages and conditions may lie within one another.
pub(super) const DEPTH: usize = 64;

/// How many stages and conditions a pipeline may have. Each stage calls the next one, so a long
/// pipeline needs a deep stack.
const PARTS: usize = 1000;

/// Words that end the part of a script before them.
pub(super) const CLOSING: [&str; 3] = ["then", "else", "end"];

/// The state of the parser: the tokens, and the place that it has reached.
pub(super) struct Parser<'a> {
    tokens: &'a [Token],
    pub(super) at: usize,
    /// The length of the script.
    end: usize,
    depth: usize,
    /// The stages and conditions of this pipeline that have been read.
    parts: usize,
}

impl<'a> Parser<'a> {
    pub(super) fn new(tokens: &'a [Token], end: usize) -> Parser<'a> {
        Parser { tokens, at: 0, end, depth: 0, parts: 0 }
    }

    /// Begins a pipeline: its parts are counted anew.
    pub(super) fn begin(&mut self) {
        self.parts = 0;
    }

    pub(super) fn peek(&self) -> Option<&TokenKind> {
        self.tokens.get(self.at).map(|token| &token.kind)
    }

    /// The next token, if it is a word.
    pub(super) fn word(&self) -> Option<&str> {
        match self.peek() {
            Some(TokenKind::Word(word)) => Some(word),
            _ => None,
        }
    }

    /// Where the next token is.
    pub(super) fn span(&self) -> Span {
        self.tokens.get(self.at).map_or(Span::new(self.end, self.end), |token| token.span)
    }

    /// Where the last token is.
    pub(super) fn behind(&self) -> Span {
        self.at.checked_sub(1).and_then(|at| self.tokens.get(at)).map_or(Span::default(), |token| token.span)
    }

    /// The error that the next token is not `what`.
    pub(super) fn expected(&self, what: &str) -> ScriptError {
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
    pub(super) fn takes(&mut self, word: &str) -> bool {
        let is = self.word() == Some(word);
        self.at += usize::from(is);
        is
    }

    pub(super) fn needs(&mut self, word: &str) -> Result<(), ScriptError> {
        if self.takes(word) { Ok(()) } else { Err(self.expected(&format!("`{word}`"))) }
    }

    pub(super) fn needs_sign(&mut self, sign: &TokenKind, name: &str) -> Result<(), ScriptError> {
        if self.peek() != Some(sign) {
            return Err(self.expected(name));
        }
        self.at += 1;
        Ok(())
    }

    pub(super) fn is_text(&self) -> bool {
        matches!(self.peek(), Some(TokenKind::Text(_)))
    }

    /// Whether a text in quotes stands behind the next token.
    pub(super) fn text_follows(&self) -> bool {
        matches!(self.tokens.get(self.at + 1), Some(Token { kind: TokenKind::Text(_), .. }))
    }

    /// A text in quotes.
    pub(super) fn text(&mut self) -> Result<Vec<u8>, ScriptError> {
        let Some(TokenKind::Text(text)) = self.peek() else { return Err(self.expected("a text in quotes")) };
        let text = text.clone();
        self.at += 1;
        Ok(text)
    }

    /// A text in quotes that is not empty.
    pub(super) fn some_text(&mut self) -> Result<Vec<u8>, ScriptError> {
        let text = self.text()?;
        if text.is_empty() {
            Err(ScriptError::new(self.behind(), "the text must not be empty"))
        } else {
            Ok(text)
        }
    }

    /// A text in quotes that is UTF-8.
    pub(super) fn string(&mut self) -> Result<String, ScriptError> {
        let text = self.text()?;
        String::from_utf8(text).map_err(|_| ScriptError::new(self.behind(), "this text must be UTF-8"))
    }

    /// A regular expression.
    pub(super) fn regex(&mut self) -> Result<String, ScriptError> {
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
    pub(super) fn replacement(&mut self, pattern: &Pattern) -> Result<Vec<u8>, ScriptError> {
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
    pub(super) fn name(&mut self) -> Result<String, ScriptError> {
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
    pub(super) fn file_name(&self, name: String) -> Result<String, ScriptError> {
        if name.is_empty() || name.contains('\0') {
            return Err(ScriptError::new(self.behind(), "no file has this name"));
        }
        Ok(name)
    }

    /// How many, or which: a natural number from 1.
    pub(super) fn natural(&mut self) -> Result<u64, ScriptError> {
        let number = self.word().and_then(|word| word.parse().ok()).filter(|number| *number >= 1);
        let Some(number) = number else { return Err(self.expected("a whole number from 1")) };
        self.at += 1;
        Ok(number)
    }

    /// Any number.
    pub(super) fn number(&mut self) -> Result<Number, ScriptError> {
        let Some(number) = self.word().and_then(Number::of) else { return Err(self.expected("a number")) };
        self.at += 1;
        Ok(number)
    }

    pub(super) fn range(&mut self) -> Result<StageKind, ScriptError> {
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
    pub(super) fn place(&mut self) -> Result<usize, ScriptError> {
        let number = self.natural()?;
        usize::try_from(number).map_err(|_| ScriptError::new(self.behind(), "no record is so long"))
    }

    /// What stands between the fields of a line: one byte in quotes. A quote is a byte like others,
    /// because `fields` knows no quoted fields.
    pub(super) fn separator(&mut self) -> Result<u8, ScriptError> {
        match self.text()?[..] {
            [byte] if byte != b'\n' => Ok(byte),
            _ => Err(ScriptError::new(self.behind(), "`fields` cuts at one byte, and at no line end")),
        }
    }

    /// A delimiter of CSV: one byte in quotes.
    pub(super) fn delimiter(&mut self) -> Result<u8, ScriptError> {
        match self.text()?[..] {
            [byte] if byte != b'"' && byte != b'\n' && byte != b'\r' => Ok(byte),
            _ => {
                Err(ScriptError::new(self.behind(), "a delimiter is one byte, and no quote and no line end"))
            }
        }
    }

    /// A delimiter of CSV, which may be left out.
    pub(super) fn comma_or_other(&mut self) -> Result<u8, ScriptError> {
        if self.is_text() { self.delimiter() } else { Ok(b',') }
    }

    /// Calls `inner` one level deeper.
    pub(super) fn deeper<T>(
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
    pub(super) fn part(&mut self) -> Result<(), ScriptError> {
        self.parts += 1;
        if self.parts <= PARTS {
            return Ok(());
        }
        let message = format!("more than {PARTS} stages and conditions in one pipeline");
        Err(ScriptError::new(self.span(), message))
    }
}
