//! [`ManifestError`]: the error of the lexer, the parser and the reader of dyndep files.
//!
//! `Lexer::error` makes it, with the place of the last token. `MakeError` and `DyndepError` hold
//! it.

use std::error::Error;
use std::fmt;

/// A file that cannot be understood: the message, the place, and the line with a caret below the
/// place. As ninja's text, it shows no line if the place is the beginning of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ManifestError {
    /// The file.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in bytes.
    pub column: usize,
    /// What is wrong.
    pub message: String,
    /// The line's text.
    pub text: String,
}

/// The longest line that is shown with its message.
const SHOWN: usize = 72;

impl ManifestError {
    /// Something wrong at byte `at` of `text`. O(at).
    pub(crate) fn at(file: &[u8], text: &[u8], at: usize, message: String) -> ManifestError {
        let at = at.min(text.len());
        let before = &text[..at];
        let start = memchr::memrchr(b'\n', before).map_or(0, |newline| newline + 1);
        let end = memchr::memchr(b'\n', &text[at..]).map_or(text.len(), |newline| at + newline);
        ManifestError {
            file: String::from_utf8_lossy(file).into_owned(),
            line: memchr::memchr_iter(b'\n', before).count() + 1,
            column: at - start + 1,
            message,
            text: String::from_utf8_lossy(&text[start..end]).trim_end_matches('\r').to_string(),
        }
    }
}

impl fmt::Display for ManifestError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)?;
        // An error of a whole statement is found at the line behind it, which tells nothing of it.
        if self.column == 1 {
            return Ok(());
        }
        let shown: String = self.text.chars().take(SHOWN).collect();
        let dots = if shown.len() < self.text.len() { "..." } else { "" };
        write!(f, "\n{shown}{dots}")?;
        if self.column <= SHOWN {
            write!(f, "\n{:>width$} near here", "^", width = self.column)?;
        }
        Ok(())
    }
}

impl Error for ManifestError {}
