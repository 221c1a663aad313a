//! [`ScriptError`]: the error of the whole shell, with the place in the script, and [`Span`], that
//! place.
//!
//! The lexer, the parser and the check make errors, and `run.rs` makes one of each failure of a
//! stage. `main.rs` and the prompt write them with [`ScriptError::shown`]. Two spans are always
//! equal, because trees are compared without their places.

use std::fmt::Write;
use unicode_width::UnicodeWidthChar;

/// A range of bytes of a script. All spans are equal, so that two trees are equal if they mean the
/// same.
#[derive(Debug, Clone, Copy, Default)]
pub struct Span {
    /// The first byte.
    pub begin: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl PartialEq for Span {
    fn eq(&self, _other: &Span) -> bool {
        true
    }
}

impl Eq for Span {}

impl Span {
    /// From `begin` to before `end`.
    pub fn new(begin: usize, end: usize) -> Span {
        Span { begin, end }
    }

    /// From the beginning of `self` to the end of `other`.
    #[must_use]
    pub fn to(self, other: Span) -> Span {
        Span { begin: self.begin, end: other.end }
    }
}

/// What is wrong with a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptError {
    /// Where.
    pub span: Span,
    /// What is wrong.
    pub message: String,
    /// What was expected, or what would help.
    pub help: Option<String>,
}

impl ScriptError {
    /// An error without help.
    pub fn new(span: Span, message: impl Into<String>) -> ScriptError {
        ScriptError { span, message: message.into(), help: None }
    }

    /// The same error, with help.
    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> ScriptError {
        self.help = Some(help.into());
        self
    }

    /// The error as it is shown: the message with its place in `file`, the line with a caret
    /// under the place, the help.
    ///
    /// # Examples
    /// ```
    /// use selvedge_pipe::language::parse;
    ///
    /// let error = parse("lines | knot").unwrap_err();
    /// let shown = error.shown("-c", "lines | knot");
    /// let expected = "-c:1:9: there is no stage `knot`\n  lines | knot\n          ^~~~\n";
    /// assert!(shown.starts_with(expected));
    /// ```
    pub fn shown(&self, file: &str, text: &str) -> String {
        let (line, column) = place(text, self.span.begin);
        let begin = text[..floor(text, self.span.begin)].rfind('\n').map_or(0, |at| at + 1);
        let shown = text[begin..].lines().next().unwrap_or_default();
        let mut out = format!("{file}:{line}:{column}: {}\n  {shown}\n  ", self.message);
        // A tab stays a tab, so that the caret stands below its place.
        for char in shown.chars().take(column - 1) {
            let blanks = if char == '\t' { "\t" } else { &"  "[..cells_of(char)] };
            out.push_str(blanks);
        }
        let from = floor(text, self.span.begin).min(begin + shown.len());
        let to = floor(text, self.span.end).clamp(from, begin + shown.len());
        let length = text[from..to].chars().map(cells_of).sum::<usize>().max(1);
        let _ = write!(out, "^{}", "~".repeat(length - 1));
        if let Some(help) = &self.help {
            let _ = write!(out, "\n  {help}");
        }
        out
    }
}

/// How many cells of a terminal a character takes. A control character takes none.
pub(crate) fn cells_of(char: char) -> usize {
    char.width().unwrap_or(0)
}

/// The last place at or before `at` where a character begins.
fn floor(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// The line and the column of a byte, both from 1. A column is a character.
pub fn place(text: &str, at: usize) -> (usize, usize) {
    let before = &text[..floor(text, at)];
    let begin = before.rfind('\n').map_or(0, |at| at + 1);
    (before.matches('\n').count() + 1, before[begin..].chars().count() + 1)
}
