//! [`ConfigError`]: what is wrong with a configuration, and where. Both front ends give it.

use std::fmt;
use strsim::osa_distance;

/// What is wrong with a configuration: file, line, column and the words for the operator.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigError {
    /// The file as it was named.
    pub file: String,
    /// The line, from 1; 0 if it is no matter of one line.
    pub line: usize,
    /// The column in characters, from 1; 0 if it is no matter of one.
    pub column: usize,
    /// What is wrong, and what may have been meant.
    pub message: String,
}

impl ConfigError {
    /// A mistake at byte `at` of `text`.
    pub fn at(file: &str, text: &str, at: usize, message: impl Into<String>) -> ConfigError {
        let before = &text[..text.floor_char_boundary(at.min(text.len()))];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        ConfigError {
            file: file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            message: message.into(),
        }
    }
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.file)?;
        for place in [self.line, self.column].into_iter().filter(|place| *place > 0) {
            write!(f, ":{place}")?;
        }
        write!(f, ": {}", self.message)
    }
}

impl std::error::Error for ConfigError {}

/// The word of `known` that `word` is likely a misspelling of: few letters are changed, added,
/// removed or exchanged with their neighbour. Capitals count as small letters, and `-` as `_`.
pub(crate) fn meant<'k>(word: &str, known: impl IntoIterator<Item = &'k str>) -> Option<&'k str> {
    let most = (word.chars().count() / 3).clamp(1, 3);
    let plain = |text: &str| text.to_lowercase().replace('-', "_");
    let word = plain(word);
    known
        .into_iter()
        .map(|candidate| (osa_distance(&word, &plain(candidate)), candidate))
        .filter(|(distance, _)| *distance <= most)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_words() {
        let known = ["listen", "workers", "directory", "redirect"];
        for (word, expected) in [
            ("lisen", Some("listen")),
            ("Listen", Some("listen")),
            ("wrokers", Some("workers")),
            ("directoy", Some("directory")),
            ("proxy", None),
            ("x", None),
        ] {
            assert_eq!(meant(word, known), expected, "{word}");
        }
    }

    #[test]
    fn places() {
        let text = "a\n\u{e4}b\nc";
        let place = |at| {
            let ConfigError { line, column, .. } = ConfigError::at("f", text, at, "");
            (line, column)
        };
        assert_eq!(
            [place(0), place(2), place(4), place(6), place(99)],
            [(1, 1), (2, 1), (2, 2), (3, 1), (3, 2)]
        );
        let whole = ConfigError { file: "f".into(), line: 0, column: 0, message: "m".into() };
        assert_eq!(
            (whole.to_string(), ConfigError::at("f", text, 2, "m").to_string()),
            ("f: m".into(), "f:2:1: m".into())
        );
    }
}
